"""Small faults kept as patches, with the tests that notice them: ``python -m tools.mutants --help``.

``patches/`` contains 100 mutants drawn with a seed. ``chain/`` contains one fault for each step from a network to its
boxes. ``kills.json`` records which test notices each. ``tools.mutation`` is different: it tries many mutants of one
package on its quick tests, and keeps none.
"""
