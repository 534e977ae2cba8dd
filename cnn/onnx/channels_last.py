"""Read operators on tensors with the channels last, (batch, height, width, channels), as TensorFlow's exporters write.

All layers have the channels first, so an operator is converted before it is read, and its output is marked as having
the channels last (``Map.last``). No layer is needed for this:

- Axes, pads and scales of the operator are put into the other order, and constants with one number per channel too.
- The rows of a matrix that multiplies a flattened map are reordered.
- A matrix that multiplies the channels of every position becomes a 1×1 convolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from boards.errors import ChoiceError, InvalidValueError, MismatchError, ShapeError
from cnn.maps import Padding
from cnn.onnx import shapes
from cnn.onnx.activations import ACTIVATIONS
from cnn.onnx.arithmetic import floats
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require, whole_numbers
from cnn.onnx.layers import LAST, Layers, Map, Value, first_of, last_of
from cnn.onnx.operators import LAST_AXIS_OPSET, Builder, check_softmax, dense, softmax_of, unknown
from cnn.onnx.quantised.values import NAMES
from cnn.ops import Convolution

Overrides = dict[str, Value]

SAME_SIDES = frozenset(
    {*ACTIVATIONS, "Cast", "DequantizeLinear", "Dropout", "Identity", "Neg", "QuantizeLinear", *NAMES} - {"PRelu"}
)
"""Operators without axes, of which only the first input depends on the network's input."""

OF_CHANNELS = frozenset({"Add", "Div", "Max", "Min", "Mul", "PRelu", "Sub", "Sum"})
"""Operators that broadcast their inputs."""

AXIS = {"ArgMax": 0, "Concat": 1, "Gather": 0, "Split": 0, "TopK": -1}
"""The default axis of operators with one axis."""

MATRICES = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul"})
"""Operators that multiply the last side by a matrix, which is the channels of every position if they are last."""

SOFTMAXES = ("LogSoftmax", "Softmax")

TAKEN_APART = frozenset(
    {"QLinearMatMul", *(f"com.microsoft.{kind}" for kind in ("QGemm", "QLinearAdd", "QLinearConcat", "QLinearMul"))}
    | {f"com.microsoft.{kind}" for kind in ("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax")}
)
"""Operators on integers that are read as several operators, each of which handles the order of the sides itself."""

BEFORE_TRANSPOSE = SAME_SIDES | OF_CHANNELS | {"Pad", "Resize", "Slice", "Upsample"}
"""Operators that exporters write between the input and the Transpose that moves its channels to the front."""


def to_first(rank: int) -> tuple[int, ...]:
    """Return the axes order (``perm``) of a Transpose from (batch, …, channels) to (batch, channels, …)."""
    return (0, rank - 1, *range(1, rank - 1))


def to_last(rank: int) -> tuple[int, ...]:
    """Return the axes order (``perm``) of a Transpose from (batch, channels, …) to (batch, …, channels)."""
    return (0, *range(2, rank), 1)


GUESSED = "a constant has one number for each index of its last side, and no operator shows another order"
"""The reason for taking the last side of the input as its channels if no operator shows the order."""


def channels_last_reason(
    operations: Iterable[OnnxOperation], name: str, rank: int, opset: int, constants: Mapping[str, Sequence[int]]
) -> str:
    """Return the reason to take the last side of the network's input as its channels, a clause; "" if there is none.

    They are last if a Transpose moves the last side to the front before a layer reads it. They are last, too, if the
    first operator is a matrix product, softmax, ArgMax or TopK over the last side. Otherwise the reason can be GUESSED.

    Args:
        operations: The operations of the graph.
        name: The input tensor.
        rank: The number of sides of the input.
        opset: The version of the operators.
        constants: The sides of the constants, by tensor name.
    """
    names, guess = {name}, ""
    for operation in operations:
        if not names.intersection(operation.inputs) or rank < 3:
            continue
        if operation.kind == "Transpose":
            is_turned = operation.attributes.get("perm") == to_first(rank)
            return f"{operation} moves them to the front" if is_turned else ""
        if operation.kind not in BEFORE_TRANSPOSE:
            reads = operation.inputs[0] in names
            is_last = reads and (operation.kind in MATRICES or _ends_last(operation, rank, opset))
            return f"{operation} is over its last side" if is_last else ""
        names.update(operation.outputs)
        guess = GUESSED if _has_numbers(operation, constants) else guess
    return guess


