"""The systolic style: one array of PEs computes all layers; a schedule divides each layer into tiles.

Read ``style`` first: each of its methods calls the module that does the work.
"""
