"""The two engines as values: what a pass takes, the logic and the memories, and what each language can express.

``engine`` the protocol; ``hls`` the engine in C++; ``rtl`` the engine in SystemVerilog; ``table`` both of them by the
name that an array has; ``language`` the facts of a language that hold for every array. No other module asks which
engine an array is of.
"""
