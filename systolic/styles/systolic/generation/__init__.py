"""The generator: it makes every file of a design from a schedule. Read ``generate`` first, then ``plan``."""
