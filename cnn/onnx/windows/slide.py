"""Where a kernel slides over a map: the padding that it reads, and the height and width that it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cnn.limits import MAX_KERNEL, MAX_SIDE
from cnn.network import FloatArray, MaxPool, Padding, Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map

_OF_SIDES = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 0}
"""Attributes with a number for each side of a window, and what they are along a side of 1."""


def planar(operation: Operation, source: Map) -> Operation:
    """The operation as one of height and width, where it slides along a length: the map's only row."""
    if len(source.shape) != 3:
        return operation
    attributes = dict(operation.attributes)
    for key in attributes.keys() & _OF_SIDES.keys():
        sides, beside = operation.integers(key, ()), _OF_SIDES[key]
        count = 2 if key == "pads" else 1
        require(len(sides) == count, f"{key} of a length are {count}, not {sides}")
        # Along a length a stride is also that of the one row.
        attributes[key] = sides * 2 if key == "strides" else tuple(n for side in sides for n in (beside, side))
    return replace(operation, attributes=attributes)


def check_window(operation: Operation, window: Sequence[int]) -> None:
    """RefusedError where the file says another window than that of its weights."""
    named = operation.integers("kernel_shape", tuple(window))
    require(named == tuple(window), f"kernel_shape must be that of its weights, {tuple(window)}, not {named}")


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
    """How a window of so many rows and columns slides over the map."""
    shape = layers.shape_of(replace(source, padding=NO_PADDING))
    strides = operation.integers("strides", (1, 1))
    require(len(strides) == 2 and min(strides) >= 1, f"strides are two, 1 or more, not {strides}")
    require(max(strides) <= MAX_SIDE, f"a stride is at most {MAX_SIDE:,}, not {max(strides):,}")
    padded, (down, across) = source.padding, strides
    sides = (shape.height + padded.top + padded.bottom, shape.width + padded.left + padded.right)
    front, back = pads_of(operation, sides, window, strides)
    around = joined(source.padding, Padding(front[0], front[1], back[0], back[1]))
    lengths = (
        shape.height + around.top + around.bottom - window[0],
        shape.width + around.left + around.right - window[1],
    )
    require(min(lengths) >= 0, f"the window {tuple(window)} is larger than the padded map {shape}")
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
    return Slide(shape, (window[0], window[1]), Shape(shape.channels, height, width), padding, (down, across))


def pads_of(
    operation: Operation, sides: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Before and behind, of height and width."""
    mode = operation.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        pads = operation.integers("pads", (0, 0, 0, 0)) if mode == "NOTSET" else (0, 0, 0, 0)
        require(len(pads) == 4 and min(pads) >= 0, f"pads are four, 0 or more, not {pads}")
        return list(pads[:2]), list(pads[2:])
    require(mode in ("SAME_UPPER", "SAME_LOWER"), f"auto_pad {mode!r} is not known")
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
    require(min(sides) >= 0 and max(sides) < 256, f"padding is 0…255 on a side, not {sides}")
    return Padding(*sides)


def dilated(weights: FloatArray, dilations: tuple[int, ...]) -> FloatArray:
    """The same window with zeros where a dilated one skips rows and columns."""
    require(len(dilations) == 2 and min(dilations) >= 1, f"dilations are two, 1 or more, not {dilations}")
    if dilations == (1, 1):
        return weights
    *outer, height, width = weights.shape
    lengths = [(side - 1) * step + 1 for side, step in zip((height, width), dilations, strict=True)]
    require(max(lengths) <= MAX_KERNEL, f"a dilated window has at most {MAX_KERNEL} rows and columns, not {lengths}")
    larger = np.zeros((*outer, *lengths), np.float32)
    larger[:, :, :: dilations[0], :: dilations[1]] = weights
    return larger
