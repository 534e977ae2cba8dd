"""The cycle model: what a schedule takes on an array, modelled and held against the trace of generated code.

``cost`` prices schedules, layers and grids of candidates; ``passes`` is the loop over the tiles of a pass, the same for
both engines, and ``phases`` what it tells an engine. ``progress`` is what is carried from tile to tile, ``ddr_shares``
the ports that share the memory, ``grid`` and ``arrays`` the numbers, and ``clock`` the lowest clock that holds a rate.
The recurrences of an engine are in scheduler/systolic/engines, one folder for each.
"""
