"""Read the operators that add, multiply or compare a map with a constant per channel, or with another map."""

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
from cnn.onnx.quantised.linear import with_conversion
from cnn.onnx.quantised.mark import Mark
from cnn.ops import Add, BatchNorm, Convolution, Dense, Multiply, Upsample

ROUNDED = np.float32(2.0**-22)
"""Limit for the distance from 1 of a float32 factor that would be 1 without two roundings."""

FINEST = 127
"""The greatest integer of an 8-bit weight."""


def batch_norm(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX BatchNormalization: put it into the layer before it, or append a depthwise 1×1 convolution."""
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
    bare = replace(operation, inputs=operation.inputs[:1])  # its second input, the scale, holds no weights
    return affine(layers, bare, source, gain, bias - mean * gain)


def affine(layers: Layers, operation: OnnxOperation, source: Map, gain: FloatArray, offset: FloatArray) -> Layers:
    """Compute gain · x + offset per channel: in the layer before, or in a depthwise 1×1 convolution that is appended.

    Args:
        layers: The network read so far.
        operation: The operation of the file.
        source: The map x.
        gain: One factor, or one per channel.
        offset: One summand, or one per channel.
    """
    node = layers.nodes[source.node].shape
    channels, is_number = node.channels, gain.size == offset.size == 1
    gain, offset = broadcast(gain, channels), broadcast(offset, channels)
    op = _open(layers, operation, source)
    if op is None:
        shape = node if is_number else layers.shape_of(source)  # a single number fits every view of the map
        pointwise, index = replace(bare_convolution(gain, channels), bias=offset), len(layers.nodes)
        larger = layers.with_node(operation, "conv", pointwise, shape, source.node)
        larger = larger.with_values(operation, Map(index, source.shape, last=source.last)) if is_number else larger
        if layers.type_of(source.node) is None or larger.mark(index).scale is not None:
            return larger
        # The offset is rounded to multiples of the weight's scale, so the scale is as fine as 8 bits allow.
        return larger.marked(index, Mark(scale=np.where(gain == 0, np.float32(1), np.abs(gain)) / np.float32(FINEST)))
    norm = op.batch_norm
    # Weights that are integers, or integers times a scale, must stay so. A batch norm does the multiplication instead.
    if norm is None and (layers.mark(source.node).scale is not None or _is_whole(layers, source.node)):
        unit = np.ones(channels, np.float32)
        norm = BatchNorm(unit, np.zeros(channels, np.float32) - op.bias, unit, 0.0)
        op = replace(op, batch_norm=norm, bias=np.zeros(channels, np.float32))
    if norm is None:
        layers = layers.with_bytes_spent(op.weights.nbytes)
        weights = op.weights * gain.reshape(-1, *(1,) * (op.weights.ndim - 1))
    else:
        weights, norm = op.weights, replace(norm, scale=norm.scale * gain)
    changed = replace(op, weights=weights, batch_norm=norm, bias=op.bias * gain + offset)
    if _changes_nothing(changed):  # pixels were multiplied by 255 before, and are divided by 255 here
        return layers.with_values(operation, replace(source, node=layers.nodes[source.node].inputs[0]))
    return layers.changed(operation, source, changed)


def _is_whole(layers: Layers, index: int) -> bool:
    """Return whether a layer reads integers and has integer weights, as in networks that FINN trains.

    Filters with a single weight do not count, because factors per channel are such filters too.
    """
    node = layers.nodes[index]
    weights = node.op.weights if isinstance(node.op, (Convolution, Dense)) else np.zeros((1, 1), np.float32)
    reads = layers.lowest is not None or layers.type_of(node.inputs[0]) is not None
    return reads and weights[0].size > 1 and bool((weights == np.rint(weights)).all())


def _changes_nothing(op: Convolution | Dense) -> bool:
    """Return whether a convolution is the identity: it multiplies each channel by 1, apart from rounding."""
    if not isinstance(op, Convolution) or op.batch_norm is not None or op.weights.size != op.groups:
        return False
    plain = op.stride == 1 and op.padding == Padding() and op.activation == "linear"
    return plain and not op.bias.any() and bool((np.abs(op.weights - 1) <= ROUNDED).all())


def _open(layers: Layers, operation: OnnxOperation, source: Map) -> Convolution | Dense | None:
    """Return the convolution or dense layer before the operation if it may take in a gain and an offset; else None."""
    op = layers.nodes[source.node].op
    if isinstance(op, (Convolution, Dense)) and op.activation == "linear" and layers.can_merge(operation):
        return op
    return None


def arithmetic(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Add, Sub, Mul or Div of a map and a constant, or an Add, Sub or Mul of two maps.

    The constant is one number, or one per channel.
    """
    first, second = (layers.optional(operation, position) for position in (0, 1))
    if isinstance(first, Map) and isinstance(second, Map):
        return _joined(layers, operation)
    constant_first = isinstance(first, np.ndarray)
    if constant_first:
        require(operation.kind != "Div", "a constant is divided by a map; only a map can be divided by a constant")
        operation = replace(operation, inputs=(operation.inputs[1], operation.inputs[0]))
    source = layers.map(operation)
    number = _for_channels(layers.constant(operation, 1), source)
    unit, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    if operation.kind in ("Add", "Sub"):  # its second input is an offset, whose scale is not a weight's scale
        operation = replace(operation, inputs=operation.inputs[:1])
    if operation.kind == "Sub" and constant_first:
        return affine(layers, operation, source, -unit, number)
    if operation.kind in ("Add", "Sub"):
        return affine(layers, operation, source, unit, number if operation.kind == "Add" else -number)
    require(operation.kind == "Mul" or bool(np.all(number != 0)), "it divides by 0")
    return affine(layers, operation, source, number if operation.kind == "Mul" else np.reciprocal(number), zero)


def _joined(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Add, Sub or Mul whose inputs are both maps."""
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
    """Append an element-wise product (Multiply) of the outputs of two nodes.

    For integers with zero points, tables subtract the zero points first; their results have one bit more.
    """
    factors = []
    for index in (first, second):
        type_ = layers.type_of(index)
        if type_ is not None and type_.zero_point:
            wider = TensorType(DataType(type_.datatype.bits + 1, True), type_.scale)
            layers, index = with_conversion(layers, operation, _whole(layers, index), wider), len(layers.nodes)
        factors.append(index)
    return layers.with_node(operation, "multiply", Multiply("linear"), layers.nodes[first].shape, *factors)


def _whole(layers: Layers, index: int) -> Map:
    """Return the output of node ``index`` as a ``Map`` tensor with four sides."""
    shape = layers.nodes[index].shape
    return Map(index, (1, shape.channels, shape.height, shape.width))


def _maps_of_one_shape(layers: Layers, operation: OnnxOperation) -> tuple[Layers, list[int]]:
    """Return the nodes that the operation reads, after appending layers that repeat smaller maps to one shape.

    Layers are appended that repeat a map with one value per channel, or with a single channel.
    """
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
    """Append a layer that broadcasts a map: one value per channel to every position, or one channel to all."""
    if layers.nodes[index].shape.channels == joint.channels:
        op = Upsample(joint.height, across=joint.width if joint.width != joint.height else 0)
        return layers.with_node(operation, "upsample", op, joint, index)
    weights, bias = np.ones((joint.channels, 1, 1, 1), np.float32), np.zeros(joint.channels, np.float32)
    convolution = Convolution(weights, bias, None, 1, Padding(), 1, "linear")
    return _typed(layers.with_node(operation, "conv", convolution, joint, index), layers.type_of(index))


def _typed(layers: Layers, target: TensorType | None) -> Layers:
    """Return the network built so far with ``target``, if given, as the quantised type of the last layer's output."""
    return layers if target is None else layers.typed(len(layers.nodes) - 1, target)


def _negative(layers: Layers, operation: OnnxOperation, index: int) -> tuple[Layers, int]:
    """Append a depthwise convolution that computes −x of a node's output, and return its index.

    For integers, the result has the same number of bits. Its integers are −1 − q for each integer q, which the zero
    point −1 − z accounts for.
    """
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    op = bare_convolution(np.full(shape.channels, -1, np.float32), shape.channels)
    larger = layers.with_node(operation, "conv", op, shape, index)
    mirrored = None if type_ is None else replace(type_, zero_point=-1 - type_.zero_point)
    if mirrored is not None and not mirrored.datatype.signed:  # pixels: the result needs a sign bit
        mirrored = TensorType(DataType(mirrored.datatype.bits + 1, True), mirrored.scale)
    return _typed(larger, mirrored), len(layers.nodes)


def _sum(layers: Layers, operation: OnnxOperation, first: int, second: int, activation: str = "linear") -> Layers:
    return layers.with_node(operation, "add", Add(activation), layers.nodes[first].shape, first, second)


def total(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Sum: append an addition for each input map after the first."""
    layers, (first, *others) = _maps_of_one_shape(layers, operation)
    if not others:
        return layers.with_values(operation, layers.map(operation))
    bare = replace(operation, inputs=operation.inputs[:1])
    for index in others:
        layers, first = _sum(layers, bare, first, index), len(layers.nodes)
    return layers


def extreme(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Max or Min of maps, or of a map and a constant.

    For a map and a number it is a Clip. For maps a and b: max = a + relu(b − a), min = a − relu(a − b).
    """
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
    """Append layers for the element-wise maximum of nodes' outputs, or the minimum if the operation is a Min.

    The output is the last layer's.
    """
    layers, (first, *others), type_ = _of_one_type(layers, bare, maps)
    layers = layers.with_values(bare, _whole(layers, first))
    for index in others:
        great, small = (index, first) if bare.kind == "Max" else (first, index)
        layers, minus = _negative(layers, bare, small)
        layers, beyond = _sum(layers, bare, great, minus, "relu"), len(layers.nodes)
        # relu's results are not negative, so its zero point is the lowest integer: it has the full range for them.
        layers = _typed(layers, type_ and replace(type_, zero_point=type_.datatype.low))
        if bare.kind == "Min":
            layers, beyond = _negative(layers, bare, beyond)
        layers, first = _sum(layers, bare, first, beyond), len(layers.nodes)
        layers = _typed(layers, type_)
    return layers


def _extreme_of_channels(layers: Layers, operation: OnnxOperation, numbers: FloatArray) -> Layers:
    """Append layers for the element-wise Max or Min of a map and a constant per channel, by means of ReLU."""
    sign = np.full(1, 1 if operation.kind == "Max" else -1, np.float32)
    name = f"{operation.outputs[0]}/1"
    layers = replace(layers, readers=Counter({**layers.readers, name: 1}))
    beyond = replace(operation, outputs=(name,))
    layers = affine(layers, beyond, layers.map(operation), sign, -sign * numbers)
    layers = activation(layers, replace(beyond, kind="Relu", inputs=(name,)))
    last = replace(operation, inputs=(name,))
    return affine(layers, last, layers.map(last), sign, numbers)


def _of_one_type(
    layers: Layers, operation: OnnxOperation, maps: list[int]
) -> tuple[Layers, list[int], TensorType | None]:
    """Append layers that requantise outputs of different quantised types to one type; return the nodes and the type.

    The type has 8 bits and holds the lowest and the greatest value of all the types. Floats have none.
    """
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
        layers, index = with_conversion(layers, operation, _whole(layers, index), target), len(layers.nodes)
        brought.append(index)
    return layers, brought, target


def negated(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Neg: compute −x in the layer before it, or append a depthwise 1×1 convolution."""
    minus, zero = np.full(1, -1, np.float32), np.zeros(1, np.float32)
    return affine(layers, operation, layers.map(operation), minus, zero)


def sloped(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX PRelu: with one slope as a function, with slopes per channel as convolutions and an addition.

    With a single slope it is a function. With a slope s per channel it is s · x + relu((1 − s) · x), or
    s · x − relu((s − 1) · x) for channels with s above 1.
    """
    if layers.constant(operation, 1).size == 1:
        return activation(layers, operation)
    source, shape = layers.picture(operation)
    slopes = broadcast(_for_channels(layers.constant(operation, 1), source), shape.channels)
    bare, index = replace(operation, inputs=operation.inputs[:1]), len(layers.nodes)
    part = _type_of_parts(layers.type_of(source.node), slopes)
    plain = bare_convolution(slopes, shape.channels)
    beyond = replace(bare_convolution(np.abs(1 - slopes), shape.channels), activation="relu")
    for op in (plain, beyond):
        layers = _typed(layers.with_node(bare, "conv", op, shape, source.node), part)
    if float(slopes.max()) > 1:
        signs = bare_convolution(np.where(slopes > 1, np.float32(-1), np.float32(1)), shape.channels)
        layers = _typed(layers.with_node(bare, "conv", signs, shape, index + 1), part)
    return _sum(layers, bare, index, len(layers.nodes) - 1)


def _type_of_parts(source: TensorType | None, slopes: FloatArray) -> TensorType | None:
    """Return one quantised type for both parts s · x and (1 − s) · x of a PRelu; None for a float map.

    With a common type their sum needs no rounding.
    """
    if source is None:
        return None
    greatest = max(abs(end - source.zero_point) for end in (source.datatype.low, source.datatype.high)) * source.scale
    factor = max(float(np.abs(slopes).max()), float(np.abs(1 - slopes).max()))
    return TensorType(INT16, greatest * factor / INT16.high)


def _for_channels(array: Array, source: Map) -> FloatArray:
    """Return an operator's constant flattened: one number, or one per channel; ShapeError for another shape."""
    values, rank = floats(array), len(source.shape)
    sides = (1,) * (rank - values.ndim) + values.shape
    fits = len(sides) == rank and all(side == 1 for axis, side in enumerate(sides) if axis != 1)
    required = f"one value, or one for each channel of {source.shape}"
    require(fits, ShapeError("its constant", values.shape, required))
    return values.reshape(-1)


def floats(array: Array) -> FloatArray:
    """Return the array converted to float32; RefusedError if a number is not finite."""
    values = np.asarray(array, dtype=np.float32)
    require(bool(np.isfinite(values).all()), "some of its numbers are not finite")
    return values


def broadcast(values: FloatArray, count: int) -> FloatArray:
    """Return ``count`` numbers, given ``count`` numbers or a single one to repeat; ShapeError otherwise."""
    flat = values.reshape(-1)
    require(flat.size in (1, count), ShapeError("its constant", f"{flat.size} values", f"1 or {count} values"))
    return np.array(np.broadcast_to(flat, (count,)))
