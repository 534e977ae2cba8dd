"""Depths of FIFOs: estimated from what waits where a map's readers meet again; as traced where there is a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cnn.maps import Padding, Shape
from cnn.ops import MaxPool, assert_never
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.blocks.packages import lag_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.converters import Edge
from scheduler.streaming.model.cycles import gathered_pixels
from scheduler.streaming.model.lags import waits


@lru_cache(maxsize=64)
def waiting(graph: g.StreamGraph) -> dict[tuple[int, int], int]:
    """Values that wait at (block, input) for what the other inputs bring later: rows that windows gather first.

    A window gives its first position when (KERNEL_H − 1 − TOP) rows and (KERNEL_W − 1 − LEFT) pixels are there, a unit
    over a whole map and a global pool when all of it is; every block runs at the pace of the frame, so that these
    fractions of a frame add up along a path. One row is added for what the closed form leaves out; the trace has the
    last word on depths.
    """
    first_word: list[float] = []  # of every block, frames after the picture's
    words: dict[tuple[int, int], int] = {}
    for index, block in enumerate(graph.blocks):
        arrivals = [first_word[port.block] for port in block.inputs]
        last = max(arrivals, default=0.0)
        for port, arrival in enumerate(arrivals):
            if arrival < last:
                shape = lanes.in_shape(graph, index, port)
                row = shape.width * shape.channels
                words[index, port] = int((last - arrival) * shape.values) + row
        first_word.append(last + _fill(graph, index))
    return words


def _fill(graph: g.StreamGraph, index: int) -> float:
    """Return the frames from a block's first word to its first output."""
    block = graph.blocks[index]
    op = block.op
    match op:
        case g.MatrixVector():
            return _last_pixel(graph, index) if lanes.positions(block) == 1 else 0.0
        case g.GlobalPool():
            return _last_pixel(graph, index)
        case g.Window():
            return _first_position(op.kernel, op.dilation, op.padding, lanes.in_shape(graph, index))
        case MaxPool():
            return _first_position(op.window, 1, op.padding, lanes.in_shape(graph, index))
        case g.Custom():
            return max(0.0, lag_of(FoldedBlock(graph, {index: g.Fold()}, index)).up)
        case g.Reorg():
            shape = lanes.in_shape(graph, index)
            return gathered_pixels(op, shape) / (shape.height * shape.width)
        case g.DepthToSpace():
            return 1 / lanes.in_shape(graph, index).height
        case (
            g.Source()
            | g.Sink()
            | g.Discard()
            | g.VectorVector()
            | g.Activate()
            | g.Add()
            | g.Multiply()
            | g.Duplicate()
            | g.Concat()
            | g.Split()
            | g.Upsample()
            | g.DownSample()
            | g.LabelSelect()
            | g.Softmax()
        ):
            return 0.0
        case _:
            assert_never(op)


def _last_pixel(graph: g.StreamGraph, index: int) -> float:
    """Return the frames up to the last pixel of the map that a block reads."""
    shape = lanes.in_shape(graph, index)
    pixels = shape.height * shape.width
    return (pixels - 1) / pixels


def _first_position(kernel: tuple[int, int], dilation: int, padding: Padding, shape: Shape) -> float:
    """Return the frames up to the first position of a window over a map of ``shape``."""
    rows = (kernel[0] - 1) * dilation - padding.top
    pixels = max(0, rows * shape.width + (kernel[1] - 1) * dilation - padding.left)
    return pixels / (shape.height * shape.width)


def depth_of(graph: g.StreamGraph, index: int, port: int, reader: g.Fold) -> int:
    """Words of the FIFO before an input, as estimated before there is a trace."""
    wait = waiting(graph).get((index, port), 0)
    return LEAST_FIFO_DEPTH + ceil_div(wait, lanes.in_lanes(graph.blocks[index], reader, port))


def depths(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> tuple[tuple[int, int, int], ...]:
    """(block, input, depth) of the FIFOs that are deeper than the least: before each join as deep as the rows that wait
    there take, and no less than keeps the pipeline of these folds from coming to a stand."""
    words = waits(graph, folds)
    estimated = {place: depth_of(graph, *place, folds[place[0]]) for place in {*waiting(graph), *words}}
    estimated = {place: max(depth, LEAST_FIFO_DEPTH + words.get(place, 0)) for place, depth in estimated.items()}
    return tuple((*place, depth) for place, depth in sorted(estimated.items()))


# --- of a stream, its converters' included ---------------------------------------------------------------------------

Fifos = tuple[tuple[int, int], ...]
"""(values of a word, depth) of the FIFOs of one stream, from its writer on."""


@dataclass(frozen=True)
class TracedStreams:
    """What the trace of one folding has said of the FIFOs before (block, input)."""

    fifos: Mapping[tuple[int, int], Fifos] = field(default_factory=dict)

    def of(self, edge: Edge) -> Fifos:
        """The FIFOs of a stream: as traced under the same words; under others with as many values beyond the least,
        before the reader; as estimated where there is no trace."""
        sizes = (*(converter.lanes_in for converter in edge.converters), edge.read.size)
        traced = self.fifos.get((edge.reader, edge.port))
        if traced is None:
            depth = depth_of(edge.graph, edge.reader, edge.port, edge.reader_fold)
        elif sizes == tuple(size for size, _ in traced):
            return traced
        else:
            held = sum(size * (depth - LEAST_FIFO_DEPTH) for size, depth in traced)
            depth = LEAST_FIFO_DEPTH + ceil_div(held, sizes[-1])
        return (*((size, LEAST_FIFO_DEPTH) for size in sizes[:-1]), (sizes[-1], depth))


UNTRACED = TracedStreams()
