"""The generator: it makes every file of a design from a folding. Read ``generate`` first, then ``plan``."""
