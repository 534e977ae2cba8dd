"""The integers of a requantiser, which an exported file states in addition to the floats.

Scales and biases in QONNX are float32 and so are rounded. A file gives a bias of 32 bits only approximately, and does
not give an addition's multipliers at all. So exported files also have the integers, as attributes of the operator after
the layer, which other tools ignore. When a file is read, the integers are used if they give the same as the floats
except for rounding. If another tool changed the floats, the floats count.

    systolic_requantiser    int64 [4, channels] for a Requantiser: bias, multiplier, negative, shift.
                            int64 [3, channels] for a MultiplyShift: multiplier, bias, shift.

    systolic_halves         "even" if a half is rounded to an even number of steps from the zero point.
                            "odd" if it is rounded to an odd number. Without this attribute it is rounded up.

    systolic_multipliers    The multipliers of an addition, one per input.

Zero points are subtracted: a bias is the bias of sums of integers minus their zero point, because types may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType, TensorType, magnitude
from cnn.maps import IntArray
from cnn.network import Node
from cnn.onnx.file import load_onnx
from cnn.onnx.graph import OnnxOperation
from cnn.onnx.quantised.mark import Stated
from cnn.ops import Add, Convolution, Dense, Multiply, QAdd, QAveragePool, QConvolution, QDense, QMultiply
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import (
    HALVES,
    MULTIPLIER_LIMIT,
    PRODUCT_BIAS_LIMIT,
    SHIFT_LIMIT,
    UP,
    MultiplyShift,
    Requantiser,
    Requantising,
    Thresholds,
    requantise,
    rounding_after_offset,
)

Doubles: TypeAlias = npt.NDArray[np.float64]
Sums: TypeAlias = QConvolution | QDense | QAveragePool | QAdd | QMultiply

REQUANTISER, ROUNDING, MULTIPLIERS = "systolic_requantiser", "systolic_halves", "systolic_multipliers"

BIAS_LIMIT = (1 << 31) - 1

WIDE_ADD_LIMIT = 1 << 14
"""The greatest multiplier of an addition if a map has more than 8 bits, which weights may have too."""

PROBES = 129
"""The number of sums at which both are compared: over all possible sums, and over sums whose output is not clipped."""

MIXES = 1024
"""The number of combinations of an addition's inputs that are compared."""

_ENDS = {
    3: np.array([(0, -PRODUCT_BIAS_LIMIT, 1), (MULTIPLIER_LIMIT, PRODUCT_BIAS_LIMIT, SHIFT_LIMIT)])[..., None],
    4: np.array([(-BIAS_LIMIT, 1, 0, 1), (BIAS_LIMIT, MULTIPLIER_LIMIT, MULTIPLIER_LIMIT, SHIFT_LIMIT)])[..., None],
}
"""The least and the greatest value of each row, by the number of rows."""

MEAN = 0.25
"""The greatest average difference of a channel's outputs, in steps. Rounding differs in both directions."""

FEW = 32
"""If the outputs of a channel span fewer steps than this, their average difference is not checked."""

SLOPE = 2.0**-11
"""A further difference that is allowed, as a share of the output: multipliers are rounded, and small ones more."""


def attributes_of(network: QuantizedNetwork, node: QNode) -> dict[str, Any]:
    """Return the ONNX attributes that state a layer's requantiser in exact integers; {} if the floats are exact."""
    op, by, type_ = node.op, node.requantiser, node.type
    if by is None or isinstance(by, Thresholds):
        return {}
    if isinstance(by, Requantiser) and not type_.datatype.signed:  # below 0 the output is 0 for any multiplier
        by = MultiplyShift(by.multiplier, by.bias * by.multiplier, by.shift, halves=by.halves)
    assert isinstance(op, Sums)
    sources = [network.nodes[i] for i in node.inputs]
    at_zero = _at_zero(op, [source.type for source in sources], sources[0].shape.height * sources[0].shape.width)
    if isinstance(by, MultiplyShift):  # filters are written with the sign that makes their multiplier positive
        bias = by.bias + by.multiplier * at_zero - (type_.zero_point << by.shift)
        rows = np.stack([np.abs(by.multiplier), bias, by.shift])
    else:
        rows = np.stack([by.bias + at_zero, by.multiplier, by.negative, by.shift])
    rows = rows[:, :1] if bool((rows == rows[:, :1]).all()) else rows
    named: dict[str, Any] = {REQUANTISER: load_onnx().numpy_helper.from_array(np.ascontiguousarray(rows))}
    if by.halves != UP:
        named[ROUNDING] = rounding_after_offset(by.halves, type_.zero_point)
    return {**named, MULTIPLIERS: list(op.multipliers)} if isinstance(op, QAdd) else named


