"""Static timing of SystemVerilog before a vendor's tool runs: Yosys synthesises, and a delay table gives the times.

``elaboration`` reads the sources into modules. ``synthesis`` maps each module to the primitives of an UltraScale+ part,
and ``covering`` maps its LUTs for depth. ``netlist`` joins the modules. ``delays`` reads the delay table, and ``paths``
finds the slowest paths. Every time is modelled before placement.
"""
