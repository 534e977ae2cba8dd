"""Turns a calibrated float network into an integer network (docs/explanation/quantisation.md has the contract).

before   convolution, float weights, batch norm, leaky

after    QConvolution, integer weights, and a requantiser with bias, multipliers and shift per output channel
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from boards.errors import (
    ChoiceError,
    DoesNotFitError,
    InvalidValueError,
    MismatchError,
    RangeError,
    SeveralFaultsError,
    UnsupportedError,
)
from cnn.activations import ACTIVATIONS, FUNCTIONS, SLOPES
from cnn.datatype import DataType, TensorType, magnitude
from cnn.maps import IntArray
from cnn.network import Network, Node
from cnn.ops import (
    ADD_LIMIT,
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    Custom,
    Dense,
    DepthToSpace,
    Detection,
    Input,
    IntegerSoftmax,
    MaxPool,
    Multiply,
    Output,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QOp,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
    assert_never,
)
from cnn.ops.softmax import softmax_of
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantisation.calibration import CalibratedRanges
from cnn.quantisation.reconstruction import Reconstruction
from cnn.quantisation.rounding import Filters, Rounding, WeightGrid, round_to_nearest
from cnn.quantisation.tensor_types import tensor_types
from cnn.quantisation.widths import shared_bits
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import MULTIPLIER_LIMIT, SHIFT_LIMIT, Requantiser
from cnn.tables import WIDEST_BITS, Table, table_of_values

FORMATS = (4, 8, 16)
"""The bits of weights and activations for which an accelerator can be made."""

ACCUMULATOR_LIMIT = (1 << 31) - 1

Doubles = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


def quantise_format(
    network: Network, ranges: CalibratedRanges, bits: int, pictures: Sequence[npt.NDArray[np.uint8]] = ()
) -> QuantizedNetwork:
    """Return the integer network for an accelerator whose lanes hold values of ``bits`` bits: 4, 8 or 16.

    With 16 bits, sums must still fit 32 bits. Activations get the bits that cnn.quantisation.widths computes, and each
    filter's weights get the bits that remain in its sum.

    Raises:
        ChoiceError: There is no such format.
        SystolicError: ``quantise`` raised it.
    """
    if bits not in FORMATS:
        raise ChoiceError("the bits of an accelerator's format", bits, FORMATS)
    activation_bits: int | tuple[int, ...] = bits
    if bits == 16:
        _check_ranges(network, ranges)
        activation_bits = shared_bits(fold_batch_norms(network), ranges)
    return quantise(network, ranges, bits=bits, activation_bits=activation_bits, pictures=pictures)


def quantise(
    network: Network,
    ranges: CalibratedRanges,
    *,
    bits: int | Sequence[int] = 8,
    activation_bits: int | Sequence[int] = 8,
    pictures: Sequence[npt.NDArray[np.uint8]] = (),
    zero_points: Sequence[int] = (),
) -> QuantizedNetwork:
    """Return the integer network of a float network and its calibrated ranges, with the same node indices.

    The picture is UINT8 with the scale 1/255 for all bits. The output of the last integer layer is INT16.

    Args:
        network: The float network.
        ranges: The ranges that calibration chose.
        bits: The bits of weights, 2…16, one number for all nodes or one per node. Weights are symmetric and narrow,
            with a scale per output channel.
        activation_bits: The bits of activations, 2…16, one number for all nodes or one per node. Activations have a
            scale per tensor.
        pictures: uint8 [channels, height, width] each. Weights are fitted to them (cnn.quantisation.reconstruction).
            Without pictures each weight is rounded to the nearest integer.
        zero_points: One per node, as cnn.quantisation.zero_points chooses them; none stands for 0 everywhere.

    Raises:
        SeveralFaultsError: Layers cannot be quantised; each has an UnsupportedError.
        RangeError: Bits, a range or a scale are outside the range that integers can hold.
        MismatchError: The ranges belong to another network.
        DoesNotFitError: A filter has so many weights that its sums can exceed an accumulator.
        UnsupportedError: A concat joins tensors without a common type.
    """
    _check_bits(bits, activation_bits)
    _check_ranges(network, ranges)
    _check_supported(network)
    folded = fold_batch_norms(network)
    types = tensor_types(folded, ranges, activation_bits, zero_points)
    fitting = Reconstruction(folded, pictures) if pictures else None
    nodes = []
    for index in range(len(folded.nodes)):
        weight_bits = bits if isinstance(bits, int) else bits[index]
        nodes.append(_quantise_node(index, folded, types, weight_bits, fitting))
        if fitting is not None:
            fitting.append(nodes[-1])
    return check_quantized(QuantizedNetwork(network.name, tuple(nodes), network.labels, network.named_outputs))


def _check_bits(bits: int | Sequence[int], activation_bits: int | Sequence[int]) -> None:
    for values, counts in (("weights", bits), ("activations", activation_bits)):
        for count in [counts] if isinstance(counts, int) else counts:
            if not 2 <= count <= 16:
                raise RangeError(f"the bits of {values}", count, 2, 16)


def _check_ranges(network: Network, ranges: CalibratedRanges) -> None:
    if not len(ranges.values) == len(ranges.greatest) == len(network.nodes):
        what = f"the number of ranges, one for each node of {network.name!r},"
        raise MismatchError(what, len(ranges.values), len(network.nodes), remedy="calibrate this network")
    for node, *both in zip(network.nodes, ranges.values, ranges.greatest, strict=True):
        for value in both:
            if not (np.isfinite(value) and value >= 0):
                raise InvalidValueError("the range", float(value), "finite and at least 0", where=node.place)


def _check_supported(network: Network) -> None:
    wrong = [error for node in network.nodes if (error := _unsupported(node, network)) is not None]
    if wrong:
        raise SeveralFaultsError(
            wrong,
            f"{len(wrong)} layer(s) of {network.name!r} cannot be quantised",
            remedy="replace them and train again, or leave them to the host after the last integer layer",
        )


def _unsupported(node: Node, network: Network) -> UnsupportedError | None:
    op, kind = node.op, type(node.op).__name__
    read = next((network.nodes[i] for i in node.inputs if network.nodes[i].op.on_host), None)
    if read is not None and not op.on_host:
        subject = f"{kind} that reads {read.name!r}"
        return UnsupportedError(subject, "the host computes that layer in float", where=node.place)
    if isinstance(op, Upsample) and op.scale != 1.0:
        subject = f"Upsample with the scale {op.scale:g}"
        return UnsupportedError(subject, "only 1 keeps the integers", where=node.place)
    if isinstance(op, (Convolution, Dense, Add, Multiply)) and op.activation not in ACTIVATIONS:
        reason = f"only {', '.join(ACTIVATIONS)} are one multiplication"
        return UnsupportedError(f"{kind} with the activation {op.activation}", reason, where=node.place)
    return None


def _quantise_node(
    index: int, network: Network, types: tuple[TensorType, ...], bits: int, fitting: Reconstruction | None
) -> QNode:
    node = network.nodes[index]
    inputs = tuple(types[i] for i in node.inputs)
    rounding = partial(fitting.round, index) if fitting and isinstance(node.op, Convolution) else round_to_nearest
    op = _quantise_op(node, network, inputs, types[index], DataType(bits, True), rounding)
    return QNode(node.name, op, node.inputs, node.shape, types[index], node.source)


def _quantise_op(
    node: Node,
    network: Network,
    inputs: tuple[TensorType, ...],
    output: TensorType,
    weight_type: DataType,
    rounding: Rounding,
) -> QOp:
    match node.op:
        case Input():
            return QInput()
        case Convolution() | Dense() as op:
            return _quantise_weighted(node, op, inputs[0], output, weight_type, rounding)
        case AveragePool():
            shape = network.nodes[node.inputs[0]].shape
            return _quantise_average(shape.height * shape.width, inputs[0], output, node)
        case Add() as op:
            return _quantise_add(op.activation, inputs, output, node, weight_type)
        case Multiply() as op:
            ratio = inputs[0].scale * inputs[1].scale / output.scale
            return QMultiply(_plain_requantiser(ratio, 0, output, op.activation, node))
        case Activate() as op:
            return QActivate(table_of(op, inputs[0], output, node))
        case IntegerSoftmax() as op:
            return softmax_of(op.method, inputs[0])
        case MaxPool() | Concat() | Slice() | Reorg() | DepthToSpace() | Pad() | Upsample() | Custom() as op:
            return op
        case Softmax() | TopK() | Output() | Detection() as op:
            return op
    assert_never(node.op)


def _quantise_average(count: int, source: TensorType, output: TensorType, node: Node) -> QAveragePool:
    """Return a global average pool over ``count`` positions as an integer sum whose requantiser divides."""
    ratio = source.scale / (count * output.scale)
    return QAveragePool(_plain_requantiser(ratio, -count * source.zero_point, output, "linear", node))


def table_of(op: Activate, source: TensorType, output: TensorType, node: Node) -> Table:
    """Return the lookup table of an activation: y = round(f(x · input scale) / output scale), saturated, for every x.

    Zero points are subtracted from the input and added to the output. An input of more than 8 bits gives a
    piecewise-linear table through these values (cnn.tables).

    Raises:
        RangeError: The input has more than 16 bits.
    """
    if source.datatype.bits > WIDEST_BITS:
        what, remedy = f"the bits that {op.function} looks up", f"quantise its input to {WIDEST_BITS} bits or fewer"
        raise RangeError(what, source.datatype.bits, high=WIDEST_BITS, where=node.place, remedy=remedy)
    return table_of_values(values_of_function(op, source, output), source.datatype)


def values_of_function(op: Activate, source: TensorType, output: TensorType) -> npt.NDArray[np.int64]:
    """Return an activation's output integers for every input of the type ``source``, in ascending order of inputs."""
    read, out = source.datatype, output.datatype
    x = (np.arange(read.low, read.high + 1) - source.zero_point) * np.float64(source.scale)
    y = np.floor(FUNCTIONS[op.function].values(x, *op.parameters) / output.scale + 0.5) + output.zero_point
    return np.asarray(np.clip(y, out.low, out.high), np.int64)


