"""Read Resize and Upsample: compute the position of each output in the input, and append layers that compute it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor, lcm

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError
from cnn.limits import MAX_KERNEL, MAX_RATIO
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require, whole_numbers
from cnn.onnx.layers import Layers, Map
from cnn.onnx.pools import Subsampling, append_subsampling
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.sliding import Blocks, Factors, append_interleaved, check_size, scale_borders, share_inside_map
from cnn.ops import Convolution, DepthToSpace, Upsample

# The new height and width, and the position of each output in the input, by the formulas in Resize's specification.
#
# They are computed in float32 as in onnxruntime, so that positions near a half are rounded in the same direction.

Floats = npt.NDArray[np.float32]

FIRST_COORDINATE_MODE = 11
"""The first opset in which Resize has a coordinate_transformation_mode; before, it has the positions of Upsample."""

WHOLE = "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more"

COORDINATE_MODES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners")
"""The supported values of coordinate_transformation_mode."""

NEAR = 1e-4
"""Limit for the rounding errors of a position, in pixels. Positions this close to a rounding boundary are ambiguous:
their pixel depends on the order in which they are computed."""

_ROUNDED: dict[str, Callable[[Floats], Floats]] = {
    "round_prefer_floor": lambda x: np.floor(x) + (x - np.floor(x) > np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x) + (x - np.floor(x) >= np.float32(0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True)
class ResizedSide:
    """One side, height or width, of an ONNX Resize: pixels before and after it, and the scale.

    Attributes:
        length: Pixels of the input.
        outputs: Pixels of the output.
        scale: The scale of the operation, a float32; outputs / length except for rounding.
    """

    length: int
    outputs: int
    scale: float

    def nearest(self, mode: str, rounded: str) -> npt.NDArray[np.int64]:
        """Return, per output of mode nearest, the index of the input pixel that it copies.

        Args:
            mode: The coordinate_transformation_mode.
            rounded: The nearest_mode.

        Raises:
            RefusedError: A position is ambiguous, so that onnx and onnxruntime may take different pixels.
        """
        out, scale = np.arange(self.outputs, dtype=np.float32), np.float32(self.scale)
        half, centres = np.float32(0.5), (out + np.float32(0.5)) / scale
        if mode == "asymmetric":
            places = out / scale
        elif mode == "align_corners":
            self._check_whole()
            places = out * np.float32(self.length - 1) / np.float32(max(1, self.outputs - 1))
        elif mode == "half_pixel_symmetric":
            remainder = 1 - np.float32(self.outputs) / (scale * np.float32(self.length))
            places = np.float32(self.length) / 2 * remainder + centres - half
        else:
            places = centres - half if mode == "half_pixel" or self.outputs > 1 else out * 0
        pixels, *neighbours = (
            np.clip(_ROUNDED[rounded](places + np.float32(offset)), 0, self.length - 1) for offset in (0, -NEAR, NEAR)
        )
        require(
            self._is_exact(mode, rounded)
            or bool((neighbours[0] == neighbours[1]).all())
            or self._agrees(mode, rounded, pixels),
            f"in mode {mode}, one of its {self.outputs} outputs is too near to halfway between two of {self.length} "
            "pixels, so that onnx and onnxruntime may round it differently",
        )
        return pixels.astype(np.int64)

    def _agrees(self, mode: str, rounded: str, pixels: Floats) -> bool:
        """Return whether two other ways to compute positions select the same ``pixels``, so that tools agree."""
        first, step = self.positions(mode) or (Fraction(0), Fraction(0))
        exact = np.array([float(first + y * step) for y in range(self.outputs)])
        out, half, inverse = np.arange(self.outputs, dtype=np.float32), np.float32(0.5), 1 / np.float32(self.scale)
        product = out * inverse if mode == "asymmetric" else (out + half) * inverse - half
        orders = (np.clip(_ROUNDED[rounded](places), 0, self.length - 1) for places in (exact, product))
        return mode != "half_pixel_symmetric" and all(np.array_equal(order, pixels) for order in orders)

    def _check_whole(self) -> None:
        """Raise RefusedError if, with align_corners, a scale does not give a whole number of outputs."""
        is_whole = abs(self.length * self.scale - self.outputs) < NEAR * self.outputs
        require(is_whole, "onnx and onnxruntime align corners differently if a factor cuts a pixel")

    def _is_exact(self, mode: str, rounded: str) -> bool:
        """Return whether every way to compute an output's position selects the same pixel, for this scale."""
        halves = math.frexp(self.scale)[0] == 0.5  # a power of two
        if mode == "half_pixel_symmetric":
            return halves and self.outputs == self.length * self.scale
        return halves or mode == "align_corners" or not rounded.startswith("round")

    def positions(self, mode: str) -> tuple[Fraction, Fraction] | None:
        """Return the position of the first output and the step to the next, in input pixels; None for an unknown mode.

        They are exact if the scale is a ratio of small integers.
        """
        scale, half = Fraction(self.scale).limit_denominator(MAX_RATIO), Fraction(1, 2)
        require(scale > 0, RangeError("a scale", self.scale, low=1 / MAX_RATIO))
        step = 1 / scale
        first = {
            "half_pixel": half * step - half,
            "half_pixel_symmetric": (self.length - self.outputs * step) * half + half * step - half,
            "pytorch_half_pixel": half * step - half if self.outputs > 1 else Fraction(0),
            "asymmetric": Fraction(0),
            "align_corners": Fraction(0),
        }
        if mode == "align_corners":
            self._check_whole()
            step = Fraction(self.length - 1, max(1, self.outputs - 1))
        return (first[mode], step) if mode in first else None


