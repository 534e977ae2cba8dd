"""The engine in SystemVerilog: fixed modules, templates that depend on the geometry, and a DDR model for Verilator."""
