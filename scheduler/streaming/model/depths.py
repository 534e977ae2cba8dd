"""Stages of the blocks' loops, as their headers declare them to the trace."""

from __future__ import annotations

from cnn.ops import MaxPool, assert_never
from cnn.ops.softmax import DIVIDEND_BITS, POWER_BITS
from cnn.requantise import Thresholds
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import WALK_DEPTH, kind_of

LEAST_UNIT_DEPTH, RESIDENT_DEPTH = 32, 4
"""Of units with few products (fold.h), and what those that keep their vectors have beyond."""

SCAN_DEPTH = 5
"""Of parallel windows (scan.h)."""


def unit_depth(simd: int) -> int:
    """Of a unit that adds ``simd`` products a cycle (fold.h)."""
    return max(LEAST_UNIT_DEPTH, 2 * simd // 3)


def max_pool_depth(size: int) -> int:
    """Of a pool whose windows have ``size`` rows and columns (max_pool.h)."""
    return max(SCAN_DEPTH, 2 + (size - 1).bit_length())


def label_select_depth(pe: int, k: int) -> int:
    """Of ``k`` labels, chosen of ``pe`` values a cycle (label_select.h)."""
    return 3 + k * (pe - 1).bit_length()


def softmax_depth(method: str, pe: int) -> int:
    """Of ``pe`` values a cycle (softmax.h)."""
    return 4 + pe if method == "argmax" else 10 + pe // 2


def inverse_bits(method: str) -> int:
    """Of the inverse of a sum of powers, and stages of the division that finds it (softmax.h)."""
    return DIVIDEND_BITS - POWER_BITS if method == "stable" else DIVIDEND_BITS


def softmax_lag(method: str, words: int) -> int:
    """Steps from a word to its shares (softmax.h): the words of a position, for the greatest of them, and as long as
    their sum and its inverse take. words: of a position."""
    compared = 0 if method == "latency" else words
    return compared + (0 if method == "argmax" else words - 1 + inverse_bits(method))


def late(levels: int) -> int:
    """Stages of so many thresholds beyond those of a requantiser (activation.h)."""
    return levels // 5 if levels > 32 else 0


def depth_of(block: g.Block, fold: g.Fold, resident: bool) -> int:
    """Return the stages of a block's pipeline.

    resident: whether a unit keeps all vectors of a frame.
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
    """Return the stages of a block's thresholds beyond those of a requantiser."""
    return late(block.outputs[0].datatype.levels) if isinstance(op.activation, Thresholds) else 0