def stated_of(operation: OnnxOperation) -> Stated | None:
    """Return the exact requantiser integers in an ONNX operator's attributes; None if it has none, or no valid ones."""
    rows, multipliers = operation.attributes.get(REQUANTISER), operation.attributes.get(MULTIPLIERS, ())
    halves = operation.attributes.get(ROUNDING, UP)
    if not (isinstance(rows, np.ndarray) and rows.dtype == np.int64 and rows.ndim == 2 and len(rows) in (3, 4)):
        return None
    if not (isinstance(multipliers, tuple) and all(isinstance(value, int) for value in multipliers)):
        return None
    return Stated(rows, multipliers, halves) if halves in HALVES else None


def as_stated(node: QNode, stated: Stated, inputs: Sequence[TensorType], positions: int) -> Sums:
    """Return the layer's operation with the requantiser that the file states, if that agrees with its own; else itself.

    Args:
        node: The layer.
        stated: The integers.
        inputs: The types of its inputs.
        positions: The positions that an average pool takes the mean of.
    """
    op, channels = node.op, node.shape.channels
    assert isinstance(op, Sums)
    if stated.rows.shape[1] not in (1, channels):
        return op
    if isinstance(op, QAdd):
        fits = len(stated.multipliers) == len(inputs) and all(
            1 <= value <= WIDE_ADD_LIMIT for value in stated.multipliers
        )
        if not fits:
            return op
        candidate: Sums = replace(op, multipliers=stated.multipliers)
    else:
        candidate = op
    rows = np.array(np.broadcast_to(stated.rows, (len(stated.rows), channels)))
    by = _requantiser(rows, _at_zero(candidate, inputs, positions), node.type.zero_point)
    if by is None:
        return op
    by = replace(by, halves=rounding_after_offset(stated.halves, node.type.zero_point))
    candidate = replace(candidate, requantiser=by)
    return candidate if _agree(node, candidate, inputs, positions) else op


def float_form(node: Node, quantised: QNode, sources: Sequence[TensorType]) -> Node:
    """Return the float layer that matches an integer layer, for a file that has only thresholds instead of floats.

    Args:
        node: The float layer.
        quantised: The quantised layer.
        sources: The types of its inputs.
    """
    op, by, type_ = node.op, quantised.requantiser, quantised.type
    if isinstance(by, Thresholds) or by is None or not isinstance(op, (Add, Convolution, Dense, Multiply)):
        return node
    ends = type_.zero_point == type_.datatype.low
    activation = "relu" if ends else "linear"
    if isinstance(by, Requantiser) and not ends and not np.array_equal(by.negative, by.multiplier):
        activation = "leaky" if by.negative.any() else "relu"
    if not isinstance(quantised.op, (QConvolution, QDense)) or not isinstance(op, (Convolution, Dense)):
        return replace(node, op=replace(op, activation=activation))
    gain = np.ldexp(by.multiplier.astype(np.float64), -by.shift.astype(np.int32))
    late = np.ldexp(by.bias.astype(np.float64), -by.shift.astype(np.int32))
    offset = late if isinstance(by, MultiplyShift) else by.bias * gain
    offset = offset + gain * _at_zero(quantised.op, sources, 1) - type_.zero_point
    column = (gain * type_.scale / sources[0].scale).reshape(-1, *(1,) * (op.weights.ndim - 1))
    weights, bias = (quantised.op.weights * column).astype(np.float32), (offset * type_.scale).astype(np.float32)
    return replace(node, op=replace(op, weights=weights, bias=bias, batch_norm=None, activation=activation))


def _at_zero(op: Sums, inputs: Sequence[TensorType], positions: int) -> IntArray | int:
    """Return the sum of each filter for inputs that all represent 0, which are at their zero points."""
    zeros = [source.zero_point for source in inputs]
    if isinstance(op, QAdd):
        return sum(m * zero for m, zero in zip(op.multipliers, zeros, strict=True))
    if isinstance(op, QAveragePool):
        return positions * zeros[0]
    if isinstance(op, QMultiply):
        return 0
    return np.asarray(_rows(op).sum(axis=1) * zeros[0])


def _rows(op: QConvolution | QDense) -> npt.NDArray[np.int64]:
    """Return a layer's weights as int64 [filters, weights of a filter]."""
    return op.weights.reshape(len(op.weights), -1).astype(np.int64)


