"""Windows that slide over a map: their padding, strides and output size, and convolutions with several layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import lcm, prod

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError
from cnn.datatype import DataType, TensorType
from cnn.dilation import covered, with_zeros
from cnn.limits import MAX_DILATED, MAX_KERNEL, MAX_PADDED, MAX_PADDING, MAX_PLACES, MAX_SIDE, MAX_WINDOW
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.graph import OnnxOperation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.ops import Concat, Convolution, DepthToSpace, MaxPool, Multiply

# The padding and the output size of a kernel that slides over a map.

_OF_SIDES = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 0}
"""Attributes with a number for each side of a window, and their value for a side of 1."""

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def planar(operation: OnnxOperation, source: Map) -> OnnxOperation:
    """Return a window operation with two-dimensional attributes; one over a signal gets a height of 1."""
    if len(source.shape) != 3:
        return operation
    attributes = dict(operation.attributes)
    for key in attributes.keys() & _OF_SIDES.keys():
        sides, neutral = operation.integers(key, ()), _OF_SIDES[key]
        count = 2 if key == "pads" else 1
        required = "two numbers, because it has one side" if count == 2 else "one number, because it has one side"
        require(len(sides) == count, InvalidValueError(key, sides, required))
        # The single row has one output with any stride, so it gets the stride of the length.
        attributes[key] = sides * 2 if key == "strides" else tuple(n for side in sides for n in (neutral, side))
    return replace(operation, attributes=attributes)


def check_window(operation: OnnxOperation, window: Sequence[int]) -> None:
    """Raise InvalidValueError if an operator's attribute ``kernel_shape`` is not the window of its weights."""
    named = operation.integers("kernel_shape", tuple(window))
    require(named == tuple(window), InvalidValueError("kernel_shape", named, f"{tuple(window)}, as in its weights"))


def check_sides(window: Sequence[int]) -> None:
    """Raise RangeError if a sliding window has more than MAX_WINDOW rows or columns."""
    require(max(window) <= MAX_WINDOW, RangeError("rows or columns of a window", max(window), 1, MAX_WINDOW))


def check_size(window: Sequence[int]) -> None:
    """Raise RangeError if a sliding window has too many rows, columns or taps."""
    check_sides(window)
    require(prod(window) <= MAX_PLACES, RangeError("places of a window", prod(window), 1, MAX_PLACES))


def check_pair(what: str, values: Sequence[int]) -> None:
    """Raise InvalidValueError if ``values`` of an attribute are not two positive numbers, for height and width."""
    fits = len(values) == 2 and min(values) >= 1
    require(fits, InvalidValueError(what, tuple(values), "two numbers of 1 or more"))


@dataclass(frozen=True)
class Slide:
    """A sliding window on a map of given shape: its size, strides, padding and output size.

    Attributes:
        before: The shape of the map.
        window: Rows and columns of the window, with the zeros of a dilation.
        shape: The height and width of the output, with the channels of the map.
        padding: The padding of the map that the window reads.
        strides: The strides over rows and over columns.
    """

    before: Shape
    window: tuple[int, int]
    shape: Shape
    padding: Padding
    strides: tuple[int, int]

    @property
    def stride(self) -> int:
        """A stride that, for rows and columns alike, gives the operator's output; 0 if they need different strides.

        A side with a single output has the same output with any stride, so it can use the other side's.
        """
        counts, (down, across) = (self.shape.height, self.shape.width), self.strides
        alone = [stride for stride, count in ((across, counts[0]), (down, counts[1])) if count == 1]
        plain = [down] if down == across else []
        return next((stride for stride in [*plain, *alone] if self.outputs(stride) == counts), 0)

    def outputs(self, stride: int) -> tuple[int, int]:
        """Return the output's rows and columns if both sides had this stride."""
        rows = self.before.height + self.padding.top + self.padding.bottom - self.window[0]
        columns = self.before.width + self.padding.left + self.padding.right - self.window[1]
        return rows // stride + 1, columns // stride + 1


