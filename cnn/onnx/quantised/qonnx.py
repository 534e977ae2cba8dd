"""Reads QONNX and FINN-ONNX: Quant, BipolarQuant, MultiThreshold and Trunc."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, floor, log2

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, MismatchError, RangeError, ShapeError
from cnn.datatype import BIPOLAR, INT16, DataType, TensorType
from cnn.maps import FloatArray, Padding
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require
from cnn.onnx.layers import Layers, Map, bare_convolution
from cnn.onnx.quantised.integers import affine_of
from cnn.onnx.quantised.linear import check_one_scale, check_scale, in_one_sum
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.quantised.operators import Steps
from cnn.onnx.quantised.stated import WIDE_ADD_LIMIT, stated_of
from cnn.onnx.quantised.values import DOMAINS, KINDS, NEAR, ZERO_BEHIND, Values, bits_of, check_bits, ends_of, in_values
from cnn.onnx.sliding import check_size
from cnn.ops import Activate, Add, AveragePool, Convolution, Dense, Input, Multiply

# Trunc of QONNX drops the last bits of integers. Brevitas exports it after an average pool.
#
# If t bits of a sum acc are dropped, rounding down is rounding (acc + b) / 2^t with b = 1/2 − 2^(t − 1), and rounding
# up is the same with b = 2^(t − 1) − 1/2. A requantiser can compute this: b is a bias of the layer before, and 2^−t its
# factor. So every integer equals the file's.

_BIASES: dict[str, Callable[[int], float]] = {
    "FLOOR": lambda half: 0.5 - half,
    "CEIL": lambda half: half - 0.5,
    "ROUND": lambda half: 0,
    "HALF_EVEN": lambda half: 0,
    "DOWN": lambda half: 0.5 - half,
    "ROUND_TO_ZERO": lambda half: 0.5 - half,
    "UP": lambda half: half - 0.5,
    "HALF_UP": lambda half: 0.5,
    "HALF_DOWN": lambda half: -0.5,
}
"""The offset of a sum for each rounding mode, from the half of 2^t.

With the offset, no whole sum is a half of a step, so that the rounding of halves in the layer has no effect. The
exceptions are the modes that are this rounding themselves.
"""

_OF_EITHER_SIGN = ("FLOOR", "CEIL", "ROUND", "HALF_EVEN")
"""Modes whose direction of rounding is the same below and above 0; the direction of the other modes changes at 0."""


@dataclass(frozen=True, eq=False)
class _Sums:
    """The real values of a layer's sums that a Trunc reads: their unit, and their least and greatest value.

    Attributes:
        unit: The real value of a sum of 1, per filter.
        low: The least real value that they may have.
        high: The greatest real value that they may have.
    """

    unit: npt.NDArray[np.float64]
    low: float
    high: float


@dataclass(frozen=True)
class _Request:
    """The parameters of a QONNX Trunc: scales, bits that are left out, and output bits.

    Attributes:
        scale: The scale of the input's integers.
        dropped: The number of bits that are dropped.
        output_scale: The scale of the output's integers.
        bits: The bits of the output's integers.
        signed: Whether the output is signed; None for the older form, which does not state it and does not clip.
        narrow: Whether the output excludes its least signed integer, or its greatest unsigned one.
    """

    scale: float
    dropped: int
    output_scale: float
    bits: int
    signed: bool | None
    narrow: bool


def trunc(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read a QONNX Trunc, which drops low bits of integers, in the form with or without an output scale."""
    source, request = layers.map(operation), _request_of(layers, operation)
    layers = _with_sums(layers, source)
    sums = _sums_of(layers, operation, source)
    fits = bool((np.abs(sums.unit / request.scale - 1) < NEAR).all())
    require(fits, MismatchError("its scale", request.scale, float(sums.unit.max())))
    mode = operation.text("rounding_mode", "FLOOR").upper()
    require(mode in _BIASES, ChoiceError("rounding_mode", mode, tuple(_BIASES)))
    below_0 = sums.low < -request.scale / 2
    signed = below_0 if request.signed is None else request.signed
    fault = ChoiceError("rounding_mode of values below 0", mode, _OF_EITHER_SIGN)
    require(mode in _OF_EITHER_SIGN or not (below_0 and signed), fault)
    values = Values(request.bits, signed, request.narrow, request.output_scale, 0)
    if request.signed is None:
        _check_held(sums, request, values)
    steps, half = Steps(layers, operation), 1 << max(0, request.dropped - 1)
    bias = _BIASES[mode](half) if request.dropped else 0
    part = 1 / (1 << request.dropped)
    gain = np.float32(part * request.output_scale / request.scale)
    count = len(layers.nodes)
    name = steps.put("Mul", [operation.inputs[0], steps.constant(np.array(gain))])
    if len(steps.layers.nodes) > count:  # a new layer of another layer's integers: its weights are 1
        steps.layers = steps.layers.marked(count, Mark(scale=np.array([gain], np.float32)))
    name = steps.put("Add", [name, steps.constant(np.array(bias * part * request.output_scale, np.float32))])
    return in_values(steps.layers, replace(operation, inputs=(name,)), values)


