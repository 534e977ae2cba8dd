"""Operators that add and multiply: batch norms, a map and constants of its channels, maps and maps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from boards.errors import RangeError, ShapeError, listed
from cnn.datatype import INT16, DataType, TensorType
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.activations import activation, gated
from cnn.onnx.graph import Array, OnnxOperation, require
from cnn.onnx.layers import Layers, Map, bare_convolution
from cnn.onnx.quantised.linear import grown
from cnn.onnx.quantised.mark import Mark
from cnn.ops import Add, BatchNorm, Convolution, Dense, Multiply, Upsample

ROUNDED = np.float32(2.0**-22)
"""How far a factor of float32 is from 1 that two roundings made of it."""

FINEST = 127
"""The greatest integer that a weight of 8 bits may be."""


def batch_norm(layers: Layers, operation: OnnxOperation) -> Layers:
    """BatchNormalization, into the layer before it, or as a 1×1 convolution of each channel by itself."""
    require(not operation.integer("training_mode", 0), "its training_mode is 1; export the model for inference")
    scale, bias, mean, variance = (floats(layers.constant(operation, position)) for position in range(1, 5))
    epsilon = operation.number("epsilon", 1e-5)
    least = float(variance.min(initial=0))
    require(least >= 0, RangeError("a variance", least, low=0))
    require(epsilon > 0, RangeError("epsilon", epsilon, low=0, exclusive=True))
    source = layers.map(operation)
    channels = layers.nodes[source.node].shape.channels
    for what, numbers in (("scale", scale), ("bias", bias), ("mean", mean), ("variance", variance)):
        require(numbers.shape == (channels,), ShapeError(what, numbers.shape, (channels,)))
    gain = floats(scale / np.sqrt(variance.astype(np.float64) + epsilon))
    op = _open(layers, operation, source)
    if op is not None and op.batch_norm is None and op.bias.shape == mean.shape:
        norm = BatchNorm(scale, mean - op.bias, variance, epsilon)
        return layers.changed(operation, source, replace(op, batch_norm=norm, bias=bias))
    bare = replace(operation, inputs=operation.inputs[:1])  # the file's scale is that of no gain
    return affine(layers, bare, source, gain, bias - mean * gain)


def affine(layers: Layers, operation: OnnxOperation, source: Map, gain: FloatArray, offset: FloatArray) -> Layers:
    """y = gain · x + offset of each channel: in the layer before where it can be, else a 1×1 convolution."""
    node = layers.nodes[source.node].shape
    channels, is_number = node.channels, gain.size == offset.size == 1
    gain, offset = broadcast(gain, channels), broadcast(offset, channels)
    op = _open(layers, operation, source)
    if op is None:
        shape = node if is_number else layers.shape_of(source)  # a number is the same in every view
        pointwise, index = replace(bare_convolution(gain, channels), bias=offset), len(layers.nodes)
        larger = layers.grown(operation, "conv", pointwise, shape, source.node)
        larger = larger.with_values(operation, Map(index, source.shape, last=source.last)) if is_number else larger
        if layers.type_of(source.node) is None or larger.mark(index).scale is not None:
            return larger
        # Steps of the offset are those of a weight's 1: the finer, the nearer.
        return larger.marked(index, Mark(scale=np.where(gain == 0, np.float32(1), np.abs(gain)) / np.float32(FINEST)))
    norm = op.batch_norm
    # Weights that are whole numbers, of a scale or themselves, stay so.
    if norm is None and (layers.mark(source.node).scale is not None or _is_whole(layers, source.node)):
        unit = np.ones(channels, np.float32)
        norm = BatchNorm(unit, np.zeros(channels, np.float32) - op.bias, unit, 0.0)
        op = replace(op, batch_norm=norm, bias=np.zeros(channels, np.float32))
    if norm is None:
        layers = layers.worked_out(op.weights.nbytes)
        weights = op.weights * gain.reshape(-1, *(1,) * (op.weights.ndim - 1))
    else:
        weights, norm = op.weights, replace(norm, scale=norm.scale * gain)
    changed = replace(op, weights=weights, batch_norm=norm, bias=op.bias * gain + offset)
    if _changes_nothing(changed):  # a picture's integers, divided by 255
        return layers.with_values(operation, replace(source, node=layers.nodes[source.node].inputs[0]))
    return layers.changed(operation, source, changed)


def _is_whole(layers: Layers, index: int) -> bool:
    """Whether it reads integers, and its filters have several weights, whole numbers all of them: FINN's networks."""
    node = layers.nodes[index]
    weights = node.op.weights if isinstance(node.op, (Convolution, Dense)) else np.zeros((1, 1), np.float32)
    reads = layers.lowest is not None or layers.type_of(node.inputs[0]) is not None
    return reads and weights[0].size > 1 and bool((weights == np.rint(weights)).all())


