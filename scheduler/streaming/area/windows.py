"""Counts the resources of blocks that store rows of a map: windows, pools, reorgs and up-samplers."""

from __future__ import annotations

from boards.board import Board
from cnn.maps import Shape
from cnn.ops import MaxPool
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.memory import memory
from scheduler.streaming.area.part import CONTROL, WALK, Part
from scheduler.streaming.area.usage import NOTHING, StreamingUsage

FEW_GROUPS = 4
"""The maximum channel groups for which the columns of a window are registers, which are not counted."""

MARGIN_WORDS = 12
"""The words of a circular buffer in addition to its capacity (walk.h)."""


def window_parts(graph: g.StreamGraph, index: int, op: g.Window, fold: g.Fold, board: Board) -> list[Part]:
    """Return the hardware parts of a sliding-window block with their resources, except its control logic."""
    rows = _default_window if fold.style == "default" else _parallel_window
    return rows(graph, index, op, fold, board)


def _default_window(graph: g.StreamGraph, index: int, op: g.Window, fold: g.Fold, board: Board) -> list[Part]:
    output = graph.blocks[index].outputs[0]
    bits = fold.simd * output.datatype.bits
    groups = lanes.in_values(graph, index, fold) // fold.simd
    pixels = window_pixels(op, lanes.in_shape(graph, index), output.shape)
    rows = memory(bits, pixels * groups + MARGIN_WORDS, fold.ram, board.family)
    return [
        Part("rows", rows, "window.h: CAPACITY and margin words, circular"),
        Part("walk", StreamingUsage(lut=WALK + bits), "estimate: addresses, and the values of the padding"),
    ]


def _parallel_window(graph: g.StreamGraph, index: int, op: g.Window, fold: g.Fold, board: Board) -> list[Part]:
    block, shape = graph.blocks[index], lanes.in_shape(graph, index)
    output = block.outputs[0]
    groups = lanes.in_values(graph, index, fold) // fold.simd
    word = fold.m * fold.simd * output.datatype.bits
    row_words = ceil_div(max(shape.width, op.stride * (output.shape.width - 1) + 1), fold.m)
    rows = memory(max(op.kernel[0] - 1, 1) * word, op.dilation * row_words * groups, fold.ram, board.family)
    column_bits = op.kernel[0] * max(_bundles(op.kernel[1], op.dilation, op.padding.left, fold.m) - 1, 1) * word
    masks = lanes.out_lanes(block, fold) * output.datatype.bits
    scan = StreamingUsage(lut=2 * CONTROL + masks)
    return [
        Part("rows", rows, "window.h: rows of delay in one wide memory"),
        Part(
            "columns",
            _columns(column_bits, groups, board),
            "window.h: the window's columns, one word per channel group",
        ),
        Part("scan", scan, "estimate: counters, and the values of the padding"),
    ]


def _columns(bits: int, groups: int, board: Board) -> StreamingUsage:
    """Return the resources that store the columns of pixels under a parallel window or a pool. They are registers for
    few channel groups.

    Args:
        bits: The bits of the columns of one channel group.
        groups: The number of channel groups.
        board: The board.
    """
    return memory(bits, groups, "auto", board.family) if groups > FEW_GROUPS else NOTHING


def _bundles(kernel: int, dilation: int, left: int, pixels: int) -> int:
    """Return the number of stream words of one map row that the kernel of a parallel window covers (scan.h, BUNDLES).

    Args:
        kernel: The columns of the kernel.
        dilation: The distance between taps in pixels.
        left: The columns of padding at the left border.
        pixels: The pixels per word.
    """
    return ceil_div((kernel - 1) * dilation - left, pixels) + ceil_div(left, pixels) + 1


def window_pixels(op: g.Window, before: Shape, after: Shape) -> int:
    """Return the capacity in pixels of the circular buffer of a default window (window.h, CAPACITY / G).

    Args:
        op: The window.
        before: The shape of the input map.
        after: The shape of the output map.
    """
    rows, columns = (op.kernel[0] - 1) * op.dilation, (op.kernel[1] - 1) * op.dilation
    below = (before.height - (after.height - 1) * op.stride) * before.width
    ahead = max(op.stride * max(before.width, after.width), below) - (after.width - 1) * op.stride
    return rows * before.width + columns + 1 + max(ahead, op.stride)


def pool_parts(graph: g.StreamGraph, index: int, op: MaxPool, fold: g.Fold, board: Board) -> list[Part]:
    """Return the hardware parts of a max pool block with their resources, except its control logic."""
    block = graph.blocks[index]
    output = block.outputs[0]
    groups = lanes.in_values(graph, index, fold) // fold.pe
    pixels = lanes.out_pixels(block, fold)
    bits, depth = output.datatype.bits, output.shape.width // pixels * groups
    high, wide = op.window
    rows = memory(max(high - 1, 1) * pixels * fold.pe * bits, depth, fold.ram, board.family)
    column_bits = max(_bundles(wide, 1, op.padding.left, fold.m) - 1, 1) * fold.m * fold.pe * bits
    comparators = (high - 1 + wide - 1) * pixels * fold.pe * (bits + ceil_div(bits, 2))
    return [
        Part("rows", rows, "max_pool.h: KERNEL_H − 1 rows of the output"),
        Part("columns", _columns(column_bits, groups, board), "max_pool.h: the window's columns"),
        Part(
            "compare",
            StreamingUsage(lut=CONTROL + comparators),
            "KERNEL_H + KERNEL_W − 2 comparisons and selections, 1.5 LUTs per bit",
        ),
    ]


def reordering_parts(
    graph: g.StreamGraph, index: int, op: g.Reorg | g.DepthToSpace | g.Upsample, fold: g.Fold, board: Board
) -> list[Part]:
    """Return the hardware parts of a reorg, depth to space or up-sampler block with their resources, except its control
    logic.

    A reorg stores the rows that it combines. An up-sampler and depth to space store two rows: the row that they read
    several times, and the next row.
    """
    block = graph.blocks[index]
    shape = lanes.in_shape(graph, index)
    pixels = reorg_pixels(op, shape) if isinstance(op, g.Reorg) else 2 * shape.width
    bits = fold.simd * block.outputs[0].datatype.bits
    rows = memory(bits, pixels * (shape.channels // fold.simd) + MARGIN_WORDS, fold.ram, board.family)
    return [
        Part("rows", rows, "reorg.h, upsample.h: CAPACITY and margin words, circular"),
        Part("walk", StreamingUsage(lut=WALK), "estimate: addresses"),
    ]


def reorg_pixels(op: g.Reorg, shape: Shape) -> int:
    """Return the capacity in pixels of the circular buffer of a reorg block (reorg.h, CAPACITY / G). ``shape`` is the
    input map's."""
    stride = op.stride
    if op.order != "darknet":
        return (stride - 1) * shape.width + 2 * stride
    if shape.height % stride**2:
        return 2 * shape.height * shape.width
    return (2 * stride * (stride - 1) + 1) * shape.width + stride
