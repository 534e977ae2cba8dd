"""Resize in mode linear: pixels are repeated, then a window of each channel by itself takes their mean.

Along one side, each pixel u times: a window of u such places holds the two pixels between which an output lies, in
the shares that it needs. Where outputs lie between places (half a pixel aside of an even u), its first and last place
count half. At the border the outermost pixel has all of it, as if the window had its weights inside alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boards.errors import RangeError
from cnn.limits import MAX_KERNEL
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.resizing.scaled import Side, place_mode
from cnn.onnx.windows.borders import Factors, inside, weighed
from cnn.ops import Convolution, Upsample


@dataclass(frozen=True, eq=False)
class _Means:
    """length: of the input. times: that each pixel is repeated. weights: of the window, whole numbers. pads: before
    and behind."""

    length: int
    times: int
    weights: FloatArray
    pads: tuple[int, int] = (0, 0)

    @property
    def outputs(self) -> int:
        """Length of the output."""
        return self.length * self.times + sum(self.pads) - len(self.weights) + 1

    @property
    def factors(self) -> Factors:
        """What each output is multiplied by, where less than the whole window is inside."""
        return 1 / inside(self.outputs, 1, self.pads[0], self.weights, self.length * self.times)


def interpolated(layers: Layers, operation: Operation, source: Map, sides: tuple[Side, Side]) -> Layers:
    """The map, larger by these factors."""
    shape, place = layers.shape_of(source), place_mode(layers, operation)
    rows, columns = (_means(side, place) for side in sides)
    larger = Shape(shape.channels, shape.height * rows.times, shape.width * columns.times)
    if larger != shape:
        across = 0 if rows.times == columns.times else columns.times
        layers = layers.grown(operation, "upsample", Upsample(rows.times, across=across), larger, source.node)
        source = Map(len(layers.nodes) - 1, source.shape)
    window = np.outer(rows.weights, columns.weights)
    if window.size == 1:
        return layers.with_values(operation, source) if larger == shape else layers
    unit = np.float32(1 / window.sum())
    weights = np.broadcast_to(window * unit, (shape.channels, 1, *window.shape)).astype(np.float32)
    padding = Padding(rows.pads[0], columns.pads[0], rows.pads[1], columns.pads[1])
    op = Convolution(weights, np.zeros(shape.channels, np.float32), None, 1, padding, shape.channels, "linear")
    smooth, index = Shape(shape.channels, rows.outputs, columns.outputs), len(layers.nodes)
    layers = layers.grown(operation, "interpolate", op, smooth, source.node).marked(index, Mark(scale=np.array([unit])))
    return weighed(layers, operation, source.node, rows.factors, columns.factors)


def grows_wholly(side: Side, place: str) -> bool:
    """Whether it grows by a whole factor that a window has room for, its corners aligned by whole steps, or stays."""
    length, outputs, scale = side.length, side.outputs, side.scale
    if length == 1:
        return True
    if outputs == length:
        return scale == 1 or place == "align_corners"
    if place == "align_corners":
        return outputs > length and (outputs - 1) % (length - 1) == 0
    return scale >= 1 and float(scale).is_integer()


def _means(side: Side, place: str) -> _Means:
    length, outputs, single = side.length, side.outputs, np.ones(1, np.float32)
    if length == 1 or outputs == length:
        return _Means(length, outputs // length, single)
    if place == "align_corners":
        times = (outputs - 1) // (length - 1)
        return _Means(length, times, np.ones(_checked(times), np.float32))
    times = _checked(int(side.scale))
    if place == "asymmetric":
        return _Means(length, times, np.ones(times, np.float32), (0, times - 1))
    if times % 2:
        return _Means(length, times, np.ones(times, np.float32), (times // 2, times // 2))
    weights = np.array([1, *[2] * (times - 1), 1], np.float32)
    return _Means(length, times, weights, (times // 2, times // 2))


def _checked(times: int) -> int:
    require(times < MAX_KERNEL, RangeError("the factor of an interpolated side", times, 1, MAX_KERNEL - 1))
    return times
