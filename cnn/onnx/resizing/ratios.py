"""Resize by any ratio of small numbers.

Of mode nearest, pixels are repeated so often that every output begins at one of the repeats. Along one side, with each
pixel p times, output y is the place first + q · y of the repeats, where p, q and first are the least that give each
output its pixel. Windows of one stride cost least, where both sides have the same q.

Of mode linear, output y lies at first + y · step pixels. Where step is a / b, the outputs y, y + b, y + 2 · b … lie a
pixels apart, and all of them take the same shares of the two pixels that they lie between. So they are a convolution of
stride a, and b of these, put beside each other by depth to space, are the side: from 4 to 6 pixels three of stride 2.
Both sides have one stride m, a multiple of both a, and m · b / a outputs of each are a block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor, lcm

import numpy as np

from boards.errors import RangeError
from cnn.limits import MAX_KERNEL
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.graph import Array, Operation, RefusedError, require
from cnn.onnx.layers import Layers
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.resizing.scaled import Side
from cnn.onnx.windows.blocks import Blocks, side_by_side
from cnn.onnx.windows.borders import Factors, weighed
from cnn.onnx.windows.picked import Picks, picked
from cnn.onnx.windows.slide import check_size
from cnn.ops import Convolution, DepthToSpace, Upsample


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
            f"the {len(rows)}×{len(columns)} pixels of its output are not whole steps apart among at most "
            f"{MAX_KERNEL - 1} repeats of each of the {shape.height}×{shape.width} pixels of its input"
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


MOST_PLACES = 64
"""Outputs of a block, each of which is a convolution."""


@dataclass(frozen=True)
class _Between:
    """Along one side of ``length`` pixels: output y lies first + y · step pixels from the front, of so many. alone:
    each output has a convolution of its own, also where those behind it lie as it does."""

    length: int
    outputs: int
    first: Fraction
    step: Fraction
    alone: bool = False

    @property
    def stride(self) -> int:
        """Pixels after which outputs lie between their neighbours as those before; 1 where none does again."""
        return self.step.numerator if self.outputs > self.step.denominator and not self.alone else 1

    def places(self, stride: int) -> int:
        """Outputs that lie in so many pixels; all of them where they are no whole number, or stand alone."""
        if self.alone:
            return self.outputs
        places = stride / self.step
        return min(self.outputs, int(places)) if places.denominator == 1 else self.outputs

    def shares(self, output: int) -> tuple[int, tuple[Fraction, ...]]:
        """The pixel that an output lies on, or the first of two; and what it takes of each."""
        place = self.first + output * self.step
        low = floor(place)
        beyond = place - low
        return low, (1 - beyond, beyond) if beyond else (Fraction(1),)

    def windows(self, stride: int) -> _Windows:
        """Of each place of a block, for convolutions of that stride."""
        places = [self.shares(output) for output in range(self.places(stride))]
        blocks = -(-self.outputs // len(places))
        front = max(0, -min(low for low, _ in places))
        least = self.length + front - stride * blocks + 1  # so that it gives no output too many
        window = max(least, *(front + low + len(shares) for low, shares in places))
        weights = np.zeros((len(places), window), np.float32)
        for row, (low, shares) in zip(weights, places, strict=True):
            row[front + low : front + low + len(shares)] = [float(share) for share in shares]
        unit = Fraction(1, lcm(*(share.denominator for _, shares in places for share in shares)))
        behind = max(0, stride * (blocks - 1) + window - front - self.length)
        return _Windows(weights, unit, (front, behind), blocks)

    def factors(self) -> Factors:
        """What each output is multiplied by, where one of its two pixels is outside."""
        counted = np.zeros(self.outputs)
        for output in range(self.outputs):
            low, shares = self.shares(output)
            counted[output] = sum(share for i, share in enumerate(shares, low) if 0 <= i < self.length)
        require(bool((counted > 0).all()), "one of its outputs would be outside the map")
        return 1 / counted


@dataclass(frozen=True, eq=False)
class _Windows:
    """weights: [places, window]. unit: what all of them are whole numbers of. pads: that they read before and behind.
    blocks: that they give."""

    weights: FloatArray
    unit: Fraction
    pads: tuple[int, int]
    blocks: int


def between(layers: Layers, operation: Operation, index: int, sides: tuple[Side, Side], mode: str) -> Layers:
    """A node's map, interpolated at places that are any ratio apart. A side of a single pixel is that pixel, repeated
    behind all else."""
    times = tuple(side.outputs if side.length == 1 else 1 for side in sides)
    rows, columns = (_between(side, mode) for side in sides)
    layers = _blocks_between(layers, replace(operation, inputs=operation.inputs[:1]), index, (rows, columns))
    return _repeated(layers, operation, len(layers.nodes) - 1, (times[0], times[1]))[0]


def _between(side: Side, mode: str) -> _Between:
    places = side.places(mode)
    assert places is not None  # resize refuses such a mode
    return _kept(1) if side.length == 1 else _Between(side.length, side.outputs, *places)


def _kept(length: int) -> _Between:
    """A side that stays as it is."""
    return _Between(length, length, Fraction(0), Fraction(1))


def _blocks_between(layers: Layers, operation: Operation, index: int, sides: tuple[_Between, _Between]) -> Layers:
    """Both sides at once, or the rows and then the columns, where that is fewer convolutions. A quantised map is
    rounded once."""
    rows, columns = sides
    apart = _cheapest((rows, _kept(columns.length))), _cheapest((_kept(rows.outputs), columns))
    sides = _cheapest(sides)
    if layers.type_of(index) is None and _count(sides) > sum(_count(pair) for pair in apart):
        layers = _convolved(layers, operation, index, apart[0])
        return _convolved(layers, operation, len(layers.nodes) - 1, apart[1])
    return _convolved(layers, operation, index, sides)


def _cheapest(sides: tuple[_Between, _Between]) -> tuple[_Between, _Between]:
    """The sides; with outputs of one or both alone where that is less than half as many convolutions, or where the
    others are too many: their windows are as long as the side, and the stride of one side is that of the other too."""
    either = product(*((side, replace(side, alone=True)) for side in sides))
    return min(((rows, columns) for rows, columns in either), key=_cost)


def _cost(sides: tuple[_Between, _Between]) -> tuple[bool, int]:
    count = _count(sides)
    return count > MOST_PLACES, count * (2 if any(side.alone for side in sides) else 1)


def _count(sides: tuple[_Between, _Between]) -> int:
    """Outputs of a block."""
    stride = lcm(sides[0].stride, sides[1].stride)
    return sides[0].places(stride) * sides[1].places(stride)


def _convolved(layers: Layers, operation: Operation, index: int, sides: tuple[_Between, _Between]) -> Layers:
    """A node's map, of which each place of a block is a convolution of each channel by itself."""
    shape, count = layers.nodes[index].shape, _count(sides)
    rows, columns = sides
    what = f"convolutions to resize {rows.length}×{columns.length} to {rows.outputs}×{columns.outputs} pixels"
    remedy = "resize by a ratio of smaller numbers"
    require(count <= MOST_PLACES, RangeError(what, count, 1, MOST_PLACES, remedy=remedy))
    stride = lcm(rows.stride, columns.stride)
    down, across = rows.windows(stride), columns.windows(stride)
    window = down.weights.shape[1], across.weights.shape[1]
    check_size(window)
    layers = layers.worked_out(4 * count * shape.channels * window[0] * window[1])
    padding = Padding(down.pads[0], across.pads[0], down.pads[1], across.pads[1])
    zeros, bias = np.zeros((shape.channels, 1, *window), np.float32), np.zeros(shape.channels, np.float32)
    plain = Convolution(zeros, bias, None, stride, padding, shape.channels, "linear")
    parts = [
        replace(plain, weights=zeros + np.outer(row, column)) for row, column in product(down.weights, across.weights)
    ]
    spread = DepthToSpace(len(down.weights), len(across.weights))
    each = Shape(shape.channels, down.blocks, across.blocks)
    mark = Mark(scale=np.array([down.unit * across.unit], np.float32))
    blocks = Blocks(spread, each, rows.outputs, columns.outputs, mark)
    layers = side_by_side(layers, operation, index, parts, blocks)
    return weighed(layers, operation, index, rows.factors(), columns.factors())
