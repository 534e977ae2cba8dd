"""How many small errors the tests of a room notice: ``python -m tools.mutation --help``.

Cosmic Ray says where a module can be mutated and how. Its own runner starts the tests anew for every mutant; this one
collects them once, forks for every mutant, exchanges the code of the living functions and runs the quick tests that
reach the mutated line, the fastest first, until one fails.
"""