def pool_of(window: tuple[int, int], stride: int, padding: Padding) -> MaxPool:
    """Return a max pool layer with a window of these rows and columns."""
    rows, columns = window
    return MaxPool(rows, stride, padding, 0 if rows == columns else columns)


def slide_of(layers: Layers, operation: OnnxOperation, source: Map, window: Sequence[int]) -> Slide:
    """Return the window, padding, strides and output size of an ONNX window operator on its input map.

    The map's postponed padding and the operation's padding are added up.
    """
    shape = layers.shape_of(replace(source, padding=NO_PADDING))
    strides = operation.integers("strides", (1, 1))
    check_pair("strides", strides)
    require(max(strides) <= MAX_SIDE, RangeError("a stride", max(strides), 1, MAX_SIDE))
    padded, (down, across) = source.padding, strides
    sides = (shape.height + padded.top + padded.bottom, shape.width + padded.left + padded.right)
    front, back = pads_of(operation, sides, window, strides)
    around = add_paddings(source.padding, Padding(front[0], front[1], back[0], back[1]))
    lengths = (
        shape.height + around.top + around.bottom - window[0],
        shape.width + around.left + around.right - window[1],
    )
    fault = ShapeError("its padded input", f"{shape} before padding", f"at least the window's {tuple(window)} places")
    require(min(lengths) >= 0, fault)
    up = operation.integer("ceil_mode", 0)
    height, width = (
        -(-length // stride) + 1 if up else length // stride + 1
        for length, stride in zip(lengths, strides, strict=True)
    )
    if up:  # no window may start in the padding after the map
        height -= (height - 1) * down >= shape.height + around.top
        width -= (width - 1) * across >= shape.width + around.left
    bottom = max(0, (height - 1) * down + window[0] - around.top - shape.height)
    right = max(0, (width - 1) * across + window[1] - around.left - shape.width)
    padding = Padding(around.top, around.left, bottom, right)
    values = shape.channels * (shape.height + around.top + bottom) * (shape.width + around.left + right)
    require(values <= MAX_PADDED, RangeError("values of its padded input", values, 1, MAX_PADDED))
    return Slide(shape, (window[0], window[1]), Shape(shape.channels, height, width), padding, (down, across))


def pads_of(
    operation: OnnxOperation, sides: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return a window operator's padding before (top, left) and after (bottom, right), by ``pads`` or ``auto_pad``."""
    mode = operation.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        pads = operation.integers("pads", (0, 0, 0, 0)) if mode == "NOTSET" else (0, 0, 0, 0)
        require(len(pads) == 4 and min(pads) >= 0, InvalidValueError("pads", tuple(pads), "four numbers of 0 or more"))
        return list(pads[:2]), list(pads[2:])
    require(mode in AUTO_PADS, ChoiceError("auto_pad", mode, AUTO_PADS))
    total = [
        max(0, (-(-side // stride) - 1) * stride + length - side)
        for side, length, stride in zip(sides, window, strides, strict=True)
    ]
    halves, remainders = [pad // 2 for pad in total], [pad - pad // 2 for pad in total]
    return (halves, remainders) if mode == "SAME_UPPER" else (remainders, halves)


def add_paddings(first: Padding, second: Padding) -> Padding:
    """Return the sum of two paddings, side by side; InvalidValueError if a side is negative or too large."""
    sides = [
        a + b
        for a, b in (
            (first.top, second.top),
            (first.left, second.left),
            (first.bottom, second.bottom),
            (first.right, second.right),
        )
    ]
    fits = min(sides) >= 0 and max(sides) <= MAX_PADDING
    require(fits, InvalidValueError("padding", tuple(sides), f"between 0 and {MAX_PADDING} on each side"))
    return Padding(*sides)


def dilated(weights: FloatArray, dilations: tuple[int, ...]) -> FloatArray:
    """Return a kernel with zeros written between the taps of a dilation; RangeError if it becomes too large."""
    check_pair("dilations", dilations)
    if dilations == (1, 1):
        return weights
    *outer, height, width = weights.shape
    lengths = covered((height, width), (dilations[0], dilations[1]))
    check_size(lengths)
    size = prod(outer) * prod(lengths)
    what = "weights of a dilated window, with the zeros between,"
    require(size <= MAX_DILATED, RangeError(what, size, 1, MAX_DILATED))
    return with_zeros(weights, (dilations[0], dilations[1]))


def inside_map(weights: FloatArray, dilations: Sequence[int], slide: Slide) -> tuple[FloatArray, Slide]:
    """Return a dilated kernel and its window without outer taps that only ever read padding.

    A window whose dilation is larger than the map's height, for example, keeps a single row.
    """
    if tuple(dilations) == (1, 1):
        return weights, slide
    before, padding = slide.before, slide.padding
    sides = (
        (weights.shape[2], dilations[0], slide.strides[0], padding.top, before.height, slide.shape.height),
        (weights.shape[3], dilations[1], slide.strides[1], padding.left, before.width, slide.shape.width),
    )
    (top, bottom), (left, right) = (_padding_taps(*side) for side in sides)
    kept = weights[:, :, top : weights.shape[2] - bottom, left : weights.shape[3] - right]
    if kept.shape == weights.shape:
        return weights, slide
    (down, across), (rows, columns) = dilations, slide.window
    window = rows - (top + bottom) * down, columns - (left + right) * across
    front = padding.top - top * down, padding.left - left * across
    around = Padding(*front, max(0, padding.bottom - bottom * down), max(0, padding.right - right * across))
    return np.ascontiguousarray(kept), replace(slide, window=window, padding=around)


def _padding_taps(places: int, step: int, stride: int, front: int, length: int, outputs: int) -> tuple[int, int]:
    """Return how many taps at the start and at the end of one side of a window only ever read padding.

    At least one weight is kept, and the first weights are only removed as far as there is padding before the map.

    Args:
        places: Weights along the side.
        step: The dilation.
        stride: The stride.
        front: Padding before the map.
        length: Pixels of the map.
        outputs: Outputs of the operation.
    """
    offsets = [place * step - front for place in range(places)]
    first_output = [max(0, -(offset // stride)) for offset in offsets]  # the first that reads no padding before the map
    reached = [o < outputs and o * stride + offset < length for o, offset in zip(first_output, offsets, strict=True)]
    used = [place for place, inside in enumerate(reached) if inside] or [0]
    first = min(used[0], front // step)
    return first, places - 1 - max(used[-1], first)


# Some operations are computed as several convolutions whose outputs are interleaved. The output is divided into blocks
# of a few rows and columns. One convolution computes the values at one place of all blocks, and depth to space
# interleaves them.
#
# A convolution with different strides a for rows and b for columns is one of them. Let m be their least common
# multiple. The output rows y, y + m / a … read windows that are m rows apart, and the output columns x, x + m / b …
# read windows that are m columns apart. A block is therefore m / a × m / b outputs. Each of its places is a convolution
# of stride m, whose window is shifted to that place.


@dataclass(frozen=True, eq=False)
class Blocks:
    """The division of an output into blocks: one convolution computes one position of all blocks.

    Attributes:
        spread: Rows and columns of a block.
        each: The shape of the map with one position of every block; its channels are not used.
        rows: Rows of the output; rows of the last blocks beyond them are cut off.
        columns: Columns of the output; columns of the last blocks beyond them are cut off.
        mark: The facts that a quantised file states about the convolutions.
    """

    spread: DepthToSpace
    each: Shape
    rows: int
    columns: int
    mark: Mark = NO_MARK


def append_interleaved(
    layers: Layers, operation: OnnxOperation, index: int, parts: Sequence[Convolution], blocks: Blocks
) -> Layers:
    """Append convolutions that compute one position of each output block, and layers that interleave their outputs.

    parts: One convolution per position of a block, row by row, or a single one with all their filters in this order.
    """
    bare, indices = replace(operation, inputs=operation.inputs[:1]), []
    for op in parts:
        shape = replace(blocks.each, channels=len(op.weights))
        indices.append(len(layers.nodes))
        layers = layers.with_node(bare, "conv", op, shape, index).marked(indices[-1], _mark_of(op, blocks.mark))
    filters = sum(len(op.weights) for op in parts)
    if len(indices) > 1:
        layers = layers.with_node(bare, "route", Concat(), replace(shape, channels=filters), *indices)
    spread, rows, columns = blocks.spread, shape.height * blocks.spread.rows, shape.width * blocks.spread.columns
    larger = Shape(filters // (spread.rows * spread.columns), rows, columns)
    if spread != DepthToSpace(1, 1):
        layers = layers.with_node(bare, "depth_to_space", spread, larger, len(layers.nodes) - 1)
    if (rows, columns) == (blocks.rows, blocks.columns):
        return layers
    return _cut(layers, bare, blocks)


def _mark_of(op: Convolution, mark: Mark) -> Mark:
    """Return the file's facts about a convolution, with its weight scales repeated for all its filters."""
    if mark.scale is None or mark.scale.size == 1:
        return mark
    return replace(mark, scale=np.tile(mark.scale, len(op.weights) // mark.scale.size))


def _cut(layers: Layers, operation: OnnxOperation, blocks: Blocks) -> Layers:
    """Append a layer that cuts surplus rows and columns off the end of the last node's output.

    It is a depthwise convolution whose kernel has a single weight of 1, at its first place.
    """
    index = len(layers.nodes) - 1
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    sides = (shape.height - blocks.rows + 1, shape.width - blocks.columns + 1)
    require(max(sides) <= MAX_KERNEL, RangeError("rows or columns left out", max(sides) - 1, 0, MAX_KERNEL - 1))
    kernel = np.zeros((shape.channels, 1, *sides), np.float32)
    kernel[:, :, 0, 0] = 1
    op = Convolution(kernel, np.zeros(shape.channels, np.float32), None, 1, Padding(), shape.channels, "linear")
    smaller = Shape(shape.channels, blocks.rows, blocks.columns)
    layers = layers.with_bytes_spent(kernel.nbytes).with_node(operation, "pick", op, smaller, index)
    return layers if type_ is None else layers.typed(index + 1, type_)


@dataclass(frozen=True, eq=False)
class Window:
    """A convolution with its sliding window, before it is appended as one or several layers.

    Attributes:
        op: The convolution; its stride and padding are not used.
        slide: How its window slides over the map.
        mark: The facts that a quantised file states about it, unless they are the scale of the operation's weights.
        stem: The start of the names of its layers.
    """

    op: Convolution
    slide: Slide
    mark: Mark = NO_MARK
    stem: str = "conv"


def convolved(layers: Layers, operation: OnnxOperation, index: int, window: Window) -> Layers:
    """Append a convolution of a node's output; several interleaved ones if row and column strides differ."""
    op, slide = window.op, window.slide
    channels, shape = len(op.weights), slide.shape
    mark = window.mark
    if slide.stride:
        plain, node = replace(op, stride=slide.stride, padding=slide.padding), len(layers.nodes)
        layers = layers.with_node(operation, window.stem, plain, replace(shape, channels=channels), index)
        return layers if mark is NO_MARK else layers.marked(node, mark)
    step, (down, across) = lcm(*slide.strides), slide.strides
    spread = DepthToSpace(step // down, step // across)
    each = Shape(channels, -(-shape.height // spread.rows), -(-shape.width // spread.columns))
    sides = (op.window[0] + step - down, op.window[1] + step - across)
    what = f"rows or columns of a window of strides {down} and {across}"
    require(max(sides) <= MAX_WINDOW, RangeError(what, max(sides), 1, MAX_WINDOW))
    layers = layers.with_bytes_spent(
        4 * channels * op.weights.shape[1] * sides[0] * sides[1] * spread.rows * spread.columns
    )
    padding = _block_padding(slide, sides, step, each)
    parts = [
        replace(
            op,
            weights=_shifted_kernel(op, sides, (i * down, j * across)),
            dilation=(1, 1),
            stride=step,
            padding=padding,
        )
        for i, j in product(range(spread.rows), range(spread.columns))
    ]
    if op.groups == 1:
        kernels, biases = (np.concatenate([getattr(part, key) for part in parts]) for key in ("weights", "bias"))
        parts = [replace(parts[0], weights=kernels, bias=biases)]
    if mark is NO_MARK and len(operation.inputs) > 1:
        mark = Mark(scale=layers.scales.get(operation.inputs[1]))
    return append_interleaved(layers, operation, index, parts, Blocks(spread, each, shape.height, shape.width, mark))


def _shifted_kernel(op: Convolution, window: tuple[int, int], first: tuple[int, int]) -> FloatArray:
    """Return a kernel written into a larger undilated window, starting at row and column ``first``."""
    weights = np.zeros((*op.weights.shape[:2], *window), np.float32)
    (rows, columns), (down, across) = op.window, op.dilation
    weights[:, :, first[0] : first[0] + rows : down, first[1] : first[1] + columns : across] = op.weights
    return weights


def _block_padding(slide: Slide, window: tuple[int, int], step: int, each: Shape) -> Padding:
    """Return the padding that the enlarged windows of the blocks' convolutions need."""
    top, left = slide.padding.top, slide.padding.left
    bottom = step * (each.height - 1) + window[0] - top - slide.before.height
    right = step * (each.width - 1) + window[1] - left - slide.before.width
    return Padding(top, left, max(0, bottom), max(0, right))


# At the edges of a map, only a part of a window is inside the map. The window's result there is multiplied by a factor,
# which is the product of a factor of its row and a factor of its column.
#
# The map of factors is itself a convolution, of a map of ones whose padding is 0. With ones[p] = 1 inside the map and 0
# outside, the factors f along a side are
#
#     f[p] = f[0] + f[n - 1] - f[middle] + Σ (f[j] - f[j - 1]) · ones[p - j] + Σ (f[n - 1 - j] - f[n - j]) · ones[p + j]
#
# summed over the j at the two ends where f changes.

MAX_DENOMINATOR = 1 << 12
"""Limit for the denominator of the factors of a quantised map."""

MAX_NUMERATOR_SUM = 1 << 15
"""Limit for the sum of the factors' numerators, so that the sums of a layer do not overflow."""

ONE = TensorType(DataType(2, True), 1.0)
"""The type of the map of ones in a quantised network."""

NEAR = 1e-9
"""Limit for the distance between a float64 and the ratio that it represents."""

Factors = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _BorderKernel:
    """The kernel along one side that computes the border correction factors from a map of ones.

    Attributes:
        weights: The weights, from the first pixel that it reads to the last.
        before: Number of weights that read pixels before the output's position.
        ``after``: Number of weights that read pixels after it.
    """

    weights: Factors
    before: int
    after: int


def scale_borders(layers: Layers, operation: OnnxOperation, source: int, rows: Factors, columns: Factors) -> Layers:
    """Append layers that multiply the last layer's output by a factor per row and per column; 1 needs no layers.

    source: The node that the operation reads.
    """
    index = len(layers.nodes) - 1
    shape = layers.nodes[index].shape
    if bool((rows == 1).all() and (columns == 1).all()):
        return layers
    high, wide = _border_kernel(rows), _border_kernel(columns)
    kernel = np.outer(high.weights, wide.weights)
    most = max(kernel.shape)
    require(most <= MAX_KERNEL, RangeError("rows or columns with different factors at the border", most, 1, MAX_KERNEL))
    steps = _step_of(kernel) if layers.type_of(source) is not None else None
    # The output's own position is always inside the map, so its weight is added as the bias, which has more bits.
    base, kernel[high.before, wide.before] = kernel[high.before, wide.before], 0
    padding = Padding(high.before, wide.before, high.after, wide.after)
    bare, plane = replace(operation, inputs=operation.inputs[:1]), replace(shape, channels=1)
    ones = Convolution(_full((1, shape.channels, 1, 1), 0), _full((1,), 1), None, 1, Padding(), 1, "linear")
    weights = np.broadcast_to(kernel, (shape.channels, 1, *kernel.shape)).astype(np.float32)
    factors = Convolution(weights, _full((shape.channels,), base), None, 1, padding, 1, "linear")
    layers = layers.with_node(bare, "ones", ones, plane, index).with_node(bare, "factors", factors, shape, index + 1)
    if steps is None:
        return layers.with_node(bare, "multiply", Multiply("linear"), shape, index, index + 2)
    # The file states the type of the product alone, so sums and factors can have all the bits that they need. The ones
    # have the fewest bits, which gives the factors the largest range of integers.
    layers = layers.marked(index + 1, Mark(type=ONE))
    layers = layers.marked(index + 2, Mark(scale=np.array([steps], np.float32)))
    return layers.with_node(bare, "multiply", Multiply("linear"), shape, index + 2, index)


def _step_of(kernel: Factors) -> float:
    """Return the greatest number of which all weights of a kernel are whole multiples, to quantise it exactly.

    RefusedError is raised if the multiples would be too large for integers.
    """
    parts = [Fraction(float(weight)).limit_denominator(MAX_DENOMINATOR) for weight in kernel.ravel()]
    denominator = lcm(*(part.denominator for part in parts))
    distance = max(abs(float(part) - weight) for part, weight in zip(parts, kernel.ravel(), strict=True))
    require(
        distance < NEAR and np.abs(kernel).sum() * denominator < MAX_NUMERATOR_SUM,
        "its factors at the border do not fit 16-bit integers; export the model without quantisation, and it is "
        "quantised by calibration",
    )
    return 1 / denominator


def share_inside_map(outputs: int, stride: int, before: int, window: FloatArray, length: int) -> Factors:
    """Return, per output along one side, the share of the window's weights that read pixels of the map, not padding.

    Args:
        outputs: Number of outputs.
        stride: The stride of the window.
        before: Padding before the map.
        window: The weights along the side.
        length: Pixels of the map.
    """
    places = np.arange(outputs)[:, None] * stride - before + np.arange(len(window))
    counted = np.where((places >= 0) & (places < length), window.astype(np.float64), 0).sum(axis=1)
    require(bool((counted > 0).all()), "one of its windows would be outside the map")
    return np.asarray(counted / window.sum(dtype=np.float64))


def _border_kernel(factors: Factors) -> _BorderKernel:
    """Return the kernel along one side that computes these border correction factors from a map of ones."""
    middle = len(factors) // 2
    changes = np.flatnonzero(np.diff(factors))  # between p and p + 1
    before = int(max((p + 1 for p in changes if p < middle), default=0))
    after = int(max((len(factors) - 1 - p for p in changes if p >= middle), default=0))
    rising, falling = np.diff(factors[: before + 1]), np.diff(factors[::-1][: after + 1])
    base = factors[0] + factors[-1] - factors[middle]
    return _BorderKernel(np.concatenate([rising[::-1], [base], falling]), before, after)


def _full(shape: tuple[int, ...], number: float) -> FloatArray:
    return np.full(shape, number, np.float32)
