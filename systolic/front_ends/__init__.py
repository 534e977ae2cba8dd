"""The formats of network files: the built-in ones, and formats that other packages add."""
