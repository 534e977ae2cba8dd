"""The properties of each kind of block, and blocks that other packages add."""
