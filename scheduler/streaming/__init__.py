"""The streaming dataflow mapping: every layer its own hardware, folded to a frame rate.

``graph`` the blocks and their streams, and ``lower`` a network as such a graph; ``lanes`` and ``weights`` what a fold
makes of words and weights; ``rules`` what a folding has to keep; ``model`` its cycles, ``area`` what it takes of a
board, ``search`` how one is found, ``result`` what a search gives; ``folding_file`` foldings as JSON.
"""
