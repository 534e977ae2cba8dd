"""The reader of darknet's files: cfg, weights and names files become a float network (cnn.network).

- ``cfg`` parses the text of a cfg file and checks its options.
- ``layers`` and ``heads`` turn its sections into nodes. ``graph`` is the network while it grows.
- ``files`` reads the numbers of a weights file, and writes such files.

Start reading in ``files``: ``read_darknet`` calls all the other modules.
"""
