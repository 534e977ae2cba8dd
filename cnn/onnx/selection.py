"""Read ArgMax and TopK at the end of a network, which select the most probable classes."""

from __future__ import annotations

from dataclasses import replace

from boards.errors import InvalidValueError, RangeError, ShapeError
from cnn.onnx.graph import OnnxOperation, require, whole_numbers
from cnn.onnx.layers import Layers, Map
from cnn.ops import Softmax, TopK

FIRST_INPUT_OPSET = 10
"""The first opset in which the k of a TopK is an input; before, it is an attribute."""


def arg_max(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX ArgMax over the channels: append a layer for the first channel with the greatest value."""
    require(
        not operation.integer("select_last_index", 0), "the first of equal values is selected; set select_last_index 0"
    )
    source = layers.map(operation)
    _check_axis(operation, source, 0)
    larger = _grown(layers, operation, _before_softmax(layers, source), TopK(1))
    keeps = operation.integer("keepdims", 1)
    sides = (1, *(1,) * bool(keeps), *source.shape[2:])
    return larger.with_values(operation, Map(len(layers.nodes), sides))


def top_k(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX TopK over the channels: append one layer for the values and one for the channel indices, if read."""
    require(bool(operation.integer("largest", 1)), "only the greatest values are selected; set largest 1")
    source = layers.map(operation)
    _check_axis(operation, source, -1)
    k, channels = _k(layers, operation), layers.nodes[source.node].shape.channels
    require(1 <= k <= channels, RangeError("k", k, 1, channels))
    values, labels = (*operation.outputs, "")[:2]
    sides, maps = (1, k, *source.shape[2:]), []
    # Softmax does not change the order, so it is left out unless something reads its values.
    plain = source if values and layers.readers[values] else _before_softmax(layers, source)
    for name, op in ((values, TopK(k, labels=False)), (labels, TopK(k))):
        index = len(layers.nodes)
        if name and layers.readers[name]:
            layers = _grown(layers, replace(operation, outputs=(name,)), plain, op)
        maps.append(Map(index, sides))
    return layers.with_values(operation, *maps)


def _k(layers: Layers, operation: OnnxOperation) -> int:
    if layers.opset < FIRST_INPUT_OPSET:
        return operation.integer("k", 0)
    numbers = whole_numbers(layers.constant(operation, 1))
    require(len(numbers) == 1, ShapeError("k", f"{len(numbers)} values", "one value"))
    return numbers[0]


def _check_axis(operation: OnnxOperation, source: Map, default: int) -> None:
    axis, rank = operation.integer("axis", default), len(source.shape)
    fits = rank >= 2 and axis in (1, 1 - rank)
    require(fits, InvalidValueError("its axis", axis, f"1, the channels of {source.shape}"))


def _before_softmax(layers: Layers, source: Map) -> Map:
    """Return the input of the softmax whose output ``source`` is, because softmax keeps the order; else ``source``."""
    node = layers.nodes[source.node]
    return replace(source, node=node.inputs[0]) if isinstance(node.op, Softmax) else source


def _grown(layers: Layers, operation: OnnxOperation, source: Map, op: TopK) -> Layers:
    shape = replace(layers.positions_of(source), channels=op.k)
    return layers.with_node(operation, "labels" if op.labels else "values", op, shape, source.node)
