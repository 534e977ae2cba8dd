"""The depths of FIFOs, either estimated from the data that waits before joins, or taken from a cycle trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cnn.maps import Padding, Shape
from cnn.ops import MaxPool, assert_never
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import MIN_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.blocks.packages import lag_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.converters import Edge
from scheduler.streaming.model.cycles import gathered_pixels
from scheduler.streaming.model.lags import waits


@lru_cache(maxsize=64)
def waiting(graph: g.StreamGraph) -> dict[tuple[int, int], int]:
    """Return, per (block, input), the values that wait in its FIFO until the first data arrives at the block's other
    inputs.

    A window writes its first position after (KERNEL_H − 1 − TOP) rows and (KERNEL_W − 1 − LEFT) pixels have arrived. A
    unit over a whole map and a global pool need the whole map. All blocks take the same time per frame, so these
    fractions of a frame add up along a path. One row is added, because the formula leaves out pipelines. The cycle
    trace then determines the exact depths.
    """
    first_word: list[float] = []  # per block: the time of its first output word, in frames after the image's first
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
    """Return the fraction of a frame from a block's first input word to its first output word."""
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
    """Return the fraction of a frame that arrives before the last pixel of a block's input map."""
    shape = lanes.in_shape(graph, index)
    pixels = shape.height * shape.width
    return (pixels - 1) / pixels


def _first_position(kernel: tuple[int, int], dilation: int, padding: Padding, shape: Shape) -> float:
    """Return the fraction of a frame that arrives before the first window of a kernel is complete, for an input map of
    ``shape``."""
    rows = (kernel[0] - 1) * dilation - padding.top
    pixels = max(0, rows * shape.width + (kernel[1] - 1) * dilation - padding.left)
    return pixels / (shape.height * shape.width)


def depth_of(graph: g.StreamGraph, index: int, port: int, reader: g.Fold) -> int:
    """Return the estimated depth in words of the FIFO before input ``port`` of block ``index``.

    The estimate depends on the reader's fold alone, so that a search can use it.
    """
    wait = waiting(graph).get((index, port), 0)
    return MIN_FIFO_DEPTH + ceil_div(wait, lanes.in_lanes(graph.blocks[index], reader, port))


def depths(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> tuple[tuple[int, int, int], ...]:
    """Return the estimated depths of all FIFOs that must be deeper than the minimum, as entries of (block, input, depth
    in words).

    A FIFO is deep enough for the rows that wait there (``waiting``), and for the words that would otherwise cause a
    deadlock of these folds (``waits``). All other FIFOs have the minimum depth.
    """
    words = waits(graph, folds)
    estimated = {place: depth_of(graph, *place, folds[place[0]]) for place in {*waiting(graph), *words}}
    estimated = {place: max(depth, MIN_FIFO_DEPTH + words.get(place, 0)) for place, depth in estimated.items()}
    return tuple((*place, depth) for place, depth in sorted(estimated.items()))


# --- the FIFOs of a stream with its converters -----------------------------------------------------------------------

Fifos = tuple[tuple[int, int], ...]
"""The values per word and the depth of each FIFO of one stream, in order from its writer."""


@dataclass(frozen=True)
class TracedStreams:
    """The FIFO widths and depths that a cycle trace of one folding determined.

    Attributes:
        fifos: The FIFOs on the stream to each (block, input).
    """

    fifos: Mapping[tuple[int, int], Fifos] = field(default_factory=dict)

    def of(self, edge: Edge) -> Fifos:
        """Return the FIFOs of a stream as (values per word, depth), from the trace or else estimated.

        If the trace had the same words at this stream, its FIFOs are returned. If it had other words, the FIFO before
        the reader can store the same number of values in addition to the minimum depths. Without a trace of the stream,
        the depth is estimated.
        """
        sizes = (*(converter.lanes_in for converter in edge.converters), edge.read.size)
        traced = self.fifos.get((edge.reader, edge.port))
        if traced is None:
            depth = depth_of(edge.graph, edge.reader, edge.port, edge.reader_fold)
        elif sizes == tuple(size for size, _ in traced):
            return traced
        else:
            held = sum(size * (depth - MIN_FIFO_DEPTH) for size, depth in traced)
            depth = MIN_FIFO_DEPTH + ceil_div(held, sizes[-1])
        return (*((size, MIN_FIFO_DEPTH) for size in sizes[:-1]), (sizes[-1], depth))


UNTRACED = TracedStreams()
