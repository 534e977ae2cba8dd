"""The streaming dataflow mapping: every layer its own hardware, folded to a frame rate.

- ``graph``: the blocks of a pipeline and the streams between them.
- ``lower``: converts a quantised network to such a graph.
- ``lanes``, ``weights``: the widths of words and the order of weights under a fold.
- ``rules``: the constraints on a folding.
- ``model``: the cycles of a folding.
- ``area``: the board resources of a folding.
- ``search``: the search for a folding.
- ``result``: the goal and the result of a search.
- ``folding_file``: foldings as JSON.
"""
