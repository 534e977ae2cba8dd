"""The cycle model: what a schedule takes on an array, modelled and held against the trace of generated code.

``cost`` prices schedules, layers and grids of candidates; ``passes`` is the loop over the tiles of a pass, the same for
both engines, and ``phases`` what it tells an engine. Of the engine in C++ are ``transfers`` (rows, weights and results
that move while the array computes), ``saver`` (the output stage) and ``leaving`` (its words on their way to DDR), of
the one in SystemVerilog ``rtl``; of both ``ddr_shares`` (ports that share the memory), ``state`` (what is carried from
tile to tile), ``grid`` and ``arrays`` (the numbers) and ``clock`` (the lowest clock that holds a rate).
"""
