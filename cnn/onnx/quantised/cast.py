"""Cast: a tensor keeps its values between float types. The floats of an input of integers are 0…255, not 0…1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import ChoiceError
from cnn.onnx.graph import OnnxOperation, require
from cnn.onnx.layers import Layers, Map, bare_convolution
from cnn.ops import TopK

TYPES = (
    *("UNDEFINED", "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16"),
    *("DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"),
)
"""The types as onnx numbers them (TensorProto.DataType), without the later types of 4 and 8 bits."""

FLOATS = frozenset({"BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16"})
"""Types that hold the output of a layer."""

MOVES = frozenset(
    {
        *("Concat", "DepthToSpace", "Dropout", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Shape", "Slice"),
        *("SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze"),
    }
)
"""Operators that do not change integers."""

READERS = frozenset({"Cast", "ConvInteger", "DequantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul"}) | {
    f"com.microsoft.{kind}"
    for kind in ("QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearMul")
}
"""Operators that give the input's integers a scale."""


def check_reader(layers: Layers, operation: OnnxOperation) -> bool:
    """Return whether the operation passes the network's integer input on; RefusedError if it computes with it.

    Raises:
        RefusedError: The operation computes with these integers.
    """
    values = [layers.value(name) for name in operation.inputs if name]
    if not any(isinstance(value, Map) and value.integers for value in values):
        return False
    puts_zeros = operation.kind == "Pad" and operation.text("mode", "constant") == "constant"
    moves = (operation.kind in MOVES or operation.kind == "Pad") and not (puts_zeros and layers.lowest != 0)
    require(
        moves or operation.kind in READERS,
        "it computes with the integers of the input; a Cast or DequantizeLinear must be before it",
    )
    return moves or (operation.kind == "Cast" and _kind(operation) not in FLOATS)


def with_integers(layers: Layers, operation: OnnxOperation, holds: bool) -> Layers:
    """Return the network with the operation's outputs marked as integers of the network's input, or as floats."""
    maps = {name: value for name in operation.outputs if isinstance(value := layers.values.get(name), Map)}
    changed = {name: replace(value, integers=holds) for name, value in maps.items()}
    return replace(layers, values={**layers.values, **changed})


def cast(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Cast: its output is its input under another name; pixels of an integer input get a 1×1 convolution.

    A Cast of the input's integers to floats becomes a 1×1 convolution that gives the integers' values.
    """
    source, kind = layers.padded(operation), _kind(operation)
    node = layers.nodes[source.node]
    keeps = kind in FLOATS or source.integers or (isinstance(node.op, TopK) and node.op.labels)
    require(keeps, ChoiceError("the type of a Cast of floats", kind, tuple(sorted(FLOATS))))
    if kind not in FLOATS or not source.integers:
        return layers.with_values(operation, source)
    channels, index = node.shape.channels, len(layers.nodes)
    op = bare_convolution(np.full(channels, 255, np.float32), channels)
    op = replace(op, bias=np.full(channels, layers.lowest, np.float32))
    larger = layers.with_node(operation, "conv", op, node.shape, source.node)
    return larger.with_values(operation, replace(source, node=index))


def is_of_floats(operation: OnnxOperation) -> bool:
    """Return whether a Cast's output type is a float type."""
    return _kind(operation) in FLOATS


def _kind(operation: OnnxOperation) -> str:
    number = operation.integer("to", 0)
    return TYPES[number] if 0 <= number < len(TYPES) else f"type {number}"
