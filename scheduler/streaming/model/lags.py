"""The lags of folded blocks, and the FIFO depths before joins that avoid a deadlock.

The counters of a block's loop decide which words it reads and writes in an iteration, and the loop waits for each of
them. The input that a word needs therefore does not depend on clocks, and neither does a deadlock. The results of an
iteration are written when the pipeline has moved on, and it moves only with the words of later iterations.

    words read           ├───────────────────────┤
    words written        ├──────────────┤  lag   │        in frames; at least ``low``, at most ``up``

Lags add up along a path, but only up to one frame. A block starts a frame after it has finished the previous one, so
that its pipeline runs empty in between. Two branches of a fork may meet again at a join. If one branch has the lag
``up`` and the other the lag ``low``, the words of the second wait in the FIFO before the join. A block's lags are the
extremes over all words of its frame.
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
"""The total lag of the paths from a fork to each (block, input) that they reach."""


def waits(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> dict[tuple[int, int], int]:
    """Return, per (block, input) at which branches of a fork meet again, the most words that wait in the FIFO before
    it.

    Sinks count as a join: all output maps are sent in one packet, so a map waits until the maps before it are sent.
    """
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
    """Return the number of stream words at (block, input) ``place`` that a fraction of a frame holds, rounded up, plus
    one."""
    index, port = place
    shape, block = lanes.in_shape(graph, index, port), graph.blocks[index]
    values = shape.height * shape.width * lanes.in_values(graph, index, folds[index], port)
    return ceil_div(int(np.ceil(frames * values)), lanes.in_lanes(block, folds[index], port)) + 1


def _branch(
    graph: g.StreamGraph, streams: Mapping[tuple[int, int], Edge], lags: Sequence[Lag], start: g.Port
) -> Inputs:
    """Return the minimum and maximum lag, in frames, from one output of a fork to each (block, input) that it reaches.

    Args:
        graph: The graph.
        streams: Each stream by its writer's (block, output).
        lags: The lags of all blocks.
        start: The output of the fork.
    """
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
"""The indices of a block and of its input."""


def _met(graph: g.StreamGraph, branches: Sequence[Inputs]) -> Iterator[tuple[Place, float]]:
    """Yield (block, input) and the fraction of a frame that waits there because another branch of the same fork is
    slower.

    Args:
        graph: The graph.
        branches: The lags of each branch of the fork.
    """
    for short, long in permutations(branches, 2):
        for place, partners in _joins(graph):
            ups = [long[partner].up for partner in partners if partner in long]
            if place in short and ups:
                yield place, max(ups) - short[place].low + _turn(graph, place[0])
        for place, partners in _sinks(graph):
            if place in short and any(partner in long for partner in partners):
                yield place, 1 - short[place].low


def _joins(graph: g.StreamGraph) -> Iterator[tuple[Place, list[Place]]]:
    """Yield each input of every block as (block, input), with the block's other inputs."""
    for index, block in enumerate(graph.blocks):
        places = [(index, port) for port in range(len(block.inputs))]
        for place in places:
            yield place, [partner for partner in places if partner != place]


def _sinks(graph: g.StreamGraph) -> Iterator[tuple[Place, list[Place]]]:
    """Yield the input of each sink, with the inputs of the sinks whose maps are sent before it."""
    sinks = [(index, 0) for index, block in enumerate(graph.blocks) if isinstance(block.op, g.Sink)]
    for number, place in enumerate(sinks):
        yield place, sinks[:number]


def _turn(graph: g.StreamGraph, index: int) -> float:
    """Return the fraction of a frame that a block reads from one input before it reads from the next: a pixel for a
    concat, else 0."""
    shape = lanes.in_shape(graph, index)
    return 1 / (shape.height * shape.width) if isinstance(graph.blocks[index].op, g.Concat) else 0.0


# --- the lag of a stream and of a block ---------------------------------------------------------------------------


def edge_lag(edge: Edge) -> Lag:
    """Return the data that the converters of a stream hold (read but not yet written), in frames, as a ``Lag``.

    A converter of channels stores at most a pixel. A converter of pixels stores at most the pixels of its larger word,
    and a converter of widths one word of each width.
    """
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
    """Return the data that one block has read but not yet written when it writes a word, in frames (a ``Lag``)."""
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
    """Return the fraction of a frame that a block reads in ``count`` loop iterations, with one word each.

    With None, ``count`` is the stages of the block's pipeline.
    """
    block = graph.blocks[index]
    shapes = [lanes.in_shape(graph, index, port) for port in range(len(block.inputs))]
    words = sum(
        shape.height * shape.width * lanes.in_values(graph, index, fold, port) / lanes.in_lanes(block, fold, port)
        for port, shape in enumerate(shapes)
    )
    if not isinstance(block.op, g.Concat):
        words /= len(shapes)  # an iteration reads a word of every input
    return (depth_of(block, fold, resident(block, fold)) if count is None else count) / words


