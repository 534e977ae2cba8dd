"""One function a kind of layer: what a topology file says of it, and the shapes that it reads → operation and shape.

``KINDS`` has them by the names that a file uses under "type". All raise NetworkError where the numbers make no layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from boards.errors import NetworkError, listed, shown
from cnn.exported.json_table import JsonTable, is_number
from cnn.exported.topology import Kernel, LayerOp, Sum
from cnn.network import (
    MOST_SCALE,
    AveragePool,
    Concat,
    Detection,
    IntegerSoftmax,
    MaxPool,
    Padding,
    Reorg,
    Shape,
    Softmax,
    TopK,
    Upsample,
)
from cnn.softmax import METHODS

SIDE_LIMIT = 1 << 16
WEIGHT_LIMIT = 1 << 26
"""Values of one kernel."""
MOST_EXTRA_BITS = 16
REQUANTISERS = ("multiply_shift", "thresholds", "given_multiply_shift", "given_thresholds")
JOINS = ("concat", "add")
"""Kinds that read several layers."""


def _convolution(table: JsonTable, shapes: list[Shape], number: int) -> tuple[LayerOp, Shape]:
    source = shapes[0]
    pad = _padding(table, 255)
    kernel = Kernel(
        number,
        source.channels,
        table.integer("filters", 1, SIDE_LIMIT),
        table.integer("kernel", 1, 255),
        table.integer("stride", 1, 255, 1),
        pad,
        table.integer("groups", 1, SIDE_LIMIT, 1),
        table.integer("weight_bits", 1, 8),
        **_activation(table),
        **_weights(table),
    )
    if source.channels % kernel.groups or kernel.filters % kernel.groups:
        raise NetworkError(
            f"{table.source}: {kernel.groups} groups must divide {source.channels} channels "
            f"and {kernel.filters} filters"
        )
    if kernel.filters * kernel.weights[1] * kernel.size**2 > WEIGHT_LIMIT:
        raise NetworkError(f"{table.source}: a kernel has at most {WEIGHT_LIMIT} weights, not {kernel.weights}")
    return kernel, _slid(table, source, kernel.filters, ((kernel.size, kernel.size), kernel.stride, pad))


def _dense(table: JsonTable, shapes: list[Shape], number: int) -> tuple[LayerOp, Shape]:
    """A convolution whose window is the whole map."""
    source = shapes[0]
    if source.height != source.width or source.height > 255:
        raise NetworkError(f"{table.source}: a dense reads a square map of at most 255 rows, not {source}")
    outputs, bits = table.integer("outputs", 1, SIDE_LIMIT), table.integer("weight_bits", 1, 8)
    form = {**_activation(table), **_weights(table)}
    kernel = Kernel(number, source.channels, outputs, source.height, 1, Padding(), 1, bits, **form)
    if outputs * source.values > WEIGHT_LIMIT:
        raise NetworkError(f"{table.source}: a dense has at most {WEIGHT_LIMIT} weights, not {outputs * source.values}")
    return kernel, Shape(outputs, 1, 1)


def _activation(table: JsonTable) -> dict[str, Any]:
    """What of a Kernel says how its sums become values."""
    if not table.has("output_bits"):
        return {"output_bits": None}
    name = table.choice("activation", ("unit", "symmetric"), "unit")
    return {
        "output_bits": table.integer("output_bits", 1, 8 if name == "unit" else 2),
        "activation": name,
        "requantise": table.choice("requantise", REQUANTISERS, None) if table.has("requantise") else None,
        "extra_bits": table.integer("extra_bits", 0, MOST_EXTRA_BITS) if table.has("extra_bits") else None,
        "bias": table.get("bias", bool, False),
    }


def _weights(table: JsonTable) -> dict[str, Any]:
    """integers and scale of a Kernel."""
    integers = table.get("integers", bool, False)
    if integers and table.integer("weight_bits", 1, 8) == 1:
        raise NetworkError(f"{table.source}: 'integers' are of 2…8 weight_bits; of one bit the sign counts anyway")
    scale = 1.0 if table.has("output_bits") else table.number("scale", 1e-9, 1e9, 1.0)
    return {"integers": integers, "scale": scale}


def _padding(table: JsonTable, most: int) -> Padding:
    """One number for all sides, or a list of four: above, left, below, right."""
    if not isinstance(table.get("padding", (int, list), 0), list):
        pad = table.integer("padding", 0, most, 0)
        return Padding(pad, pad, pad, pad)
    sides = table.get("padding", list)
    if len(sides) != 4 or not all(type(side) is int and 0 <= side <= most for side in sides):
        raise NetworkError(
            f"{table.source}: 'padding' must be one number of 0…{most}, or four (above, left, below, right), "
            f"not {shown(sides)}"
        )
    return Padding(*sides)


def _max_pool(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    rows, columns = _window(table)
    pad = _padding(table, max(rows, columns) - 1)
    fits = max(pad.top, pad.bottom) < rows and max(pad.left, pad.right) < columns
    if not fits:
        raise NetworkError(f"{table.source}: 'padding' must be less than the {rows} × {columns} of 'size', not {pad}")
    stride = table.integer("stride", 1, 255, rows if rows == columns else None)
    pool = MaxPool(rows, stride, pad, 0 if rows == columns else columns)
    return pool, _slid(table, shapes[0], shapes[0].channels, (pool.window, stride, pad))


def _window(table: JsonTable) -> tuple[int, int]:
    """'size': of both sides, or a list of rows and columns."""
    if not isinstance(table.get("size", (int, list)), list):
        size = table.integer("size", 1, 255)
        return size, size
    sides = table.get("size", list)
    if len(sides) != 2 or not all(type(side) is int and 1 <= side <= 255 for side in sides):
        raise NetworkError(
            f"{table.source}: 'size' must be one number of 1…255, or two (rows, columns), not {shown(sides)}"
        )
    return sides[0], sides[1]


def _average_pool(_: JsonTable, shapes: list[Shape], __: int) -> tuple[LayerOp, Shape]:
    return AveragePool(), Shape(shapes[0].channels, 1, 1)


def _slid(table: JsonTable, source: Shape, channels: int, window: tuple[tuple[int, int], int, Padding]) -> Shape:
    """The shape that a window leaves; window: its rows and columns, its stride and padding."""
    (rows, columns), stride, pad = window
    height, width = source.height + pad.top + pad.bottom - rows, source.width + pad.left + pad.right - columns
    if min(height, width) < 0:
        raise NetworkError(f"{table.source}: a window of {rows}×{columns} is larger than its padded input {source}")
    return Shape(channels, height // stride + 1, width // stride + 1)


def _reorg(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    source, s = shapes[0], table.integer("stride", 1, 255)
    order = table.choice("order", ("block", "darknet"), "block")
    divisor = s * s if order == "darknet" else 1
    if source.height % s or source.width % s or source.channels % divisor:
        raise NetworkError(
            f"{table.source}: a reorg by {s} needs height % {s}, width % {s} and channels % {divisor} to be 0, "
            f"not {source}"
        )
    return Reorg(s, order), Shape(source.channels * s * s, source.height // s, source.width // s)


def _upsample(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    source, s = shapes[0], table.integer("stride", 1, 255)
    return Upsample(s), Shape(source.channels, source.height * s, source.width * s)


def _concat(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    first = shapes[0]
    if any((shape.height, shape.width) != (first.height, first.width) for shape in shapes):
        raise NetworkError(f"{table.source}: a concat needs inputs of one height and width, not {listed(shapes)}")
    return Concat(), Shape(sum(shape.channels for shape in shapes), first.height, first.width)


def _add(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    if len(shapes) < 2 or len(set(shapes)) > 1:
        raise NetworkError(f"{table.source}: an add needs two or more inputs of one shape, not {listed(shapes)}")
    return Sum(table.integer("output_bits", 1, 8) if table.has("output_bits") else None), shapes[0]


def _one_object(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    return _head(table, shapes[0], "one-object")


def _region(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    return _head(table, shapes[0], "region", softmax=table.get("softmax", bool, False))


def _yolo(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    return _head(table, shapes[0], "yolo", scale_xy=table.number("scale_xy", 1e-3, MOST_SCALE, 1.0))


def _head(
    table: JsonTable, source: Shape, kind: str, *, softmax: bool = False, scale_xy: float = 1.0
) -> tuple[LayerOp, Shape]:
    classes = table.integer("classes", 1, 10_000, 1)
    anchors = tuple(_anchor(table, pair) for pair in table.get("anchors", list))
    head = Detection(kind, anchors, classes, softmax, scale_xy=scale_xy)
    if not anchors or source.channels != head.channels:
        raise NetworkError(
            f"{table.source}: {len(anchors)} anchors × (5 + {classes} classes) read {head.channels} channels, "
            f"but {source.channels} come; check 'anchors' and the filters of the last convolution"
        )
    return head, source


def _segmentation(_: JsonTable, shapes: list[Shape], __: int) -> tuple[LayerOp, Shape]:
    return Detection("segmentation", (), shapes[0].channels, True), shapes[0]


def _top_k(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    source = shapes[0]
    op = TopK(table.integer("k", 1, source.channels, 1), table.get("labels", bool, True))
    return op, Shape(op.k, source.height, source.width)


def _softmax(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    source, method = shapes[0], table.choice("method", ("none", *METHODS), "none")
    if method != "none":
        return IntegerSoftmax(method), source
    return Softmax(each=source.height * source.width > 1), source


def _anchor(table: JsonTable, pair: Any) -> tuple[float, float]:
    sides = pair if isinstance(pair, list) else []
    if len(sides) != 2 or not all(is_number(side) and 0 < side < 1e6 for side in sides):
        raise NetworkError(f"{table.source}: an anchor is a width and a height in pixels, not {shown(pair)}")
    return float(sides[0]), float(sides[1])


LayerKind = Callable[[JsonTable, list[Shape], int], tuple[LayerOp, Shape]]
"""The table of a layer, the shapes that it reads, and how many convolutions come before it."""

KINDS: dict[str, LayerKind] = {
    "convolution": _convolution,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "reorg": _reorg,
    "upsample": _upsample,
    "concat": _concat,
    "add": _add,
    "dense": _dense,
    "one_object": _one_object,
    "region": _region,
    "yolo": _yolo,
    "segmentation": _segmentation,
    "top_k": _top_k,
    "softmax": _softmax,
}
