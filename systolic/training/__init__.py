"""Training in low precision on labelled pictures: a loaded network goes in, a network of few bits comes out.

data brings pictures and labels to the network's input, losses says how wrong an answer is, loop trains, checkpoint
holds what a stopped training goes on from. All but data need PyTorch.
"""
