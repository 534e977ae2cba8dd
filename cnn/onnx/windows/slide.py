"""Where a kernel slides over a map: the padding that it reads, and the height and width that it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError
from cnn.dilation import covered, with_zeros
from cnn.limits import MAX_DILATED, MAX_PADDED, MAX_PADDING, MAX_PLACES, MAX_SIDE, MAX_WINDOW
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.ops import MaxPool

_OF_SIDES = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 0}
"""Attributes with a number for each side of a window, and what they are along a side of 1."""

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def planar(operation: Operation, source: Map) -> Operation:
    """The operation as one of height and width, where it slides along a length: the map's only row."""
    if len(source.shape) != 3:
        return operation
    attributes = dict(operation.attributes)
    for key in attributes.keys() & _OF_SIDES.keys():
        sides, beside = operation.integers(key, ()), _OF_SIDES[key]
        count = 2 if key == "pads" else 1
        required = (
            "two numbers, as it slides along one side" if count == 2 else "one number, as it slides along one side"
        )
        require(len(sides) == count, InvalidValueError(key, sides, required))
        # Along a length a stride is also that of the one row.
        attributes[key] = sides * 2 if key == "strides" else tuple(n for side in sides for n in (beside, side))
    return replace(operation, attributes=attributes)


def check_window(operation: Operation, window: Sequence[int]) -> None:
    """Raise InvalidValueError if the file names another window than that of the weights."""
    named = operation.integers("kernel_shape", tuple(window))
    require(named == tuple(window), InvalidValueError("kernel_shape", named, f"{tuple(window)}, that of its weights"))


def check_sides(window: Sequence[int]) -> None:
    """Raise RangeError if a window covers too many rows or columns."""
    require(max(window) <= MAX_WINDOW, RangeError("rows or columns of a window", max(window), 1, MAX_WINDOW))


def check_size(window: Sequence[int]) -> None:
    """Raise RangeError if a window has too many rows, columns or places."""
    check_sides(window)
    require(prod(window) <= MAX_PLACES, RangeError("places of a window", prod(window), 1, MAX_PLACES))


def check_pair(what: str, values: Sequence[int]) -> None:
    """Raise InvalidValueError if an attribute is not a positive number for each of two sides."""
    fits = len(values) == 2 and min(values) >= 1
    require(fits, InvalidValueError(what, tuple(values), "two numbers of 1 or more"))


@dataclass(frozen=True)
class Slide:
    """A window over the map ``before``, so many rows and columns high and wide. shape: what it leaves, with the
    channels of that map. padding: that it reads. strides: down and across."""

    before: Shape
    window: tuple[int, int]
    shape: Shape
    padding: Padding
    strides: tuple[int, int]

    @property
    def stride(self) -> int:
        """Of both sides, where it is one, or another leaves a single row or column as it is; else 0."""
        counts, (down, across) = (self.shape.height, self.shape.width), self.strides
        alone = [stride for stride, count in ((across, counts[0]), (down, counts[1])) if count == 1]
        plain = [down] if down == across else []
        return next((stride for stride in [*plain, *alone] if self.outputs(stride) == counts), 0)

    def outputs(self, stride: int) -> tuple[int, int]:
        """Rows and columns that windows of that stride leave."""
        rows = self.before.height + self.padding.top + self.padding.bottom - self.window[0]
        columns = self.before.width + self.padding.left + self.padding.right - self.window[1]
        return rows // stride + 1, columns // stride + 1


def pool_of(window: tuple[int, int], stride: int, padding: Padding) -> MaxPool:
    """The max pool of a window of so many rows and columns."""
    rows, columns = window
    return MaxPool(rows, stride, padding, 0 if rows == columns else columns)


def slid(layers: Layers, operation: Operation, source: Map, window: Sequence[int]) -> Slide:
    """Return how a window of so many rows and columns slides over the map."""
    shape = layers.shape_of(replace(source, padding=NO_PADDING))
    strides = operation.integers("strides", (1, 1))
    check_pair("strides", strides)
    require(max(strides) <= MAX_SIDE, RangeError("a stride", max(strides), 1, MAX_SIDE))
    padded, (down, across) = source.padding, strides
    sides = (shape.height + padded.top + padded.bottom, shape.width + padded.left + padded.right)
    front, back = pads_of(operation, sides, window, strides)
    around = joined(source.padding, Padding(front[0], front[1], back[0], back[1]))
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
    if up:  # no window begins in the padding behind
        height -= (height - 1) * down >= shape.height + around.top
        width -= (width - 1) * across >= shape.width + around.left
    bottom = max(0, (height - 1) * down + window[0] - around.top - shape.height)
    right = max(0, (width - 1) * across + window[1] - around.left - shape.width)
    padding = Padding(around.top, around.left, bottom, right)
    values = shape.channels * (shape.height + around.top + bottom) * (shape.width + around.left + right)
    require(values <= MAX_PADDED, RangeError("values of its padded input", values, 1, MAX_PADDED))
    return Slide(shape, (window[0], window[1]), Shape(shape.channels, height, width), padding, (down, across))


def pads_of(
    operation: Operation, sides: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Before and behind, of height and width."""
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


def joined(first: Padding, second: Padding) -> Padding:
    """Both, one around the other."""
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
    """Return the window without dilation; RangeError if its weights would be too many."""
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
    """Without the outermost rows and columns of the places of a dilated window that see padding alone, wherever it
    lies: one that is dilated by more than the map is high has one row."""
    if tuple(dilations) == (1, 1):
        return weights, slide
    before, padding = slide.before, slide.padding
    sides = (
        (weights.shape[2], dilations[0], slide.strides[0], padding.top, before.height, slide.shape.height),
        (weights.shape[3], dilations[1], slide.strides[1], padding.left, before.width, slide.shape.width),
    )
    (top, bottom), (left, right) = (_inside(*side) for side in sides)
    kept = weights[:, :, top : weights.shape[2] - bottom, left : weights.shape[3] - right]
    if kept.shape == weights.shape:
        return weights, slide
    (down, across), (rows, columns) = dilations, slide.window
    window = rows - (top + bottom) * down, columns - (left + right) * across
    front = padding.top - top * down, padding.left - left * across
    around = Padding(*front, max(0, padding.bottom - bottom * down), max(0, padding.right - right * across))
    return np.ascontiguousarray(kept), replace(slide, window=window, padding=around)


def _inside(places: int, step: int, stride: int, front: int, length: int, outputs: int) -> tuple[int, int]:
    """Return how many of the first and of the last places of a window see padding alone. At least one place is left,
    and no more is taken off than there is padding in front."""
    offsets = [place * step - front for place in range(places)]
    first_output = [max(0, -(offset // stride)) for offset in offsets]  # the first whose place is not before the map
    reached = [o < outputs and o * stride + offset < length for o, offset in zip(first_output, offsets, strict=True)]
    used = [place for place, inside in enumerate(reached) if inside] or [0]
    first = min(used[0], front // step)
    return first, places - 1 - max(used[-1], first)
