"""The two engines as values: the cycles of a pass, the logic and memories of an array, and the options of a language.

``engine`` has the protocol. ``hls`` is the engine in C++, and ``rtl`` the engine in SystemVerilog. ``table`` finds the
engine of an array by its name. ``language`` has the facts about each language that hold for every array. Other modules
call the engine of an array and do not distinguish between engines.
"""
