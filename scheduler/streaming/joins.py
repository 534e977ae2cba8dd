"""Depths of FIFOs before there is a trace: what waits where a map's readers meet again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cnn.network import MaxPool
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes


@lru_cache(maxsize=64)
def waiting(graph: g.StreamGraph) -> dict[tuple[int, int], int]:
    """Values that wait at (block, input) for what the other inputs bring later: rows that windows gather first.

    A window gives its first position when (KERNEL_H − 1 − TOP) rows and (KERNEL_W − 1 − LEFT) pixels are there, a unit
    over a whole map and a global pool when all of it is; every block runs at the pace of the frame, so that these
    fractions of a frame add up along a path. One row is added for what the closed form leaves out; the trace has the
    last word on depths.
    """
    late: list[float] = []
    found: dict[tuple[int, int], int] = {}
    for index, block in enumerate(graph.blocks):
        comes = [late[port.block] for port in block.inputs]
        latest = max(comes, default=0.0)
        for port, when in enumerate(comes):
            if when < latest:
                shape = lanes.in_shape(graph, index, port)
                row = shape.width * shape.channels
                found[index, port] = int((latest - when) * shape.values) + row
        late.append(latest + _fill(graph, index))
    return found


def _fill(graph: g.StreamGraph, index: int) -> float:
    """Frames from a block's first word to its first output."""
    op = graph.blocks[index].op
    if isinstance(op, (g.Source, g.Sink, g.Discard)):
        return 0.0
    shape = lanes.in_shape(graph, index)
    pixels = shape.height * shape.width
    if isinstance(op, g.GlobalPool) or (isinstance(op, g.MatrixVector) and lanes.positions(graph.blocks[index]) == 1):
        return (pixels - 1) / pixels
    if isinstance(op, (g.Window, MaxPool)):
        kernel = op.kernel if isinstance(op, g.Window) else (op.size, op.size)
        dilation = op.dilation if isinstance(op, g.Window) else 1
        rows = (kernel[0] - 1) * dilation - op.padding.top
        return max(0, rows * shape.width + (kernel[1] - 1) * dilation - op.padding.left) / pixels
    if isinstance(op, g.Reorg):
        if op.order == "darknet" and shape.height % op.stride**2:
            return 1.0
        rows = (op.stride - 1) * (op.stride if op.order == "darknet" else 1)
        return (rows * shape.width + op.stride) / pixels
    return 0.0


def depth_of(graph: g.StreamGraph, index: int, port: int, reader: g.Fold) -> int:
    """Words of the FIFO before an input, as estimated before there is a trace."""
    wait = waiting(graph).get((index, port), 0)
    return LEAST_FIFO_DEPTH + ceil_div(wait, lanes.in_lanes(graph.blocks[index], reader, port))


def depths(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> tuple[tuple[int, int, int], ...]:
    """(block, input, depth) of the FIFOs that are deeper than the least."""
    return tuple((index, port, depth_of(graph, index, port, folds[index])) for index, port in sorted(waiting(graph)))
