"""QuantizeLinear and DequantizeLinear: they give the type of a layer's output, or constants with their scale.

Unsigned integers of b bits become signed ones: 2^(b − 1) is subtracted from them and from their zero point. This
changes no value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from boards.errors import ChoiceError, InvalidValueError, MismatchError, RangeError, ShapeError
from cnn.datatype import DataType, TensorType
from cnn.maps import FloatArray
from cnn.onnx.activations import SUMS
from cnn.onnx.graph import Array, OnnxOperation, require
from cnn.onnx.layers import Layers, Map, bare_convolution
from cnn.ops import Activate, Add, AveragePool, Concat, DepthToSpace, Input, Op, Softmax
from cnn.quantisation.tensor_types import PIXEL

ONE_SCALE = (
    "train this activation with one scale for all channels (Brevitas: scaling_per_output_channel=False), "
    "unless depthwise convolutions alone read it"
)

ELSEWHERE = "other operators read the map that it quantises, as floats"

SAME = Activate("clip", (-np.inf, np.inf))
"""A function that changes no value, but whose output has its own type."""

_OWN_TYPE = (*SUMS, AveragePool, Activate)
_BITS = {f"{kind}{bits}": bits for kind in ("int", "uint") for bits in (2, 4, 8, 16, 32)}
_CUTS = {"relu": (0.0, np.inf), "relu6": (0.0, 6.0)}


@dataclass(frozen=True, eq=False)
class QuantGrid:
    """The scale, zero point and datatype of a QuantizeLinear or DequantizeLinear: value = (integer − zero) · scale.

    Attributes:
        scale: The scale, an array that broadcasts to the values.
        zero: The zero point, an array that broadcasts to the values.
        datatype: The datatype in the file.
    """

    scale: FloatArray
    zero: Array
    datatype: DataType

    def type(self) -> TensorType:
        """Return the quantised type of a map with this scale, in signed integers; ShapeError for several scales."""
        check_one_scale(self.scale, self.zero)
        offset = 0 if self.datatype.signed else 1 << (self.datatype.bits - 1)
        datatype, zero = DataType(self.datatype.bits, True), int(self.zero.ravel()[0]) - offset
        return TensorType(datatype, float(self.scale.ravel()[0]), zero)


def grid_of(layers: Layers, operation: OnnxOperation) -> QuantGrid:
    """Return the scale, zero point and datatype that a QuantizeLinear or DequantizeLinear has as inputs."""
    scale = np.asarray(layers.constant(operation, 1), np.float32)
    zero = _zero(layers, operation, scale)
    check_scale(scale)
    require(scale.ndim <= 1, ShapeError("the scale", scale.shape, "one value, or one for each channel"))
    fits = zero.shape in (scale.shape, (), (1,))
    require(fits, ShapeError("the zero point", zero.shape, f"one value, or the shape {scale.shape} of the scale"))
    block = operation.integer("block_size", 0)
    require(not block, InvalidValueError("block_size", block, "0, one scale for a whole channel"))
    bits = _BITS.get(zero.dtype.name, 0)
    require(bits > 0, ChoiceError("the type of quantised values", zero.dtype.name, tuple(_BITS)))
    return QuantGrid(scale, zero.astype(np.int64), DataType(bits, not zero.dtype.name.startswith("u")))


def check_one_scale(scale: Array, zero: Array) -> None:
    """Raise ShapeError if a map has several scales or zero points, which only depthwise convolutions can include."""
    for what, numbers, remedy in (("the scale of a map", scale, ONE_SCALE), ("the zero point of a map", zero, "")):
        require(numbers.size == 1, ShapeError(what, f"{numbers.size} values", "one value", remedy=remedy))


def check_scale(scale: FloatArray) -> None:
    """Raise InvalidValueError if a scale of the file is not finite or not above 0."""
    for wrong in scale[~(np.isfinite(scale) & (scale > 0))][:1]:
        raise InvalidValueError("a scale", float(wrong), "finite and above 0")


def _zero(layers: Layers, operation: OnnxOperation, scale: FloatArray) -> Array:
    if layers.optional(operation, 2) is not None:
        return layers.constant(operation, 2)
    value = layers.optional(operation, 0)
    if operation.kind == "DequantizeLinear" and isinstance(value, np.ndarray):
        return np.zeros(scale.shape, value.dtype)
    type_ = layers.type_of(value.node) if operation.kind == "DequantizeLinear" and isinstance(value, Map) else None
    signed = type_ is not None and type_.datatype.signed and type_.zero_point == 0  # pixels are unsigned
    return np.zeros(scale.shape, np.int8 if signed else np.uint8)


def quantise(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX QuantizeLinear: the layer before gets the quantised type, or a requantising layer is appended."""
    grid = grid_of(layers, operation)
    if isinstance(layers.optional(operation, 0), np.ndarray):
        values = layers.constant(operation, 0)
        column = _column(layers, operation, values, grid)
        require(bool(np.isfinite(values).all()), "some of its numbers are not finite")
        layers = layers.with_bytes_spent(values.size * np.dtype(grid.datatype.carrier).itemsize)
        integers = np.rint(values / column.scale) + column.zero
        limited = np.clip(integers, grid.datatype.low, grid.datatype.high).astype(grid.datatype.carrier)
        return layers.with_values(operation, np.asarray(limited))
    return typed(layers, operation, grid.type())


