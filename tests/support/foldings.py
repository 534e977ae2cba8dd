"""Random legal foldings, far from what a search would choose."""

from __future__ import annotations

import numpy as np

from boards.board import Board
from boards.errors import UnsupportedError
from scheduler.streaming import graph as g
from scheduler.streaming.rules import DIVISORS, STREAMS, check, is_legal
from scheduler.streaming.search.candidates import Options, candidates


def drawn_folding(graph: g.StreamGraph, board: Board, seed: int) -> g.StreamingFolding:
    """Return a folding with a random candidate for each block, readers first, since a window has to suit its reader.

    Raises UnsupportedError if a window has no such candidate.
    """
    random = np.random.default_rng(seed)
    units = [block.name for block in graph.blocks if isinstance(block.op, g.MatrixVector)]
    far = tuple(name for name in units if random.random() < 0.3)
    options = Options(int(random.integers(0, 3)), bool(random.integers(2)), 4, far, uram_weights=False)
    folds: dict[int, g.Fold] = {}
    for index in reversed(range(len(graph.blocks))):
        choices = candidates(graph, index, board, options)
        readers = [i for i in folds if any(port.block == index for port in graph.blocks[i].inputs)]
        order = random.permutation(len(choices))
        fitting = (choices[i] for i in order if _suits(graph, {**folds, index: choices[i]}, index, readers))
        fold = next(fitting, None)
        if fold is None:
            raise UnsupportedError(graph.blocks[index].name, "none of its folds suits its reader", where=graph.name)
        folds[index] = fold
    return check(g.StreamingFolding(graph, tuple(folds[index] for index in range(len(graph.blocks)))))


def _suits(graph: g.StreamGraph, folds: dict[int, g.Fold], index: int, readers: list[int]) -> bool:
    if not isinstance(graph.blocks[index].op, g.Window):
        return True
    return all(is_legal(graph, folds, reader, (*DIVISORS, *STREAMS)) for reader in readers)
