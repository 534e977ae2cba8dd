"""The engine in SystemVerilog: fixed modules, Jinja2 templates for what depends on a geometry, and a DDR for Verilator."""
