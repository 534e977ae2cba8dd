"""Labelled pictures as datasets lie on disk: one module a layout, and ``read`` which finds out which one it is."""
