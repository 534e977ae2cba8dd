"""Measures how many small errors the tests of a package notice: ``python -m tools.mutation --help``.

Cosmic Ray lists the places where a module can be mutated, and the mutations. Its own runner starts the tests again for
every mutant. This runner collects the tests once and forks for every mutant. The child replaces the code of the loaded
functions and runs the quick tests that reach the mutated line, the fastest first, until one fails.
"""