def _requantiser(rows: IntArray, at_zero: IntArray | int, zero: int) -> Requantiser | MultiplyShift | None:
    """Return the requantiser that the file's rows of integers state; None if a number is outside its range."""
    low, high = _ENDS[len(rows)]
    if bool((rows < low).any() or (rows > high).any()):
        return None
    shift = rows[-1]
    if len(rows) == 3:
        multiplier, bias = rows[:2]
        return MultiplyShift(multiplier, bias - multiplier * at_zero + (np.int64(zero) << shift), shift)
    bias, multiplier, negative = rows[:3]
    return Requantiser(bias - at_zero, multiplier, negative, shift)


def _agree(node: QNode, candidate: Sums, inputs: Sequence[TensorType], positions: int) -> bool:
    """Return whether a layer with the stated requantiser gives the same outputs as without, except for rounding."""
    op = node.op
    assert isinstance(op, Sums)
    if isinstance(op, QAdd) and isinstance(candidate, QAdd):
        mixes = _mixes(inputs)
        sums = [np.tensordot(np.array(each.multipliers), mixes, 1)[None] for each in (op, candidate)]
    else:
        sums = [_probes(candidate.requantiser, _bounds(op, inputs, positions), node.type)] * 2
    channels = node.shape.channels
    first, second = (
        requantise(np.broadcast_to(array, (channels, array.shape[1])), each.requantiser, node.type.datatype)
        for array, each in zip(sums, (op, candidate), strict=True)
    )
    by = candidate.requantiser
    assert isinstance(by, (Requantiser, MultiplyShift))
    half = np.where(by.multiplier == 0, 1.0, np.ldexp(by.multiplier.astype(np.float64), -1 - by.shift.astype(np.int32)))
    return _close(first.astype(np.float64), second.astype(np.float64), half, node.type.datatype)


def _close(first: Doubles, second: Doubles, half: Doubles, datatype: DataType) -> bool:
    """Return whether two outputs [channels, …] differ by at most a step, and on average by less, if not clipped.

    half: [channels], the output of half of a sum's 1. It is allowed because biases in floats are rounded to whole sums.
    """
    difference, room = (first - second) / datatype.step, SLOPE * np.abs(second) + half[:, None]
    unclipped = (second > datatype.low) & (second < datatype.high)
    counts = np.maximum(unclipped.sum(axis=1), 1)
    mean, mean_room = ((values * unclipped).sum(axis=1) / counts for values in (difference, room))
    few = np.ptp(second, axis=1) < FEW * datatype.step
    return bool((np.abs(difference) <= 1 + room).all() and (few | (np.abs(mean) <= MEAN + mean_room)).all())


_NO_BIAS = MultiplyShift(*np.zeros((3, 1), np.int64))


def _bounds(op: Sums, inputs: Sequence[TensorType], positions: int) -> IntArray:
    """Return a bound of |sum| for each channel, [channels, 1] or [1, 1]."""
    if isinstance(op, (QConvolution, QDense)):
        return np.asarray(np.abs(_rows(op)).sum(axis=1, keepdims=True) * magnitude(inputs[0].datatype))
    plain = replace(op, requantiser=_NO_BIAS)
    return np.array([[plain.accumulator_bound(*(each.datatype for each in inputs), positions=positions)]])


def _probes(by: Requantising, bound: IntArray, type_: TensorType) -> IntArray:
    """Return sums at which two requantisers are compared, int64 [channels, …], between −bound and bound."""
    assert isinstance(by, (Requantiser, MultiplyShift))
    multiplier = np.maximum(by.multiplier, 1).astype(np.float64)
    middle = -by.bias / (1.0 if isinstance(by, Requantiser) else multiplier)
    reach = np.ldexp(2.0 * magnitude(type_.datatype), by.shift.astype(np.int32)) / multiplier
    ramp = np.linspace(-1.0, 1.0, PROBES)
    steps = np.clip(middle[:, None] + reach[:, None] * ramp, -bound, bound)
    everywhere = np.broadcast_to(bound * ramp, steps.shape)
    return np.asarray(np.rint(np.concatenate([steps, everywhere], axis=1)), np.int64)


def _mixes(inputs: Sequence[TensorType]) -> npt.NDArray[np.int64]:
    """Return sample integers of an addition's inputs, [inputs, MIXES], including all least, greatest and zero
    points."""
    random = np.random.default_rng(len(inputs))
    drawn = [random.integers(t.datatype.low, t.datatype.high, MIXES, np.int64, endpoint=True) for t in inputs]
    for row, source in zip(drawn, inputs, strict=True):
        row[:3] = source.datatype.low, source.datatype.high, source.zero_point
    return np.stack(drawn)
