"""How the network of cnn/models/shapes was trained: a seed goes in, darknet's cfg, weights and names come out.

scenes draws the pictures and knows where the objects are (objects and backgrounds hold what it draws), batches hands
them to PyTorch, model is the network, grid what its output means, loss what it is trained by, and darknet_files writes
it. Open train first: its command line runs them all. folders writes scenes for ``systolic train`` and ``evaluate``.
"""