def typed(layers: Layers, operation: OnnxOperation, target: TensorType) -> Layers:
    """Quantise the operation's first input: its layer gets the type ``target``, or a requantising layer is appended."""
    source = layers.padded(operation, edge=True)
    op = layers.nodes[source.node].op
    type_ = layers.type_of(source.node)
    if isinstance(op, Input) and type_ is None and same_as_pixels(target):
        return _pixels(layers, source.node, target).with_values(operation, source)
    if type_ == target or (type_ == PIXEL and same_as_pixels(target)) or isinstance(op, Softmax):
        return layers.with_values(operation, source)  # the host computes a softmax in floats: nothing is lost after it
    if type_ is not None:
        return with_conversion(layers, operation, source, target)
    return _sums_typed(in_one_sum(layers, source.node), operation, source, target)


def in_one_sum(layers: Layers, index: int) -> Layers:
    """Return the network with an addition of additions merged into one addition of all their inputs.

    An inner addition must have no other reader and no type of its own.
    """
    node = layers.nodes[index]
    if not isinstance(node.op, Add):
        return layers
    inner = [i for i in node.inputs if _is_part(layers, i)]
    if not inner:
        return layers
    parts = (part for i in node.inputs for part in (layers.nodes[i].inputs if i in inner else (i,)))
    nodes = list(layers.nodes)
    nodes[index] = replace(node, inputs=tuple(parts))
    return in_one_sum(replace(layers, nodes=tuple(nodes)), index)


def _is_part(layers: Layers, index: int) -> bool:
    return layers.nodes[index].op == Add("linear") and layers.type_of(index) is None and layers.read_once(index)


def _sums_typed(layers: Layers, operation: OnnxOperation, source: Map, target: TensorType) -> Layers:
    """Give a layer's unquantised sums the type ``target``, in the layer that computes them or in a new one."""
    op, alone = layers.nodes[source.node].op, layers.can_merge(operation)
    if alone:
        layers, settled = _spread_typed(layers, operation, source, target)
        if settled:
            return layers
    if isinstance(op, SUMS) and not alone:
        return with_conversion(layers, operation, source, target)  # a function of the sums, which others read too
    if isinstance(op, _OWN_TYPE):
        require(alone, ELSEWHERE)
        return _settled(layers, operation, source, target)
    if isinstance(op, Concat) and alone:
        return _rejoined(layers, operation, source, target)
    return with_conversion(layers, operation, source, target)


def _spread_typed(layers: Layers, operation: OnnxOperation, source: Map, target: TensorType) -> tuple[Layers, bool]:
    """Give the sums of a transposed convolution the type ``target``; return whether that completes the operation."""
    for index in (source.node, *layers.nodes[source.node].inputs[:1]):
        if _is_spread(layers, index):
            typed_layers = _typed_before(layers, operation, index, target)
            return typed_layers.with_values(operation, source), index == source.node
    return layers, False


