"""Trunc of QONNX: integers without their last bits, as Brevitas exports it behind an average pool.

Where t bits are left out of a sum acc, to round down is to round (acc + b) / 2^t with b = 1/2 − 2^(t − 1), to round up
with b = 2^(t − 1) − 1/2. That is what a requantiser does: b is a bias of the layer before and 2^−t its factor, so every
integer is that of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, floor, log2

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, MismatchError, RangeError
from cnn.maps import FloatArray, Padding
from cnn.onnx.graph import Operation, RefusedError, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.quantised.integers import affine_of
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.quantised.operators import Steps
from cnn.onnx.quantised.values import NEAR, Values, bits_of, check_bits, in_values
from cnn.onnx.windows.slide import check_size
from cnn.ops import AveragePool, Convolution, Dense

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
"""What is added to a sum, by the half of 2^t: whole sums and a half lie between those that a mode tells apart, so that
no sum is a half of a step and the layer's own rounding does not matter; but for the modes that are that rounding."""

_OF_EITHER_SIGN = ("FLOOR", "CEIL", "ROUND", "HALF_EVEN")
"""Modes that round values below 0 as those above; the others turn at 0."""


@dataclass(frozen=True, eq=False)
class _Sums:
    """What a layer adds up. unit: the float of a sum's 1, of each filter. low, high: the least and greatest it may be,
    as floats."""

    unit: npt.NDArray[np.float64]
    low: float
    high: float


@dataclass(frozen=True)
class _Request:
    """scale: of the integers that come. dropped: bits that are left out. output_scale: of those that leave. bits: of
    these. signed, narrow: None where the older form does not say it, and cuts nothing off."""

    scale: float
    dropped: int
    output_scale: float
    bits: int
    signed: bool | None
    narrow: bool


def trunc(layers: Layers, operation: Operation) -> Layers:
    """Trunc, with or without an output scale."""
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
    if len(steps.layers.nodes) > count:  # of a layer's own integers: its weights are 1
        steps.layers = steps.layers.marked(count, Mark(scale=np.array([gain], np.float32)))
    name = steps.put("Add", [name, steps.constant(np.array(bias * part * request.output_scale, np.float32))])
    return in_values(steps.layers, replace(operation, inputs=(name,)), values)


def _request_of(layers: Layers, operation: Operation) -> _Request:
    """Inputs scale, zero point, bits that come, and bits that leave; in version 2 a scale before the last."""
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
    """Where it reads the mean of a whole map, or that times a number: a window of each channel by itself, whose sums
    are integers."""
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
    layers = layers.worked_out(4 * shape.values)
    unit: FloatArray = np.array(np.broadcast_to(factor / (window[0] * window[1]), (shape.channels,)), np.float32)
    weights = np.array(np.broadcast_to(unit.reshape(-1, 1, 1, 1), (shape.channels, 1, *window)))
    op = Convolution(weights, np.zeros(shape.channels, np.float32), None, 1, Padding(), shape.channels, "linear")
    nodes = list(layers.nodes)
    nodes[source.node] = replace(node, op=op, inputs=pool.inputs)
    return replace(layers, nodes=tuple(nodes)).marked(source.node, Mark(scale=unit))


def _sums_of(layers: Layers, operation: Operation, source: Map) -> _Sums:
    node, type_ = layers.nodes[source.node], layers.type_of(source.node)
    if type_ is not None:
        low, high = ((end - type_.zero_point) * type_.scale for end in (type_.datatype.low, type_.datatype.high))
        return _Sums(np.array([type_.scale]), low, high)
    op, input_type = node.op, layers.type_of(node.inputs[0]) if node.inputs else None
    fits = isinstance(op, (Convolution, Dense)) and op.activation == "linear" and layers.alone(operation)
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
    """Raise RangeError if the bits of the older form, which clips nothing, do not hold every value."""
    step = request.scale * (1 << request.dropped)
    low, high = floor(sums.low / step + NEAR), ceil(sums.high / step - 1 + NEAR)
    for end in (low, high):
        fault = RangeError(f"an integer in {request.bits} bits", end, values.low, values.high)
        require(values.low <= end <= values.high, fault)
