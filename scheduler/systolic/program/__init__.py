"""The data that a schedule needs in DDR before a frame starts. Templates only print it, and compute no numbers.

``maps`` assigns each feature map its place in DDR or in a map buffer. ``passes`` computes the words of one pass of the
program. ``images`` arranges weights and requantisers in the order in which the engine reads them. ``emit`` combines the
three into the program of a schedule. Addresses count words of ``lanes`` values.
"""