def _wordwise(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """Return the lag in frames of a block that writes one word for each word that it reads."""
    return Lag(0.0, _stages(graph, index, fold))


def _added(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """Return the lag in frames that a package states for its block, plus the lag of the block's pipeline."""
    lag = added_lag(FoldedBlock(graph, {index: fold}, index))
    return Lag(lag.low, lag.up + _stages(graph, index, fold))


def _pixelwise(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """Return the lag in frames of a concat, split or top-k block, which handles the words of a pixel one after the
    other."""
    shape = lanes.in_shape(graph, index)
    pixel = 1 / (shape.height * shape.width)
    return Lag(-pixel, pixel + _stages(graph, index, fold))


def _whole(graph: g.StreamGraph, index: int, fold: g.Fold) -> Lag:
    """Return the lag in frames of a block that reads the whole map before it writes."""
    return Lag(0.0, 1 + _stages(graph, index, fold))


def _unit(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Unit) -> Lag:
    """Return the lag in frames of a matrix-vector or vector-vector unit, which reads a group of input vectors and then
    computes."""
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
    """Return the lag in frames of an up-sampler or depth to space, which needs a whole input row before it writes."""
    return Lag(0.0, 1 / lanes.in_shape(graph, index).height + _walked(graph, index, fold))


def _reorg(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Reorg) -> Lag:
    """Return the lag in frames of a reorg, which needs all pixels of its first output pixel before it writes."""
    shape = lanes.in_shape(graph, index)
    pixels = gathered_pixels(op, shape)
    return Lag(0.0, pixels / (shape.height * shape.width) + _walked(graph, index, fold))


def _walked(graph: g.StreamGraph, index: int, fold: g.Fold) -> float:
    """Return the fraction of a frame that a block with walk.h addressing has in flight: in its buffer's write delay and
    its pipeline."""
    return _stages(graph, index, fold) + _stages(graph, index, fold, WALK_LANDING + 1)


def _shared(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Softmax) -> Lag:
    """Return the lag in frames of a softmax, which is the words in its delay lines and its pipeline."""
    held = softmax_lag(op.method, lanes.in_values(graph, index, fold) // fold.pe)
    return Lag(0.0, _stages(graph, index, fold) + _stages(graph, index, fold, held))


def _thinned(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.DownSample) -> Lag:
    """Return the lag in frames of a down-sampler, which drops the pixels between two output pixels."""
    shape, out = lanes.in_shape(graph, index), graph.blocks[index].outputs[0].shape
    y, x = _places(out.height, out.width)
    pixels_came = (y * op.stride * shape.width + x * op.stride) / (shape.height * shape.width)
    lag = pixels_came - (y * out.width + x) / (out.height * out.width)
    pixel = 1 / (out.height * out.width)
    return Lag(float(lag.min()) - pixel, float(lag.max()) + pixel + _stages(graph, index, fold))


def _scanned(graph: g.StreamGraph, index: int, fold: g.Fold, op: g.Window | MaxPool) -> Lag:
    """Return the lag in frames of a parallel window or a max pool (scan.h).

    A position is written in the step in which the last pixel of its window arrives. If that pixel is below the map,
    this is the step in which it would arrive.
    """
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
    """Return the lag in frames of a default window (walk.h), which reads until it has the pixels of its next position.

    The block reads until it has the pixels of the next position. While it writes positions, it reads at an even pace,
    as long as its buffer has room.
    """
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
    pace = taps * reads / max(reads, positions * taps)  # pixels that are read while a position is written
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
    """Return the distance from the first pixel under a kernel to the last, in rows and in columns."""
    if isinstance(op, MaxPool):
        return op.window[0] - 1, op.window[1] - 1
    return (op.kernel[0] - 1) * op.dilation, (op.kernel[1] - 1) * op.dilation


def _places(height: int, width: int) -> tuple[Words, Words]:
    """Return the row index and the column index of every pixel of a map in row-major order, as two arrays."""
    y, x = np.divmod(np.arange(height * width, dtype=np.float64), width)
    return y, x
