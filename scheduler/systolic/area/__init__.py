"""Estimates of the DSPs, BRAM36s, URAMs and LUTs that an array needs on a board.

The estimates are counted from the engine's structure, before any vendor tool runs. ``memories`` lists the buffers,
``logic`` defines the count of LUTs and FFs, ``resources`` adds up the whole engine, and ``placement`` chooses the
primitive for each buffer. Each engine has its own logic and FIFOs, in its folder of scheduler/systolic/engines.
"""
