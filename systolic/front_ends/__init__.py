"""The formats of network files: the ones of this project, and formats that other packages add."""
