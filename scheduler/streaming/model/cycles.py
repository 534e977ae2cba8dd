"""The cycles per frame of a block under a fold, as closed formulas for the steady state.

Every block is one pipelined loop with an initiation interval of 1. It reads and writes each stream at most once per
cycle. Its iterations per frame are the words of its busiest stream or, if these are more, the steps of its arithmetic.

A block starts a frame after it has finished the previous one. Windows and pools still write their last positions after
the last pixel has arrived, and the pipeline runs empty. On small maps this takes a tenth of a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cnn.maps import Padding, Shape
from cnn.ops import MaxPool, assert_never
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import WEIGHT_BEAT_BYTES
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.packages import steps_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.lanes import folds_of, in_lanes, in_shape, in_values, matrix, out_lanes, out_values, positions
from scheduler.streaming.model.converters import edges
from scheduler.streaming.model.depths import depth_of, softmax_lag
from scheduler.streaming.weights import beats_of

WALK_LANDING = 3
"""The iterations from a word's arrival in a walk (walk.h) to its first use."""


def block_cycles(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Return the cycles per frame of one streaming block in steady state."""
    block = graph.blocks[index]
    return _steps(graph, index, fold) + depth_of(block, fold, resident(block, fold))


def _steps(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Return the iterations of a block's hardware loop for one frame."""
    op = graph.blocks[index].op
    match op:
        case MaxPool() | g.Window():
            return _slid(graph, index, fold, op)
        case g.Custom():
            return steps_of(FoldedBlock(graph, {index: fold}, index))
        case g.MatrixVector() | g.VectorVector():
            return max(_busiest(graph, index, fold), _multiplied(graph, index, fold))
        case g.Softmax():
            lag = softmax_lag(op.method, in_values(graph, index, fold) // fold.pe)
            return lag + _busiest(graph, index, fold)
        case g.Reorg():
            pixels = gathered_pixels(op, in_shape(graph, index))
            return _gathered(graph, index, fold, pixels) + _busiest(graph, index, fold)
        case g.DepthToSpace() | g.Upsample():
            pixels = in_shape(graph, index).width
            return _gathered(graph, index, fold, pixels) + _busiest(graph, index, fold)
        case (
            g.Source()
            | g.Sink()
            | g.Discard()
            | g.Activate()
            | g.GlobalPool()
            | g.Add()
            | g.Multiply()
            | g.Duplicate()
            | g.Concat()
            | g.Split()
            | g.DownSample()
            | g.LabelSelect()
        ):
            return _busiest(graph, index, fold)
        case _:
            assert_never(op)


def _busiest(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Return the words per frame of the block's input or output stream that has the most."""
    block = graph.blocks[index]
    words = [
        _words(in_shape(graph, index, port), in_values(graph, index, fold, port), in_lanes(block, fold, port))
        for port in range(len(block.inputs))
    ]
    words += [
        _words(kind.shape, out_values(graph, index, fold, output), out_lanes(block, fold, output))
        for output, kind in enumerate(block.outputs)
    ]
    return max(words)


def _slid(graph: g.StreamGraph, index: int, fold: g.Fold, op: MaxPool | g.Window) -> int:
    """Return the iterations per frame of the hardware loop of a sliding window or a max pool."""
    slide = _Slide.of(graph, index, op)
    groups = in_values(graph, index, fold) * fold.m // in_lanes(graph.blocks[index], fold)
    parallel = isinstance(op, MaxPool) or fold.style == "parallel"
    return groups * slide.scanned(fold.m) if parallel else slide.walked(groups)


def _multiplied(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Return the loop iterations per frame in which a matrix-vector or vector-vector unit multiplies.

    Resident units (matrix_vector_resident.h) have three phases. They read the frame's vectors, multiply every tile with
    all positions, and write the results. In the second phase, a tile may have more beats in DDR than groups of
    positions. Its beats then determine the time.
    """
    block, tiles = graph.blocks[index], folds_of(graph, index, fold)
    groups = ceil_div(positions(block), fold.pixels)
    beats = tile_beats(block, fold)
    if not resident(block, fold):
        return groups * tiles * beats
    height, width = matrix(graph, index, fold)
    return groups * (height // fold.pe + width // fold.simd) + tiles * max(groups, beats)


def resident(block: g.Block, fold: g.Fold) -> bool:
    """Return whether a unit stores all input vectors of a frame, so that it reads its weights from DDR once per frame.

    Otherwise it would read them once per group of ``pixels`` positions.
    """
    return fold.memory == "external" and isinstance(block.op, g.MatrixVector) and positions(block) > fold.pixels


def tile_beats(block: g.Block, fold: g.Fold) -> int:
    """Return the cycles in which a tile of PE · SIMD weights arrives: its DDR beats, or 1 for weights on chip."""
    if fold.memory != "external" or not isinstance(block.op, g.MatrixVector):
        return 1
    return beats_of(fold.pe * fold.simd, block.op.weight_type.bits, WEIGHT_BEAT_BYTES)


def _gathered(graph: g.StreamGraph, index: int, fold: g.Fold, pixels: int) -> int:
    """Return the iterations of a block's loop before its first output word, which needs ``pixels`` input pixels."""
    return pixels * in_values(graph, index, fold) // in_lanes(graph.blocks[index], fold) + WALK_LANDING - 1


def gathered_pixels(reorg: g.Reorg, shape: Shape) -> int:
    """Return how many input pixels of a reorg must arrive, in row-major order, before its first output pixel is
    complete.

    These are all pixels if ``reorg.stride``² does not divide the height in darknet's order.
    """
    if reorg.order == "darknet" and shape.height % reorg.stride**2:
        return shape.height * shape.width
    rows = (reorg.stride - 1) * (reorg.stride if reorg.order == "darknet" else 1)
    return rows * shape.width + reorg.stride


@dataclass(frozen=True)
class _Slide:
    """The geometry of a sliding window or max pool: map shapes, kernel, stride and padding.

    Attributes:
        read: The shape of the input map.
        out: The shape of the output map. Only its rows and columns are used.
        kernel: The rows and columns of the map that the kernel covers, dilation included.
        taps: The taps of the kernel.
        stride: The stride.
        padding: The padding.
    """

    read: Shape
    out: Shape
    kernel: tuple[int, int]
    taps: int
    stride: int
    padding: Padding

    @staticmethod
    def of(graph: g.StreamGraph, index: int, op: MaxPool | g.Window) -> _Slide:
        """Return the sliding geometry of the window or max pool block ``index``, whose operation is ``op``."""
        rows, columns = op.window if isinstance(op, MaxPool) else op.kernel
        dilation = 1 if isinstance(op, MaxPool) else op.dilation
        reach = (rows - 1) * dilation + 1, (columns - 1) * dilation + 1
        out = graph.blocks[index].outputs[0].shape
        return _Slide(in_shape(graph, index), out, reach, rows * columns, op.stride, op.padding)

    def scanned(self, m: int) -> int:
        """Return the loop iterations per frame and channel group of a parallel window or a max pool (scan.h).

        The frame ends when its last word of ``m`` pixels has been read and its last position has been written.
        """
        row_words = ceil_div(max(self.read.width, self.stride * (self.out.width - 1) + 1), m)
        lag = (self.kernel[0] - 1 - self.padding.top) * row_words + ceil_div(self.kernel[1] - 1 - self.padding.left, m)
        words = self.out.width // max(1, m // self.stride)
        last = (self.out.height - 1) * self.stride * row_words + (words - 1) * max(1, self.stride // m)
        return max((self.read.height - 1) * row_words + self.read.width // m, last + lag + 1)

    def walked(self, groups: int) -> int:
        """Return the loop iterations per frame of a default window, which writes one word per cycle (window.h).

        Args:
            groups: The input words per pixel.
        """
        positions, pixels = self.out.height * self.out.width, self.read.height * self.read.width
        walked = self._landed(0, 0, groups) + positions * self.taps * groups
        row, last = self.out.height - 1, self.out.width - 1
        last_row = self._landed(row, 0, groups) + self.out.width * self.taps * groups
        return max(pixels * groups, walked, last_row, self._landed(row, last, groups) + self.taps * groups)

    def _landed(self, y: int, x: int, groups: int) -> int:
        """Return the iterations until all input words of the window at output (y, x) are usable, if one word arrives
        per cycle.

        Args:
            y: The row of the position.
            x: The column of the position.
            groups: The input words per pixel.
        """
        rows = min(y * self.stride - self.padding.top + self.kernel[0], self.read.height)
        columns = min(x * self.stride - self.padding.left + self.kernel[1], self.read.width)
        return ((rows - 1) * self.read.width + columns) * groups + WALK_LANDING - 1


def _words(shape: Shape, values: int, lanes: int) -> int:
    return ceil_div(shape.height * shape.width * values, lanes)


def bottleneck(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> tuple[str, int]:
    """Return the name and the cycles per frame of the pipeline's slowest block or converter."""
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
    """Return the pipeline's cycles from one frame to the next if all FIFOs are deep enough."""
    return bottleneck(graph, folds)[1]
