"""The engine in C++: cycles of a pass by its processes and FIFOs, its logic, and its streams.

``engine`` is the value that the model, the areas and the search call. For cycles, ``transfers`` has the rows, weights
and results that move while the array computes, ``saver`` the output stage, ``leaving`` its words on their way to DDR,
``stages`` the depths of the pipelines, and ``state`` what is carried from tile to tile. ``fabric`` has LUT and FF,
``fifos`` the streams between the processes.
"""
