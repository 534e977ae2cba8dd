"""The time of a folding, as closed formulas: cycles of blocks, converters between them, and what waits at joins."""
