"""One function per kind of layer, which returns an operation and a shape for a JSON object and the input shapes.

``KINDS`` maps the names under "type" to these functions. If the numbers do not make a layer, the function raises an
error whose place is the layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from boards.errors import ConflictError, InvalidValueError, MismatchError, RangeError, ShapeError, SystolicError, listed
from boards.table import is_number
from cnn.exported.json_table import JsonTable
from cnn.exported.topology import Kernel, LayerOp, Sum
from cnn.maps import Padding, Shape
from cnn.ops import (
    MAX_SCALE,
    AveragePool,
    Concat,
    Detection,
    IntegerSoftmax,
    MaxPool,
    OneObject,
    Region,
    Reorg,
    Segmentation,
    Softmax,
    TopK,
    Upsample,
    Yolo,
)
from cnn.ops.softmax import METHODS
from cnn.ops.windows import window_shape

SIDE_LIMIT = 1 << 16
WEIGHT_LIMIT = 1 << 26
"""The most weights of one kernel."""
MAX_EXTRA_BITS = 16
REQUANTISERS = ("multiply_shift", "thresholds", "given_multiply_shift", "given_thresholds")
JOINS = ("concat", "add")
"""The kinds of layers that may read several others."""


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
        required = f"a divisor of {source.channels} channels and of {kernel.filters} filters"
        raise InvalidValueError("'groups'", kernel.groups, required, where=table.source)
    _check_weight_count(table, kernel.filters * kernel.weights[1] * kernel.size**2)
    return kernel, _slide((kernel.size, kernel.size), kernel.filters, kernel.stride, pad, source, table)


def _dense(table: JsonTable, shapes: list[Shape], number: int) -> tuple[LayerOp, Shape]:
    """Return a dense layer, as a convolution whose kernel covers the whole input map, and its output shape."""
    source = shapes[0]
    if source.height != source.width or source.height > 255:
        required = "equal sides of at most 255"
        raise ShapeError("the map that a dense reads", f"shape {source}", required, where=table.source)
    outputs, bits = table.integer("outputs", 1, SIDE_LIMIT), table.integer("weight_bits", 1, 8)
    form = {**_activation(table), **_weights(table)}
    kernel = Kernel(number, source.channels, outputs, source.height, 1, Padding(), 1, bits, **form)
    _check_weight_count(table, outputs * source.values)
    return kernel, Shape(outputs, 1, 1)


def _check_weight_count(table: JsonTable, count: int) -> None:
    if count > WEIGHT_LIMIT:
        raise RangeError("the number of weights", count, high=WEIGHT_LIMIT, where=table.source)


def _activation(table: JsonTable) -> dict[str, Any]:
    """Return the fields of a ``Kernel`` (convolution) about its activation: bits, kind, requantisation, bias."""
    if not table.has("output_bits"):
        return {"output_bits": None}
    name = table.choice("activation", ("unit", "symmetric"), "unit")
    return {
        "output_bits": table.integer("output_bits", 1, 8 if name == "unit" else 2),
        "activation": name,
        "requantise": table.choice("requantise", REQUANTISERS, None) if table.has("requantise") else None,
        "extra_bits": table.integer("extra_bits", 0, MAX_EXTRA_BITS) if table.has("extra_bits") else None,
        "bias": table.get("bias", bool, False),
    }


def _weights(table: JsonTable) -> dict[str, Any]:
    """Return the fields ``integers`` and ``scale`` of a ``Kernel`` (convolution) from its JSON object."""
    integers = table.get("integers", bool, False)
    if integers and table.integer("weight_bits", 1, 8) == 1:
        subjects = ("'integers'", "'weight_bits' of 1")
        raise ConflictError(subjects, "a weight of one bit is the sign of the number in any case", where=table.source)
    scale = 1.0 if table.has("output_bits") else table.number("scale", 1e-9, 1e9, 1.0)
    return {"integers": integers, "scale": scale}


def _padding(table: JsonTable, most: int) -> Padding:
    """Return the padding in a layer's JSON object: one number for all sides, or top, left, bottom and right."""
    if not isinstance(table.get("padding", (int, list), 0), list):
        pad = table.integer("padding", 0, most, 0)
        return Padding(pad, pad, pad, pad)
    sides = table.get("padding", list)
    if len(sides) != 4 or not all(type(side) is int and 0 <= side <= most for side in sides):
        required = f"one number of 0…{most}, or four (top, left, bottom, right)"
        raise InvalidValueError("'padding'", sides, required, where=table.source)
    return Padding(*sides)