def _request_of(layers: Layers, operation: OnnxOperation) -> _Request:
    """Return the parameters of a Trunc from its inputs: scale, zero point, input bits and output bits.

    In version 2 an output scale precedes the output bits.
    """
    scale, zero = layers.scalar(operation, 1), layers.scalar(operation, 2)
    require(zero == 0, InvalidValueError("its zero point", zero, "0"))
    newer = len(operation.inputs) > 5
    input_bits, bits = bits_of(layers, operation, 3), bits_of(layers, operation, 5 if newer else 4)
    output_scale = layers.scalar(operation, 4) if newer else scale
    for number in (scale, output_scale):
        require(0 < number < np.inf, InvalidValueError("a scale", number, "finite and above 0"))
    dropped = round(log2(output_scale / scale)) if newer else input_bits - bits
    require(0 <= dropped <= 24, RangeError("bits left out", dropped, 0, 24))
    check_bits(bits, False)
    signed = bool(operation.integer("signed", 1)) if newer else None
    return _Request(scale, dropped, output_scale, bits, signed, newer and bool(operation.integer("narrow", 0)))


def _with_sums(layers: Layers, source: Map) -> Layers:
    """Return the network with an average pool before a Trunc replaced by a depthwise convolution with integer sums.

    This applies if the Trunc reads the mean of a whole map, or this mean times a number.
    """
    index, factor = source.node, np.ones(1, np.float32)
    node = layers.nodes[index]
    if isinstance(node.op, Convolution) and node.op.weights.shape == (node.op.groups, 1, 1, 1):
        factor, producer = node.op.weights.ravel(), node.inputs[0]
        plain = not node.op.bias.any() and node.op.batch_norm is None and node.op.activation == "linear"
        index = producer if plain else index
    pool = layers.nodes[index]
    if not isinstance(pool.op, AveragePool) or layers.type_of(index) is not None or not (factor > 0).all():
        return layers
    shape = layers.nodes[pool.inputs[0]].shape
    window = (shape.height, shape.width)
    check_size(window)
    layers = layers.with_bytes_spent(4 * shape.values)
    unit: FloatArray = np.array(np.broadcast_to(factor / (window[0] * window[1]), (shape.channels,)), np.float32)
    weights = np.array(np.broadcast_to(unit.reshape(-1, 1, 1, 1), (shape.channels, 1, *window)))
    op = Convolution(weights, np.zeros(shape.channels, np.float32), None, 1, Padding(), shape.channels, "linear")
    nodes = list(layers.nodes)
    nodes[source.node] = replace(node, op=op, inputs=pool.inputs)
    return replace(layers, nodes=tuple(nodes)).marked(source.node, Mark(scale=unit))