def _is_spread(layers: Layers, index: int) -> bool:
    """Return whether the node interleaves the convolutions of a transposed convolution whose sums have no type yet."""
    return isinstance(layers.nodes[index].op, DepthToSpace) and layers.type_of(index) is None


def _typed_before(layers: Layers, operation: OnnxOperation, index: int, target: TensorType) -> Layers:
    """Give the type ``target`` to the layers whose sums the node ``index`` only moves."""
    node = layers.nodes[index]
    if isinstance(node.op, (DepthToSpace, Concat)):
        for part in node.inputs:
            layers = _typed_before(layers, operation, part, target)
        return layers
    require(isinstance(node.op, SUMS), ELSEWHERE)
    return _settled(layers, operation, Map(index, (1,)), target)


def _settled(layers: Layers, operation: OnnxOperation, source: Map, target: TensorType) -> Layers:
    """Give a layer's own sums the type ``target``; a Clip is appended if saturation does not replace its activation.

    If its activation cuts off at a value that is not an end of the integers, a Clip after the quantiser cuts off
    instead.
    """
    node = layers.nodes[source.node]
    activation = getattr(node.op, "activation", "linear")
    cut = _CUTS.get(activation)
    if activation == "linear" and target.zero_point == target.datatype.low and isinstance(node.op, SUMS):
        # Integers that end at 0 cut off as a relu does, which exporters leave out then; the float form needs it.
        layers = layers.changed(operation, source, replace(node.op, activation="relu"))
    if cut is None or _ends_there(target, cut):
        return layers.typed(source.node, target).with_values(operation, source)
    assert isinstance(node.op, SUMS)
    plain = layers.changed(operation, source, replace(node.op, activation="linear")).typed(source.node, target)
    return with_conversion(plain, operation, source, target, Activate("clip", cut))


def _ends_there(target: TensorType, cut: tuple[float, float]) -> bool:
    """Return whether saturation of the type ``target`` clips at the same values as the activation's bounds ``cut``."""
    high = target.zero_point + cut[1] / target.scale + 0.5
    return target.zero_point in (0, target.datatype.low) and high >= target.datatype.high


def with_conversion(layers: Layers, operation: OnnxOperation, source: Map, target: TensorType, op: Op = SAME) -> Layers:
    """Return the network with a layer appended that converts its input to the type ``target``.

    For the picture it is a 1×1 convolution that converts pixels to the type, because no table reads the picture.
    """
    node, index = layers.nodes[source.node], len(layers.nodes)
    if isinstance(node.op, Input):
        op = bare_convolution(None, node.shape.channels)
    larger = layers.with_node(
        operation, "conv" if isinstance(node.op, Input) else "requantise", op, node.shape, source.node
    )
    return larger.typed(index, target).with_values(operation, replace(source, node=index))


def _rejoined(layers: Layers, operation: OnnxOperation, source: Map, target: TensorType) -> Layers:
    """Return the network with a new concat whose inputs are each converted to the type ``target``."""
    node, inputs = layers.nodes[source.node], []
    for index in node.inputs:
        if layers.type_of(index) != target:
            shape = layers.nodes[index].shape
            part = Map(index, (1, shape.channels, shape.height, shape.width))
            layers = with_conversion(layers, operation, part, target)
            index = len(layers.nodes) - 1
        inputs.append(index)
    larger = layers.with_node(operation, "route", Concat(), node.shape, *inputs)
    return larger.with_values(operation, replace(source, node=len(layers.nodes)))


def _pixels(layers: Layers, node: int, target: TensorType) -> Layers:
    """Return the network with the input image marked as quantised: integers are pixels, the scale is the file's."""
    scale = np.full(1, target.scale, np.float32)
    return layers.marked(node, replace(layers.mark(node), type=PIXEL, scale=scale))


def same_as_pixels(type_: TensorType) -> bool:
    """Return whether quantising pixels / 255 to this type keeps all 256 pixel values, in order."""
    levels = np.arange(256) / 255 / type_.scale
    fits = type_.datatype.bits == 8 and type_.zero_point == type_.datatype.low
    return fits and bool((np.rint(levels) == np.arange(256)).all())


