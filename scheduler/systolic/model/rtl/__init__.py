"""Cycles of a pass of the engine in SystemVerilog: what its state machines and pipelines take, register by register.

``stages`` has every depth and gap, with the module that it comes from; ``loader`` rows and weights, ``saver`` what
leaves, ``passes`` the walk over the tiles, ``least`` what a pass takes at least. Common to both engines are the numbers
of a pass, the shares of the DDR, and how tiles that are alike are taken.
"""
