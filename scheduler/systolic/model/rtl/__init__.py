"""Cycles of a pass of the engine in SystemVerilog: what its state machines and pipelines take, register by register.

``stages`` has every depth and gap, with the module that it comes from; ``loader`` rows and weights; ``saver`` the
output stage; ``state`` what is carried from tile to tile. scheduler/systolic/engines/rtl.py takes the steps. Common to
both engines are the numbers of a pass, the shares of the DDR, and the loop over the tiles.
"""
