"""How much of a frame must come before a word leaves, of every block as it is folded; what waits where branches meet.

Every block's loop decides by its own counters which words it takes and gives in an iteration, and waits for each of
them. So words that must come do not depend on clocks, and neither does a deadlock. An iteration's results leave when
its pipeline has moved on, which it does only with the words of the iterations behind it.

    words that came      ├───────────────────────┤
    words that left      ├──────────────┤  lag   │        frames; at least ``low``, at most ``up``

Lags add up along a path, but to no more than a frame: a block begins a frame when it is done with the one before, so
that its pipeline runs empty in between. Where two branches of a fork meet again, the one of ``up`` may still hold what
the other one, of ``low``, has given: that waits in the FIFO before the join. A block's lags are those of the worst
place of its frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt

from cnn.ops import MaxPool, assert_never
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.blocks.packages import lag_of as added_lag
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.converters import WIDTH_DEPTH, Edge, edges
from scheduler.streaming.model.cycles import WALK_LANDING, gathered_pixels, resident
from scheduler.streaming.model.depths import depth_of, softmax_lag
from scheduler.streaming.model.lag import NONE, Lag

Words = npt.NDArray[np.float64]


Inputs = dict[tuple[int, int], Lag]
"""Lag at (block, input) of what has come on the way there."""


def waits(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> dict[tuple[int, int], int]:
    """Words that wait before (block, input), at most, where branches meet again. A map that leaves behind another one
    waits until that has left: both are of one packet."""
    frames: dict[tuple[int, int], float] = {}
    streams = {(edge.source.block, edge.source.output): edge for edge in edges(graph, folds)}
    lags = [lag_of(graph, folds, index) for index in range(len(graph.blocks))]
    for index, block in enumerate(graph.blocks):
        if len(block.outputs) > 1:
            branches = [_branch(graph, streams, lags, g.Port(index, n)) for n in range(len(block.outputs))]
            for place, wait in _met(graph, branches):
                frames[place] = max(wait, frames.get(place, 0.0))
    return {(index, port): _words(graph, folds, (index, port), wait) for (index, port), wait in frames.items()}


def _words(graph: g.StreamGraph, folds: Sequence[g.Fold], place: tuple[int, int], frames: float) -> int:
    index, port = place
    shape, block = lanes.in_shape(graph, index, port), graph.blocks[index]
    values = shape.height * shape.width * lanes.in_values(graph, index, folds[index], port)
    return ceil_div(int(np.ceil(frames * values)), lanes.in_lanes(block, folds[index], port)) + 1


def _branch(
    graph: g.StreamGraph, streams: Mapping[tuple[int, int], Edge], lags: Sequence[Lag], start: g.Port
) -> Inputs:
    """Where a fork's output comes to, the longest and the shortest way."""
    inputs: Inputs = {}

    def give(port: g.Port, lag: Lag) -> None:
        edge = streams[port.block, port.output]
        inputs[edge.reader, edge.port] = lag + edge_lag(edge)

    give(start, NONE)
    for index in range(start.block + 1, len(graph.blocks)):
        ways = [inputs[index, port] for port in range(len(graph.blocks[index].inputs)) if (index, port) in inputs]
        if ways:
            lag = Lag(min(way.low for way in ways), max(way.up for way in ways)) + lags[index]
            for output in range(len(graph.blocks[index].outputs)):
                give(g.Port(index, output), lag)
    return inputs


Place = tuple[int, int]
"""A block and its input."""


def _met(graph: g.StreamGraph, branches: Sequence[Inputs]) -> Iterator[tuple[Place, float]]:
    """Frames that wait at each input of a join, of each branch of a fork for each other one."""
    for short, long in permutations(branches, 2):
        for place, partners in _joins(graph):
            ups = [long[partner].up for partner in partners if partner in long]
            if place in short and ups:
                yield place, max(ups) - short[place].low + _turn(graph, place[0])
        for place, partners in _leaving(graph):
            if place in short and any(partner in long for partner in partners):
                yield place, 1 - short[place].low


def _joins(graph: g.StreamGraph) -> Iterator[tuple[Place, list[Place]]]:
    """Each input of a block of several, and its other inputs."""
    for index, block in enumerate(graph.blocks):
        places = [(index, port) for port in range(len(block.inputs))]
        for place in places:
            yield place, [partner for partner in places if partner != place]


def _leaving(graph: g.StreamGraph) -> Iterator[tuple[Place, list[Place]]]:
    """Each map that leaves, and those that leave before it."""
    sinks = [(index, 0) for index, block in enumerate(graph.blocks) if isinstance(block.op, g.Sink)]
    for number, place in enumerate(sinks):
        yield place, sinks[:number]


