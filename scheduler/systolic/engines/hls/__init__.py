"""The engine in C++: the cycles of a pass, its logic and its FIFOs.

``engine`` is the value that the model, the areas and the search call. These modules compute the cycles of a pass:

- ``transfers``: the rows, weights and results that move while the array computes;
- ``saver``: the output stage;
- ``output_timing``: the words that the output stage writes to DDR;
- ``stages``: the depths of the pipelines;
- ``state``: the state that is carried from tile to tile.

``fabric`` counts LUTs and FFs. ``fifos`` lists the streams between the processes.
"""