def _max_pool(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    rows, columns = _window(table)
    pad = _padding(table, max(rows, columns) - 1)
    fits = max(pad.top, pad.bottom) < rows and max(pad.left, pad.right) < columns
    if not fits:
        required = f"less than 'size', {rows}×{columns}"
        raise InvalidValueError("'padding'", list(astuple(pad)), required, where=table.source)
    stride = table.integer("stride", 1, 255, rows if rows == columns else None)
    pool = MaxPool(rows, stride, pad, 0 if rows == columns else columns)
    return pool, _slide(pool.window, shapes[0].channels, stride, pad, shapes[0], table)


def _window(table: JsonTable) -> tuple[int, int]:
    """Return the rows and columns of a pool from 'size' in its JSON object, one number for both or a list of two."""
    if not isinstance(table.get("size", (int, list)), list):
        size = table.integer("size", 1, 255)
        return size, size
    sides = table.get("size", list)
    if len(sides) != 2 or not all(type(side) is int and 1 <= side <= 255 for side in sides):
        required = "one number of 1…255, or two (rows, columns)"
        raise InvalidValueError("'size'", sides, required, where=table.source)
    return sides[0], sides[1]


def _average_pool(_: JsonTable, shapes: list[Shape], __: int) -> tuple[LayerOp, Shape]:
    return AveragePool(), Shape(shapes[0].channels, 1, 1)


def _slide(
    window: tuple[int, int], filters: int, stride: int, padding: Padding, source: Shape, table: JsonTable
) -> Shape:
    """Return the output shape of a sliding window; its errors name the layer's JSON object."""
    try:
        return window_shape(window, filters, stride, padding, source)
    except SystolicError as error:
        raise error.at(table.source) from error


def _reorg(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    source, s = shapes[0], table.integer("stride", 1, 255)
    order = table.choice("order", ("block", "darknet"), "block")
    divisor = s * s if order == "darknet" else 1
    if source.height % s or source.width % s or source.channels % divisor:
        square = ", and its square of the channels," if order == "darknet" else ""
        required = f"a divisor of height and width{square} of {source}"
        raise InvalidValueError("'stride'", s, required, where=table.source)
    return Reorg(s, order), Shape(source.channels * s * s, source.height // s, source.width // s)


def _upsample(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    source, s = shapes[0], table.integer("stride", 1, 255)
    return Upsample(s), Shape(source.channels, source.height * s, source.width * s)


def _concat(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    first = shapes[0]
    if any((shape.height, shape.width) != (first.height, first.width) for shape in shapes):
        raise ShapeError("the inputs of a concat", listed(shapes), "one height and width", where=table.source)
    return Concat(), Shape(sum(shape.channels for shape in shapes), first.height, first.width)


def _add(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    if len(shapes) < 2:
        raise RangeError("the number of inputs of an add", len(shapes), low=2, where=table.source)
    if len(set(shapes)) > 1:
        raise ShapeError("the inputs of an add", listed(shapes), "one shape", where=table.source)
    return Sum(table.integer("output_bits", 1, 8) if table.has("output_bits") else None), shapes[0]


def _one_object(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    return _head(table, shapes[0], OneObject)


def _region(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    return _head(table, shapes[0], Region, softmax=table.get("softmax", bool, False))


def _yolo(table: JsonTable, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    return _head(table, shapes[0], Yolo, scale_xy=table.number("scale_xy", 1e-3, MAX_SCALE, 1.0))


def _head(
    table: JsonTable, source: Shape, kind: type[Detection], *, softmax: bool = False, scale_xy: float = 1.0
) -> tuple[LayerOp, Shape]:
    classes = table.integer("classes", 1, 10_000, 1)
    anchors = tuple(_anchor(table, pair) for pair in table.get("anchors", list))
    head = kind(anchors, classes, softmax, scale_xy=scale_xy)
    if not anchors:
        raise RangeError("the number of anchors", 0, low=1, where=table.source)
    if source.channels != head.channels:
        what = f"the number of channels that {len(anchors)} anchors × (5 + {classes} classes) read"
        remedy = "check 'anchors' and the filters of the last convolution"
        raise MismatchError(what, source.channels, head.channels, where=table.source, remedy=remedy)
    return head, source


def _segmentation(_: JsonTable, shapes: list[Shape], __: int) -> tuple[LayerOp, Shape]:
    return Segmentation((), shapes[0].channels, True), shapes[0]


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
        raise InvalidValueError("an anchor", pair, "a width and a height in pixels", where=table.source)
    return float(sides[0]), float(sides[1])


LayerKind = Callable[[JsonTable, list[Shape], int], tuple[LayerOp, Shape]]
"""A function of a layer's JSON object, its input shapes, and the number of convolutions before the layer."""

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
