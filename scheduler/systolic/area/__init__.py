"""What an array takes of a board: its memories by primitive, its logic, and where each buffer is placed.

Estimates from structure, before any vendor tool. ``memories`` the buffers as data; ``logic`` what LUTs and FFs are
counted as; ``resources`` what all of it takes; ``placement`` the primitive for each buffer. The logic and the FIFOs of
an engine are in scheduler/systolic/engines, one folder for each.
"""
