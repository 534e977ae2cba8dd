"""Tools for whoever changes the project; the wheel does not hold them.

They record digests of what is generated and a snapshot of the public names, try mutants, compare figures, and make the
networks and pictures of the demo.
"""
