"""Training in low precision: PyTorch modules whose forward pass is the golden model's integers, value for value.

straight_through has the rounding that gradients pass, convolution a layer of it, network all layers of a topology
(cnn.exported), conversion makes a topology of a float network. Every module of it needs PyTorch.
"""
