"""A schedule → every file of its design, in memory: open ``generate`` first, then ``plan``."""