def _sums_of(layers: Layers, operation: OnnxOperation, source: Map) -> _Sums:
    node, type_ = layers.nodes[source.node], layers.type_of(source.node)
    if type_ is not None:
        low, high = ((end - type_.zero_point) * type_.scale for end in (type_.datatype.low, type_.datatype.high))
        return _Sums(np.array([type_.scale]), low, high)
    op, input_type = node.op, layers.type_of(node.inputs[0]) if node.inputs else None
    fits = isinstance(op, (Convolution, Dense)) and op.activation == "linear" and layers.can_merge(operation)
    if input_type is None or not fits:
        raise RefusedError("integers must be before it, or a sum of integers that nothing else reads")
    assert isinstance(op, (Convolution, Dense))
    gain, offset = affine_of(op)
    scale = layers.mark(source.node).scale
    unit = input_type.scale * (np.ones(1) if scale is None else scale.astype(np.float64)) * np.abs(gain)
    low, high = (
        (end - input_type.zero_point) * input_type.scale for end in (input_type.datatype.low, input_type.datatype.high)
    )
    rows = op.weights.reshape(len(op.weights), -1) * gain[:, None]
    above, below = np.maximum(rows, 0).sum(axis=1), np.minimum(rows, 0).sum(axis=1)
    low, high = min(low, 0.0), max(high, 0.0)  # padding
    lowest, greatest = above * low + below * high + offset, above * high + below * low + offset
    return _Sums(unit, float(lowest.min()), float(greatest.max()))


def _check_held(sums: _Sums, request: _Request, values: Values) -> None:
    """Raise RangeError if a Trunc of the older form, which does not clip, can give values beyond its output bits."""
    step = request.scale * (1 << request.dropped)
    low, high = floor(sums.low / step + NEAR), ceil(sums.high / step - 1 + NEAR)
    for end in (low, high):
        fault = RangeError(f"an integer in {request.bits} bits", end, values.low, values.high)
        require(values.low <= end <= values.high, fault)


# Quant and BipolarQuant, which are QuantizeLinear and DequantizeLinear in one operator, and MultiThreshold.