def _changes_nothing(op: Convolution | Dense) -> bool:
    """Whether it is a factor of 1 for each channel, but for the rounding of a float, and nothing else."""
    if not isinstance(op, Convolution) or op.batch_norm is not None or op.weights.size != op.groups:
        return False
    plain = op.stride == 1 and op.padding == Padding() and op.activation == "linear"
    return plain and not op.bias.any() and bool((np.abs(op.weights - 1) <= ROUNDED).all())


def _open(layers: Layers, operation: OnnxOperation, source: Map) -> Convolution | Dense | None:
    """The layer before, where it may take in what comes behind its sums."""
    op = layers.nodes[source.node].op
    if isinstance(op, (Convolution, Dense)) and op.activation == "linear" and layers.alone(operation):
        return op
    return None


def arithmetic(layers: Layers, operation: OnnxOperation) -> Layers:
    """Add, Sub, Mul, Div of a map and a constant for all or for each channel; of two maps all but Div."""
    first, second = (layers.optional(operation, position) for position in (0, 1))
    if isinstance(first, Map) and isinstance(second, Map):
        return _joined(layers, operation)
    behind = isinstance(first, np.ndarray)
    if behind:
        require(operation.kind != "Div", "a constant is divided by a map; only a map can be divided by a constant")
        operation = replace(operation, inputs=(operation.inputs[1], operation.inputs[0]))
    source = layers.map(operation)
    number = _for_channels(layers.constant(operation, 1), source)
    unit, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    if operation.kind in ("Add", "Sub"):  # the scale of an offset is that of no weights
        operation = replace(operation, inputs=operation.inputs[:1])
    if operation.kind == "Sub" and behind:
        return affine(layers, operation, source, -unit, number)
    if operation.kind in ("Add", "Sub"):
        return affine(layers, operation, source, unit, number if operation.kind == "Add" else -number)
    require(operation.kind == "Mul" or bool(np.all(number != 0)), "it divides by 0")
    return affine(layers, operation, source, number if operation.kind == "Mul" else np.reciprocal(number), zero)


def _joined(layers: Layers, operation: OnnxOperation) -> Layers:
    require(operation.kind != "Div", "a map is divided by a map; only a map can be divided by a constant")
    function = gated(layers, operation) if operation.kind == "Mul" else None
    if function is not None:
        return function
    layers, (first, second) = _maps_of_one_shape(layers, operation)
    bare = replace(operation, inputs=operation.inputs[:1])
    if operation.kind == "Mul":
        return _product(layers, bare, first, second)
    if operation.kind == "Sub":
        layers, second = _negative(layers, bare, second)
    return _sum(layers, bare, first, second)


def _product(layers: Layers, operation: OnnxOperation, first: int, second: int) -> Layers:
    """Of integers with zero points tables take these off, a bit more holds what they leave."""
    factors = []
    for index in (first, second):
        type_ = layers.type_of(index)
        if type_ is not None and type_.zero_point:
            wider = TensorType(DataType(type_.datatype.bits + 1, True), type_.scale)
            layers, index = grown(layers, operation, _whole(layers, index), wider), len(layers.nodes)
        factors.append(index)
    return layers.grown(operation, "multiply", Multiply("linear"), layers.nodes[first].shape, *factors)


def _whole(layers: Layers, index: int) -> Map:
    shape = layers.nodes[index].shape
    return Map(index, (1, shape.channels, shape.height, shape.width))


def _maps_of_one_shape(layers: Layers, operation: OnnxOperation) -> tuple[Layers, list[int]]:
    """The nodes that the operation reads; of one value a channel, or of one channel, layers that repeat these."""
    maps = [layers.picture(operation, position) for position in range(len(operation.inputs))]
    shapes = [shape for _, shape in maps]
    sides = [max(sides) for sides in zip(*((s.channels, s.height, s.width) for s in shapes), strict=True)]
    joint = Shape(*sides)
    pixel, plane = replace(joint, height=1, width=1), replace(joint, channels=1)
    fits = len({len(source.shape) for source, _ in maps}) == 1 and {*shapes} <= {joint, pixel, plane}
    require(fits, ShapeError("its maps", listed(shapes), "one shape"))
    bare, indices = replace(operation, inputs=operation.inputs[:1]), []
    for (source, shape), name in zip(maps, operation.inputs, strict=True):
        index = source.node
        if shape != joint:
            layers, index = _repeated(layers, replace(bare, inputs=(name,)), index, joint), len(layers.nodes)
        indices.append(index)
    return layers, indices