def _has_numbers(operation: OnnxOperation, constants: Mapping[str, Sequence[int]]) -> bool:
    """Return whether the operation combines a map with a constant that has one number per index of the last side."""
    sides = [constants.get(name, ()) for name in operation.inputs] if operation.kind in OF_CHANNELS else []
    return any(len(each) >= 1 and each[-1] > 1 and math.prod(each) == each[-1] for each in sides)


def _ends_last(operation: OnnxOperation, rank: int, opset: int) -> bool:
    """Return whether the operation is a softmax, ArgMax or TopK along the last side of its input."""
    defaults = {"ArgMax": 0, "TopK": -1, **dict.fromkeys(SOFTMAXES, -1 if opset >= LAST_AXIS_OPSET else 1)}
    if operation.kind not in defaults:
        return False
    return operation.attributes.get("axis", defaults[operation.kind]) in (-1, rank - 1)


def reads_last(layers: Layers, operation: OnnxOperation) -> bool:
    """Return whether an input tensor of the operation has its channels last."""
    return any(isinstance(value := layers.value(name), Map) and value.last for name in operation.inputs if name)


def read_last(layers: Layers, operation: OnnxOperation, build: Builder | None) -> Layers:
    """Read an operation with a channels-last input: convert it to channels first, then append its layers.

    build: The function that reads the operation with the channels first; None if no function reads its kind.
    """
    if build is not None and operation.kind in TAKEN_APART:
        return build(layers, operation)
    build_so = _OWN.get(operation.kind)
    if build_so is not None:
        return build_so(layers, operation)
    if build is None:
        raise unknown(operation.kind)
    require(operation.kind in _TURNED, LAST)
    source = _source(layers, operation)
    mapped = len(source.shape) > 2 or operation.kind in SAME_SIDES
    require(mapped, "its input is a map that was flattened with its channels last")
    turned, overrides = _TURNED[operation.kind](layers, operation, source)
    maps = {name: value for name in operation.inputs if isinstance(value := layers.value(name), Map)}
    alike = all(value.last for value in maps.values())
    require(alike, "the channels are last in one of its maps, and first in another")
    overrides |= {name: first_of(value) for name, value in maps.items()}
    result = build(replace(layers, values={**layers.values, **overrides}), turned)
    sides = source.shape if operation.kind in SAME_SIDES else None
    return _turned_back(layers, result, operation, overrides, sides)


def _source(layers: Layers, operation: OnnxOperation) -> Map:
    for name in operation.inputs:
        value = layers.value(name) if name else None
        if isinstance(value, Map) and value.last:
            return value
    raise RefusedError("none of its inputs depends on the network's input")


def _turned_back(
    layers: Layers, result: Layers, operation: OnnxOperation, overrides: Overrides, shape: tuple[int, ...] | None
) -> Layers:
    """Return the network after an operation, with the operation's tensors viewed channels last again as in the file.

    Args:
        layers: The network before the operation.
        result: The network after the operation, which was read with the channels first.
        operation: The operation.
        overrides: The tensors that were replaced for reading it.
        shape: The shape of the outputs if the operation keeps its input's shape; else None.
    """
    values, rank = dict(result.values), max(len(value.shape) for value in overrides.values() if isinstance(value, Map))
    for name in overrides:
        original, value = layers.values.get(name), values[name]
        if original is None:
            del values[name]
        elif isinstance(original, Map) and isinstance(value, Map):
            values[name] = replace(value, shape=original.shape, last=original.last)
        else:
            values[name] = original
    for name in operation.outputs:
        output = values.get(name)
        if isinstance(output, Map) and shape is not None:
            values[name] = replace(output, shape=shape, last=True)
        elif isinstance(output, Map) and rank == len(output.shape) > 2:  # else the operation removed a side
            values[name] = last_of(output)
    return replace(result, values=values)


# --- operators whose axes are put into the other order ---------------------------------------------------------------
#
# Each function returns the operation for a map with the channels first, and the constants that replace its inputs.