def coordinate_mode(layers: Layers, operation: OnnxOperation) -> str:
    """Return a Resize's coordinate_transformation_mode; Upsample and older operators have the mode asymmetric."""
    if operation.kind == "Upsample" or layers.opset < FIRST_COORDINATE_MODE:
        return "asymmetric"
    return operation.text("coordinate_transformation_mode", "half_pixel")


def nearest_mode(layers: Layers, operation: OnnxOperation) -> tuple[str, str]:
    """Return a Resize's coordinate_transformation_mode and nearest_mode; ChoiceError if one of them is unknown."""
    mode, first = (
        coordinate_mode(layers, operation),
        layers.opset < FIRST_COORDINATE_MODE or operation.kind == "Upsample",
    )
    rounded = "floor" if first else operation.text("nearest_mode", "round_prefer_floor")
    require(mode in COORDINATE_MODES, ChoiceError("coordinate_transformation_mode", mode, COORDINATE_MODES))
    require(rounded in _ROUNDED, ChoiceError("nearest_mode", rounded, tuple(_ROUNDED)))
    return mode, rounded


def sides_of(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[ResizedSide, ResizedSide]:
    """Return the height and width that a Resize asks for; InvalidValueError if it resizes batch or channels too."""
    rank = len(source.shape)
    places = _axes(operation, rank)
    lengths = [source.shape[place] for place in places]
    sized = operation.kind == "Resize" and layers.optional(operation, 3) is not None
    scaled = (_sized if sized else _multiplied)(layers, operation, lengths)
    sides = [ResizedSide(length, length, 1.0) for length in source.shape]
    for place, side in zip(places, scaled, strict=True):
        sides[place] = side
    fits = sides[0].scale == sides[1].scale == 1 and min(side.outputs for side in sides) >= 1
    require(fits, InvalidValueError("scales", [side.scale for side in sides], WHOLE))
    return sides[2] if rank == 4 else ResizedSide(1, 1, 1.0), sides[-1]


def _axes(operation: OnnxOperation, rank: int) -> list[int]:
    """Return the axes of the input for which a Resize gives scales or sizes, as non-negative indices."""
    axes = operation.integers("axes", range(rank))
    places = [axis + rank if axis < 0 else axis for axis in axes]
    fits = len(set(places)) == len(places) and all(0 <= place < rank for place in places)
    require(rank > 2 and fits, InvalidValueError("axes", tuple(axes), f"different axes of a map of {rank} sides"))
    return places


def _multiplied(layers: Layers, operation: OnnxOperation, lengths: list[int]) -> list[ResizedSide]:
    """Return the sides of a Resize that gives scales."""
    factors = _factors(layers, operation, len(lengths))
    return [_scaled(length, factor) for length, factor in zip(lengths, factors, strict=True)]


def _factors(layers: Layers, operation: OnnxOperation, count: int) -> list[float]:
    """Return the scales of a Resize or Upsample, one for each of ``count`` axes."""
    if "scales" in operation.attributes:
        factors = list(operation.numbers("scales"))
    else:
        position = 2 if len(operation.inputs) > 2 else 1
        values = layers.constant(operation, position).ravel()
        factors = [float(value) for value in values] if values.size <= count else []
    require(len(factors) == count, ShapeError("scales", f"{len(factors)} numbers", f"{count} numbers"))
    require(all(0 < factor < np.inf for factor in factors), InvalidValueError("scales", factors, WHOLE))
    return factors


def _scaled(length: int, factor: float) -> ResizedSide:
    """Return a side of ``length`` pixels that a Resize scales by ``factor``."""
    outputs = np.float32(length) * np.float32(factor)
    require(bool(outputs < np.inf), InvalidValueError("scales", factor, WHOLE))
    return ResizedSide(length, int(outputs), float(np.float32(factor)))


def _sized(layers: Layers, operation: OnnxOperation, lengths: list[int]) -> list[ResizedSide]:
    """Return the sides of a Resize that gives output sizes.

    If the aspect ratio is kept, they are the largest that fit into the sizes, or the smallest that cover them.
    """
    sizes = whole_numbers(layers.constant(operation, 3))
    if "axes" not in operation.attributes and sizes[:1] == (layers.batch,):
        sizes = (1, *sizes[1:])
    fits = len(sizes) == len(lengths) and min(sizes) >= 1
    require(fits, InvalidValueError("sizes", sizes, f"{len(lengths)} numbers of 1 or more, one for each side"))
    policy = operation.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        ratios = [np.float32(size) / np.float32(length) for size, length in zip(sizes, lengths, strict=True)]
        return [
            ResizedSide(length, size, float(ratio)) for length, size, ratio in zip(lengths, sizes, ratios, strict=True)
        ]
    policies = ("stretch", "not_larger", "not_smaller")
    require(policy in policies, ChoiceError("keep_aspect_ratio_policy", policy, policies))
    pick = min if policy == "not_larger" else max
    ratio = pick(np.float32(size) / np.float32(length) for size, length in zip(sizes, lengths, strict=True))
    return [ResizedSide(length, int(ratio * np.float32(length) + np.float32(0.5)), float(ratio)) for length in lengths]


# Enlarging in mode linear by an integer: pixels are repeated, and a depthwise convolution averages the repeats.
#
# Along one side, each pixel is repeated u times. A window of u repeats holds the two pixels between which an output is,
# in the right proportion. If u is even and outputs are half a repeat aside, the window's first and last repeat count
# half. At the border only the repeats inside the map count, so that the outermost pixel is not mixed with padding.


@dataclass(frozen=True, eq=False)
class _EnlargedSide:
    """One side of a linear enlargement by an integer: pixels are repeated, then averaged by a sliding window.

    Attributes:
        length: Pixels of the input.
        times: The number of repeats of each pixel.
        weights: The weights of the window, as integers.
        pads: Padding before and after the repeated pixels.
    """

    length: int
    times: int
    weights: FloatArray
    pads: tuple[int, int] = (0, 0)

    @property
    def outputs(self) -> int:
        """The number of output pixels along the side."""
        return self.length * self.times + sum(self.pads) - len(self.weights) + 1

    @property
    def factors(self) -> Factors:
        """The correction factor of each output: above 1 if a part of its averaging window is outside the map."""
        return 1 / share_inside_map(self.outputs, 1, self.pads[0], self.weights, self.length * self.times)


def interpolated(
    layers: Layers, operation: OnnxOperation, source: Map, sides: tuple[ResizedSide, ResizedSide]
) -> Layers:
    """Append layers that enlarge a map by integer scales with linear interpolation."""
    shape, place = layers.shape_of(source), coordinate_mode(layers, operation)
    rows, columns = (_enlarged_side(side, place) for side in sides)
    larger = Shape(shape.channels, shape.height * rows.times, shape.width * columns.times)
    if larger != shape:
        across = 0 if rows.times == columns.times else columns.times
        layers = layers.with_node(operation, "upsample", Upsample(rows.times, across=across), larger, source.node)
        source = Map(len(layers.nodes) - 1, source.shape)
    window = np.outer(rows.weights, columns.weights)
    if window.size == 1:
        return layers.with_values(operation, source) if larger == shape else layers
    unit = np.float32(1 / window.sum())
    weights = np.broadcast_to(window * unit, (shape.channels, 1, *window.shape)).astype(np.float32)
    padding = Padding(rows.pads[0], columns.pads[0], rows.pads[1], columns.pads[1])
    op = Convolution(weights, np.zeros(shape.channels, np.float32), None, 1, padding, shape.channels, "linear")
    smooth, index = Shape(shape.channels, rows.outputs, columns.outputs), len(layers.nodes)
    layers = layers.with_node(operation, "interpolate", op, smooth, source.node).marked(
        index, Mark(scale=np.array([unit]))
    )
    return scale_borders(layers, operation, source.node, rows.factors, columns.factors)


def is_integer_enlargement(side: ResizedSide, place: str) -> bool:
    """Return whether a linear Resize keeps this side or enlarges it by an integer, in the coordinate mode ``place``.

    With align_corners, the number of steps between outputs must be a multiple of the steps between pixels.
    """
    length, outputs, scale = side.length, side.outputs, side.scale
    if length == 1:
        return True
    if outputs == length:
        return scale == 1 or place == "align_corners"
    if place == "align_corners":
        return outputs > length and (outputs - 1) % (length - 1) == 0
    return scale >= 1 and float(scale).is_integer()


def _enlarged_side(side: ResizedSide, place: str) -> _EnlargedSide:
    length, outputs, single = side.length, side.outputs, np.ones(1, np.float32)
    if length == 1 or outputs == length:
        return _EnlargedSide(length, outputs // length, single)
    if place == "align_corners":
        times = (outputs - 1) // (length - 1)
        return _EnlargedSide(length, times, np.ones(_checked(times), np.float32))
    times = _checked(int(side.scale))
    if place == "asymmetric":
        return _EnlargedSide(length, times, np.ones(times, np.float32), (0, times - 1))
    if times % 2:
        return _EnlargedSide(length, times, np.ones(times, np.float32), (times // 2, times // 2))
    weights = np.array([1, *[2] * (times - 1), 1], np.float32)
    return _EnlargedSide(length, times, weights, (times // 2, times // 2))


def _checked(times: int) -> int:
    require(times < MAX_KERNEL, RangeError("the factor of an interpolated side", times, 1, MAX_KERNEL - 1))
    return times


# Reducing in mode linear by an integer: a depthwise convolution with a stride, because outputs are whole pixels apart.


def is_integer_reduction(side: ResizedSide, mode: str) -> bool:
    """Return whether a linear Resize shrinks this side so that outputs are whole pixels apart, all inside the map."""
    places = side.positions(mode)
    if places is None or (side.outputs > 1 and (places[1].denominator > 1 or side.outputs > side.length)):
        return False
    picks = _window_of(side, mode)
    return picks.first >= 0 and picks.first + (side.outputs - 1) * picks.step + len(picks.shares) <= side.length


def append_reduction(
    layers: Layers, operation: OnnxOperation, source: Map, sides: tuple[ResizedSide, ResizedSide]
) -> Layers:
    """Append layers that shrink a map with linear interpolation, by strides of whole pixels on both sides."""
    mode = coordinate_mode(layers, operation)
    rows, columns = (_window_of(side, mode) for side in sides)
    return append_subsampling(layers, operation, source.node, rows, columns)


def _window_of(side: ResizedSide, mode: str) -> Subsampling:
    """Return a linear shrink of a side as a subsampling: the pixel of each output, or the two that it averages."""
    places = side.positions(mode)
    assert places is not None
    first, step = places
    low = first.numerator // first.denominator
    fraction = first - low
    shares = (1 - fraction, fraction) if fraction else (fraction + 1,)
    return Subsampling(side.length, low, max(1, int(step)), side.outputs, shares)


# Resizing by any ratio of small integers.
#
# In mode nearest, pixels are repeated, and outputs are selected from the repeats at regular steps. Along one side, each
# pixel is repeated p times, and output y is the repeat first + q · y. The smallest p, q and first are chosen with which
# each output is its pixel. Both sides have the same q, so that one layer with a single stride selects the outputs.
#
# In mode linear, output y is at the position first + y · step. If step = a / b, the outputs y, y + b, y + 2 · b … are a
# pixels apart, and all of them have the same shares of their two pixels. They are therefore a convolution of stride a,
# and the side is b such convolutions, interleaved by depth to space. From 4 to 6 pixels, for example, there are three
# convolutions of stride 2. Both sides have one stride m, a multiple of both a; a block has m · b / a outputs per side.


def append_nearest(layers: Layers, operation: OnnxOperation, index: int, places: tuple[Array, Array]) -> Layers:
    """Append layers that copy the given rows and columns of a node's output, in any regular spacing (mode nearest)."""
    shape = layers.nodes[index].shape
    rows, columns = places
    pairs = ((step, _repeats(rows, step), _repeats(columns, step)) for step in range(1, MAX_KERNEL))
    spaced = next(((step, down, across) for step, down, across in pairs if down and across), None)
    every = np.arange(shape.height), np.arange(shape.width)
    if spaced is None and not (np.array_equal(rows, every[0]) or np.array_equal(columns, every[1])):
        layers = append_nearest(layers, operation, index, (rows, every[1]))  # first the rows, then the columns
        return append_nearest(layers, operation, len(layers.nodes) - 1, (np.arange(len(rows)), columns))
    if spaced is None:
        raise RefusedError(
            f"the {len(rows)}×{len(columns)} pixels of its output are not at regular steps among up to "
            f"{MAX_KERNEL - 1} repeats of each of the {shape.height}×{shape.width} pixels of its input"
        )
    (step, down, across), bare = spaced, replace(operation, inputs=operation.inputs[:1])
    layers, index = _append_repeats(layers, bare, index, (down[0], across[0]))
    larger = layers.nodes[index].shape
    picks = (
        Subsampling(larger.height, down[1], step, len(rows)),
        Subsampling(larger.width, across[1], step, len(columns)),
    )
    return append_subsampling(layers, bare, index, *picks)


def _repeats(places: Array, step: int) -> tuple[int, int] | None:
    """Return how often to repeat each pixel, and the first repeat to take, so that every ``step``-th is in ``places``.

    None if no number of repeats does that.
    """
    outputs, span = np.arange(len(places)) * step, int(places[-1] - places[0])
    least = max(1, outputs[-1] // (span + 1))
    most = ceil(outputs[-1] / (span - 1)) if span > 1 else int(outputs[-1]) + 1
    for times in range(int(least), min(most, MAX_KERNEL - 1) + 1):
        low, high = (places * times - outputs).max(), (places * times + times - 1 - outputs).min()
        if max(low, 0) <= high:
            return times, int(max(low, 0))
    return None


def _append_repeats(layers: Layers, operation: OnnxOperation, index: int, times: tuple[int, int]) -> tuple[Layers, int]:
    """Append a layer that repeats each pixel ``times`` = (rows, columns) times; return the network and the node."""
    shape, (up, across) = layers.nodes[index].shape, times
    if times == (1, 1):
        return layers, index
    larger = Shape(shape.channels, shape.height * up, shape.width * across)
    op = Upsample(up, across=0 if up == across else across)
    return layers.with_node(operation, "upsample", op, larger, index), len(layers.nodes)


MAX_BLOCK_OUTPUTS = 64
"""Limit for the outputs of a block, each of which is a convolution."""


@dataclass(frozen=True)
class _RatioSide:
    """One side of a linear Resize by a ratio of integers: output y is at input position first + y · step.

    Attributes:
        length: Pixels of the input.
        outputs: Pixels of the output.
        first: The position of the first output.
        step: Pixels from one output to the next.
        separate_outputs: Whether each output has a convolution of its own, even if others have the same shares of their
            pixels.
    """

    length: int
    outputs: int
    first: Fraction
    step: Fraction
    separate_outputs: bool = False

    @property
    def stride(self) -> int:
        """The number of input pixels after which the outputs' interpolation weights repeat; 1 if they do not repeat."""
        return self.step.numerator if self.outputs > self.step.denominator and not self.separate_outputs else 1

    def block_outputs(self, stride: int) -> int:
        """Return how many outputs form a block: the outputs per ``stride`` input pixels, or all outputs."""
        if self.separate_outputs:
            return self.outputs
        outputs = stride / self.step
        return min(self.outputs, int(outputs)) if outputs.denominator == 1 else self.outputs

    def shares(self, output: int) -> tuple[int, tuple[Fraction, ...]]:
        """Return the first input pixel that an output interpolates, and the weights of that pixel and the next."""
        place = self.first + output * self.step
        low = floor(place)
        fraction = place - low
        return low, (1 - fraction, fraction) if fraction else (Fraction(1),)

    def windows(self, stride: int) -> _SideKernels:
        """Return the kernels along this side of the convolutions, with stride ``stride``, of a block's outputs."""
        outputs = [self.shares(output) for output in range(self.block_outputs(stride))]
        blocks = -(-self.outputs // len(outputs))
        front = max(0, -min(low for low, _ in outputs))
        least = self.length + front - stride * blocks + 1  # a smaller window would give too many outputs
        window = max(least, *(front + low + len(shares) for low, shares in outputs))
        weights = np.zeros((len(outputs), window), np.float32)
        for row, (low, shares) in zip(weights, outputs, strict=True):
            row[front + low : front + low + len(shares)] = [float(share) for share in shares]
        unit = Fraction(1, lcm(*(share.denominator for _, shares in outputs for share in shares)))
        back = max(0, stride * (blocks - 1) + window - front - self.length)
        return _SideKernels(weights, unit, (front, back), blocks)

    def factors(self) -> Factors:
        """Return the correction factor of each output: above 1 if one of its two input pixels is outside the map."""
        counted = np.zeros(self.outputs)
        for output in range(self.outputs):
            low, shares = self.shares(output)
            counted[output] = sum(share for i, share in enumerate(shares, low) if 0 <= i < self.length)
        require(bool((counted > 0).all()), "one of its outputs would be outside the map")
        return 1 / counted


@dataclass(frozen=True, eq=False)
class _SideKernels:
    """The kernels along one side of the convolutions that compute a linear Resize, with their padding.

    Attributes:
        weights: The weights, (places, window).
        unit: The greatest number of which all weights are whole multiples.
        pads: Padding before and after the map.
        blocks: Number of blocks in the output.
    """

    weights: FloatArray
    unit: Fraction
    pads: tuple[int, int]
    blocks: int


def append_linear(
    layers: Layers, operation: OnnxOperation, index: int, sides: tuple[ResizedSide, ResizedSide], mode: str
) -> Layers:
    """Append layers that resize a node's output with linear interpolation by any ratio of small integers.

    A side of a single pixel is repeated at the end, because interpolation does not change it.
    """
    times = tuple(side.outputs if side.length == 1 else 1 for side in sides)
    rows, columns = (_ratio_side(side, mode) for side in sides)
    layers = _append_blocks(layers, replace(operation, inputs=operation.inputs[:1]), index, (rows, columns))
    return _append_repeats(layers, operation, len(layers.nodes) - 1, (times[0], times[1]))[0]


def _ratio_side(side: ResizedSide, mode: str) -> _RatioSide:
    places = side.positions(mode)
    assert places is not None  # resize refuses unknown modes
    return _unchanged_side(1) if side.length == 1 else _RatioSide(side.length, side.outputs, *places)


def _unchanged_side(length: int) -> _RatioSide:
    """Return a side of ``length`` pixels that a linear Resize does not change."""
    return _RatioSide(length, length, Fraction(0), Fraction(1))


def _append_blocks(
    layers: Layers, operation: OnnxOperation, index: int, sides: tuple[_RatioSide, _RatioSide]
) -> Layers:
    """Append the convolutions of a linear Resize, for both sides at once, or for rows, then columns if these are fewer.

    A quantised map is always resized with both sides together, so that it is rounded only once.
    """
    rows, columns = sides
    apart = _cheapest((rows, _unchanged_side(columns.length))), _cheapest((_unchanged_side(rows.outputs), columns))
    sides = _cheapest(sides)
    if layers.type_of(index) is None and _count(sides) > sum(_count(pair) for pair in apart):
        layers = _convolved(layers, operation, index, apart[0])
        return _convolved(layers, operation, len(layers.nodes) - 1, apart[1])
    return _convolved(layers, operation, index, sides)


def _cheapest(sides: tuple[_RatioSide, _RatioSide]) -> tuple[_RatioSide, _RatioSide]:
    """Return the sides of a linear Resize, with one convolution per output on a side if that costs less.

    It is cheaper if it needs fewer than half the convolutions, because its windows are as long as the side. It is also
    used if there would be too many convolutions otherwise, since one stride must fit both sides.
    """
    either = product(*((side, replace(side, separate_outputs=True)) for side in sides))
    return min(((rows, columns) for rows, columns in either), key=_cost)


def _cost(sides: tuple[_RatioSide, _RatioSide]) -> tuple[bool, int]:
    count = _count(sides)
    return count > MAX_BLOCK_OUTPUTS, count * (2 if any(side.separate_outputs for side in sides) else 1)


def _count(sides: tuple[_RatioSide, _RatioSide]) -> int:
    """Return the number of convolutions that a linear Resize needs: the outputs of a block."""
    stride = lcm(sides[0].stride, sides[1].stride)
    return sides[0].block_outputs(stride) * sides[1].block_outputs(stride)


def _convolved(layers: Layers, operation: OnnxOperation, index: int, sides: tuple[_RatioSide, _RatioSide]) -> Layers:
    """Append one depthwise convolution per output of a block, and interleave their outputs to the resized map."""
    shape, count = layers.nodes[index].shape, _count(sides)
    rows, columns = sides
    what = f"convolutions to resize {rows.length}×{columns.length} to {rows.outputs}×{columns.outputs} pixels"
    remedy = "resize by a ratio of smaller integers"
    require(count <= MAX_BLOCK_OUTPUTS, RangeError(what, count, 1, MAX_BLOCK_OUTPUTS, remedy=remedy))
    stride = lcm(rows.stride, columns.stride)
    down, across = rows.windows(stride), columns.windows(stride)
    window = down.weights.shape[1], across.weights.shape[1]
    check_size(window)
    layers = layers.with_bytes_spent(4 * count * shape.channels * window[0] * window[1])
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
    layers = append_interleaved(layers, operation, index, parts, blocks)
    return scale_borders(layers, operation, index, rows.factors(), columns.factors())


# The operators Resize and Upsample.


def resize(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Resize or Upsample: append the layers that resize the map in mode nearest or linear.

    - Mode nearest repeats pixels for an integer scale, selects pixels for 1 / integer, and does both for other ratios.
    - Mode linear uses one convolution for an integer scale or 1 / integer, and several for other ratios.
    - A map of a single pixel is repeated in any mode.
    """
    source, shape = layers.picture(operation)
    rows, columns = sides_of(layers, operation, source)
    layers.check_room(Shape(shape.channels, rows.outputs, columns.outputs))
    _check_same(layers, operation, (rows, columns))
    mode = operation.text("mode", "nearest")
    if mode == "nearest" or shape.height == shape.width == 1:
        return _nearest(layers, operation, source, (rows, columns))
    require(mode in ("linear", "bilinear"), ChoiceError("mode", mode, ("nearest", "linear")))
    sides, place = (rows, columns), coordinate_mode(layers, operation)
    if any(side.outputs < side.length for side in sides):
        require(not operation.integer("antialias", 0), "antialias is not supported for a smaller output")
    require(rows.positions(place) is not None, ChoiceError("coordinate_transformation_mode", place, COORDINATE_MODES))
    if all(is_integer_enlargement(side, place) for side in sides):
        return interpolated(layers, operation, source, sides)
    if all(is_integer_reduction(side, place) for side in sides):
        return append_reduction(layers, operation, source, sides)
    return append_linear(layers, operation, source.node, sides, place)


def _check_same(layers: Layers, operation: OnnxOperation, sides: tuple[ResizedSide, ResizedSide]) -> None:
    """Raise RefusedError if a Resize has scales other than 1 but keeps the size, which tools compute differently.

    onnxruntime then returns the input unchanged, but the specification interpolates it.
    """
    keeps = all(side.outputs == side.length for side in sides)
    plain = all(side.scale == 1 or side.length == 1 for side in sides)
    require(
        not keeps or plain or coordinate_mode(layers, operation) == "align_corners",
        f"onnx and onnxruntime differ for scales of {sides[0].scale:g} and {sides[1].scale:g} that keep the number of "
        "pixels; set them to 1",
    )


def _nearest(layers: Layers, operation: OnnxOperation, source: Map, sides: tuple[ResizedSide, ResizedSide]) -> Layers:
    """Append layers that resize a map in mode nearest, by repeating and selecting pixels.

    Each side repeats every pixel, or selects pixels at regular steps. If a side needs both, ``append_nearest`` does it.
    """
    how, (rows, columns) = nearest_mode(layers, operation), sides
    up, across = _times(rows, how), _times(columns, how)
    every = (Subsampling(rows.length, 0, 1, rows.length), Subsampling(columns.length, 0, 1, columns.length))
    picks = every[0] if up else _taken(rows, how), every[1] if across else _taken(columns, how)
    if picks[0] is None or picks[1] is None:
        return append_nearest(layers, operation, source.node, (rows.nearest(*how), columns.nearest(*how)))
    index, bare = source.node, replace(operation, inputs=operation.inputs[:1])
    if picks != every:
        layers = append_subsampling(layers, bare, index, picks[0], picks[1])
        index = len(layers.nodes) - 1
        if max(up, across) <= 1:
            return layers
    return _with_repeats(layers, bare, index, (max(up, 1), max(across, 1)))


def _with_repeats(layers: Layers, operation: OnnxOperation, index: int, times: tuple[int, int]) -> Layers:
    """Append a layer that repeats each pixel ``times`` = (rows, columns) times."""
    shape, (up, across) = layers.nodes[index].shape, times
    larger = Shape(shape.channels, shape.height * up, shape.width * across)
    return layers.with_node(operation, "upsample", Upsample(up, across=0 if up == across else across), larger, index)


def _times(side: ResizedSide, how: tuple[str, str]) -> int:
    """Return how often mode nearest repeats each pixel of a side; 0 if not all pixels are repeated equally often."""
    times, rest = divmod(side.outputs, side.length)
    if side.length > 1 and (rest or not (side.nearest(*how) == np.arange(side.outputs) // times).all()):
        return 0
    return times


def _taken(side: ResizedSide, how: tuple[str, str]) -> Subsampling | None:
    """Return the regular subsampling by which mode nearest shrinks a side; None if there is no such."""
    return Subsampling.from_pixels(side.nearest(*how), side.length) if side.outputs < side.length else None