_ROUNDED = {"ROUND": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND_TO_ZERO": np.trunc}


def quant(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read a QONNX Quant (IntQuant): the layer before gets its type. Scale, zero point and bits must be constant."""
    scale = np.asarray(layers.constant(operation, 1), np.float32)
    zero = np.asarray(layers.constant(operation, 2), np.float64)
    bits = bits_of(layers, operation, 3)
    signed, narrow = bool(operation.integer("signed", 1)), bool(operation.integer("narrow", 0))
    check_scale(scale)
    for wrong in zero[~(np.isfinite(zero) & (zero == np.rint(zero)))][:1]:
        raise InvalidValueError("a zero point", float(wrong), "a whole number")
    mode = operation.text("rounding_mode", "ROUND").upper()
    if mode == "HALF_EVEN":
        mode = "ROUND"
    require(mode in _ROUNDED, ChoiceError("rounding_mode", mode, tuple(_ROUNDED)))
    if isinstance(layers.optional(operation, 0), np.ndarray):
        low, high = ends_of(bits, signed, narrow)
        values = _numbers(layers, operation, scale, zero)
        integers = np.clip(_ROUNDED[mode](values / scale + zero), low, high)
        return _constant(layers, operation, ((integers - zero) * scale).astype(np.float32), scale)
    require(mode == "ROUND", ChoiceError("rounding_mode of a map", mode, ("ROUND",)))
    check_one_scale(scale, zero)
    check_bits(bits, signed)
    target = Values(bits, signed, narrow, float(scale.ravel()[0]), int(zero.ravel()[0]))
    zero_first = not operation.integer(ZERO_BEHIND, 0)
    return _with_stated(in_values(layers, operation, target, zero_first), operation)


def _with_stated(layers: Layers, operation: OnnxOperation) -> Layers:
    """Return the network with the exact requantiser that the operator's attributes state noted for its layer."""
    value, stated = layers.value(operation.outputs[0]), stated_of(operation)
    if stated is None or not isinstance(value, Map):
        return layers
    node = layers.nodes[value.node]
    index = node.inputs[0] if isinstance(node.op, Activate) else value.node  # a Clip follows the layer itself
    return layers.marked(index, replace(layers.mark(index), stated=stated))


def _numbers(layers: Layers, operation: OnnxOperation, *grid: Array) -> Array:
    """Return the operation's first input, a constant array, to which the scale and zero point must broadcast."""
    values = layers.constant(operation, 0).astype(np.float64)
    for array in grid:
        sides = array.shape[::-1]
        fits = array.ndim <= values.ndim and all(
            side in (1, length) for side, length in zip(sides, values.shape[::-1], strict=False)
        )
        required = f"a shape that broadcasts to the values' {values.shape}"
        require(fits, ShapeError("the scale or zero point", array.shape, required))
    return values


def _constant(layers: Layers, operation: OnnxOperation, values: Array, scale: Array) -> Layers:
    named = layers.with_bytes_spent(4 * values.size).with_values(operation, values)
    return replace(named, scales={**layers.scales, operation.outputs[0]: scale.reshape(-1)})


def bipolar(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read a QONNX BipolarQuant: values become −scale below 0, else +scale."""
    scale = np.asarray(layers.constant(operation, 1), np.float32)
    check_scale(scale)
    if isinstance(layers.optional(operation, 0), np.ndarray):
        signs = np.where(_numbers(layers, operation, scale) < 0, np.float32(-1), np.float32(1))
        return _constant(layers, operation, (signs * scale).astype(np.float32), scale)
    check_one_scale(scale, np.zeros(1))
    return _thresholded(layers, operation, TensorType(BIPOLAR, float(scale.ravel()[0])), np.zeros((1, 1)))


def multi_threshold(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read a QONNX MultiThreshold: out_bias + out_scale · (number of thresholds that the value reaches)."""
    datatype = DataType.parse(operation.text("out_dtype", "UINT8"))
    thresholds = np.asarray(layers.constant(operation, 1), np.float64)
    layout = operation.text("data_layout", "NCHW")
    require(layout in ("", "NCHW", "NC"), InvalidValueError("data_layout", layout, "NCHW, the layout of the map"))
    require(thresholds.ndim == 2, ShapeError("the thresholds", thresholds.shape, "sides channels × levels"))
    require(datatype.bits <= 8, RangeError("bits of the output of thresholds", datatype.bits, high=8))
    levels = thresholds.shape[1]
    require(
        levels == datatype.levels,
        MismatchError(f"the number of thresholds of {datatype.name}", levels, datatype.levels),
    )
    ascending = bool((np.diff(thresholds, axis=1) >= 0).all()) and not np.isnan(thresholds).any()
    require(ascending, "its thresholds must ascend in every channel")
    scale, bias = operation.number("out_scale", 1.0) / datatype.step, operation.number("out_bias", 0.0)
    fits = bool(np.isfinite([scale, bias]).all()) and scale > 0
    require(fits, InvalidValueError("out_scale and out_bias", (scale, bias), "finite, the scale above 0"))
    zero = datatype.low - bias / scale
    fits = abs(zero) < 1 << 16 and abs(zero - round(zero)) < NEAR
    require(fits, InvalidValueError("out_bias", bias, f"a whole multiple of the scale {scale:g}"))
    return _thresholded(layers, operation, TensorType(datatype, scale, round(zero)), thresholds)


def _thresholded(layers: Layers, operation: OnnxOperation, target: TensorType, thresholds: Array) -> Layers:
    source = layers.map(operation)
    op = layers.nodes[source.node].op
    channels = layers.nodes[source.node].shape.channels
    fits = len(thresholds) in (1, channels)
    require(fits, ShapeError("the thresholds", f"{len(thresholds)} rows", f"1 row or {channels}, one for each channel"))
    own = isinstance(op, (Convolution, Dense)) and op.activation == "linear" and layers.can_merge(operation)
    if not own and layers.can_merge(operation):
        layers, own = _of_maps(in_one_sum(layers, source.node), source.node)
    if not own:
        layers, source = _of_sums(layers, operation, source)
    mark = replace(layers.mark(source.node), type=target, thresholds=thresholds)
    return _with_stated(layers.marked(source.node, mark).with_values(operation, source), operation)


def _of_maps(layers: Layers, index: int) -> tuple[Layers, bool]:
    """Return the network, and whether node ``index``, an addition, product or mean, can take thresholds itself.

    It can if it is a product, an addition or a mean of integers of one scale. It also can if it is an addition of
    integers that are each multiplied by an integer.
    """
    node = layers.nodes[index]
    if not isinstance(node.op, (Add, AveragePool, Multiply)) or getattr(node.op, "activation", "linear") != "linear":
        return layers, False
    types = {layers.type_of(i) for i in node.inputs}
    if None not in types and (len(types) == 1 or isinstance(node.op, Multiply)):
        return layers, True
    factors = [_factor(layers, i) for i in node.inputs]
    multipliers = tuple(_multiplier(layers, *pair) for pair in factors)
    if not isinstance(node.op, Add) or 0 in multipliers:
        return layers, False
    nodes = list(layers.nodes)
    nodes[index] = replace(node, inputs=tuple(source for source, _ in factors))
    mark = replace(layers.mark(index), multipliers=multipliers)
    return replace(layers, nodes=tuple(nodes)).marked(index, mark), True


def _multiplier(layers: Layers, index: int, factor: float) -> int:
    """Return the integer by which the file multiplies the node's integers; 0 if ``factor`` does not give an integer."""
    type_ = layers.type_of(index)
    step = 0.0 if type_ is None else type_.scale * factor
    number = round(step) if step < 2 * WIDE_ADD_LIMIT else 0
    return number if abs(step - number) < NEAR and number <= WIDE_ADD_LIMIT else 0


def _factor(layers: Layers, index: int) -> tuple[int, float]:
    """Return a map of integers and its factor, if the node multiplies it by one number; else the node itself and 1."""
    node = layers.nodes[index]
    op, here = node.op, (index, 1.0)
    if not isinstance(op, Convolution) or op.weights.size != op.groups or layers.type_of(index) is not None:
        return here
    factor = float(op.weights.flat[0])
    plain = op.stride == 1 and op.padding == Padding() and op.activation == "linear" and op.batch_norm is None
    fits = plain and factor > 0 and bool((op.weights == op.weights.flat[0]).all()) and not op.bias.any()
    return (node.inputs[0], factor) if fits and layers.type_of(node.inputs[0]) is not None else here


def _of_sums(layers: Layers, operation: OnnxOperation, source: Map) -> tuple[Layers, Map]:
    """Append a 1×1 depthwise convolution with weights of 1 that compares its input with thresholds."""
    layers = _with_exact_sums(layers, source.node)
    shape, index = layers.nodes[source.node].shape, len(layers.nodes)
    bare = replace(operation, inputs=operation.inputs[:1])
    layers = layers.with_node(bare, "conv", bare_convolution(None, shape.channels), shape, source.node)
    return layers.marked(index, Mark(scale=np.ones(1, np.float32))), replace(source, node=index)


def _with_exact_sums(layers: Layers, index: int) -> Layers:
    """Return the network with an addition or average pool given an INT16 type that holds its sums exactly.

    All maps of an addition must have one scale.
    """
    node = layers.nodes[index]
    if layers.type_of(index) is not None or isinstance(node.op, Input):
        return layers
    types = [layers.type_of(i) for i in node.inputs]
    integers = [type_ for type_ in types if type_ is not None]
    scales = {type_.scale for type_ in integers}
    fits = isinstance(node.op, (Add, AveragePool)) and len(integers) == len(types) and len(scales) == 1
    require(fits, "integers of one scale must be before it, or a convolution or matrix that nothing else reads")
    read = layers.nodes[node.inputs[0]].shape
    count = read.height * read.width if isinstance(node.op, AveragePool) else 1
    ends = [max(type_.datatype.high - type_.zero_point, type_.zero_point - type_.datatype.low) for type_ in integers]
    greatest = count * sum(ends)
    require(greatest <= INT16.high, RangeError("the greatest sum before it", greatest, high=INT16.high))
    return layers.typed(index, TensorType(INT16, scales.pop() / count))


_BUILDERS = (quant, quant, bipolar, multi_threshold, trunc)
QONNX = {f"{domain}.{kind}": build for domain in DOMAINS for kind, build in zip(KINDS, _BUILDERS, strict=True)}
"""The builders by kind, with the domain before the name."""
