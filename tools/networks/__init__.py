"""The fixed set of networks with which engines are compared: ``python -m tools.networks --help``.

``networks.toml`` lists each network with its digest, and with the MACs and parameters that its authors published.
``classifiers``, ``detectors`` and ``segmentation`` write the networks that the project does not have built in, by
their public layer tables and with random weights.
"""
