"""Builds a pipeline's C++ top function from a folding: the function of each block, and the streams between them."""