def _repeated(layers: Layers, operation: OnnxOperation, index: int, joint: Shape) -> Layers:
    """A map of one value a channel at every position, or one of one channel in every channel."""
    if layers.nodes[index].shape.channels == joint.channels:
        op = Upsample(joint.height, across=joint.width if joint.width != joint.height else 0)
        return layers.grown(operation, "upsample", op, joint, index)
    weights, bias = np.ones((joint.channels, 1, 1, 1), np.float32), np.zeros(joint.channels, np.float32)
    convolution = Convolution(weights, bias, None, 1, Padding(), 1, "linear")
    return _typed(layers.grown(operation, "conv", convolution, joint, index), layers.type_of(index))


def _typed(layers: Layers, target: TensorType | None) -> Layers:
    """The last layer has that type, if there is one."""
    return layers if target is None else layers.typed(len(layers.nodes) - 1, target)


def _negative(layers: Layers, operation: OnnxOperation, index: int) -> tuple[Layers, int]:
    """−x, a convolution of each channel by itself; its node. Of integers of as many bits it is −1 − x."""
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    op = bare_convolution(np.full(shape.channels, -1, np.float32), shape.channels)
    larger = layers.grown(operation, "conv", op, shape, index)
    mirrored = None if type_ is None else replace(type_, zero_point=-1 - type_.zero_point)
    if mirrored is not None and not mirrored.datatype.signed:  # pixels
        mirrored = TensorType(DataType(mirrored.datatype.bits + 1, True), mirrored.scale)
    return _typed(larger, mirrored), len(layers.nodes)


def _sum(layers: Layers, operation: OnnxOperation, first: int, second: int, activation: str = "linear") -> Layers:
    return layers.grown(operation, "add", Add(activation), layers.nodes[first].shape, first, second)


def total(layers: Layers, operation: OnnxOperation) -> Layers:
    """Sum: map by map."""
    layers, (first, *others) = _maps_of_one_shape(layers, operation)
    if not others:
        return layers.with_values(operation, layers.map(operation))
    bare = replace(operation, inputs=operation.inputs[:1])
    for index in others:
        layers, first = _sum(layers, bare, first, index), len(layers.nodes)
    return layers


def extreme(layers: Layers, operation: OnnxOperation) -> Layers:
    """Max and Min: of a map and a number a cut, of two maps a and b max = a + relu(b − a), min = a − relu(a − b)."""
    constants = [i for i in range(len(operation.inputs)) if isinstance(layers.optional(operation, i), np.ndarray)]
    if constants:
        fits = len(constants) == 1 and len(operation.inputs) == 2
        require(fits, "its inputs must be maps, or one map and one constant")
        source = replace(operation, inputs=(operation.inputs[1 - constants[0]],))
        numbers = _for_channels(layers.constant(operation, constants[0]), layers.map(source))
        if numbers.size > 1:
            return _extreme_of_channels(layers, source, numbers)
        number = layers.scalar(operation, constants[0])
        ends = {"min": number} if operation.kind == "Max" else {"max": number}
        return activation(layers, replace(source, kind="Clip", attributes=ends))
    layers, maps = _maps_of_one_shape(layers, operation)
    return extreme_of(layers, replace(operation, inputs=operation.inputs[:1]), maps)


def extreme_of(layers: Layers, bare: OnnxOperation, maps: list[int]) -> Layers:
    """The greater of nodes' maps of one shape, or the smaller where the operation is a Min; the last layer gives it."""
    layers, (first, *others), type_ = _of_one_type(layers, bare, maps)
    layers = layers.with_values(bare, _whole(layers, first))
    for index in others:
        great, small = (index, first) if bare.kind == "Max" else (first, index)
        layers, minus = _negative(layers, bare, small)
        layers, beyond = _sum(layers, bare, great, minus, "relu"), len(layers.nodes)
        # What is never below 0 has its least integer there, and so all of them for what a − b may be.
        layers = _typed(layers, type_ and replace(type_, zero_point=type_.datatype.low))
        if bare.kind == "Min":
            layers, beyond = _negative(layers, bare, beyond)
        layers, first = _sum(layers, bare, first, beyond), len(layers.nodes)
        layers = _typed(layers, type_)
    return layers