def _quantise_add(
    activation: str, inputs: tuple[TensorType, ...], output: TensorType, node: Node, weight_type: DataType
) -> QAdd:
    greatest = max(t.scale for t in inputs)
    multipliers, unit = add_multipliers([t.scale / greatest for t in inputs], min(weight_type.high, ADD_LIMIT))
    zeros = sum(m * source.zero_point for m, source in zip(multipliers, inputs, strict=True))
    return QAdd(multipliers, _plain_requantiser(greatest / unit / output.scale, -zeros, output, activation, node))


def add_multipliers(ratios: Sequence[float], limit: int) -> tuple[tuple[int, ...], int]:
    """Return the integer multipliers of an addition's inputs, and the integer that stands for a ratio of 1.

    The multipliers are in the ratios of the inputs' scales. Of all sets of multipliers up to ``limit``, the nearest to
    these ratios is returned, and of equally near ones the least. Multipliers are as narrow as weights, so that the
    array can compute additions as it computes convolutions.

    Args:
        ratios: The scale of each input, as a share of the greatest scale.
        limit: The greatest multiplier.
    """
    units = np.arange(1, limit + 1)
    multipliers = np.maximum(1, np.rint(np.outer(ratios, units))).astype(np.int64)
    errors = np.abs(multipliers / units - np.array(ratios)[:, None]).max(axis=0)
    best = int(np.argmin(errors))
    return tuple(int(multiplier) for multiplier in multipliers[:, best]), int(units[best])


