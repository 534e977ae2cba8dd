"""Operators that slide a window over a map, or spread it.

slide says where a window of a Conv or a pool lies, and what it leaves; pools, transposed and shuffled are operators;
blocks has convolutions whose outputs lie in turn, borders what some do at the edges of a map, where less than a whole
window is inside.
"""
