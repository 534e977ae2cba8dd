"""Operators that compute: a function each, from the network so far and an operation to the network with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from cnn.limits import MAX_KERNEL
from cnn.network import (
    Add,
    AveragePool,
    BatchNorm,
    Convolution,
    Dense,
    FloatArray,
    MaxPool,
    Shape,
    Softmax,
)
from cnn.onnx import shapes
from cnn.onnx.activations import ACTIVATIONS, activation, gated
from cnn.onnx.graph import Array, Operation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map, bare_convolution
from cnn.onnx.quantised.linear import dequantise, quantise
from cnn.onnx.windows import slid

LAST_AXIS_OPSET = 13
"""From this opset on a Softmax without an axis is over the last one; before, over all but the first."""

Builder: TypeAlias = Callable[[Layers, Operation], Layers]


def convolution(layers: Layers, operation: Operation) -> Layers:
    """Conv, with what was padded before it."""
    source = layers.padded(operation)
    channels = layers.shape_of(replace(source, padding=NO_PADDING)).channels
    weights = _floats(layers.constant(operation, 1))
    require(weights.ndim == 4, f"weights have four sides, not {weights.ndim}")
    filters, each, *window = weights.shape
    groups = operation.integer("group", 1)
    fits = groups >= 1 and filters % groups == 0 and each * groups == channels
    require(
        fits and min(weights.shape) >= 1, f"{groups} groups of {each} channels do not fit {channels}, {filters} filters"
    )
    weights = _dilated(weights, operation.integers("dilations", (1, 1)))
    window = list(weights.shape[2:])
    require(max(window) <= MAX_KERNEL, f"a window has at most {MAX_KERNEL} rows and columns, not {window}")
    shape, padding, stride = slid(layers, operation, source, window)
    bias = _floats(layers.constant(operation, 2)) if layers.optional(operation, 2) is not None else np.zeros(filters)
    require(bias.shape == (filters,), f"there must be {filters} biases, not {bias.shape}")
    op = Convolution(weights, _floats(bias), None, stride, padding, groups, "linear")
    return layers.grown(operation, "conv", op, replace(shape, channels=filters), source.node)


def _dilated(weights: FloatArray, dilations: tuple[int, ...]) -> FloatArray:
    """The same window with zeros where a dilated one skips rows and columns."""
    require(len(dilations) == 2 and min(dilations) >= 1, f"dilations are two, 1 or more, not {dilations}")
    if dilations == (1, 1):
        return weights
    *outer, height, width = weights.shape
    sides = [(side - 1) * step + 1 for side, step in zip((height, width), dilations, strict=True)]
    require(max(sides) <= MAX_KERNEL, f"a dilated window has at most {MAX_KERNEL} rows and columns, not {sides}")
    larger = np.zeros((*outer, *sides), np.float32)
    larger[:, :, :: dilations[0], :: dilations[1]] = weights
    return larger


def dense(layers: Layers, operation: Operation) -> Layers:
    """Gemm and MatMul of one row with a constant matrix."""
    source = layers.map(operation)
    values = layers.nodes[source.node].shape.values
    matrix, bias = _floats(layers.constant(operation, 1)), np.zeros(1, np.float32)
    require(matrix.ndim == 2, f"the matrix has two sides, not {matrix.ndim}")
    if operation.kind == "Gemm":
        require(not operation.integer("transA", 0), "the picture's side is not transposed (transA 0)")
        matrix = matrix.T if operation.integer("transB", 0) else matrix
        matrix = matrix * np.float32(operation.number("alpha", 1.0))
        if layers.optional(operation, 2) is not None:
            bias = _floats(layers.constant(operation, 2)) * np.float32(operation.number("beta", 1.0))
    inputs, outputs = matrix.shape
    require(
        source.shape == (1, inputs) and inputs == values,
        f"a matrix of {inputs} rows multiplies {inputs} values in one row, not {source.shape}",
    )
    op = Dense(np.ascontiguousarray(matrix.T), _broadcast(bias, outputs), None, "linear")
    larger = layers.grown(operation, "dense", op, Shape(outputs, 1, 1), source.node)
    return larger.with_values(operation, Map(len(layers.nodes), (1, outputs)))


def batch_norm(layers: Layers, operation: Operation) -> Layers:
    """BatchNormalization, into the layer before it, or as a 1×1 convolution of each channel by itself."""
    require(not operation.integer("training_mode", 0), "it must be exported for inference (training_mode 0)")
    scale, bias, mean, variance = (_floats(layers.constant(operation, position)) for position in range(1, 5))
    epsilon = operation.number("epsilon", 1e-5)
    require(float(variance.min(initial=0)) >= 0 and epsilon > 0, "variances and epsilon must not be below 0")
    source = layers.map(operation)
    channels = layers.nodes[source.node].shape.channels
    fits = {numbers.shape for numbers in (scale, bias, mean, variance)} == {(channels,)}
    require(fits, f"scale, bias, mean and variance must be {channels} numbers each, one for each channel")
    gain = _floats(scale / np.sqrt(variance.astype(np.float64) + epsilon))
    op = _open(layers, operation, source)
    if op is not None and op.batch_norm is None and op.bias.shape == mean.shape:
        norm = BatchNorm(scale, mean - op.bias, variance, epsilon)
        return layers.changed(operation, source, replace(op, batch_norm=norm, bias=bias))
    return affine(layers, operation, source, gain, bias - mean * gain)


def affine(layers: Layers, operation: Operation, source: Map, gain: FloatArray, offset: FloatArray) -> Layers:
    """y = gain · x + offset of each channel: in the layer before where it can be, else a 1×1 convolution."""
    channels = layers.nodes[source.node].shape.channels
    gain, offset = _broadcast(gain, channels), _broadcast(offset, channels)
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
    if isinstance(first, np.ndarray):
        require(operation.kind in ("Add", "Mul"), "the constant must be the second input")
        operation = replace(operation, inputs=(operation.inputs[1], operation.inputs[0]))
    source = layers.map(operation)
    number = _for_channels(layers.constant(operation, 1), source)
    unit, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    if operation.kind in ("Add", "Sub"):
        return affine(layers, operation, source, unit, number if operation.kind == "Add" else -number)
    require(operation.kind == "Mul" or bool(np.all(number != 0)), "a divisor is 0")
    return affine(layers, operation, source, number if operation.kind == "Mul" else np.reciprocal(number), zero)


def _joined(layers: Layers, operation: Operation) -> Layers:
    if operation.kind == "Mul":
        return gated(layers, operation)
    require(operation.kind == "Add", f"{operation.kind} of two maps is no layer; a map and a constant would do")
    (first, shape), (second, second_shape) = (layers.picture(operation, position) for position in (0, 1))
    require(shape == second_shape, f"maps of one shape are added, not {shape} and {second_shape}")
    return layers.grown(operation, "add", Add("linear"), shape, first.node, second.node)


def _for_channels(array: Array, source: Map) -> FloatArray:
    """One number, or one a channel."""
    values, rank = _floats(array), len(source.shape)
    sides = (1,) * (rank - values.ndim) + values.shape
    require(
        len(sides) == rank and all(side == 1 for axis, side in enumerate(sides) if axis != 1),
        f"a constant is one number, or one for each channel, not {values.shape} to {source.shape}",
    )
    return values.reshape(-1)


def max_pool(layers: Layers, operation: Operation) -> Layers:
    """MaxPool of square windows."""
    source, _ = layers.picture(operation)
    require(
        len(operation.outputs) < 2 or not layers.readers[operation.outputs[1]], "where the greatest was is not told"
    )
    return _pooled(layers, operation, source, operation.integers("kernel_shape", ()))


def _pooled(layers: Layers, operation: Operation, source: Map, window: tuple[int, ...]) -> Layers:
    require(set(operation.integers("dilations", (1,))) == {1}, "a pool's dilations must be 1")
    require(len(window) == 2 and window[0] == window[1] <= MAX_KERNEL, f"a pool's window is square, not {window}")
    shape, padding, stride = slid(layers, operation, source, window)
    widest = max(padding.top, padding.left, padding.bottom, padding.right)
    require(widest < window[0], f"padding of {widest} would put a whole window outside the map")
    return layers.grown(operation, "pool", MaxPool(window[0], stride, padding), shape, source.node)


def global_max(layers: Layers, operation: Operation) -> Layers:
    """GlobalMaxPool of a square map."""
    source, shape = layers.picture(operation)
    return _pooled(layers, operation, source, (shape.height, shape.width))


def average_pool(layers: Layers, operation: Operation) -> Layers:
    """AveragePool: over the whole map; of windows of one value, which changes nothing; of other windows a convolution
    of every channel by itself, all of whose weights are 1 / places."""
    source, shape = layers.picture(operation)
    window, padded = operation.integers("kernel_shape", ()), any(operation.integers("pads", (0,)))
    if window == (1, 1) == operation.integers("strides", (1, 1)) and not padded:
        return layers.with_values(operation, source)
    padded = padded or operation.text("auto_pad", "NOTSET").startswith("SAME")
    if window == (shape.height, shape.width) and not padded:
        return _averaged(layers, operation, source, True)
    require(set(operation.integers("dilations", (1,))) == {1}, "a pool's dilations must be 1")
    require(len(window) == 2 and 1 <= min(window) <= max(window) <= MAX_KERNEL, f"a pool has a window, not {window}")
    require(
        bool(operation.integer("count_include_pad", 0)) or not padded,
        "an average with padding counts it (count_include_pad 1), so that it is one factor everywhere",
    )
    require(not operation.integer("ceil_mode", 0), "an average's windows lie within the padded map (ceil_mode 0)")
    averaged, padding, stride = slid(layers, operation, source, window)
    weights = np.full((shape.channels, 1, *window), 1 / (window[0] * window[1]), np.float32)
    bias = np.zeros(shape.channels, np.float32)
    op = Convolution(weights, bias, None, stride, padding, shape.channels, "linear")
    return layers.grown(operation, "average", op, averaged, source.node)


def global_average(layers: Layers, operation: Operation) -> Layers:
    """GlobalAveragePool."""
    return _averaged(layers, operation, layers.picture(operation)[0], True)


def mean(layers: Layers, operation: Operation) -> Layers:
    """ReduceMean over height and width."""
    source, _ = layers.picture(operation)
    axes = shapes.integers(layers, operation, "axes", 1) or ()
    require(sorted(axis % 4 for axis in axes) == [2, 3], f"a mean is taken over height and width, not over axes {axes}")
    return _averaged(layers, operation, source, bool(operation.integer("keepdims", 1)))


def _averaged(layers: Layers, operation: Operation, source: Map, keep: bool) -> Layers:
    channels = layers.nodes[source.node].shape.channels
    larger = layers.grown(operation, "average", AveragePool(), Shape(channels, 1, 1), source.node)
    return larger if keep else larger.with_values(operation, Map(len(layers.nodes), (1, channels)))


def softmax(layers: Layers, operation: Operation) -> Layers:
    """Softmax over all channels of one position."""
    source = layers.map(operation)
    shape = layers.nodes[source.node].shape
    axis = operation.integer("axis", -1 if layers.opset >= LAST_AXIS_OPSET else 1) % len(source.shape)
    require(axis == 1 and shape.height == shape.width == 1, f"it is over the channels of one position, not of {shape}")
    return layers.grown(operation, "softmax", Softmax(), shape, source.node).with_values(
        operation, Map(len(layers.nodes), source.shape)
    )


def _floats(array: Array) -> FloatArray:
    values = np.asarray(array, dtype=np.float32)
    require(bool(np.isfinite(values).all()), "its numbers are not all finite")
    return values


def _broadcast(values: FloatArray, count: int) -> FloatArray:
    flat = values.reshape(-1)
    require(flat.size in (1, count), f"there must be one number or {count}, not {flat.size}")
    return np.array(np.broadcast_to(flat, (count,)))


BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(ACTIVATIONS, activation),
    "Add": arithmetic,
    "AveragePool": average_pool,
    "BatchNormalization": batch_norm,
    "Cast": shapes.renamed,
    "Concat": shapes.concat,
    "Conv": convolution,
    "DequantizeLinear": dequantise,
    "Div": arithmetic,
    "Dropout": shapes.renamed,
    "Flatten": shapes.viewed,
    "Gemm": dense,
    "GlobalAveragePool": global_average,
    "GlobalMaxPool": global_max,
    "Identity": shapes.renamed,
    "MatMul": dense,
    "MaxPool": max_pool,
    "Mul": arithmetic,
    "Pad": shapes.padded,
    "QuantizeLinear": quantise,
    "ReduceMean": mean,
    "Reshape": shapes.viewed,
    "Resize": shapes.resize,
    "Slice": shapes.slices,
    "Softmax": softmax,
    "SpaceToDepth": shapes.space_to_depth,
    "Split": shapes.split,
    "Squeeze": shapes.viewed,
    "Sub": arithmetic,
    "Transpose": shapes.transposed,
    "Unsqueeze": shapes.viewed,
    "Upsample": shapes.resize,
}
