"""Darknet's files: cfg, weights and names go in, a float network (cnn.network) comes out, and weights back again.

cfg reads the text and says which options are known, layers and heads turn its sections into nodes (graph is the network
while it grows), files reads and writes the numbers. Open files first: ``read_darknet`` runs the rest.
"""
