"""Values a word, words a frame, cycles a frame: what a fold makes of a block. Closed formulas, steady state.

Every block is one pipelined loop at an initiation interval of 1 that reads and writes each stream at most once a
cycle, so that it takes as many cycles as its busiest stream has words, or as many as its arithmetic has steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from cnn.network import MaxPool, Shape
from cnn.quantized import IntArray
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import WEIGHT_BEAT_BYTES
from scheduler.streaming import graph as g
from scheduler.streaming.weight_image import beats_of

MOVERS = (g.Source, g.Sink, g.Discard, g.Window, g.DownSample, g.Upsample, g.Reorg, g.Concat, g.Split)
"""Blocks that only move values: their lanes are ``simd``. Lanes of the others are ``pe``."""


@dataclass(frozen=True)
class Converter:
    """A block between two others whose words differ: in their width, in their channels, or in their pixels.

    lanes_in, lanes_out: values of a word, of all its pixels. channels_in, channels_out: values of a pixel before and
    after; more after means zeros, fewer that the last are dropped. pixels: of a frame. m_in, m_out: pixels of a word.
    """

    lanes_in: int
    lanes_out: int
    channels_in: int
    channels_out: int
    pixels: int
    m_in: int = 1
    m_out: int = 1

    @property
    def kind(self) -> str:
        """ "width", "channels" (which changes the width too) or "pixels" (lanes of a pixel stay)."""
        if self.m_in != self.m_out:
            return "pixels"
        return "width" if self.channels_in == self.channels_out else "channels"

    @property
    def words_in(self) -> int:
        return self.pixels * self.channels_in // self.lanes_in

    @property
    def words_out(self) -> int:
        return self.pixels * self.channels_out // self.lanes_out

    @property
    def cycles(self) -> int:
        """A frame's: one word in and one word out at most each cycle.

        Channels are changed pixel by pixel, and while words of zeros leave, or words are cropped, nothing else goes on
        (width.h, convert_steps).
        """
        if self.kind != "channels":
            return max(self.words_in, self.words_out)
        come, leave = self.channels_in // self.lanes_in, self.channels_out // self.lanes_out
        if self.lanes_in < self.lanes_out:
            return self.pixels * (come + max(leave - (come - 1) * self.lanes_in // self.lanes_out - 1, 0))
        needed = ceil_div(self.channels_out, self.lanes_in)
        last = (min(come, needed) - 1) * self.lanes_in // self.lanes_out + 1 + max(come - needed, 0)
        return self.pixels * max(leave, last)


def taps(block: g.Block) -> int:
    """Values of a channel that one output position of a window or of a matrix-vector unit reads."""
    op = block.op
    if isinstance(op, g.Window):
        return prod(op.kernel)
    if isinstance(op, (g.MatrixVector, g.VectorVector)):
        return int(prod(op.weights.shape[2:]))
    return 1


def out_pixels(block: g.Block, fold: g.Fold) -> int:
    """M of what leaves: a stride leaves fewer pixels than come."""
    stride = block.op.stride if isinstance(block.op, (g.Window, MaxPool)) else 1
    return max(1, fold.m // stride)


def in_lanes(block: g.Block, fold: g.Fold, port: int = 0) -> int:
    """Values of a word at input ``port``, of all its ``fold.m`` pixels."""
    if isinstance(block.op, g.VectorVector):
        return fold.m * fold.pe * fold.simd
    by_simd = isinstance(block.op, (*MOVERS, g.MatrixVector))
    return fold.m * (fold.simd if by_simd else fold.pe)


def out_lanes(block: g.Block, fold: g.Fold, output: int = 0) -> int:
    """Values of a word at ``output``, of all its ``out_pixels``."""
    pixels = out_pixels(block, fold)
    if isinstance(block.op, g.Window) and fold.style == "parallel":
        return pixels * taps(block) * fold.simd
    return pixels * (fold.simd if isinstance(block.op, MOVERS) else fold.pe)


def in_values(graph: g.StreamGraph, index: int, fold: g.Fold, port: int = 0) -> int:
    """Values of a pixel of the stream at ``port``, padding included."""
    block = graph.blocks[index]
    channels = graph.type_of(block.inputs[port]).shape.channels
    gathered = isinstance(graph.blocks[block.inputs[port].block].op, g.Window)
    return channels + fold.pad_in * (taps(block) if gathered else 1)


def out_values(graph: g.StreamGraph, index: int, fold: g.Fold, output: int = 0) -> int:
    """Values of a pixel of the stream at ``output``, padding included."""
    block = graph.blocks[index]
    return block.outputs[output].shape.channels + fold.pad_out * (taps(block) if isinstance(block.op, g.Window) else 1)


def in_shape(graph: g.StreamGraph, index: int, port: int = 0) -> Shape:
    return graph.type_of(graph.blocks[index].inputs[port]).shape


def matrix(graph: g.StreamGraph, index: int, fold: g.Fold) -> tuple[int, int]:
    """(MH, MW) of a matrix-vector unit, (channels, taps) of a vector-vector unit, padding included."""
    op = graph.blocks[index].op
    assert isinstance(op, (g.MatrixVector, g.VectorVector))
    height = op.weights.shape[0] + fold.pad_out
    channels = 1 if isinstance(op, g.VectorVector) else op.weights.shape[1] + fold.pad_in
    return height, channels * taps(graph.blocks[index])


def positions(block: g.Block) -> int:
    """Output pixels of a frame."""
    return block.outputs[0].shape.height * block.outputs[0].shape.width


def folds_of(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """NF · SF: weight words of one pass over the weights; 0 where there are none."""
    if not isinstance(graph.blocks[index].op, (g.MatrixVector, g.VectorVector)):
        return 0
    height, width = matrix(graph, index, fold)
    return ceil_div(height, fold.pe) * ceil_div(width, fold.simd)


def cycles(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Cycles a frame in steady state."""
    block = graph.blocks[index]
    words = [
        _words(in_shape(graph, index, port), in_values(graph, index, fold, port), in_lanes(block, fold, port))
        for port in range(len(block.inputs))
    ]
    if isinstance(block.op, MaxPool) or (isinstance(block.op, g.Window) and fold.style == "parallel"):
        return _walked(graph, index, fold)
    words += [
        _words(kind.shape, out_values(graph, index, fold, output), out_lanes(block, fold, output))
        for output, kind in enumerate(block.outputs)
    ]
    return max([*words, _multiplied(graph, index, fold)])


