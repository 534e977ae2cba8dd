"""The demo's networks: the pictures they are trained on, and the training of ``shapes``.

``scenes`` draws a picture from a seed, with known boxes, from ``objects`` and ``backgrounds``. ``folders`` writes such
pictures with labels for ``systolic train`` and ``evaluate``; ``samples`` writes the pictures shipped with the networks.
``train`` trains the network ``shapes``: ``network`` defines it, ``batches`` passes scenes to PyTorch, and
``darknet_files`` writes the result.
"""
