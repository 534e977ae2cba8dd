"""The engine in SystemVerilog: cycles of a pass by its state machines and pipelines, its logic, and its FIFOs.

``engine`` is the value that the model, the areas and the search call. For cycles, ``stages`` has every depth and
gap, with the module that it comes from, ``loader`` rows and weights, ``saver`` the output stage, and ``state`` what is
carried from tile to tile. ``fabric`` has LUT and FF, ``fifos`` the queues between the modules.
"""
