"""The cycle model: an analytic estimate of the cycles and DDR bytes of a schedule on an array.

The benchmarks compare the model with the cycle trace of generated code. ``cost`` prices schedules, layers and grids of
candidates. ``passes`` is the loop over the tiles of a pass, which both engines share, and ``phases`` the data that it
passes to an engine. ``progress`` is the state that is carried from tile to tile, and ``ddr_shares`` the slowdown of
ports that share the DDR. ``arrays`` and ``grid`` hold the numbers of arrays and of a pass. ``clock`` finds the lowest
clock for a frame rate, and ``energy`` counts the activity that costs energy. Each engine has its own recurrences, in
its folder of scheduler/systolic/engines.
"""