def _turn(graph: g.StreamGraph, index: int) -> float:
    """Frames that a join takes of one input before it takes of another."""
    shape = lanes.in_shape(graph, index)
    return 1 / (shape.height * shape.width) if isinstance(graph.blocks[index].op, g.Concat) else 0.0


# --- of a stream, of a block --------------------------------------------------------------------------------------


def edge_lag(edge: Edge) -> Lag:
    """Of the converters before an input: a pixel where channels come or go, a word of pixels, or a word."""
    total = NONE
    for converter in edge.converters:
        frames = {
            "width": 1 / converter.words_in + 1 / converter.words_out,
            "channels": 1 / converter.pixels,
            "pixels": max(converter.m_in, converter.m_out) / converter.pixels,
        }[converter.kind]
        total += Lag(-frames, frames + WIDTH_DEPTH / converter.words_in)
    return total


def lag_of(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int) -> Lag:
    """Return the lag of one block."""
    op, fold = graph.blocks[index].op, folds[index]
    match op:
        case g.Source() | g.Sink() | g.Discard():
            return NONE
        case g.Activate() | g.Add() | g.Multiply() | g.Duplicate():
            return _wordwise(graph, index, fold)
        case g.MatrixVector() | g.VectorVector():
            return _unit(graph, index, fold, op)
        case g.Window():
            lag = _scanned if fold.style == "parallel" else _walked_window
            return lag(graph, index, fold, op)
        case MaxPool():
            return _scanned(graph, index, fold, op)
        case g.GlobalPool():
            return _whole(graph, index, fold)
        case g.Concat() | g.Split() | g.LabelSelect():
            return _pixelwise(graph, index, fold)
        case g.Softmax():
            return _shared(graph, index, fold, op)
        case g.Reorg():
            return _reorg(graph, index, fold, op)
        case g.DepthToSpace() | g.Upsample():
            return _row(graph, index, fold)
        case g.DownSample():
            return _thinned(graph, index, fold, op)
        case g.Custom():
            return _added(graph, index, fold)
        case _:
            assert_never(op)


def _stages(graph: g.StreamGraph, index: int, fold: g.Fold, count: float | None = None) -> float:
    """What the words of so many iterations are of a frame, one each; None: those of the block's pipeline."""
    block = graph.blocks[index]
    shapes = [lanes.in_shape(graph, index, port) for port in range(len(block.inputs))]
    words = sum(
        shape.height * shape.width * lanes.in_values(graph, index, fold, port) / lanes.in_lanes(block, fold, port)
        for port, shape in enumerate(shapes)
    )
    if not isinstance(block.op, g.Concat):
        words /= len(shapes)  # they come together
    return (depth_of(block, fold, resident(block, fold)) if count is None else count) / words


