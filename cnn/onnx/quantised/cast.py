"""Cast: between floats a tensor keeps its values. Of a file whose input holds integers, floats are 0…255, not 0…1."""

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
"""onnx's own (TensorProto.DataType), but for those of 4 and 8 bits that came later."""

FLOATS = frozenset({"BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16"})
"""Types that hold what a layer gives."""

MOVES = frozenset(
    {
        *("Concat", "DepthToSpace", "Dropout", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Shape", "Slice"),
        *("SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze"),
    }
)
"""What leaves integers as they are."""

READERS = frozenset({"Cast", "ConvInteger", "DequantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul"}) | {
    f"com.microsoft.{kind}"
    for kind in ("QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearMul")
}
"""What gives integers their numbers."""


def check_reader(layers: Layers, operation: OnnxOperation) -> bool:
    """Return whether it reads integers of the input and leaves them such; RefusedError if it computes with them."""
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
    """The operation's outputs hold integers of the input, or floats."""
    maps = {name: value for name in operation.outputs if isinstance(value := layers.values.get(name), Map)}
    changed = {name: replace(value, integers=holds) for name, value in maps.items()}
    return replace(layers, values={**layers.values, **changed})


def cast(layers: Layers, operation: OnnxOperation) -> Layers:
    """The tensor under another name; of integers of the input a 1×1 convolution that gives their numbers."""
    source, kind = layers.padded(operation), _kind(operation)
    node = layers.nodes[source.node]
    keeps = kind in FLOATS or source.integers or (isinstance(node.op, TopK) and node.op.labels)
    require(keeps, ChoiceError("the type of a Cast of floats", kind, tuple(sorted(FLOATS))))
    if kind not in FLOATS or not source.integers:
        return layers.with_values(operation, source)
    channels, index = node.shape.channels, len(layers.nodes)
    op = bare_convolution(np.full(channels, 255, np.float32), channels)
    op = replace(op, bias=np.full(channels, layers.lowest, np.float32))
    larger = layers.grown(operation, "conv", op, node.shape, source.node)
    return larger.with_values(operation, replace(source, node=index))


def is_of_floats(operation: OnnxOperation) -> bool:
    """Return whether the Cast gives floats."""
    return _kind(operation) in FLOATS


def _kind(operation: OnnxOperation) -> str:
    number = operation.integer("to", 0)
    return TYPES[number] if 0 <= number < len(TYPES) else f"type {number}"
