"""A float network and the types of its tensors → the quantised network with the integers of the file.

With zero points z, weights w, x and y integers of input and output, and scales s, one filter is

    y = round(r · (Σ w · (x − z_x) + b)) + z_y,    r = s_x · s_w / s_y

so that −z_x · Σ w, b and z_y / r make one bias. z_y / r and a bias that is no whole number are rounded there; r is
m/2^s. Both together leave y within one step of the formula, and equal where r · (…) is not near a half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from boards.errors import (
    InvalidValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
)
from cnn.accumulator import accumulator_bound
from cnn.activations import FUNCTIONS
from cnn.datatype import BIPOLAR, INT16, TERNARY, DataType
from cnn.network import Activate, Add, AveragePool, Convolution, Dense, FloatArray, Input, Multiply, Network, Node
from cnn.onnx.activations import GATES
from cnn.onnx.graph import RefusedError, named
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.onnx.quantised.stated import WIDE_ADD_LIMIT, Sums, as_stated, float_form
from cnn.quantisation.quantise import add_multipliers, requantiser_for, table_of
from cnn.quantisation.tables import WIDEST_BITS, table_of_values
from cnn.quantisation.tensor_types import HOST, PASSES_ON, PIXEL, given_type
from cnn.quantized import (
    TABLE_BITS,
    IntArray,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QNode,
    QOp,
    QuantizedNetwork,
    Requantiser,
    Requantising,
    Table,
    TensorType,
    Thresholds,
    identity,
)
from cnn.quantized_check import THRESHOLD_LIMIT, check_quantized

Doubles = npt.NDArray[np.float64]
ADD_LIMIT = 127
"""Of the multipliers of an addition, which are weights on the accelerator."""

LARGEST = 1 << 48
"""Of integers that are looked at more closely: what is beyond fits no sum."""

WHOLE = 1e-2
"""How far a float may be from a whole number of steps, which it was written as."""


def integer_network(network: Network, marks: Mapping[int, Mark]) -> QuantizedNetwork:
    """Return the network with the same indices.

    Raises:
        SeveralFaultsError: Layers have no integers in the file: an error for each of them.
        SystolicError: The integers do not keep the arithmetic contract, as ``check_quantized``.
    """
    types: list[TensorType] = []
    nodes: list[QNode] = []
    floats: list[SystolicError] = []
    for index, node in enumerate(network.nodes):
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused, or beyond every sum
                inputs, mark = [types[i] for i in node.inputs], marks.get(index, NO_MARK)
                op, type_ = _quantised(node, inputs, mark, network)
                op = _stated(QNode(node.name, op, node.inputs, node.shape, type_, node.source), inputs, mark, network)
        except SystolicError as error:  # of any value of the layer
            floats.append(named(error, f"{node.name!r} ({node.source})"))
            op, type_ = QInput(), types[node.inputs[0]] if node.inputs else PIXEL
        types.append(type_)
        nodes.append(QNode(node.name, op, node.inputs, node.shape, type_, node.source))
    if floats:
        subject = f"{len(floats)} of {len(network.nodes)} layers cannot take integers from the file"
        raise SeveralFaultsError(floats, subject, where=network.name)
    return check_quantized(QuantizedNetwork(network.name, tuple(nodes), network.labels, network.named_outputs))


def with_float_forms(network: Network, quantized: QuantizedNetwork, marks: Mapping[int, Mark]) -> Network:
    """The float network with the layers of which thresholds alone stand in the file as their integers have them."""
    nodes = list(network.nodes)
    for index, mark in marks.items():
        if mark.thresholds is not None:
            sources = [quantized.nodes[i].type for i in nodes[index].inputs]
            nodes[index] = float_form(nodes[index], quantized.nodes[index], sources)
    return replace(network, nodes=tuple(nodes))


def _stated(node: QNode, inputs: list[TensorType], mark: Mark, network: Network) -> QOp:
    """What the node computes, with the integers that the file says besides."""
    if mark.stated is None or not isinstance(node.op, Sums):
        return node.op
    source = network.nodes[node.inputs[0]].shape
    return as_stated(node, mark.stated, inputs, source.height * source.width)


def _quantised(node: Node, inputs: list[TensorType], mark: Mark, network: Network) -> tuple[QOp, TensorType]:
    op, type_ = node.op, mark.type
    if isinstance(op, Input):
        return QInput(), PIXEL
    if isinstance(op, HOST):
        return op, given_type(network, node, inputs[0])
    if isinstance(op, PASSES_ON):
        if len(set(inputs)) > 1:
            raise RefusedError("it joins maps of several scales, and has none of its own")
        return op, inputs[0]
    if isinstance(op, (Convolution, Dense)):
        return _weighted(op, inputs[0], mark, node)
    if type_ is None:
        raise RefusedError("no QuantizeLinear follows it")
    if isinstance(op, AveragePool):
        shape = network.nodes[node.inputs[0]].shape
        return _mean(inputs[0], type_, mark, node, shape.height * shape.width), type_
    if isinstance(op, Add):
        return _added(op, inputs, mark, node), type_
    if isinstance(op, Multiply):
        return QMultiply(_product(op, inputs, type_, mark, node)), type_
    assert isinstance(op, Activate)
    if mark.gate is not None:
        return QActivate(_gated(op, inputs[0], mark.gate, type_)), type_
    return QActivate(table_of(op, inputs[0], type_, node)), type_


def _gated(op: Activate, source: TensorType, gate: TensorType, output: TensorType) -> Table:
    """x · f(x) where f(x) is brought to integers first."""
    if source.datatype.bits > WIDEST_BITS:
        raise RangeError("bits of the integers that a table is looked up by", source.datatype.bits, high=WIDEST_BITS)
    (function,) = (name for name, product in GATES.items() if product == op.function)
    x = (np.arange(source.datatype.low, source.datatype.high + 1) - source.zero_point) * source.scale
    factor = _stepped(FUNCTIONS[function].values(x, *op.parameters), gate)
    values = _stepped(x * (factor - gate.zero_point) * gate.scale, output).astype(np.int64)
    return table_of_values(values, source.datatype)


def _stepped(values: Doubles, type_: TensorType) -> Doubles:
    integers = np.rint(values / type_.scale) + type_.zero_point
    return np.asarray(np.clip(integers, type_.datatype.low, type_.datatype.high), np.float64)


def _product(op: Multiply, inputs: list[TensorType], type_: TensorType, mark: Mark, node: Node) -> Requantising:
    """Of maps whose zero points are 0."""
    step = inputs[0].scale * inputs[1].scale
    if mark.thresholds is not None:
        return _compared(mark.thresholds, step, 0, node)
    ratio = np.full(node.shape.channels, step / type_.scale)
    return _shifted(ratio, np.zeros(ratio.size), type_, op.activation, node)


def _mean(source: TensorType, type_: TensorType, mark: Mark, node: Node, count: int) -> QAveragePool:
    """count: of positions."""
    if mark.thresholds is not None:
        return QAveragePool(_compared(mark.thresholds, source.scale / count, count * source.zero_point, node))
    ratio = np.full(node.shape.channels, source.scale / (count * type_.scale))
    offset = np.full(node.shape.channels, -float(source.zero_point * count))
    return QAveragePool(_shifted(ratio, offset, type_, "linear", node))


def _added(op: Add, inputs: list[TensorType], mark: Mark, node: Node) -> QAdd:
    """Counted: of integers of one scale, or of integers that the file multiplies each by its own whole number."""
    assert mark.type is not None
    if mark.thresholds is None:
        return _sum(op, inputs, mark.type, node)
    multipliers, step = mark.multipliers or (1,) * len(inputs), 1.0 if mark.multipliers else inputs[0].scale
    zero = sum(m * source.zero_point for m, source in zip(multipliers, inputs, strict=True))
    return QAdd(multipliers, _compared(mark.thresholds, step, zero, node))


def _sum(op: Add, inputs: list[TensorType], type_: TensorType, node: Node) -> QAdd:
    greatest = max(source.scale for source in inputs)
    limit = ADD_LIMIT if max(each.datatype.bits for each in (*inputs, type_)) <= TABLE_BITS else WIDE_ADD_LIMIT
    multipliers, unit = add_multipliers([source.scale / greatest for source in inputs], limit)
    zero = sum(m * source.zero_point for m, source in zip(multipliers, inputs, strict=True))
    channels = node.shape.channels
    ratio = np.full(channels, greatest / unit / type_.scale)
    return QAdd(multipliers, _shifted(ratio, np.full(channels, -float(zero)), type_, op.activation, node))


def _compared(edges: FloatArray, step: float, zero: int, node: Node) -> Thresholds:
    """step: the float of a sum's 1. zero: the sum where the float is 0."""
    channels = node.shape.channels
    return _reached(np.broadcast_to(edges / step + float(zero), (channels, edges.shape[1])))


