"""The engine in SystemVerilog: the cycles of a pass, its logic, and its FIFOs.

The model, the area count and the search call ``engine``. Four modules compute the cycles of a pass:

- ``stages`` has the depths and gaps of the engine's modules.
- ``loader`` computes the loads and feeds of rows and weights.
- ``saver`` computes the output stage.
- ``state`` has the state that is carried from tile to tile.

``fabric`` counts LUTs and FFs, and ``fifos`` lists the FIFOs between the modules.
"""
