"""Passes: functions of a network, which is frozen, that anyone may write.

An analysis is a function network → facts, a transformation one network → network. ``view`` looks things up by the names
of tensors and sets them. ``transform`` holds the project's own transformations, and ``transformed``, which runs
transformations to a fix point and compares golden results after each.
"""
