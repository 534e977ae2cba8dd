"""How good a network is on labelled pictures: its float form beside its integers, and beside the executed design.

layouts reads pictures and labels as datasets come, frames computes one picture, evaluate all of them, precision and
agreement say how good that is, fidelity how near a design is to its floats, report how it is told, worst draws where
float and integers differ most.
"""
