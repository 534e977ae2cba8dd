"""Values a word: what a fold makes of the words at a block's inputs and outputs.

A word carries ``m`` pixels of some lanes each; of a padded map the channels beyond the network's are among them.
"""

from __future__ import annotations

from math import gcd, prod

from cnn.maps import Shape
from cnn.ops import MaxPool
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import kind_of


def taps(block: g.Block) -> int:
    """Values of a channel that one output position of a window or of a matrix-vector unit reads."""
    op = block.op
    if isinstance(op, g.Window):
        return prod(op.kernel)
    if isinstance(op, g.Unit):
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
    return fold.m * (fold.simd if kind_of(block.op).reads == "simd" else fold.pe)


def out_lanes(block: g.Block, fold: g.Fold, output: int = 0) -> int:
    """Values of a word at ``output``, of all its ``out_pixels``."""
    if isinstance(block.op, g.LabelSelect):
        return block.op.k
    pixels = out_pixels(block, fold)
    if isinstance(block.op, g.Window) and fold.style == "parallel":
        return pixels * taps(block) * fold.simd
    return pixels * (fold.simd if kind_of(block.op).writes == "simd" else fold.pe)


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
    """Of the map at input ``port``."""
    return graph.type_of(graph.blocks[index].inputs[port]).shape


def common_channels(graph: g.StreamGraph, index: int) -> int:
    """What the lanes of a block that does not multiply have to divide: the greatest common divisor of the channels of
    all its maps. Labels are no channels."""
    block = graph.blocks[index]
    leaving = () if isinstance(block.op, g.LabelSelect) else block.outputs
    return gcd(*(kind.shape.channels for kind in (*graph.inputs_of(block), *leaving)))


def matrix(graph: g.StreamGraph, index: int, fold: g.Fold) -> tuple[int, int]:
    """(MH, MW) of a matrix-vector unit, (channels, taps) of a vector-vector unit, padding included."""
    op = graph.blocks[index].op
    assert isinstance(op, g.Unit)
    height = op.weights.shape[0] + fold.pad_out
    channels = 1 if isinstance(op, g.VectorVector) else op.weights.shape[1] + fold.pad_in
    return height, channels * taps(graph.blocks[index])


def positions(block: g.Block) -> int:
    """Output pixels of a frame."""
    return block.outputs[0].shape.height * block.outputs[0].shape.width


def folds_of(graph: g.StreamGraph, index: int, fold: g.Fold) -> int:
    """NF · SF: weight words of one pass over the weights; 0 where there are none."""
    if not isinstance(graph.blocks[index].op, g.Unit):
        return 0
    height, width = matrix(graph, index, fold)
    return ceil_div(height, fold.pe) * ceil_div(width, fold.simd)
