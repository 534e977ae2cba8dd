"""Resize by any ratio of small numbers: pixels are repeated so often that every output begins at one of the repeats,
and a window that goes on in whole steps gives the outputs alone.

Along one side, with each pixel p times: of mode nearest, output y is the place first + q · y of the repeats, where p, q
and first are the least that give each output its pixel. Of mode linear, an output that lies at first + y · step pixels
is the mean of p repeats from p · (first + y · step) on, where p makes both whole numbers: they are of the two pixels
that it lies between, in their shares. Windows of one stride cost least, where both sides have the same q, or p · step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, lcm

import numpy as np

from cnn.limits import MAX_KERNEL
from cnn.network import Convolution, FloatArray, Padding, Shape, Upsample
from cnn.onnx.graph import Array, Operation, RefusedError, require
from cnn.onnx.layers import NO_PADDING, Layers
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.resizing.scaled import Side
from cnn.onnx.windows.blocks import Window, convolved
from cnn.onnx.windows.borders import inside, weighed
from cnn.onnx.windows.picked import Picks, picked
from cnn.onnx.windows.slide import Slide


def respaced(layers: Layers, operation: Operation, index: int, places: tuple[Array, Array]) -> Layers:
    """A node's map whose rows and columns are these of it, by their numbers: what mode nearest gives."""
    shape = layers.nodes[index].shape
    rows, columns = places
    pairs = ((step, _repeats(rows, step), _repeats(columns, step)) for step in range(1, MAX_KERNEL))
    spaced = next(((step, down, across) for step, down, across in pairs if down and across), None)
    every = np.arange(shape.height), np.arange(shape.width)
    if spaced is None and not (np.array_equal(rows, every[0]) or np.array_equal(columns, every[1])):
        layers = respaced(layers, operation, index, (rows, every[1]))  # one side after the other
        return respaced(layers, operation, len(layers.nodes) - 1, (np.arange(len(rows)), columns))
    if spaced is None:
        raise RefusedError(
            f"from {shape.height}×{shape.width} to {len(rows)}×{len(columns)} pixels are not some of their repeats, at "
            f"most {MAX_KERNEL - 1} of each and in whole steps"
        )
    (step, down, across), bare = spaced, replace(operation, inputs=operation.inputs[:1])
    layers, index = _repeated(layers, bare, index, (down[0], across[0]))
    larger = layers.nodes[index].shape
    picks = Picks(larger.height, down[1], step, len(rows)), Picks(larger.width, across[1], step, len(columns))
    return picked(layers, bare, index, *picks)


def _repeats(places: Array, step: int) -> tuple[int, int] | None:
    """How often pixels are repeated so that these are ``step`` apart among the repeats, and the first of them; None
    where no number does that."""
    outputs, span = np.arange(len(places)) * step, int(places[-1] - places[0])
    least = max(1, outputs[-1] // (span + 1))
    most = ceil(outputs[-1] / (span - 1)) if span > 1 else int(outputs[-1]) + 1
    for times in range(int(least), min(most, MAX_KERNEL - 1) + 1):
        low, high = (places * times - outputs).max(), (places * times + times - 1 - outputs).min()
        if max(low, 0) <= high:
            return times, int(max(low, 0))
    return None


def _repeated(layers: Layers, operation: Operation, index: int, times: tuple[int, int]) -> tuple[Layers, int]:
    """Each pixel in so many rows and columns; the node."""
    shape, (up, across) = layers.nodes[index].shape, times
    if times == (1, 1):
        return layers, index
    larger = Shape(shape.channels, shape.height * up, shape.width * across)
    op = Upsample(up, across=0 if up == across else across)
    return layers.grown(operation, "upsample", op, larger, index), len(layers.nodes)


FEW = 16
"""Places that a pixel becomes, so that both sides have one stride."""


@dataclass(frozen=True)
class _Between:
    """Along one side: outputs that begin ``first`` repeats from the front, so many and ``stride`` apart, of pixels that
    are repeated ``times`` times. length: of the input."""

    length: int
    times: int
    first: int
    stride: int
    outputs: int

    @property
    def repeats(self) -> int:
        """Length of what is read; of a single pixel all that the outputs need."""
        return self.stride * (self.outputs - 1) + 1 if self.length == 1 else self.length * self.times

    @property
    def weights(self) -> FloatArray:
        """Of the window: nothing before its first place, and so far that it gives no output too many."""
        places, begin, front = 1 if self.length == 1 else self.times, max(0, self.first), max(0, -self.first)
        window = max(begin + places, front + self.repeats - self.stride * self.outputs + 1)
        weights = np.zeros(window, np.float32)
        weights[begin : begin + places] = 1
        return weights

    @property
    def pads(self) -> tuple[int, int]:
        """Before and behind."""
        front = max(0, -self.first)
        return front, max(0, self.stride * (self.outputs - 1) + len(self.weights) - front - self.repeats)

    def factors(self) -> Array:
        """What each output is multiplied by, where less than the whole window is inside."""
        return 1 / inside(self.outputs, self.stride, self.pads[0], self.weights, self.repeats)


def between(layers: Layers, operation: Operation, index: int, sides: tuple[Side, Side], mode: str) -> Layers:
    """A node's map, interpolated at places that are any ratio apart."""
    shape = layers.nodes[index].shape
    rows, columns = _betweens(sides, mode)
    bare = replace(operation, inputs=operation.inputs[:1])
    times = [side.repeats // side.length for side in (rows, columns)]
    layers, source = _repeated(layers, bare, index, (times[0], times[1]))
    window = np.outer(rows.weights, columns.weights)
    require(
        max(window.shape) <= MAX_KERNEL,
        f"pixels are repeated until an output begins at each, and a window of at most {MAX_KERNEL} is needed, not "
        f"{window.shape}",
    )
    unit = np.float32(1 / window.sum())
    kernel = np.array(np.broadcast_to(window * unit, (shape.channels, 1, *window.shape)), np.float32)
    op = Convolution(kernel, np.zeros(shape.channels, np.float32), None, 1, NO_PADDING, shape.channels, "linear")
    padding = Padding(rows.pads[0], columns.pads[0], rows.pads[1], columns.pads[1])
    smaller, sides_of = Shape(shape.channels, rows.outputs, columns.outputs), (len(rows.weights), len(columns.weights))
    slide = Slide(layers.nodes[source].shape, sides_of, smaller, padding, (rows.stride, columns.stride))
    mean = Window(op, slide, Mark(scale=np.array([unit])), "interpolate")
    layers = convolved(layers, bare, source, mean)
    return weighed(layers, bare, index, rows.factors(), columns.factors())


def _betweens(sides: tuple[Side, Side], mode: str) -> tuple[_Between, _Between]:
    """Both sides with one stride, where that needs few repeats; else each with its own."""
    places = []
    for side in sides:
        spaced = side.places(mode)
        require(spaced is not None, f"coordinate_transformation_mode {mode!r} is not interpolated")
        assert spaced is not None
        first, step = spaced if side.length > 1 else (Fraction(0), Fraction(1))
        places.append((first, step if side.outputs > 1 else Fraction(1)))
    parts = [lcm(first.denominator, step.denominator) for first, step in places]
    own = [int(step * part) for (_, step), part in zip(places, parts, strict=True)]
    for strides in ([lcm(*own)] * 2, own):
        rows, columns = (
            _Between(side.length, int(stride / step), int(first * stride / step), stride, side.outputs)
            for side, (first, step), stride in zip(sides, places, strides, strict=True)
        )
        if rows.times * columns.times <= FEW:
            break
    return rows, columns
