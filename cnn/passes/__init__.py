"""Passes: functions of a network, which is immutable. Users can write their own.

An analysis is a function network → facts, and a transformation is a function network → network. ``view`` reads and
replaces parts of a network by the names of tensors. ``transform`` has the project's own transformations, and
``transformed``, which repeats each until nothing changes and compares golden results after every change.
"""
