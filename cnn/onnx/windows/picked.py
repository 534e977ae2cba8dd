"""Pixels of a map that lie whole steps apart: a max pool of size 1, or a window of each channel by itself of which one
place counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from boards.errors import RangeError
from cnn.limits import MAX_KERNEL
from cnn.maps import FloatArray, Shape
from cnn.onnx.graph import Array, Operation, require
from cnn.onnx.layers import NO_PADDING, Layers
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.onnx.windows.blocks import Window, convolved
from cnn.onnx.windows.slide import Slide
from cnn.ops import Convolution, Input, MaxPool


@dataclass(frozen=True)
class Picks:
    """Along one side of ``length``: ``count`` places, ``first`` and then ``step`` further each. shares: of that place
    and of those behind it, in the mean of them that is taken."""

    length: int
    first: int
    step: int
    count: int
    shares: tuple[Fraction, ...] = (Fraction(1),)

    @classmethod
    def from_places(cls, places: Array, length: int) -> Picks | None:
        """These places; None where they are not one step apart, or it is none."""
        step = int(places[1] - places[0]) if len(places) > 1 else 1
        regular = step >= 1 and bool((np.diff(places) == step).all())
        return cls(length, int(places[0]), step, len(places)) if regular else None

    @property
    def window(self) -> int:
        """The least that has a place for all shares, and gives no output too many."""
        return max(self.first + len(self.shares), self.length - self.step * self.count + 1)

    @property
    def weights(self) -> FloatArray:
        """Of that window."""
        weights = np.zeros(self.window, np.float32)
        weights[self.first : self.first + len(self.shares)] = [float(share) for share in self.shares]
        return weights

    @property
    def unit(self) -> Fraction:
        """What all shares are whole numbers of."""
        return Fraction(1, lcm(*(share.denominator for share in self.shares)))


def picked(layers: Layers, operation: Operation, index: int, rows: Picks, columns: Picks) -> Layers:
    """These rows and columns of a node's map, or their means, as the operation's output."""
    if rows.count == 1 or columns.count == 1:  # of a single place any step
        step = columns.step if rows.count == 1 else rows.step
        rows, columns = replace(rows, step=step), replace(columns, step=step)
    window = (rows.window, columns.window)
    require(max(window) <= MAX_KERNEL, RangeError("rows or columns left out", max(window) - 1, 0, MAX_KERNEL - 1))
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    smaller = Shape(shape.channels, rows.count, columns.count)
    bare, source = replace(operation, inputs=operation.inputs[:1]), index
    computes = isinstance(layers.nodes[source].op, Input)  # a layer of the picture does
    if window == (1, 1) and rows.step == columns.step and not computes:
        return layers.grown(bare, "pool", MaxPool(1, rows.step, NO_PADDING), smaller, source)
    layers = layers.worked_out(4 * shape.channels * window[0] * window[1])
    weights = np.outer(rows.weights, columns.weights)
    kernel = np.array(np.broadcast_to(weights, (shape.channels, 1, *window)), np.float32)
    op = Convolution(kernel, np.zeros(shape.channels, np.float32), None, 1, NO_PADDING, shape.channels, "linear")
    unit = rows.unit * columns.unit
    mark = NO_MARK if type_ is None else Mark(type=type_)
    if unit != 1:
        mark = Mark(scale=np.array([unit], np.float32))
    slide = Slide(shape, window, smaller, NO_PADDING, (rows.step, columns.step))
    return convolved(layers, bare, source, Window(op, slide, mark, "pick"))
