"""The pipeline stages of the blocks' loops. The headers declare the same stages, and the cycle trace uses them."""

from __future__ import annotations

from cnn.ops import MaxPool, assert_never
from cnn.ops.softmax import DIVIDEND_BITS, POWER_BITS
from cnn.requantise import Thresholds
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import WALK_DEPTH, kind_of

LEAST_UNIT_DEPTH, RESIDENT_DEPTH = 32, 4
"""The minimum stages of a unit (fold.h), and the further stages of a unit that stores a frame's vectors
(matrix_vector_resident.h)."""

SCAN_DEPTH = 5
"""The stages of a parallel window (scan.h)."""


def unit_depth(simd: int) -> int:
    """Return the pipeline stages of a matrix-vector or vector-vector unit that adds ``simd`` products per cycle
    (fold.h)."""
    return max(LEAST_UNIT_DEPTH, 2 * simd // 3)


def max_pool_depth(size: int) -> int:
    """Return the pipeline stages of a max pool (max_pool.h). ``size`` is the greater of its window's rows and
    columns."""
    return max(SCAN_DEPTH, 2 + (size - 1).bit_length())


def label_select_depth(pe: int, k: int) -> int:
    """Return the pipeline stages of a top-k block for ``k`` labels that reads ``pe`` values per cycle
    (label_select.h)."""
    return 3 + k * (pe - 1).bit_length()


def softmax_depth(method: str, pe: int) -> int:
    """Return the pipeline stages of a softmax block that reads ``pe`` values per cycle (softmax.h)."""
    return 4 + pe if method == "argmax" else 10 + pe // 2


def inverse_bits(method: str) -> int:
    """Return the bits of the reciprocal that a softmax computes. Its divider has the same number of stages
    (softmax.h)."""
    return DIVIDEND_BITS - POWER_BITS if method == "stable" else DIVIDEND_BITS


def softmax_lag(method: str, words: int) -> int:
    """Return the loop iterations from an input word of a softmax block to its output word (softmax.h).

    The maximum of a position needs all its words, unless the method is "latency". The sum needs all powers, and the
    division follows, unless the method is "argmax".

    Args:
        method: The method.
        words: The words per position.
    """
    compared = 0 if method == "latency" else words
    return compared + (0 if method == "argmax" else words - 1 + inverse_bits(method))


def late(levels: int) -> int:
    """Return the pipeline stages that an activation of ``levels`` thresholds needs in addition to the stages of a
    requantiser (activation.h)."""
    return levels // 5 if levels > 32 else 0


def depth_of(block: g.Block, fold: g.Fold, resident: bool) -> int:
    """Return the number of pipeline stages of a block's hardware loop.

    Args:
        block: The block.
        fold: The block's fold.
        resident: Whether the block is a unit that stores all vectors of a frame.
    """
    op = block.op
    match op:
        case g.Window():
            return SCAN_DEPTH if fold.style == "parallel" else WALK_DEPTH
        case MaxPool():
            return max_pool_depth(max(op.window))
        case g.LabelSelect():
            return label_select_depth(fold.pe, op.k)
        case g.Softmax():
            return softmax_depth(op.method, fold.pe)
        case g.MatrixVector() | g.VectorVector():
            return unit_depth(fold.simd) + _late_stages(op, block) + (RESIDENT_DEPTH if resident else 0)
        case g.Activate() | g.GlobalPool() | g.Add() | g.Multiply():
            return kind_of(op).depth + _late_stages(op, block)
        case (
            g.Source()
            | g.Sink()
            | g.Discard()
            | g.Duplicate()
            | g.Concat()
            | g.Split()
            | g.Reorg()
            | g.DepthToSpace()
            | g.Upsample()
            | g.DownSample()
            | g.Custom()
        ):
            return kind_of(op).depth
        case _:
            assert_never(op)


def _late_stages(op: g.Computing, block: g.Block) -> int:
    """Return the pipeline stages that a block's threshold activation needs in addition to a requantiser's, or 0 without
    thresholds."""
    return late(block.outputs[0].datatype.levels) if isinstance(op.activation, Thresholds) else 0
