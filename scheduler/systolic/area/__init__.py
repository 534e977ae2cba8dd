"""What an array takes of a board: its memories by primitive, its logic, and where each buffer is placed.

Estimates from structure, before any vendor tool. ``memories`` the buffers as data; ``hls_fifos``, ``rtl_fifos`` the
FIFOs of each engine; ``hls_fabric``, ``rtl_fabric`` LUT and FF of its logic; ``resources`` what all of it takes;
``placement`` the primitive for each buffer.
"""
