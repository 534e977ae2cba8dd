"""Cast: between floats a tensor keeps its values. Of a file whose input holds integers, floats are 0…255, not 0…1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cnn.network import Input, TopK
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import Layers, bare_convolution

TYPES = (
    *("UNDEFINED", "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16"),
    *("DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"),
)
"""onnx's own (TensorProto.DataType), but for those of 4 and 8 bits that came later."""

FLOATS = frozenset({"BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16"})
"""Types that hold what a layer gives."""


def cast(layers: Layers, operation: Operation) -> Layers:
    """The tensor under another name; of integers of the input a 1×1 convolution that gives their numbers."""
    source, kind = layers.padded(operation), _kind(operation)
    node = layers.nodes[source.node]
    is_input, is_label = isinstance(node.op, Input), isinstance(node.op, TopK) and node.op.labels
    keeps = kind in FLOATS or is_label or (is_input and layers.lowest is not None)
    require(keeps, f"it cuts values off to {kind}; floats stay such: {', '.join(sorted(FLOATS))}")
    if kind not in FLOATS or layers.lowest is None or not is_input:
        return layers.with_values(operation, source)
    channels, index = node.shape.channels, len(layers.nodes)
    op = bare_convolution(np.full(channels, 255, np.float32), channels)
    op = replace(op, bias=np.full(channels, layers.lowest, np.float32))
    larger = layers.grown(operation, "conv", op, node.shape, source.node)
    return larger.with_values(operation, replace(source, node=index))


def _kind(operation: Operation) -> str:
    number = operation.integer("to", 0)
    return TYPES[number] if 0 <= number < len(TYPES) else f"type {number}"
