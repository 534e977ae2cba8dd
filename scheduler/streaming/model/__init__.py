"""Closed formulas for the time of a folding: the cycles of blocks, the converters between them, and FIFO depths."""
