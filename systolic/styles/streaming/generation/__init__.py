"""The streaming style's generator: every file of a design from a folding. Read ``generate`` first, then ``plan``."""