def _quantise_weighted(
    node: Node,
    op: Convolution | Dense,
    source: TensorType,
    output: TensorType,
    weight_type: DataType,
    rounding: Rounding,
) -> QConvolution | QDense:
    weights, bias, ratio = _integers(node, op, source, output, weight_type, rounding)
    requantiser = requantiser_for(ratio, bias, _ending(op.activation, output), node)
    if isinstance(op, Dense):
        return QDense(weights, weight_type, requantiser)
    around = source.zero_point
    return QConvolution(weights, weight_type, requantiser, op.stride, op.padding, op.groups, around, op.dilation)


def _integers(
    node: Node,
    op: Convolution | Dense,
    source: TensorType,
    output: TensorType,
    weight_type: DataType,
    rounding: Rounding,
) -> tuple[IntArray, Longs, Doubles]:
    """Return a layer's integer weights, its int64 bias at accumulator scale, and the ratio accumulator / output scale.

    Bias and ratio are per channel. The bias subtracts the input's zero point, Σ w · (x − zero), and adds the output's.
    """
    filters = Filters(op.weights.reshape(op.weights.shape[0], -1).astype(np.float64), op.bias.astype(np.float64))
    rounded = rounding(filters, _grid(filters, source, output, weight_type, node))
    unit = source.scale * rounded.scale
    bias = np.rint((rounded.bias + output.zero_point * output.scale) / unit)
    bias -= source.zero_point * rounded.rows.sum(axis=1)
    integers = rounded.rows.astype(weight_type.carrier).reshape(op.weights.shape)
    return integers, bias.astype(np.int64), unit / output.scale