def _shifted(ratio: Doubles, offset: Doubles, type_: TensorType, activation: str, node: Node) -> Requantiser:
    """y = round(ratio · (acc + offset)) + zero point, cut off where the activation is."""
    if type_.zero_point and activation not in ("linear", "relu", "relu6"):
        raise InvalidValueError(
            f"the zero point of its {activation}", type_.zero_point, "0", remedy="quantise its input too"
        )
    # With a zero point the integers end where a relu does: cnn.onnx.quantised.linear saw to it.
    end = "linear" if type_.zero_point else activation
    bias = np.rint(offset + type_.zero_point / ratio)
    if not (np.abs(bias) < LARGEST).all():
        greatest = float(np.abs(bias).max())
        raise RangeError("its bias or zero point, in steps of its sums,", greatest, high=LARGEST - 1)
    return requantiser_for(ratio, bias.astype(np.int64), end, node)


def _scales(op: Convolution | Dense, scale: FloatArray | None) -> Doubles:
    """Return the scale of each filter; RefusedError if its weights are floats."""
    rows = op.weights.reshape(len(op.weights), -1).astype(np.float64)
    if scale is not None and scale.size in (1, len(rows)):
        return np.array(np.broadcast_to(scale.astype(np.float64), (len(rows),)))
    if np.array_equal(rows, np.rint(rows)) and np.abs(rows).max() < 1 << 15:
        return np.ones(len(rows))
    # A single weight is exact in any number of bits; a filter of several needs the file's scale.
    if max(np.count_nonzero(rows, axis=1)) <= 1:
        greatest = np.abs(rows).max(axis=1)
        return np.where(greatest > 0, greatest, 1.0) / 127
    raise RefusedError(
        "its weights are floats, not of a DequantizeLinear; quantise all layers (onnxruntime: as QDQ) or none"
    )


