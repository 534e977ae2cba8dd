"""The number of values per word, per pixel and per frame at a block's inputs and outputs, as its fold decides.

A word carries one or more pixels of a row, with the same number of channels of each. Padded maps include the channels
of padding.
"""

from __future__ import annotations

from math import gcd, prod

from cnn.maps import Shape
from cnn.ops import MaxPool
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import kind_of


def taps(block: g.Block) -> int:
    """Return the number of kernel taps of a window or unit block: the values per channel that one output pixel
    needs."""
    op = block.op
    if isinstance(op, g.Window):
        return prod(op.kernel)
    if isinstance(op, g.Unit):
        return int(prod(op.weights.shape[2:]))
    return 1


def out_pixels(block: g.Block, fold: g.Fold) -> int:
    """Return the pixels per output word of a block. A strided block has fewer of them than its input words have."""
    stride = block.op.stride if isinstance(block.op, (g.Window, MaxPool)) else 1
    return max(1, fold.m // stride)


def in_lanes(block: g.Block, fold: g.Fold, port: int = 0) -> int:
    """Return the values per word of the block's input stream ``port``, summed over the word's ``fold.m`` pixels."""
    if isinstance(block.op, g.VectorVector):
        return fold.m * fold.pe * fold.simd
    return fold.m * (fold.simd if kind_of(block.op).reads == "simd" else fold.pe)


def out_lanes(block: g.Block, fold: g.Fold, output: int = 0) -> int:
    """Return the values per word of the block's output stream ``output``, summed over the word's ``out_pixels``
    pixels."""
    if isinstance(block.op, g.LabelSelect):
        return block.op.k
    pixels = out_pixels(block, fold)
    if isinstance(block.op, g.Window) and fold.style == "parallel":
        return pixels * taps(block) * fold.simd
    return pixels * (fold.simd if kind_of(block.op).writes == "simd" else fold.pe)


def in_values(graph: g.StreamGraph, index: int, fold: g.Fold, port: int = 0) -> int:
    """Return the values per pixel of the block's input stream ``port``, channel padding included."""
    block = graph.blocks[index]
    channels = graph.type_of(block.inputs[port]).shape.channels
    gathered = isinstance(graph.blocks[block.inputs[port].block].op, g.Window)
    return channels + fold.pad_in * (taps(block) if gathered else 1)


def out_values(graph: g.StreamGraph, index: int, fold: g.Fold, output: int = 0) -> int:
    """Return the values per pixel of the block's output stream ``output``, channel padding included."""
    block = graph.blocks[index]
    return block.outputs[output].shape.channels + fold.pad_out * (taps(block) if isinstance(block.op, g.Window) else 1)


def in_shape(graph: g.StreamGraph, index: int, port: int = 0) -> Shape:
    """Return the shape of the feature map at the block's input ``port``, without channel padding."""
    return graph.type_of(graph.blocks[index].inputs[port]).shape


def common_channels(graph: g.StreamGraph, index: int) -> int:
    """Return the greatest common divisor of the channels of the block's input and output maps.

    The lanes of a block without weights must divide it. The labels of a label select are not counted as channels.
    """
    block = graph.blocks[index]
    written = () if isinstance(block.op, g.LabelSelect) else block.outputs
    return gcd(*(kind.shape.channels for kind in (*graph.inputs_of(block), *written)))


def matrix(graph: g.StreamGraph, index: int, fold: g.Fold) -> tuple[int, int]:
    """Return the number of rows and columns of a unit's weight matrix, channel padding included.

    This is (MH, MW) for a matrix-vector unit and (channels, taps) for a vector-vector unit.
    """
    op = graph.blocks[index].op
    assert isinstance(op, g.Unit)
    height = op.weights.shape[0] + fold.pad_out
    channels = 1 if isinstance(op, g.VectorVector) else op.weights.shape[1] + fold.pad_in
    return height, channels * taps(graph.blocks[index])


def positions(block: g.Block) -> int:
    """Return the number of output pixels of a block per frame."""
    return block.outputs[0].shape.height * block.outputs[0].shape.width


def folds_of(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """Return NF · SF: the tiles of PE × SIMD weights into which a unit's weight matrix is cut, or 0 for a block without
    weights."""
    if not isinstance(graph.blocks[index].op, g.Unit):
        return 0
    height, width = matrix(graph, index, fold)
    return ceil_div(height, fold.pe) * ceil_div(width, fold.simd)
