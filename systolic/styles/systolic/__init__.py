"""The systolic style: one array of PEs computes all layers, as a schedule divides them into tiles.

Read ``style`` first: each of its methods calls the module that does the work.
"""
