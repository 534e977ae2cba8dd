"""Low-precision training of a loaded network on labelled pictures.

``data`` makes batches of pictures and labels at the network's input size. ``losses`` computes the loss, and ``loop``
trains. ``checkpoint`` stores the state from which a stopped training resumes. ``darknet`` writes the trained network in
darknet's format. All modules but ``data`` and ``darknet`` need PyTorch.
"""
