"""Counts the resources of blocks and converters, part by part, from the structure of hls_templates/streaming.

DSPs and memories are exact counts of that structure, and LUTs are estimates. Each part notes how it was counted.
"""

from __future__ import annotations

from math import gcd, prod

from boards.board import Board
from cnn.datatype import magnitude
from cnn.ops import MaxPool, assert_never
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.activations import Functors, activation_parts
from scheduler.streaming.area.memory import memory
from scheduler.streaming.area.part import CONTROL, Part
from scheduler.streaming.area.softmax import softmax_parts
from scheduler.streaming.area.units import unit_parts
from scheduler.streaming.area.usage import StreamingUsage, sum_of
from scheduler.streaming.area.windows import pool_parts, reordering_parts, window_parts
from scheduler.streaming.blocks.packages import parts_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.converters import Converter


def block_usage(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> StreamingUsage:
    """Return the resources of block ``index``, without the converters and FIFOs at its inputs."""
    return sum_of(part.usage for part in parts(graph, index, fold, board))


def parts(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    """Return the hardware parts of block ``index`` with their resources, including its control logic."""
    control = Part("control", StreamingUsage(lut=CONTROL), "estimate: counters and handshakes")
    return [control, *_own_parts(graph, index, fold, board)]


def _own_parts(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    """Return the hardware parts of block ``index`` with their resources, except its control logic."""
    op = graph.blocks[index].op
    match op:
        case g.MatrixVector() | g.VectorVector():
            return unit_parts(graph, index, op, fold, board)
        case g.Window():
            return window_parts(graph, index, op, fold, board)
        case MaxPool():
            return pool_parts(graph, index, op, fold, board)
        case g.Reorg() | g.DepthToSpace() | g.Upsample():
            return reordering_parts(graph, index, op, fold, board)
        case g.LabelSelect():
            return _choices(graph, index, op, fold)
        case g.Softmax():
            return softmax_parts(graph, index, op, fold, board)
        case g.Add() | g.Multiply() | g.GlobalPool() | g.Activate():
            return _sums(graph, index, op, fold, board)
        case g.Custom():
            return parts_of(FoldedBlock(graph, {index: fold}, index), board)
        case g.Source() | g.Sink() | g.Discard() | g.Duplicate() | g.Concat() | g.Split() | g.DownSample():
            bits = max([out.datatype.bits for out in graph.blocks[index].outputs], default=8)
            words = StreamingUsage(lut=bits * fold.m * max(fold.simd, fold.pe))
            return [Part("words", words, "estimate: one LUT per bit of a word")]
        case _:
            assert_never(op)


def _choices(graph: g.StreamGraph, index: int, op: g.LabelSelect, fold: g.Fold) -> list[Part]:
    """Return the hardware parts of a label select (top-k): the sorted lists of its PEs and their merge
    (label_select.h).

    Each PE keeps a sorted list of its k greatest values. At the end of a pixel, the lists are merged.
    """
    block = graph.blocks[index]
    bits, labels = graph.type_of(block.inputs[0]).datatype.bits, block.outputs[0].datatype.bits
    places = StreamingUsage(lut=fold.pe * op.k * (2 * bits + labels))
    passed = (fold.pe - 1) * op.k * (op.k + 1) // 2
    merged = StreamingUsage(lut=passed * 2 * (bits + labels))
    return [
        Part("kept", places, "estimate: k values per PE, one LUT per bit for the comparison and for the choice"),
        Part("merged", merged, "estimate: PE − 1 merges of k into k values, k · (k + 1) / 2 comparisons each"),
    ]


def _sums(graph: g.StreamGraph, index: int, op: g.Summing, fold: g.Fold, board: Board) -> list[Part]:
    """Return the hardware parts of an add, multiply, global pool or activate block: its sums, products and
    activation."""
    block, shape = graph.blocks[index], lanes.in_shape(graph, index)
    factors = op.multipliers if isinstance(op, g.Add) else (1,)
    bits = _greatest_sum(graph, index, op).bit_length() + 1
    groups = (shape.channels + fold.pad_in) // fold.pe
    sums = []
    if isinstance(op, g.GlobalPool):
        sums.append(Part("sums", memory(bits * fold.pe, groups, "auto", board.family), "one sum per channel"))
    products = 1 if isinstance(op, g.Multiply) else sum(1 for factor in factors if factor > 1)
    values = fold.pe * fold.m
    adders = StreamingUsage(lut=bits * values * max(1, len(factors) - 1), dsp=products * values)
    sums.append(Part("adders", adders, "one LUT per bit; one DSP per product, or per factor other than 1"))
    functors = Functors(fold.pe, fold.m, groups, bits, block.outputs[0].datatype)
    return sums + activation_parts(op.activation, functors, board.family)


def _greatest_sum(graph: g.StreamGraph, index: int, op: g.Summing) -> int:
    """Return the greatest magnitude of the exact result that ``op`` (an add, multiply, pool or activate block) passes
    to its activation."""
    magnitudes = [magnitude(kind.datatype) for kind in graph.inputs_of(graph.blocks[index])]
    match op:
        case g.Multiply():
            return prod(magnitudes)
        case g.GlobalPool():
            shape = lanes.in_shape(graph, index)
            return max(magnitudes) * shape.height * shape.width
        case g.Add():
            return max(magnitudes) * sum(op.multipliers)
        case g.Activate():
            return max(magnitudes)
        case _:
            assert_never(op)


def converter_usage(converter: Converter, bits: int, board: Board) -> StreamingUsage:
    """Return the resources of a converter between two blocks' stream words (hls_templates/streaming/moving/width.h).

    A converter of widths or channels takes one LUT per bit of its wider word. If neither width divides the other, every
    value also needs a multiplexer over all places that it can have in a word, with three places per LUT. A converter of
    pixels stores the channels of its pixels in a memory.

    Args:
        converter: The converter.
        bits: The bits per value.
        board: The board.
    """
    small, large = sorted((converter.lanes_in, converter.lanes_out))
    if converter.kind == "pixels":
        depth = ceil_div(converter.channels_in * max(converter.m_in, converter.m_out), large)
        return memory(bits * large, depth, "auto", board.family) + StreamingUsage(lut=CONTROL + bits * large)
    unit = gcd(small, large)
    places = 1 if small == unit else (small + large) // unit - 1
    values = small + large if small > unit else large
    return StreamingUsage(lut=CONTROL // 2 + bits * values * ceil_div(places, 3))
