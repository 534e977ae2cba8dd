"""FINN's greedy search SetFolding as published. Block by block, it raises SIMD and then PE until the target is met.

Source: Xilinx/finn, src/finn/transformation/fpgadataflow/set_folding.py. The search considers cycles only, and neither
resources nor the converters between blocks. It raises until ``cycles < target``, so that a block exactly on target is
unfolded one step too far. ``strict`` keeps this, because users of FINN get it too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from boards.board import Board
from scheduler.hardware.primitives import WIDEST_WORD
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.blocks.kinds import kind_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.result import FoldingResult, Goal, evaluate
from scheduler.streaming.rules import is_legal
from scheduler.streaming.search.candidates import divisors

WIDEST_WEIGHTS = 36
"""The bits of weights per PE and cycle above which SIMD is not raised (FINN's mvau_wwidth_max)."""


def fold(
    graph: g.StreamGraph, board: Board, goal: Goal, *, strict: bool = True, external: tuple[str, ...] = ()
) -> FoldingResult:
    """Return the folding that FINN's greedy search finds for the goal's cycles per frame.

    Args:
        graph: The graph.
        board: The board.
        goal: The goal. Without ``cycles`` the target is one cycle, so that all blocks are unfolded completely.
        strict: Whether the cycles must be below the target, as published, or may equal it.
        external: The names of the layers whose weights stay in DDR.
    """
    start = time.perf_counter()
    target = goal.cycles or 1
    folds = _set_folding(graph, target, strict, external)
    slowest = max(block_cycles(graph, i, f) for i, f in enumerate(folds))
    if slowest > target:  # two_pass_relaxation: balance to what the slowest block reaches
        folds = _set_folding(graph, slowest, strict, external)
    return replace(evaluate(graph, folds, board, goal), state="heuristic", seconds=time.perf_counter() - start)


def _set_folding(graph: g.StreamGraph, target: int, strict: bool, external: tuple[str, ...]) -> list[g.Fold]:
    folds = [g.Fold()] * len(graph.blocks)

    def meets(index: int, fold: g.Fold) -> bool:
        cycles = block_cycles(graph, index, fold)
        return cycles < target if strict else cycles <= target

    for index, block in enumerate(graph.blocks):
        if isinstance(block.op, g.MatrixVector):
            memory = "external" if block.name in external else "embedded"
            folds[index] = _matrix_vector(graph, index, block.op, meets, g.Fold(memory=memory))
        elif isinstance(block.op, g.VectorVector):
            folds[index] = _vector_vector(graph, index, meets, target)
            folds[block.inputs[0].block] = _gathering(folds[index])
        elif isinstance(block.op, g.Window):
            if not block.op.depthwise:
                folds[index] = _window(graph, index, meets, target)
        else:
            kind, channels = kind_of(block.op), lanes.common_channels(graph, index)
            folds[index] = _raise(graph, index, g.Fold(), (kind.reads, kind.writes), channels, meets)
    return folds


Meets = Callable[[int, g.Fold], bool]
Keys = tuple[str, ...]


def _raise(graph: g.StreamGraph, index: int, fold: g.Fold, keys: Keys, dividend: int, meets: Meets) -> g.Fold:
    """Return ``fold`` with its fields ``keys`` raised to the first divisor that meets the target cycles, or to the last
    one that is legal.

    This is FINN's optimize_attribute_val.
    """
    highest = fold
    for value in divisors(dividend):
        tried = replace(fold, **dict.fromkeys(keys, value))  # type: ignore[arg-type]
        if not is_legal(graph, {index: tried}, index):
            break
        highest = tried
        if meets(index, highest):
            break
    return highest


def _matrix_vector(graph: g.StreamGraph, index: int, op: g.MatrixVector, meets: Meets, fold: g.Fold) -> g.Fold:
    """Return the greedy fold of a matrix-vector unit: SIMD raised up to WIDEST_WEIGHTS, then PE, until it meets the
    target."""
    height, width = lanes.matrix(graph, index, fold)
    for simd in divisors(width):
        tried = replace(fold, simd=simd)
        if not is_legal(graph, {index: tried}, index):
            break
        if meets(index, tried):
            fold = tried
            break
        if simd * op.weight_type.bits > WIDEST_WEIGHTS:
            break
        fold = tried
    return _raise(graph, index, fold, ("pe",), height, meets)


def _vector_vector(graph: g.StreamGraph, index: int, meets: Meets, target: int) -> g.Fold:
    """Return the greedy fold of a depthwise (vector-vector) unit.

    FINN raises PE first, and SIMD only if PE = all channels is too slow. If a word is too narrow for the windows of all
    channels, PE becomes the most channels whose windows fit a word, if that is faster.
    """
    channels, taps = lanes.matrix(graph, index, g.Fold())
    fold = _raise(graph, index, g.Fold(), ("pe",), channels, meets)
    if block_cycles(graph, index, fold) <= target:
        return fold
    window, tried = graph.blocks[index].inputs[0].block, fold
    for pe in reversed([pe for pe in divisors(channels) if pe <= fold.pe]):
        gathering = _gathering(g.Fold(pe=pe, simd=taps))
        if is_legal(graph, {window: gathering}, window):
            tried = _raise(graph, index, g.Fold(pe=pe), ("simd",), taps, meets)
            break
    return min(fold, tried, key=lambda fold: block_cycles(graph, index, fold))


def _gathering(unit: g.Fold) -> g.Fold:
    """Return the fold of the window block before a depthwise unit; its SIMD equals the unit's PE."""
    return g.Fold(simd=unit.pe, style="parallel" if unit.simd > 1 else "default")


def _window(graph: g.StreamGraph, index: int, meets: Meets, target: int) -> g.Fold:
    """Return the greedy fold of a window block, with style "parallel" if it is too slow with all channels in
    parallel."""
    channels = lanes.in_shape(graph, index).channels
    fold = _raise(graph, index, g.Fold(), ("simd",), channels, meets)
    parallel = replace(fold, style="parallel")
    too_wide = FoldedBlock(graph, {index: parallel}, index).bits > WIDEST_WORD
    if fold.simd == channels and block_cycles(graph, index, fold) > target and not too_wide:
        return parallel
    return fold
