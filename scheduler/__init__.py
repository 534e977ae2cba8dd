"""The mapping of a network onto a board: one mapping per style, both based on the same hardware facts.

``systolic`` chooses a systolic array and tiles each layer on it. ``streaming`` gives each layer its own hardware and
folds that hardware to a frame rate. ``hardware`` has the facts of boards and FPGA primitives. ``hand_edited`` reads
the schedules and foldings that people edit. This package decides sizes only; it generates no code.
"""
