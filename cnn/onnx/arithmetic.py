"""Operators that add and multiply: batch norms, a map and constants of its channels, maps and maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import listed
from cnn.network import Add, BatchNorm, Convolution, Dense, FloatArray
from cnn.onnx.activations import activation, gated
from cnn.onnx.graph import Array, Operation, require
from cnn.onnx.layers import Layers, Map, bare_convolution


def batch_norm(layers: Layers, operation: Operation) -> Layers:
    """BatchNormalization, into the layer before it, or as a 1×1 convolution of each channel by itself."""
    require(not operation.integer("training_mode", 0), "it must be exported for inference (training_mode 0)")
    scale, bias, mean, variance = (floats(layers.constant(operation, position)) for position in range(1, 5))
    epsilon = operation.number("epsilon", 1e-5)
    require(float(variance.min(initial=0)) >= 0 and epsilon > 0, "variances and epsilon must not be below 0")
    source = layers.map(operation)
    channels = layers.nodes[source.node].shape.channels
    fits = {numbers.shape for numbers in (scale, bias, mean, variance)} == {(channels,)}
    require(fits, f"scale, bias, mean and variance must be {channels} numbers each, one for each channel")
    gain = floats(scale / np.sqrt(variance.astype(np.float64) + epsilon))
    op = _open(layers, operation, source)
    if op is not None and op.batch_norm is None and op.bias.shape == mean.shape:
        norm = BatchNorm(scale, mean - op.bias, variance, epsilon)
        return layers.changed(operation, source, replace(op, batch_norm=norm, bias=bias))
    return affine(layers, operation, source, gain, bias - mean * gain)


def affine(layers: Layers, operation: Operation, source: Map, gain: FloatArray, offset: FloatArray) -> Layers:
    """y = gain · x + offset of each channel: in the layer before where it can be, else a 1×1 convolution."""
    channels = layers.nodes[source.node].shape.channels
    gain, offset = broadcast(gain, channels), broadcast(offset, channels)
    op = _open(layers, operation, source)
    if op is None:
        shape = layers.shape_of(source)
        pointwise = replace(bare_convolution(gain, channels), bias=offset)
        return layers.grown(operation, "conv", pointwise, shape, source.node)
    norm = op.batch_norm
    if (
        norm is None and layers.mark(source.node).scale is not None
    ):  # its weights are whole numbers of a scale, and stay so
        unit = np.ones(channels, np.float32)
        norm = BatchNorm(unit, np.zeros(channels, np.float32) - op.bias, unit, 0.0)
        op = replace(op, batch_norm=norm, bias=np.zeros(channels, np.float32))
    if norm is None:
        layers = layers.worked_out(op.weights.nbytes)
        weights = op.weights * gain.reshape(-1, *(1,) * (op.weights.ndim - 1))
    else:
        weights, norm = op.weights, replace(norm, scale=norm.scale * gain)
    return layers.changed(
        operation, source, replace(op, weights=weights, batch_norm=norm, bias=op.bias * gain + offset)
    )


def _open(layers: Layers, operation: Operation, source: Map) -> Convolution | Dense | None:
    """The layer before, where it may take in what comes behind its sums."""
    op = layers.nodes[source.node].op
    if isinstance(op, (Convolution, Dense)) and op.activation == "linear" and layers.alone(operation):
        return op
    return None


def arithmetic(layers: Layers, operation: Operation) -> Layers:
    """Add, Sub, Mul, Div of a map and a constant for all or for each channel; of two maps Add, and Mul as a gate."""
    first, second = (layers.optional(operation, position) for position in (0, 1))
    if isinstance(first, Map) and isinstance(second, Map):
        return _joined(layers, operation)
    behind = isinstance(first, np.ndarray)
    if behind:
        require(operation.kind != "Div", "the constant must be the second input")
        operation = replace(operation, inputs=(operation.inputs[1], operation.inputs[0]))
    source = layers.map(operation)
    number = _for_channels(layers.constant(operation, 1), source)
    unit, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    if operation.kind == "Sub" and behind:
        return affine(layers, operation, source, -unit, number)
    if operation.kind in ("Add", "Sub"):
        return affine(layers, operation, source, unit, number if operation.kind == "Add" else -number)
    require(operation.kind == "Mul" or bool(np.all(number != 0)), "a divisor is 0")
    return affine(layers, operation, source, number if operation.kind == "Mul" else np.reciprocal(number), zero)


def _joined(layers: Layers, operation: Operation) -> Layers:
    if operation.kind == "Mul":
        return gated(layers, operation)
    require(operation.kind != "Div", "Div of two maps is no layer; a map and a constant would do")
    first, second = _maps_of_one_shape(layers, operation)
    bare = replace(operation, inputs=operation.inputs[:1])
    if operation.kind == "Sub":
        layers, second = _negative(layers, bare, second)
    return _sum(layers, bare, first, second)


def _maps_of_one_shape(layers: Layers, operation: Operation) -> list[int]:
    """The nodes that the operation reads."""
    maps = [layers.picture(operation, position) for position in range(len(operation.inputs))]
    shapes = {(shape, source.shape) for source, shape in maps}
    require(len(shapes) == 1, f"maps of one shape are joined by {operation.kind}, not {listed(s for _, s in maps)}")
    composed = operation.kind not in ("Add", "Sum") and any(layers.type_of(source.node) for source, _ in maps)
    require(not composed, f"{operation.kind} of quantised maps is no layer; Add, and a function of one map, are")
    return [source.node for source, _ in maps]


def _negative(layers: Layers, operation: Operation, index: int) -> tuple[Layers, int]:
    """−x, a convolution of each channel by itself; its node."""
    shape = layers.nodes[index].shape
    op = bare_convolution(np.full(shape.channels, -1, np.float32), shape.channels)
    return layers.grown(operation, "conv", op, shape, index), len(layers.nodes)


def _sum(layers: Layers, operation: Operation, first: int, second: int, activation: str = "linear") -> Layers:
    return layers.grown(operation, "add", Add(activation), layers.nodes[first].shape, first, second)


def total(layers: Layers, operation: Operation) -> Layers:
    """Sum: map by map."""
    first, *others = _maps_of_one_shape(layers, operation)
    if not others:
        return layers.with_values(operation, layers.map(operation))
    bare = replace(operation, inputs=operation.inputs[:1])
    for index in others:
        layers, first = _sum(layers, bare, first, index), len(layers.nodes)
    return layers


def extreme(layers: Layers, operation: Operation) -> Layers:
    """Max and Min: of a map and a number a cut, of two maps a and b max = a + relu(b − a), min = a − relu(a − b)."""
    constants = [i for i in range(len(operation.inputs)) if isinstance(layers.optional(operation, i), np.ndarray)]
    if constants:
        require(len(constants) == 1 and len(operation.inputs) == 2, "it is of maps, or of a map and one number")
        number = layers.scalar(operation, constants[0])
        ends = {"min": number} if operation.kind == "Max" else {"max": number}
        source = operation.inputs[1 - constants[0]]
        return activation(layers, replace(operation, kind="Clip", inputs=(source,), attributes=ends))
    first, *others = _maps_of_one_shape(layers, operation)
    bare = replace(operation, inputs=operation.inputs[:1])
    layers = layers.with_values(operation, layers.map(operation))
    for index in others:
        great, small = (index, first) if operation.kind == "Max" else (first, index)
        layers, minus = _negative(layers, bare, small)
        layers, beyond = _sum(layers, bare, great, minus, "relu"), len(layers.nodes)
        if operation.kind == "Min":
            layers, beyond = _negative(layers, bare, beyond)
        layers, first = _sum(layers, bare, first, beyond), len(layers.nodes)
    return layers


def negated(layers: Layers, operation: Operation) -> Layers:
    """Neg."""
    minus, zero = np.full(1, -1, np.float32), np.zeros(1, np.float32)
    return affine(layers, operation, layers.map(operation), minus, zero)


def sloped(layers: Layers, operation: Operation) -> Layers:
    """PRelu: of one slope a function, of one for each channel slope · x + relu((1 − slope) · x)."""
    if layers.constant(operation, 1).size == 1:
        return activation(layers, operation)
    source, shape = layers.picture(operation)
    require(layers.type_of(source.node) is None, "of a quantised map there is one slope for all channels")
    slopes = broadcast(_for_channels(layers.constant(operation, 1), source), shape.channels)
    require(float(slopes.max()) <= 1, f"slopes of channels are at most 1, not {slopes.max():g}")
    bare, index = replace(operation, inputs=operation.inputs[:1]), len(layers.nodes)
    plain = bare_convolution(slopes, shape.channels)
    beyond = replace(bare_convolution(1 - slopes, shape.channels), activation="relu")
    for op in (plain, beyond):
        layers = layers.grown(bare, "conv", op, shape, source.node)
    return _sum(layers, bare, index, index + 1)


def _for_channels(array: Array, source: Map) -> FloatArray:
    """One number, or one a channel."""
    values, rank = floats(array), len(source.shape)
    sides = (1,) * (rank - values.ndim) + values.shape
    require(
        len(sides) == rank and all(side == 1 for axis, side in enumerate(sides) if axis != 1),
        f"a constant is one number, or one for each channel, not {values.shape} to {source.shape}",
    )
    return values.reshape(-1)


def floats(array: Array) -> FloatArray:
    """float32; RefusedError where a number is not finite."""
    values = np.asarray(array, dtype=np.float32)
    require(bool(np.isfinite(values).all()), "its numbers are not all finite")
    return values


def broadcast(values: FloatArray, count: int) -> FloatArray:
    """[count], of as many numbers or one; RefusedError where there are others."""
    flat = values.reshape(-1)
    require(flat.size in (1, count), f"there must be one number or {count}, not {flat.size}")
    return np.array(np.broadcast_to(flat, (count,)))
