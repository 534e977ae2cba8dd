"""The engine in SystemVerilog: fixed modules, templates for what depends on a geometry, and DDR for Verilator."""