def _extreme_of_channels(layers: Layers, operation: OnnxOperation, numbers: FloatArray) -> Layers:
    """Of a map and a number c for each channel: max = c + relu(x − c), min = c − relu(c − x)."""
    sign = np.full(1, 1 if operation.kind == "Max" else -1, np.float32)
    name = f"{operation.outputs[0]}/1"
    layers = replace(layers, readers=Counter({**layers.readers, name: 1}))
    beyond = replace(operation, outputs=(name,))
    layers = affine(layers, beyond, layers.map(operation), sign, -sign * numbers)
    layers = activation(layers, replace(beyond, kind="Relu", inputs=(name,)))
    behind = replace(operation, inputs=(name,))
    return affine(layers, behind, layers.map(behind), sign, numbers)


def _of_one_type(
    layers: Layers, operation: OnnxOperation, maps: list[int]
) -> tuple[Layers, list[int], TensorType | None]:
    """Integers of different scales are brought to one that holds the least and the greatest of all."""
    types = [type_ for type_ in map(layers.type_of, maps) if type_ is not None]
    require(len(types) in (0, len(maps)), "some of its maps are quantised and some are not")
    if len(set(types)) <= 1:
        return layers, maps, next(iter(types), None)
    low, high = (
        pick((getattr(t.datatype, end) - t.zero_point) * t.scale for t in types)
        for pick, end in ((min, "low"), (max, "high"))
    )
    datatype = DataType(8, True)
    scale = (high - low) / (datatype.high - datatype.low)
    target, brought = TensorType(datatype, scale, round(datatype.low - low / scale)), []
    for index in maps:
        layers, index = grown(layers, operation, _whole(layers, index), target), len(layers.nodes)
        brought.append(index)
    return layers, brought, target


def negated(layers: Layers, operation: OnnxOperation) -> Layers:
    """Neg."""
    minus, zero = np.full(1, -1, np.float32), np.zeros(1, np.float32)
    return affine(layers, operation, layers.map(operation), minus, zero)


def sloped(layers: Layers, operation: OnnxOperation) -> Layers:
    """PRelu: of one slope s a function, of one for each channel s · x + relu((1 − s) · x), or where it is above 1
    s · x − relu((s − 1) · x)."""
    if layers.constant(operation, 1).size == 1:
        return activation(layers, operation)
    source, shape = layers.picture(operation)
    slopes = broadcast(_for_channels(layers.constant(operation, 1), source), shape.channels)
    bare, index = replace(operation, inputs=operation.inputs[:1]), len(layers.nodes)
    part = _type_of_parts(layers.type_of(source.node), slopes)
    plain = bare_convolution(slopes, shape.channels)
    beyond = replace(bare_convolution(np.abs(1 - slopes), shape.channels), activation="relu")
    for op in (plain, beyond):
        layers = _typed(layers.grown(bare, "conv", op, shape, source.node), part)
    if float(slopes.max()) > 1:
        signs = bare_convolution(np.where(slopes > 1, np.float32(-1), np.float32(1)), shape.channels)
        layers = _typed(layers.grown(bare, "conv", signs, shape, index + 1), part)
    return _sum(layers, bare, index, len(layers.nodes) - 1)


def _type_of_parts(source: TensorType | None, slopes: FloatArray) -> TensorType | None:
    """Of integers the type of s · x and of (1 − s) · x: one, so that their sum rounds nothing."""
    if source is None:
        return None
    greatest = max(abs(end - source.zero_point) for end in (source.datatype.low, source.datatype.high)) * source.scale
    factor = max(float(np.abs(slopes).max()), float(np.abs(1 - slopes).max()))
    return TensorType(INT16, greatest * factor / INT16.high)


def _for_channels(array: Array, source: Map) -> FloatArray:
    """One number, or one a channel."""
    values, rank = floats(array), len(source.shape)
    sides = (1,) * (rank - values.ndim) + values.shape
    fits = len(sides) == rank and all(side == 1 for axis, side in enumerate(sides) if axis != 1)
    required = f"one value, or one for each channel of {source.shape}"
    require(fits, ShapeError("its constant", values.shape, required))
    return values.reshape(-1)


def floats(array: Array) -> FloatArray:
    """Return the array in float32; RefusedError if a number is not finite."""
    values = np.asarray(array, dtype=np.float32)
    require(bool(np.isfinite(values).all()), "some of its numbers are not finite")
    return values


def broadcast(values: FloatArray, count: int) -> FloatArray:
    """Return [count] numbers of as many, or of one; ShapeError if there are others."""
    flat = values.reshape(-1)
    require(flat.size in (1, count), ShapeError("its constant", f"{flat.size} values", f"1 or {count} values"))
    return np.array(np.broadcast_to(flat, (count,)))