def dequantise(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX DequantizeLinear: constants become floats; a map must already have this quantised type."""
    if isinstance(layers.optional(operation, 0), np.ndarray):
        return _constant(layers, operation)
    source, target = layers.padded(operation, edge=True), grid_of(layers, operation).type()
    type_ = layers.type_of(source.node)
    if type_ is None and isinstance(layers.nodes[source.node].op, Input) and same_as_pixels(target):
        return _pixels(layers, source.node, target).with_values(operation, source)
    if type_ is None and isinstance(layers.nodes[source.node].op, Input):
        return _raw(layers, operation, source, target)
    if type_ is None and _moved_from(layers, source.node) == target:  # a Resize computed means of integers
        return typed(layers, operation, target)
    on_host = isinstance(layers.nodes[source.node].op, Softmax)
    require(on_host or type_ is not None, "its input has no scale: no QuantizeLinear is before it")
    agrees = type_ == target or (type_ == PIXEL and same_as_pixels(target)) or on_host
    require(agrees, MismatchError("scale and zero point", _told(target), _told(type_)))
    return layers.with_values(operation, source)


def _moved_from(layers: Layers, index: int) -> TensorType | None:
    """Return the quantised type of the nearest earlier layer that has one, following each node's last input.

    The last input of a product is the map that its factors weight.
    """
    while (type_ := layers.type_of(index)) is None and layers.nodes[index].inputs:
        index = layers.nodes[index].inputs[-1]
    return type_


def _raw(layers: Layers, operation: OnnxOperation, source: Map, target: TensorType) -> Layers:
    """Read the DequantizeLinear of an integer input image: a 1×1 convolution gives pixels the file's scale."""
    shape, unsigned = layers.nodes[source.node].shape, target.zero_point - target.datatype.low
    require(target.datatype.bits == 8, RangeError("bits of a pixel", target.datatype.bits, 8, 8))
    gain = np.full(shape.channels, 255 * target.scale, np.float32)
    offset = np.full(shape.channels, -unsigned * target.scale, np.float32)
    op = replace(bare_convolution(gain, shape.channels), bias=offset)
    larger = layers.with_node(replace(operation, inputs=operation.inputs[:1]), "conv", op, shape, source.node)
    index = len(layers.nodes)
    return larger.typed(index, target).with_values(operation, replace(source, node=index))


def _told(type_: TensorType | None) -> str:
    if type_ is None:
        return "none"
    return f"{type_.scale:g} and {type_.zero_point}"


def _constant(layers: Layers, operation: OnnxOperation) -> Layers:
    values, grid = layers.constant(operation, 0), grid_of(layers, operation)
    column = _column(layers, operation, values, grid)
    # With 16 bits or fewer the product of float32 numbers is the float nearest to the exact product.
    exact = np.float64 if grid.datatype.bits > 16 else np.float32
    products = (values.astype(exact) - column.zero.astype(exact)) * column.scale.astype(exact)
    floats = np.asarray(products, np.float32)  # numpy returns a scalar for a single number
    named = layers.with_bytes_spent(4 * floats.size).with_values(operation, floats)
    scales = {**layers.scales, operation.outputs[0]: grid.scale.reshape(-1)}
    return replace(named, scales=scales)


def _column(layers: Layers, operation: OnnxOperation, values: Array, grid: QuantGrid) -> QuantGrid:
    """Return the scale and zero point reshaped so that they broadcast along the operation's axis."""
    if grid.scale.size == 1:
        return replace(grid, scale=grid.scale.reshape(()), zero=grid.zero.reshape(()))
    axis = operation.integer("axis", 1)
    axis = axis + values.ndim if axis < 0 else axis
    fits = 0 <= axis < values.ndim and values.shape[axis] == grid.scale.size
    required = f"a value for each on axis {axis} of {values.shape}"
    require(fits, ShapeError("the scale", f"{grid.scale.size} values", required))
    shape = tuple(-1 if i == axis else 1 for i in range(values.ndim))
    zero = np.broadcast_to(grid.zero, grid.scale.shape)
    return replace(grid, scale=grid.scale.reshape(shape), zero=zero.reshape(shape))
