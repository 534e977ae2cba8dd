"""Write the operations of keras.ops, with which a model computes outside of layers: x * 2 + y, keras.ops.relu(x)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from boards.errors import ChoiceError, InvalidValueError, ShapeError
from cnn.keras.layers import GraphWriter, applied
from cnn.onnx.graph import require

_OF_TWO = {
    "Add": "Add",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Divide": "Div",
    "TrueDivide": "Div",
    "Maximum": "Max",
    "Minimum": "Min",
}
_OF_ONE = {"Absolute": "Abs", "Exp": "Exp", "Negative": "Neg", "Sqrt": "Sqrt"}
_REDUCED = {"Max": "ReduceMax", "Mean": "ReduceMean", "Sum": "ReduceSum"}
_FUNCTIONS = frozenset(
    {
        *("Relu", "Relu6", "Sigmoid", "Silu", "Tanh", "Softplus", "Softsign", "HardSigmoid", "HardSilu", "HardTanh"),
        *("Selu",),
    }
)
"""Operations without parameters that layers have as activations too."""

HOME = "keras.src.ops."
"""The package with the classes of these operations."""


def operation(graph: GraphWriter, node: Any, names: Mapping[int, str]) -> str:
    """Write one use of a keras.ops operation as ONNX operators and return its output; ChoiceError if unknown.

    names: The names of the tensors in the file, by the id of Keras's tensor.
    """
    op, kind = node.operation, type(node.operation).__name__
    if kind in _OF_TWO:
        count = len(node.arguments.args)
        require(count == 2, ShapeError("its operands", f"{count} values", "two tensors, or one and a constant"))
        inputs = [_operand(graph, value, node, names) for value in node.arguments.args]
        return graph.put(_OF_TWO[kind], inputs, op.name)
    source = names[id(node.input_tensors[0])]
    if kind in _OF_ONE:
        return graph.put(_OF_ONE[kind], [source], op.name)
    if kind in _FUNCTIONS:
        return applied(graph, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower(), source, op.name)
    if kind in _REDUCED:
        return _reduced(graph, node, source)
    kinds = sorted({*_OF_TWO, *_OF_ONE, *_REDUCED, *_FUNCTIONS})
    raise ChoiceError("an operation outside of layers", kind, kinds, remedy="use a layer for it")


def _reduced(graph: GraphWriter, node: Any, source: str) -> str:
    """Write a keras.ops maximum, mean or sum over some axes as ONNX operators and return its output.

    The axes must stay as sides of 1, or be all axes except the batch and the channels, because the order of the axes
    would differ from Keras's otherwise.
    """
    op, rank = node.operation, len(node.input_tensors[0].shape)
    axis = range(1, rank) if op.axis is None else op.axis if isinstance(op.axis, (list, tuple)) else [op.axis]
    reduced = {position % rank for position in axis}
    fits = 0 not in reduced and (op.keepdims or reduced == {*range(1, rank - 1)})
    required = "all axes but the channels, or any axes with keepdims=True, without the batch"
    require(fits, InvalidValueError("its axis", op.axis, required))
    axes = [1 if position == rank - 1 else position + 1 for position in sorted(reduced)]
    keep = int(bool(op.keepdims))
    return graph.put(_REDUCED[type(op).__name__], [source, graph.constant(axes, np.int64)], op.name, keepdims=keep)


def _operand(graph: GraphWriter, value: Any, node: Any, names: Mapping[int, str]) -> str:
    """Return the ONNX tensor of a keras.ops operand: a tensor of the model, or a constant (one or per channel)."""
    if id(value) in names:
        return names[id(value)]
    rank = len(node.input_tensors[0].shape)
    try:
        numbers = np.asarray(value, np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        required = "a tensor of the model, a number, or one number for each channel"
        raise InvalidValueError("its other operand", type(value).__name__, required) from error
    require(numbers.ndim <= 1, ShapeError("its constant", numbers.shape, "one number, or one for each channel"))
    return graph.constant(numbers.reshape(-1, *(1,) * (rank - 2)) if numbers.ndim else numbers)
