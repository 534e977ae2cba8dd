"""Tools for developers of the project; they are not part of the wheel.

They record digests of generated designs and a snapshot of the public names. They try mutants, and compare the figures
of the documentation with a record. They make the networks and pictures of the demo.
"""