def _weighted(
    op: Convolution | Dense, source: TensorType, mark: Mark, node: Node
) -> tuple[QConvolution | QDense, TensorType]:
    """A convolution or matrix, its batch norm and bias and both zero points in the requantiser."""
    type_, scale = mark.type, _scales(op, mark.scale)
    weights = _whole(op.weights, scale)
    gain, offset = affine_of(op)
    weights = weights * np.sign(gain).astype(np.int64).reshape(-1, *(1,) * (weights.ndim - 1))
    unit = source.scale * scale * np.abs(gain)  # the float of a sum's 1
    unit = np.where(unit > 0, unit, source.scale)
    totals = weights.reshape(len(weights), -1).sum(axis=1)
    shift = offset / unit - float(source.zero_point) * totals
    weight_type = _narrow(weights)
    carried = weights.astype(weight_type.carrier)
    if type_ is None:
        type_ = _pixels_moved(op, source, unit, weights, shift) or _leaving(carried, weight_type, source, unit, shift)
    if mark.thresholds is not None:
        edges = (mark.thresholds - offset[:, None]) / unit[:, None] + float(source.zero_point) * totals[:, None]
        return _layer(op, carried, weight_type, _reached(edges), source), type_
    by = _shifted(unit / type_.scale, shift, type_, op.activation, node)
    return _layer(op, carried, weight_type, by, source), type_


