"""A graph → one with fewer operators, before it is read."""
