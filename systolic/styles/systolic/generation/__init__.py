"""The systolic style's generator: every file of a design from a schedule. Read ``generate`` first, then ``plan``."""
