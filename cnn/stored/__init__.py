"""Reads and writes a quantised network as one file. Files are not trusted: every part is checked before it is used."""