def _layer(
    op: Convolution | Dense, weights: IntArray, weight_type: DataType, by: Requantising, source: TensorType
) -> QConvolution | QDense:
    if isinstance(op, Dense):
        return QDense(weights, weight_type, by)
    return QConvolution(weights, weight_type, by, op.stride, op.padding, op.groups, source.zero_point)


def _reached(edges: Doubles) -> Thresholds:
    """The least sums that reach ``edges`` [filters, levels]. Floats that were written as whole numbers are such."""
    near = np.rint(edges)
    sums = np.where(np.abs(edges - near) <= 1e-6 * np.maximum(1, np.abs(near)), near, np.ceil(edges))
    limited = np.clip(sums, -THRESHOLD_LIMIT, THRESHOLD_LIMIT).astype(np.int64)
    return Thresholds(limited, np.zeros(len(edges), np.bool_))


def _pixels_moved(
    op: Convolution | Dense, source: TensorType, unit: Doubles, weights: IntArray, shift: Doubles
) -> TensorType | None:
    """Of pixels that a factor and whole steps of it are all that happened to, as a Cast of integers does it: 8 bits,
    which they fill. None of others."""
    factors = weights.ravel().astype(np.float64)
    is_bare = isinstance(op, Convolution) and factors.size == op.groups == len(weights) and op.activation == "linear"
    if source != PIXEL or not is_bare or not factors.all() or not np.isfinite(shift).all():
        return None
    step, offsets = unit * factors, shift / factors
    zero = -128 - round(float(offsets[0]))
    is_one = np.allclose(step, step[0], 1e-6, 0) and np.allclose(offsets, -128 - zero, 0, 1e-4)
    fits = is_one and step[0] > 0 and -128 <= zero <= 127
    return TensorType(DataType(8, True), float(step[0]), zero) if fits else None


def _leaving(weights: IntArray, weight_type: DataType, source: TensorType, unit: Doubles, shift: Doubles) -> TensorType:
    """Of sums that leave as floats: INT16 that no sum exceeds, the sums themselves where these fit."""
    plain = QDense(weights.reshape(len(weights), -1), weight_type, identity(len(weights)))
    bound = accumulator_bound(plain, source.datatype) + np.abs(shift)
    same = float(unit[0]) if bool((unit == unit[0]).all()) else 0.0
    return TensorType(INT16, max(float((bound * unit).max()) / INT16.high, same))


def _whole(weights: FloatArray, scale: Doubles) -> IntArray:
    steps = weights / scale.reshape(-1, *(1,) * (weights.ndim - 1))
    integers = np.rint(steps)
    if np.abs(steps - integers).max() > WHOLE:
        raise RefusedError("its weights are not multiples of their scale; something changed them after quantisation")
    if not np.abs(integers).max() < LARGEST:
        raise RangeError("the greatest weight, in steps of its scale,", float(np.abs(integers).max()), high=LARGEST - 1)
    return integers.astype(np.int64)


def _narrow(weights: IntArray) -> DataType:
    """BIPOLAR, TERNARY, or the fewest bits that hold the greatest and its negative."""
    greatest = int(np.abs(weights).max(initial=1))
    if greatest == 1:
        return BIPOLAR if weights.all() else TERNARY
    return DataType(greatest.bit_length() + 1, True)


def affine_of(op: Convolution | Dense) -> tuple[Doubles, Doubles]:
    """What the layer does to its sums: gain and offset of each filter."""
    norm = op.batch_norm
    if norm is None:
        return np.ones(len(op.weights)), op.bias.astype(np.float64)
    gain = norm.scale.astype(np.float64) / np.sqrt(norm.variance.astype(np.float64) + norm.epsilon)
    return gain, op.bias.astype(np.float64) - norm.mean.astype(np.float64) * gain