def _wordwise(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """A word leaves with the one that came."""
    return Lag(0.0, _stages(graph, index, fold))


def _added(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """Of a package's block, as that says."""
    lag = added_lag(FoldedBlock(graph, {index: fold}, index))
    return Lag(lag.low, lag.up + _stages(graph, index, fold))


def _pixelwise(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """A pixel's words come or leave by several streams, one after the other."""
    shape = lanes.in_shape(graph, index)
    pixel = 1 / (shape.height * shape.width)
    return Lag(-pixel, pixel + _stages(graph, index, fold))


def _whole(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """Nothing leaves before all of the map has come."""
    return Lag(0.0, 1 + _stages(graph, index, fold))


def _unit(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Unit) -> Lag:
    """A unit takes the vectors of some positions, and goes over its weights with them."""
    block = graph.blocks[index]
    if resident(block, fold):
        return _whole(graph, index, fold)
    height, width = lanes.matrix(graph, index, fold)
    groups, vector = ceil_div(lanes.positions(block), fold.pixels), width // fold.simd
    period = vector * (height // fold.pe if isinstance(op, g.MatrixVector) else 1)
    turns, stages_left = divmod(depth_of(block, fold, False), period)
    stages = (turns * vector + min(stages_left, vector)) / (groups * vector)
    gathered = 2 * WIDTH_DEPTH / (groups * vector) + 1 / groups if fold.pixels > fold.m else 0.0
    return Lag(0.0, 1 / groups + stages + gathered)


def _row(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """A row has to be there before its words leave, in walks that read it several times."""
    return Lag(0.0, 1 / lanes.in_shape(graph, index).height + _walked(graph, index, fold))


def _reorg(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Reorg) -> Lag:
    shape = lanes.in_shape(graph, index)
    pixels = gathered_pixels(op, shape)
    return Lag(0.0, pixels / (shape.height * shape.width) + _walked(graph, index, fold))


def _walked(graph: g.StreamGraph, index: int, fold: g.Fold) -> float:
    """Of a walk beyond the words that it needs: those that land, and those of its pipeline."""
    return _stages(graph, index, fold) + _stages(graph, index, fold, WALK_LANDING + 1)


def _shared(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Softmax) -> Lag:
    """Return the lag of a softmax: the words that its lines hold."""
    held = softmax_lag(op.method, lanes.in_values(graph, index, fold) // fold.pe)
    return Lag(0.0, _stages(graph, index, fold) + _stages(graph, index, fold, held))


def _thinned(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.DownSample) -> Lag:
    """Return the lag of a down-sampler: pixels up to each of those that stay."""
    shape, out = lanes.in_shape(graph, index), graph.blocks[index].outputs[0].shape
    y, x = _places(out.height, out.width)
    pixels_came = (y * op.stride * shape.width + x * op.stride) / (shape.height * shape.width)
    lag = pixels_came - (y * out.width + x) / (out.height * out.width)
    pixel = 1 / (out.height * out.width)
    return Lag(float(lag.min()) - pixel, float(lag.max()) + pixel + _stages(graph, index, fold))


def _scanned(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Window | MaxPool) -> Lag:
    """scan.h: a position leaves in the step in which the last pixel comes that it sees, or would come below the map."""
    block, read, out = graph.blocks[index], lanes.in_shape(graph, index), graph.blocks[index].outputs[0].shape
    m, reach = fold.m, _reach(op)
    row, row_words = ceil_div(max(read.width, (out.width - 1) * op.stride + 1), m), read.width // m
    last = (reach[0] - op.padding.top) * row + ceil_div(reach[1] - op.padding.left, m)
    y, x = _places(out.height, out.width // lanes.out_pixels(block, fold))
    step = y * op.stride * row + x * max(1, op.stride // m) + last
    groups = lanes.in_values(graph, index, fold) * m // lanes.in_lanes(block, fold)

    def frames_by(steps: Words) -> Words:
        rows, place = np.divmod(steps, row)
        words = np.where(rows < read.height, rows * row_words + np.minimum(place, row_words), read.height * row_words)
        return np.asarray(words / (read.height * row_words), np.float64)

    frames_left = np.arange(step.size) / step.size
    stages = ceil_div(depth_of(block, fold, False), groups)
    low = frames_by(step) - frames_left - 1 / step.size
    return Lag(float(low.min()), float((frames_by(step + 1 + stages) - frames_left).max()))


def _walked_window(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Window) -> Lag:
    """walk.h: words are taken until those are there that a position needs, and evenly while positions leave, as long
    as the buffer has room. In pixels."""
    block, read, out = graph.blocks[index], lanes.in_shape(graph, index), graph.blocks[index].outputs[0].shape
    high_reach, wide_reach = _reach(op)
    pixels, positions, taps = read.height * read.width, out.height * out.width, lanes.taps(block)
    y, x = _places(out.height, out.width)
    across = np.minimum(wide_reach + 1 - op.padding.left + x * op.stride, read.width)
    needed = np.minimum(high_reach - op.padding.top + y * op.stride, read.height - 1) * read.width + across
    oldest = np.maximum(y * op.stride - op.padding.top, 0) * read.width
    rows_over = max(op.stride * max(read.width, out.width), (read.height - (out.height - 1) * op.stride) * read.width)
    capacity = high_reach * read.width + wide_reach + 1 + max(rows_over, op.stride)
    reads = max(pixels, op.stride * out.height * max(read.width, out.width))
    pace = taps * reads / max(reads, positions * taps)  # pixels that are taken for a position
    number = np.arange(positions)
    begun = np.maximum.accumulate(needed - number * pace) + number * pace
    frames_left = number / positions
    bound = np.minimum(oldest + capacity + read.width, pixels)
    up = max(
        (np.minimum(begun, bound) / pixels - frames_left).max(),
        (np.minimum(begun + pace, bound) / pixels - frames_left - 1 / positions).max(),
    )
    low = (needed / pixels - frames_left - 1 / positions).min()
    return Lag(float(low), float(up) + _walked(graph, index, fold))


def _reach(op: g.Window | MaxPool) -> tuple[int, int]:
    """Rows and columns from a window's first pixel to its last."""
    if isinstance(op, MaxPool):
        return op.window[0] - 1, op.window[1] - 1
    return (op.kernel[0] - 1) * op.dilation, (op.kernel[1] - 1) * op.dilation


def _places(height: int, width: int) -> tuple[Words, Words]:
    """Rows and columns of all places of a map, row by row."""
    y, x = np.divmod(np.arange(height * width, dtype=np.float64), width)
    return y, x
