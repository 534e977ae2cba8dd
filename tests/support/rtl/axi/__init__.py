"""The AXI side of the engine against cocotbext-axi, inside a simulator that cocotb drives: test_axi.py runs it."""