def _grid(filters: Filters, source: TensorType, output: TensorType, weight_type: DataType, node: Node) -> WeightGrid:
    """Return per filter the least weight scale with which weights fit their bits and acc + bias fits int32.

    With A = max|a| and K weights, each rounded by at most ½, the condition on the scale is

    Σ|w/scale|·A + K·A/2 + |bias|/(source scale · scale) + ½ ≤ 2³¹ − 1.

    It decides in channels that are almost dead (a tiny gamma with a bias) and for wide weights. In other channels the
    greatest weight decides.
    """
    greatest = magnitude(source.datatype) + abs(source.zero_point)
    size = np.abs(filters.rows)
    room = ACCUMULATOR_LIMIT - filters.rows.shape[1] * greatest / 2 - 1
    if room <= 0:
        raise DoesNotFitError(
            f"a filter that reads {source.datatype.name}",
            "weights in a sum of 32 bits",
            filters.rows.shape[1],
            2 * ACCUMULATOR_LIMIT // greatest - 1,
            where=node.place,
            remedy="use fewer bits for activations",
        )
    narrow = size.max(axis=1) / weight_type.high
    biases = np.abs(filters.bias) + abs(output.zero_point) * output.scale
    fits = (size.sum(axis=1) * greatest + biases / source.scale) / room
    scale = np.maximum(narrow, fits)
    # All weights and the bias of a channel are 0, so any scale is right: this one has the ratio 1.
    return WeightGrid(np.where(scale > 0, scale, output.scale / source.scale), fits, weight_type.high)


def _plain_requantiser(ratio: float, zeros: int, output: TensorType, activation: str, node: Node) -> Requantiser:
    """Return the requantiser of a layer without weights; ``zeros`` is the bias that subtracts input zero points."""
    bias = zeros + round(output.zero_point / ratio)
    channels = node.shape.channels
    ratios, biases = np.full(channels, ratio), np.full(channels, bias, np.int64)
    return requantiser_for(ratios, biases, _ending(activation, output), node)


def _ending(activation: str, output: TensorType) -> str:
    """Return the requantiser's activation: "linear" if the output has a zero point, because saturation is the ReLU."""
    return "linear" if output.zero_point else activation


def requantiser_for(ratio: Doubles, bias: Longs, activation: str, node: Node) -> Requantiser:
    """Return a Requantiser with m / 2^s ≈ ``ratio`` per channel, with the greatest m of 16 bits and 1 ≤ s ≤ 47."""
    shift = _shifts(ratio, node)
    multiplier = np.maximum(np.rint(np.ldexp(ratio, shift)), 1).astype(np.int64)
    return Requantiser(bias, multiplier, _negative(ratio, shift, multiplier, activation), shift.astype(np.int64))


def _shifts(ratio: Doubles, node: Node) -> npt.NDArray[np.int32]:
    # ratio = mantissa · 2^exponent, ½ ≤ mantissa < 1, so s = 16 − exponent gives m in 32768…65536.
    shift = 16 - np.frexp(ratio)[1]
    shift -= np.rint(np.ldexp(ratio, shift)) > MULTIPLIER_LIMIT
    if np.any(shift < 1):
        what, remedy = "accumulator scale / output scale", "calibrate with pictures that reach this layer"
        raise RangeError(what, float(ratio.max()), high=1 << 15, where=node.place, remedy=remedy)
    return np.asarray(np.minimum(shift, SHIFT_LIMIT), dtype=np.int32)


def _negative(ratio: Doubles, shift: npt.NDArray[np.int32], multiplier: Longs, activation: str) -> Longs:
    if activation == "linear":
        return multiplier
    return np.rint(np.ldexp(SLOPES[activation] * ratio, shift)).astype(np.int64)
