"""Small faults kept as patches, with the tests that notice them: ``python -m tools.mutants --help``.

``patches/`` has 100 mutants that a seed has drawn, ``chain/`` one fault for each part of the chain from a network to
its boxes, and ``kills.json`` what became of each. ``tools.mutation`` tries many mutants of one room on its quick
tests instead, and keeps none.
"""
