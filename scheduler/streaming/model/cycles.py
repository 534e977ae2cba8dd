"""Cycles a frame: what a fold makes of a block. Closed formulas, steady state.

Every block is one pipelined loop at an initiation interval of 1 that reads and writes each stream at most once a
cycle, so that it takes as many cycles as its busiest stream has words, or as many as its arithmetic has steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from cnn.network import MaxPool, Shape
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import WEIGHT_BEAT_BYTES
from scheduler.streaming import graph as g
from scheduler.streaming.lanes import folds_of, in_lanes, in_shape, in_values, matrix, out_lanes, out_values, positions
from scheduler.streaming.model.converters import edges
from scheduler.streaming.weights import beats_of


def block_cycles(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Cycles a frame of one block, in steady state."""
    block = graph.blocks[index]
    words = [
        _words(in_shape(graph, index, port), in_values(graph, index, fold, port), in_lanes(block, fold, port))
        for port in range(len(block.inputs))
    ]
    if isinstance(block.op, MaxPool) or (isinstance(block.op, g.Window) and fold.style == "parallel"):
        return _walked(graph, index, fold)
    words += [
        _words(kind.shape, out_values(graph, index, fold, output), out_lanes(block, fold, output))
        for output, kind in enumerate(block.outputs)
    ]
    return max([*words, _multiplied(graph, index, fold)])


def _multiplied(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Cycles of a unit's arithmetic; 0 where there is none.

    Resident units (matrix_vector_resident.h) take a frame's vectors, let every tile meet all positions, or wait for its
    beats where these are more, and give the results, one after the other.
    """
    block, tiles = graph.blocks[index], folds_of(graph, index, fold)
    groups = ceil_div(positions(block), fold.pixels) if tiles else 0
    beats = tile_beats(block, fold)
    if not resident(block, fold):
        return groups * tiles * beats
    height, width = matrix(graph, index, fold)
    return groups * (height // fold.pe + width // fold.simd) + tiles * max(groups, beats)


def resident(block: g.Block, fold: g.Fold) -> bool:
    """Whether a unit keeps all vectors of a frame, so that its weights cross DDR once and not for every position."""
    return fold.memory == "external" and isinstance(block.op, g.MatrixVector) and positions(block) > fold.pixels


def tile_beats(block: g.Block, fold: g.Fold) -> int:
    """Cycles that a tile of PE · SIMD weights takes to come: beats where it comes from DDR, else one."""
    if fold.memory != "external" or not isinstance(block.op, g.MatrixVector):
        return 1
    return beats_of(fold.pe * fold.simd, block.op.weight_type.bits, WEIGHT_BEAT_BYTES)


def _walked(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Of a parallel window or a max pool, which walks over its map and on to where its last window ends: on a map of
    width W, max(H, S · (OH − 1) + 1) · max(W, S · (OW − 1) + 1) / M pixels of C / SIMD words each."""
    block = graph.blocks[index]
    assert isinstance(block.op, (g.Window, MaxPool))
    shape, out, stride = in_shape(graph, index), block.outputs[0].shape, block.op.stride
    rows = max(shape.height, stride * (out.height - 1) + 1)
    columns = ceil_div(max(shape.width, stride * (out.width - 1) + 1), fold.m)
    return rows * columns * (fold.m * in_values(graph, index, fold) // in_lanes(block, fold))


def _words(shape: Shape, values: int, lanes: int) -> int:
    return ceil_div(shape.height * shape.width * values, lanes)


def bottleneck(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> tuple[str, int]:
    """Name and cycles a frame of the slowest block or converter."""
    slowest, cycles = "", 0
    by_block: dict[int, list[int]] = {}
    for edge in edges(graph, folds):
        by_block.setdefault(edge.reader, []).extend(converter.cycles for converter in edge.converters)
    for index, block in enumerate(graph.blocks):
        named = [(block.name, block_cycles(graph, index, folds[index]))]
        named += [(f"the width converter before {block.name}", count) for count in by_block.get(index, [])]
        for name, count in named:
            slowest, cycles = (name, count) if count > cycles else (slowest, cycles)
    return slowest, cycles


def frame_cycles(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> int:
    """Cycles from one frame to the next, all FIFOs deep enough."""
    return bottleneck(graph, folds)[1]
