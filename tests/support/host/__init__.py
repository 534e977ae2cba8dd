"""Designs, boards and files for the tests of the host."""
