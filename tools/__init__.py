"""Tools for whoever changes the project: digests of what it generates, a snapshot of what users see, mutants.

They are no part of the wheel.
"""
