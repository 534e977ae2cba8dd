"""What an array takes of a board: its memories by primitive, its logic, and where each buffer is placed.

Estimates from structure, before any vendor tool. ``resources`` the engine's memories as data; ``fabric`` LUT and FF of
the logic; ``placement`` the primitive for each buffer.
"""
