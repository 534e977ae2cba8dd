"""Compute tensors that do not depend on the network's input while the file is read: shapes, and sums of constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError, cut
from cnn.onnx.file import load_onnx
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require, whole_numbers
from cnn.onnx.layers import NUMBERS, Layers, Map

MAX_COMPUTED_VALUES = 1 << 16
"""Limit for the values of a computed constant. Axes, shapes and factors of channels are small; weights are not
computed but stored as initialisers."""

OF_SHAPES = frozenset(
    {
        *(
            "Abs",
            "Add",
            "Cast",
            "Ceil",
            "Clip",
            "Concat",
            "Div",
            "Exp",
            "Flatten",
            "Floor",
            "Gather",
            "Identity",
            "Mul",
        ),
        *("Neg", "Pow", "Reciprocal", "ReduceProd", "Reshape", "Shape", "Slice", "Sqrt", "Squeeze", "Sub", "Transpose"),
        "Unsqueeze",
    }
)
"""Operators with which exporters compute axes and sides."""

WORKED_OUT = OF_SHAPES | {
    *("And", "ConstantOfShape", "Equal", "Expand", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Log", "Max"),
    *("Min", "Mod", "Not", "Or", "Range", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu"),
    *("Round", "Sigmoid", "Sign", "Size", "Softmax", "Softplus", "Sum", "Tanh", "Tile", "Where"),
}
"""Operators that are computed from constants.

Except for the operators in ``_SIZES``, their result is not larger than their inputs together, or broadcast."""

_NUMBERS = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
"""The attributes with which a Constant gives its values, and their data types."""


def constants_of(layers: Layers, operation: OnnxOperation) -> tuple[Array, ...] | None:
    """Return the outputs of an operation as constant arrays; None if they depend on the network's input."""
    if operation.kind == "Constant":
        return (_given(operation),)
    values = [layers.optional(operation, position) for position in range(len(operation.inputs))]
    if operation.kind == "Shape" and values and isinstance(values[0], Map):
        return (_sides(operation, values[0]),)
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if not arrays or any(isinstance(value, Map) for value in values):
        return None
    return (arrays[0],) if operation.kind == "Identity" else _evaluated(layers.opset, operation, values)


def _sides(operation: OnnxOperation, source: Map) -> Array:
    """Return the output of an ONNX Shape operator: the sides of its input, as a constant."""
    part = slice(operation.integer("start", 0), operation.integer("end", len(source.shape)))
    return np.array(source.shape[part], np.int64)


def _given(operation: OnnxOperation) -> Array:
    """Return the output of an ONNX Constant operator."""
    for key, kind in _NUMBERS.items():
        if key in operation.attributes:
            values = operation.numbers(key) if key.endswith("s") else operation.number(key, 0)
            return np.array(values, kind)
    value = operation.attributes.get("value")
    if not isinstance(value, np.ndarray):
        raise RefusedError("a constant must be a dense array of numbers")
    return value


def _evaluated(opset: int, operation: OnnxOperation, values: Sequence[Any]) -> tuple[Array, ...]:
    require(operation.kind in WORKED_OUT, "it cannot be computed from constants; simplify the file (onnxsim, qonnx)")
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    kinds = {array.dtype.kind for array in arrays} | {_cast_kind(operation)}
    require(kinds <= NUMBERS, "only numeric constants are computed")
    size = _size(operation, arrays)
    transforms = operation.kind in ("Cast", "Clip", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
    fault = RangeError("the number of values that it computes from constants", size, high=MAX_COMPUTED_VALUES)
    require(size <= MAX_COMPUTED_VALUES or transforms, fault)
    helper = load_onnx().helper
    from onnx.reference import ReferenceEvaluator

    names = [f"input{position}" if value is not None else "" for position, value in enumerate(values)]
    feeds = {name: value for name, value in zip(names, values, strict=True) if name}
    try:
        node = helper.make_node(operation.kind, names, list(operation.outputs), **_attributes(operation))
        version = [helper.make_opsetid("", opset)]
        function = helper.make_function("constants", "result", list(feeds), list(operation.outputs), [node], version)
        results = ReferenceEvaluator(function).run(None, feeds, {})
    except Exception as error:  # numpy raises many kinds for shapes and types that do not fit
        raise RefusedError(f"it cannot be computed from its constants: {cut(error)}") from error
    return tuple(np.asarray(result) for result in results)


def _attributes(operation: OnnxOperation) -> dict[str, Any]:
    """Return an operation's attributes as onnx's ``make_node`` takes them: arrays become tensors."""
    helper = load_onnx().numpy_helper
    attributes = operation.attributes.items()
    return {key: helper.from_array(value) if isinstance(value, np.ndarray) else value for key, value in attributes}


def _size(operation: OnnxOperation, arrays: Sequence[Array]) -> int:
    """Return an upper bound for the number of values of a constant operation's result, before it is computed."""
    if operation.kind in _SIZES:
        return _SIZES[operation.kind](arrays)
    try:
        size = math.prod(np.broadcast_shapes(*(array.shape for array in arrays)))
    except ValueError:  # shapes that no operator broadcasts
        size = 0
    return max(size, sum(array.size for array in arrays))


def _size_of_sides(arrays: Sequence[Array]) -> int:
    """Return the number of values of a result whose shape is the last input array, with sides of at least 1."""
    return math.prod(max(1, abs(side)) for side in whole_numbers(arrays[-1]))


def _size_expanded(arrays: Sequence[Array]) -> int:
    sides = tuple(max(1, abs(side)) for side in whole_numbers(arrays[-1]))
    try:
        return math.prod(np.broadcast_shapes(arrays[0].shape, sides))
    except ValueError:  # shapes that no operator broadcasts
        return 0


def _size_of_range(arrays: Sequence[Array]) -> int:
    """Return the number of values of an ONNX Range's result, from its inputs start, limit and step."""
    fits = len(arrays) == 3 and all(array.size == 1 for array in arrays)
    required = "three single numbers: start, limit and step"
    require(fits, ShapeError("its inputs", " ".join(str(array.shape) for array in arrays), required))
    start, limit, step = (float(array.ravel()[0]) for array in arrays)
    length = (limit - start) / step if step else math.inf
    required = "finite, with a step other than 0"
    require(math.isfinite(length), InvalidValueError("start, limit and step", (start, limit, step), required))
    return max(0, math.ceil(length))


_SIZES: Mapping[str, Callable[[Sequence[Array]], int]] = {
    "ConstantOfShape": _size_of_sides,
    "Expand": _size_expanded,
    "Gather": lambda arrays: math.prod(array.size for array in arrays),  # each index selects a slice of the data
    "Range": _size_of_range,
    "Tile": lambda arrays: arrays[0].size * _size_of_sides(arrays),
}


def _cast_kind(operation: OnnxOperation) -> str:
    """Return the numpy dtype kind of a Cast's result, such as "i"; "f" for operators other than Cast."""
    if operation.kind != "Cast":
        return "f"
    try:
        return str(load_onnx().helper.tensor_dtype_to_np_dtype(operation.integer("to", 0)).kind)
    except KeyError as error:
        raise InvalidValueError("the attribute to", operation.integer("to", 0), "the number of an ONNX type") from error