def _plain(_: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    return operation, {}


def _broadcast(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    """Convert an operator that broadcasts to channels first: constants with one number per channel are reshaped."""
    rank, overrides = len(source.shape), Overrides()
    for name in operation.inputs:
        value = layers.value(name)
        if isinstance(value, np.ndarray) and value.size > 1:
            fits = value.ndim <= rank and value.size == value.shape[-1]
            required = f"one value, or one for each channel, the last side of {source.shape}"
            require(fits, ShapeError("its constant", value.shape, required))
            overrides[name] = np.moveaxis(value.reshape((1,) * (rank - value.ndim) + value.shape), -1, 1)
    return operation, overrides


def _layout(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    """Convert a MultiThreshold to channels first, by its attribute data_layout; a Quant stays as it is."""
    if not operation.kind.endswith(".MultiThreshold"):
        return operation, {}
    layout, rows = operation.text("data_layout", "NCHW"), len(np.atleast_1d(layers.constant(operation, 1)))
    required = "NHWC, because the map has its channels last"
    require(layout == "NHWC" or rows == 1, InvalidValueError("data_layout", layout, required))
    return _with(operation, data_layout="NCHW"), {}


def _first_axis(axis: int, rank: int) -> int:
    """Return the index in a channels-first shape of an axis that is numbered in the channels-last shape."""
    return to_first(rank).index(shapes.position_of(axis, rank))


def _with(operation: OnnxOperation, **attributes: Any) -> OnnxOperation:
    return replace(operation, attributes={**operation.attributes, **attributes})


def _of_axis(_: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    return _with(operation, axis=_first_axis(operation.integer("axis", AXIS[operation.kind]), len(source.shape))), {}


def _gather(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    axis = _first_axis(operation.integer("axis", 0), len(source.shape))
    single = axis > 1 and len(source.shape) > 3 and layers.constant(operation, 1).ndim == 0
    sentence = "one row or column of a map with its channels last is gathered only by a list of one index"
    require(not single, sentence)
    return _with(operation, axis=axis), {}


def _slice(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    starts = shapes.integers(layers, operation, "starts", 1) or ()
    axes = shapes.integers(layers, operation, "axes", 3) or tuple(range(len(starts)))
    return _with(operation, axes=tuple(_first_axis(axis, len(source.shape)) for axis in axes)), {}


def _mean(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    axes = shapes.integers(layers, operation, "axes", 1) or ()
    return _with(operation, axes=tuple(_first_axis(axis, len(source.shape)) for axis in axes)), {}


def _pad(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    rank, pads = len(source.shape), shapes.integers(layers, operation, "pads", 1) or ()
    named = range(rank) if layers.optional(operation, 3) is None else whole_numbers(layers.constant(operation, 3))
    require(len(pads) == 2 * len(named), ShapeError("pads", f"{len(pads)} numbers", f"{2 * len(named)} numbers"))
    first = [_first_axis(axis, rank) for axis in named]
    require(len(set(first)) == len(first), InvalidValueError("axes", tuple(named), "different from each other"))
    counts = [0] * 2 * rank
    for i, axis in enumerate(first):
        counts[axis], counts[rank + axis] = pads[i], pads[len(first) + i]
    return replace(_with(operation, pads=tuple(counts)), inputs=operation.inputs[:3]), {}


def _resize(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[OnnxOperation, Overrides]:
    rank = len(source.shape)
    order = np.array(to_first(rank))
    if "axes" in operation.attributes:
        axes = tuple(_first_axis(axis, rank) for axis in operation.integers("axes", ()))
        return _with(operation, axes=axes), {}
    if "scales" in operation.attributes:
        numbers = operation.numbers("scales")
        require(len(numbers) == rank, ShapeError("scales", f"{len(numbers)} numbers", f"{rank} numbers"))
        return _with(operation, scales=tuple(numbers[i] for i in order)), {}
    overrides = Overrides()
    for name in operation.inputs[1:]:
        value = layers.value(name) if name else None
        if isinstance(value, np.ndarray) and value.shape == (rank,):
            overrides[name] = value[order]
    return operation, overrides


_Turn = Callable[[Layers, OnnxOperation, Map], tuple[OnnxOperation, Overrides]]

_TURNED: Mapping[str, _Turn] = {
    **dict.fromkeys(SAME_SIDES, _plain),
    **dict.fromkeys(NAMES, _layout),
    **dict.fromkeys(OF_CHANNELS, _broadcast),
    **dict.fromkeys(AXIS, _of_axis),
    "Gather": _gather,
    "Pad": _pad,
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceSum"), _mean),
    "Resize": _resize,
    "Slice": _slice,
    "Upsample": _resize,
}


# --- operators that move the channels to the front, or read the last side in their own way ---------------------------


def _transpose(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read a Transpose of a channels-last map that moves the channels to the front, or that changes nothing."""
    source = _source(layers, operation)
    rank = len(source.shape)
    order = operation.integers("perm", tuple(reversed(range(rank))))
    if order == tuple(range(rank)):
        return layers.with_values(operation, source)
    brings = order == to_first(rank) and rank > 2
    require(brings, ChoiceError("perm of a map with its channels last", order, (to_first(rank), tuple(range(rank)))))
    return layers.with_values(operation, first_of(source))


def _view(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read Flatten, Reshape, Squeeze or Unsqueeze of a channels-last map: channels stay last, or it is flattened."""
    source = _source(layers, operation)
    shape = shapes.VIEWS[operation.kind](layers, operation, source.shape)
    shapes.check_view(source.shape, shape)
    node = layers.nodes[source.node].shape
    mixed, has_channels = 1 < node.channels < node.values, len(shape) > 2 and shape[-1] == node.channels
    fits = has_channels or len(shape) == 2 or not mixed
    required = f"the channels of {source.shape} last, or all values in one row"
    require(fits, ShapeError("its output", shape, required))
    last = mixed or (has_channels and node.channels > 1)
    return layers.with_values(operation, replace(source, shape=shape, last=last))


def _matrix(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read MatMul or Gemm of a channels-last map, which multiplies each position's channels or all flattened values."""
    source, matrix = _source(layers, operation), layers.constant(operation, 1)
    require(matrix.ndim == 2, ShapeError("the matrix", matrix.shape, "two sides"))
    if len(source.shape) > 2:
        return _pointwise(layers, operation, source, matrix)
    shape, turned = layers.nodes[source.node].shape, bool(operation.integer("transB", 0))
    rows = matrix.T if turned else matrix
    require(len(rows) == shape.values, MismatchError("the number of rows of the matrix", len(rows), shape.values))
    grid = rows.reshape(shape.height, shape.width, shape.channels, -1)
    rows = grid.transpose(2, 0, 1, 3).reshape(matrix.T.shape if turned else matrix.shape)
    overrides: Overrides = {operation.inputs[0]: first_of(source), operation.inputs[1]: rows.T if turned else rows}
    layers = layers.with_bytes_spent(matrix.nbytes)
    result = dense(replace(layers, values={**layers.values, **overrides}), operation)
    return _turned_back(layers, result, operation, overrides, None)


def _pointwise(layers: Layers, operation: OnnxOperation, source: Map, matrix: Array) -> Layers:
    shape, weights = layers.nodes[source.node].shape, floats(matrix).T
    require(operation.kind == "MatMul", f"its input has {len(source.shape)} sides; {operation.kind} needs one row")
    fits = weights.shape[1] == shape.channels == source.shape[-1] and min(weights.shape) > 0
    required = f"a row for each channel, the last side of {source.shape}, and at least one column"
    require(fits, ShapeError("the matrix", matrix.shape, required))
    layers = layers.with_bytes_spent(4 * weights.size)
    kernel = np.ascontiguousarray(weights)[:, :, None, None]
    op = Convolution(kernel, np.zeros(len(kernel), np.float32), None, 1, Padding(), 1, "linear")
    larger = layers.with_node(operation, "conv", op, replace(shape, channels=len(kernel)), source.node)
    product = Map(len(layers.nodes), (*source.shape[:-1], len(kernel)), last=True)
    return larger.with_values(operation, product)


def _softmax(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read Softmax or LogSoftmax over the last side of a channels-last map."""
    source = _source(layers, operation)
    check_softmax(layers, operation, source.shape, len(source.shape) - 1)
    larger = softmax_of(layers, operation, first_of(source))
    return larger.with_values(operation, replace(source, node=len(layers.nodes)))


_OWN: Mapping[str, Builder] = {
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), _view),
    **dict.fromkeys(("Gemm", "MatMul"), _matrix),
    **dict.fromkeys(SOFTMAXES, _softmax),
    "Transpose": _transpose,
}
