"""The tiled systolic style: the choice of a systolic array for a network, and the tiling of each layer on this array.

========================  ==============================================================================================
``array``                 the geometry of the array and the rules that every array obeys
``layers``, ``network/``  the lowering of a network to the layers that the array executes
``workload``              a lowered network: its layers, its batch and whether residual adds are fused
``shape``                 the numbers of a layer that its cost and the rules depend on
``tiling``                the ways to tile one layer, and the buffers that each of them needs
``schedule``              a whole schedule: an array and one tiling per layer
``needs``, ``rules``      the checks of a schedule
``on_chip``               the rules for maps that stay on chip
``map_buffers``           the places of these maps in the two map buffers
``engines/``              the two engines (HLS and RTL) as values
``model/``                the cycles and DDR bytes of a schedule
``area/``                 the resources that an array takes of a board
``search/``               the search for the best schedule, with a proof that it is the best
``program/``              the numbers that the engine reads
``schedule_file``         schedules as JSON
``baselines``             other schedules to compare with
========================  ==============================================================================================
"""
