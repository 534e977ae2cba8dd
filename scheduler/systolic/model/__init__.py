"""The cycle model: what a schedule takes on an array, modelled and held against the trace of generated code.

``cost`` prices schedules, layers and grids of candidates; ``passes`` is the recurrence over the tiles of a pass, with
``transfers`` (rows, weights, results beside the array), ``saver`` (the output stage), ``leaving`` (its words on their
way to DDR) and ``ddr_shares`` (ports that share the memory); ``state`` what is carried from tile to tile; ``grid`` and
``arrays`` the numbers; ``clock`` the lowest clock that holds a rate.
"""
