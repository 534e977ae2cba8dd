"""The demo's networks: the pictures that they were trained on, and how ``shapes`` was trained.

``scenes`` draws a picture from a seed and knows where its objects are, of what ``objects`` and ``backgrounds`` hold.
``folders`` writes pictures with labels for ``systolic train`` and ``evaluate``, ``samples`` those that come with the
networks. ``train`` makes the network ``shapes``: ``batches`` hands scenes to PyTorch, ``network`` is the network, and
``darknet_files`` writes it.
"""