def _multiplied(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Cycles of a unit's arithmetic; 0 where there is none.

    Resident units (matrix_vector_resident.h) take a frame's vectors, let every tile meet all positions, or wait for its
    beats where these are more, and give the results, one after the other.
    """
    block, tiles = graph.blocks[index], folds_of(graph, index, fold)
    groups = ceil_div(positions(block), fold.pixels) if tiles else 0
    beats = tile_beats(block, fold)
    if not resident(block, fold):
        return groups * tiles * beats
    height, width = matrix(graph, index, fold)
    return groups * (height // fold.pe + width // fold.simd) + tiles * max(groups, beats)


def resident(block: g.Block, fold: g.Fold) -> bool:
    """Whether a unit keeps all vectors of a frame, so that its weights cross DDR once and not for every position."""
    return fold.memory == "external" and isinstance(block.op, g.MatrixVector) and positions(block) > fold.pixels


def tile_beats(block: g.Block, fold: g.Fold) -> int:
    """Cycles that a tile of PE · SIMD weights takes to come: beats where it comes from DDR, else one."""
    if fold.memory != "external" or not isinstance(block.op, g.MatrixVector):
        return 1
    return beats_of(fold.pe * fold.simd, block.op.weight_type.bits, WEIGHT_BEAT_BYTES)


def _walked(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Of a parallel window or a max pool, which walks over its map and on to where its last window ends: on a map of
    width W, max(H, S · (OH − 1) + 1) · max(W, S · (OW − 1) + 1) / M pixels of C / SIMD words each."""
    block = graph.blocks[index]
    assert isinstance(block.op, (g.Window, MaxPool))
    before, after, stride = in_shape(graph, index), block.outputs[0].shape, block.op.stride
    rows = max(before.height, stride * (after.height - 1) + 1)
    columns = ceil_div(max(before.width, stride * (after.width - 1) + 1), fold.m)
    return rows * columns * (fold.m * in_values(graph, index, fold) // in_lanes(block, fold))


def _words(shape: Shape, values: int, lanes: int) -> int:
    return ceil_div(shape.height * shape.width * values, lanes)


def converters(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int, port: int = 0) -> tuple[Converter, ...]:
    """What stands before input ``port``, one behind the other, where its words are not those of its writer."""
    source = graph.blocks[index].inputs[port]
    return between(graph, source, folds[source.block], index, port, folds[index])


def between(
    graph: g.StreamGraph, source: g.Port, writer: g.Fold, index: int, port: int, reader: g.Fold
) -> tuple[Converter, ...]:
    """``converters`` for the folds of the two ends."""
    block = graph.blocks[source.block]
    shape = graph.type_of(source).shape
    spots = shape.height * shape.width
    have, want = out_pixels(block, writer), reader.m
    given = out_lanes(block, writer, source.output) // have
    taken = in_lanes(graph.blocks[index], reader, port) // want
    values = out_values(graph, source.block, writer, source.output), in_values(graph, index, reader, port)
    if values[0] == values[1] and (have, given) == (want, taken):
        return ()
    if values[0] == values[1] and _in_order(have, given, values[0]) and _in_order(want, taken, values[1]):
        return (Converter(have * given, want * taken, *values, spots),)
    return _regrouped(spots, values, (have, given), (want, taken))


def _in_order(pixels: int, lanes: int, values: int) -> bool:
    """Whether the values of a stream come pixel after pixel."""
    return pixels == 1 or lanes == values


def _regrouped(
    spots: int, values: tuple[int, int], given: tuple[int, int], taken: tuple[int, int]
) -> tuple[Converter, ...]:
    """given, taken: (pixels, lanes of a pixel) of the words. Lanes change between words of one pixel only."""
    (have, lanes_in), (want, lanes_out) = given, taken
    alike = values[0] == values[1] and lanes_in == lanes_out
    if alike and max(have, want) % min(have, want) == 0:
        return (Converter(have * lanes_in, want * lanes_in, *values, spots, have, want),)
    found: list[Converter] = []
    if have > 1:
        found.append(Converter(have * lanes_in, lanes_in, values[0], values[0], spots, have, 1))
    if not alike:
        whole = lanes_out if values[0] == values[1] else gcd(lanes_out, values[1])
        found.append(Converter(lanes_in, whole, *values, spots))
        if whole != lanes_out:  # a connected layer takes words of more than a pixel
            found.append(Converter(whole, lanes_out, values[1], values[1], spots))
    if want > 1:
        found.append(Converter(lanes_out, want * lanes_out, values[1], values[1], spots, 1, want))
    return tuple(found)


def bottleneck(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> tuple[str, int]:
    """Name and cycles a frame of the slowest block or converter."""
    slowest = ("", 0)
    for index, block in enumerate(graph.blocks):
        found = [(block.name, cycles(graph, index, folds[index]))]
        for port in range(len(block.inputs)):
            made = converters(graph, folds, index, port)
            found += [(f"the width converter before {block.name}", one.cycles) for one in made]
        slowest = max([slowest, *found], key=lambda pair: pair[1])
    return slowest


def frame_cycles(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> int:
    """Cycles from one frame to the next, all FIFOs deep enough."""
    return bottleneck(graph, folds)[1]


def weight_matrix(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int) -> IntArray:
    """[MH, MW] (vector-vector unit: [channels, taps]) with columns in the order of the stream, zeros where padded.

    A map and a default window bring (tap, channel), a parallel window (group of its SIMD channels, tap, channel).
    """
    block, fold = graph.blocks[index], folds[index]
    op = block.op
    assert isinstance(op, (g.MatrixVector, g.VectorVector))
    deep = isinstance(op, g.MatrixVector)
    grown = [(0, fold.pad_out), (0, fold.pad_in if deep else 0), (0, 0), (0, 0)]
    weights = np.pad(op.weights, grown, constant_values=op.weight_type.low if op.weight_type.few == "BIPOLAR" else 0)
    rows, channels = weights.shape[:2]
    columns = weights.reshape(rows, channels, -1).transpose(0, 2, 1)
    source = block.inputs[0].block
    if isinstance(graph.blocks[source].op, g.Window) and folds[source].style == "parallel" and deep:
        simd = folds[source].simd
        columns = columns.reshape(rows, -1, channels // simd, simd).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(columns.reshape(rows, -1))


def weight_tiles(weights: IntArray, pe: int, simd: int) -> IntArray:
    """[MH, MW] → [PE][NF · SF][SIMD]: row nf · PE + pe, columns sf · SIMD …, stand in tile nf · SF + sf."""
    height, width = weights.shape
    tiles = weights.reshape(height // pe, pe, width // simd, simd).transpose(1, 0, 2, 3)
    return np.ascontiguousarray(tiles.reshape(pe, -1, simd))


def preserves(op: g.BlockOp) -> bool:
    """True where the channels that leave are those that come."""
    kept = (MaxPool, g.GlobalPool, g.Activate, g.Add, g.Duplicate, g.VectorVector, g.Window, g.DownSample, g.Upsample)
    return isinstance(op, kept)
