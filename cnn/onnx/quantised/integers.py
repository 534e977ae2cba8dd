"""Makes the quantised network with the file's integers from a float network and the types of its tensors.

With zero points z, weights w, integers x and y of input and output, and scales s, a filter computes

    y = round(r · (Σ w · (x − z_x) + b)) + z_y,    r = s_x · s_w / s_y

So −z_x · Σ w, b and z_y / r make one bias, of the sums or of the product, and r is m/2^s. Bias, m and s are chosen so
that as few sums as possible give another y than in the file (cnn.onnx.quantised.fitted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import (
    InvalidValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
)
from cnn.activations import SLOPES
from cnn.datatype import BIPOLAR, INT16, TERNARY, DataType, TensorType, magnitude
from cnn.maps import FloatArray, IntArray
from cnn.network import Network, Node
from cnn.onnx.graph import RefusedError, named
from cnn.onnx.quantised.fitted import FileRequantiser, Fit, Reach, fitted, fitted_to_pixels
from cnn.onnx.quantised.functions import (
    AtNode,
    Functions,
    FunctionTables,
    SumTarget,
    first_channel_outputs,
    float_sums,
    nearest,
    quantised_values,
)
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.onnx.quantised.stated import WIDE_ADD_LIMIT, Sums, as_stated, float_form
from cnn.ops import (
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
from cnn.quantisation.quantise import add_multipliers
from cnn.quantisation.tensor_types import PIXEL, given_type
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import THRESHOLD_LIMIT, MultiplyShift, Requantiser, Requantising, Thresholds, identity, numbers_of
from cnn.tables import TABLE_BITS

Doubles = npt.NDArray[np.float64]
ADD_LIMIT = 127
"""The greatest multiplier of an addition that reads each value once; it is as wide as a weight of 8 bits."""

READS_TRIED = (1, 2, 4, 8)
"""The numbers of times that an addition may read each value.

With more reads, the multipliers are nearer to the ratio of the file's scales. The array's output stage has multipliers
of 32 bits for additions, and reads each value once in any case.
"""

MAX_VALUES = 1 << 16
"""The most values of an addition's maps, in combination, that are compared with the file."""

LARGEST = 1 << 48
"""The limit of integers that are processed; a greater one fits no sum."""

WHOLE = 1e-2
"""The greatest distance of a weight from a whole number of steps, in steps."""


@dataclass(frozen=True, eq=False)
class LayerReading:
    """An integer layer made from the file: its operation, output type, and the requantiser's differences from the file.

    Attributes:
        op: The operation.
        type: The type of its output.
        fit: The requantiser's differences from the file; None if the file's factors are not approximated.
    """

    op: QOp
    type: TensorType
    fit: Fit | None = None


@dataclass(frozen=True, eq=False)
class IntegerNetwork:
    """The integer network of a quantised ONNX file, and notes for the user on differences from the file.

    Attributes:
        quantized: The network.
        notes: A sentence for each layer with sums that give another integer than in the file, and for functions.
    """

    quantized: QuantizedNetwork
    notes: tuple[str, ...]


def integer_network(network: Network, marks: Mapping[int, Mark]) -> IntegerNetwork:
    """Return the integer network with the file's integers, given the float network and the file's types per node.

    Raises:
        SeveralFaultsError: Layers cannot take integers from the file; it has an error for each.
        SystolicError: The integers do not keep the arithmetic contract; ``check_quantized`` raised it.
    """
    types: list[TensorType] = []
    nodes: list[QNode] = []
    notes: list[str] = []
    floats: list[SystolicError] = []
    functions = Functions(network, marks)
    for index, node in enumerate(network.nodes):
        try:
            with np.errstate(all="ignore"):  # numbers that are not finite are refused, or exceed every sum
                inputs, mark = [types[i] for i in node.inputs], marks.get(index, NO_MARK)
                read = _quantised(node, inputs, mark, network, functions.at(index))
                op = _stated(
                    QNode(node.name, read.op, node.inputs, node.shape, read.type, node.source), inputs, mark, network
                )
                type_ = read.type
                if read.fit is not None and op is read.op and mark.type is not None:
                    notes += _told(node, read.fit)
        except SystolicError as error:  # an error about any value of the layer
            floats.append(named(error, f"{node.name!r} ({node.source})"))
            op, type_ = QInput(), types[node.inputs[0]] if node.inputs else PIXEL
        types.append(type_)
        nodes.append(QNode(node.name, op, node.inputs, node.shape, type_, node.source))
    if floats:
        subject = f"{len(floats)} of {len(network.nodes)} layers cannot take integers from the file"
        raise SeveralFaultsError(floats, subject, where=network.name)
    quantized = QuantizedNetwork(network.name, tuple(nodes), network.labels, network.named_outputs)
    return IntegerNetwork(check_quantized(quantized), (*notes, *functions.notes()))


def _told(node: Node, fit: Fit) -> tuple[str, ...]:
    """Return a note for the user if the layer's integers differ from the file for some sums."""
    differing, sums = int(fit.differing.sum()), int(fit.sums.sum())
    if not differing:
        return ()
    place = f"{node.name!r} ({node.source})"
    return (f"{place}: of {sums:,} sums that its channels reach, {differing:,} give another integer than in the file",)


def with_float_forms(network: Network, quantized: QuantizedNetwork, marks: Mapping[int, Mark]) -> Network:
    """Return the float network with layers that the file gives only as thresholds replaced by matching float layers."""
    nodes = list(network.nodes)
    for index, mark in marks.items():
        if mark.thresholds is not None:
            sources = [quantized.nodes[i].type for i in nodes[index].inputs]
            nodes[index] = float_form(nodes[index], quantized.nodes[index], sources)
    return replace(network, nodes=tuple(nodes))


def _stated(node: QNode, inputs: list[TensorType], mark: Mark, network: Network) -> QOp:
    """Return the node's operation with the exact requantiser that an exported file states in attributes, if it fits."""
    if mark.stated is None or not isinstance(node.op, Sums):
        return node.op
    source = network.nodes[node.inputs[0]].shape
    return as_stated(node, mark.stated, inputs, source.height * source.width)


def _quantised(node: Node, inputs: list[TensorType], mark: Mark, network: Network, functions: AtNode) -> LayerReading:
    type_ = mark.type
    match node.op:
        case Input():
            return LayerReading(QInput(), PIXEL if mark.scale is None else replace(PIXEL, scale=float(mark.scale[0])))
        case Softmax() | TopK() | Output() | Detection() as op:
            return LayerReading(op, given_type(network, node, inputs[0]))
        case MaxPool() | Concat() | Slice() | Reorg() | DepthToSpace() | Pad() | Upsample() | Custom() as op:
            if len(set(inputs)) > 1:
                raise RefusedError("it joins maps of several scales, and has none of its own")
            return LayerReading(op, inputs[0])
        case Convolution() | Dense() as op:
            return _weighted(op, inputs[0], mark, node, functions)
        case Activate() if type_ is not None:
            return LayerReading(QActivate(functions.table(inputs[0])), type_)
        case Add() | AveragePool() | Multiply() as op if type_ is not None or functions.read_sums:
            shape = network.nodes[node.inputs[0]].shape
            return _on_maps(op, shape.height * shape.width, inputs, mark, node, functions)
        case Activate() | Add() | AveragePool() | Multiply() | IntegerSoftmax():
            raise RefusedError("no QuantizeLinear follows it")
    assert_never(node.op)


def _on_maps(
    op: Add | AveragePool | Multiply, count: int, inputs: list[TensorType], mark: Mark, node: Node, functions: AtNode
) -> LayerReading:
    """Return an addition, product or average pool with the integer multipliers that differ least from the file.

    Args:
        count: The number of positions that a mean is taken of.
    """
    several = READS_TRIED if isinstance(op, Add) and mark.thresholds is None else (1,)
    sums = (_of_maps(op, inputs, mark.type, mark, count, reads) for reads in several)
    if mark.type is None:
        return _for_functions(sums, inputs, node, functions)
    return nearest((_with_type(op, each, inputs, mark.type, mark, node) for each in sums), _differing)


def _differing(reading: LayerReading) -> tuple[float]:
    """Return which share of a layer's sums gives another integer than in the file, 0…1, as a tuple."""
    fit = reading.fit
    return (0.0 if fit is None else float(fit.differing.sum() / max(1, fit.sums.sum())),)


@dataclass(frozen=True, eq=False)
class SumsOfMaps:
    """The integer sums of an addition, product or average pool, which are alike in every channel.

    Attributes:
        step: The real value of a sum of 1.
        zero: The sum that represents 0.
        low: The least sum.
        high: The greatest sum.
        op: Returns the integer operation with these sums for a requantiser.
    """

    step: float
    zero: int
    low: int
    high: int
    op: Callable[[Requantising], QOp]

    @property
    def reach(self) -> Reach:
        """The range of these sums, for one channel."""
        ends = (self.low, self.high, max(-self.low, self.high))
        return Reach(*(np.array([end], np.int64) for end in ends))


@dataclass(frozen=True)
class Rounded:
    """A quantiser of real values to integers: the type, the slope below 0, and when the zero point is added.

    Attributes:
        type: The type of the integers.
        slope: The factor of real values below 0.
        zero_first: Whether the zero point is added before rounding, as in Mark.
    """

    type: TensorType
    slope: float
    zero_first: bool


def _of_maps(
    op: Add | AveragePool | Multiply,
    inputs: list[TensorType],
    type_: TensorType | None,
    mark: Mark,
    count: int,
    reads: int = 1,
) -> SumsOfMaps:
    """Return the integer sums of an addition, product or average pool of quantised maps.

    Args:
        type_: The output's type; None if it is not known.
        count: The number of positions that a mean is taken of.
        reads: The number of times that an addition may read each value, which limits its multipliers.
    """
    ends = np.array([(source.datatype.low, source.datatype.high, source.zero_point) for source in inputs], np.int64)
    if isinstance(op, Multiply):  # the zero points of both maps are 0
        products = np.outer(ends[0, :2], ends[1, :2])
        return SumsOfMaps(inputs[0].scale * inputs[1].scale, 0, int(products.min()), int(products.max()), QMultiply)
    if isinstance(op, AveragePool):
        low, high, zero = (count * int(end) for end in ends[0])
        return SumsOfMaps(inputs[0].scale / count, zero, low, high, QAveragePool)
    multipliers, step = _multipliers(inputs, type_, mark, reads)
    low, high, zero = (int(end) for end in np.array(multipliers) @ ends)
    return SumsOfMaps(step, zero, low, high, partial(QAdd, multipliers))


def _multipliers(
    inputs: list[TensorType], type_: TensorType | None, mark: Mark, reads: int
) -> tuple[tuple[int, ...], float]:
    """Return the integer multipliers of an addition's inputs, and the real value of a sum of 1.

    If the addition is compared with thresholds, the sums are integers of one scale, or integers that the file
    multiplies by integers.
    """
    if mark.thresholds is not None:
        return mark.multipliers or (1,) * len(inputs), 1.0 if mark.multipliers else inputs[0].scale
    greatest = max(source.scale for source in inputs)
    bits = max(each.datatype.bits for each in (*inputs, *([] if type_ is None else [type_])))
    limit = reads * ADD_LIMIT if bits <= TABLE_BITS else WIDE_ADD_LIMIT
    multipliers, unit = add_multipliers([source.scale / greatest for source in inputs], limit)
    return multipliers, greatest / unit


def _with_type(
    op: Add | AveragePool | Multiply,
    sums: SumsOfMaps,
    inputs: list[TensorType],
    type_: TensorType,
    mark: Mark,
    node: Node,
) -> LayerReading:
    """Return an addition, product or average pool with its sums requantised, or compared with the file's thresholds."""
    if mark.thresholds is not None:
        return LayerReading(sums.op(_compared(mark.thresholds, sums.step, sums.zero, node)), type_)
    activation = getattr(op, "activation", "linear")
    fit = _of_all(sums, SumTarget(type_), activation, node, mark.zero_first)
    op_ = sums.op(fit.by)
    if isinstance(op_, QAdd):
        fit = _of_values(op_, inputs, Rounded(type_, _slope(activation, type_), mark.zero_first), fit)
    return LayerReading(op_, type_, fit)


def _of_values(op: QAdd, inputs: list[TensorType], rounded: Rounded, fit: Fit) -> Fit:
    """Return the fit of an addition, with its differences from the file counted over its inputs' values.

    They are counted because integer multipliers only approximate the ratios of the file's scales.
    """
    sums, floats = _values_of_maps(op, inputs)
    ours = first_channel_outputs(fit.by, sums, rounded.type.datatype)
    right = quantised_values(np.where(floats < 0, rounded.slope * floats, floats), rounded.type, rounded.zero_first)
    differing = int(np.count_nonzero(right != ours))
    return replace(fit, differing=np.full(1, differing), sums=np.full(1, sums.size))


def _values_of_maps(op: QAdd, inputs: list[TensorType]) -> tuple[npt.NDArray[np.int64], Doubles]:
    """Return an addition's integer sums for combinations of its inputs' integers, and their real values in the file.

    If a map has many values, a regular sample of them is used.
    """
    each = int(MAX_VALUES ** (1 / len(inputs)))
    sums, floats = np.zeros((1,), np.int64), np.zeros((1,))
    for source, multiplier in zip(inputs, op.multipliers, strict=True):
        low, high = source.datatype.low, source.datatype.high
        integers = np.unique(np.linspace(low, high, min(each, high - low + 1)).astype(np.int64))
        sums = np.add.outer(sums, integers * multiplier).ravel()
        floats = np.add.outer(floats, (integers - source.zero_point) * source.scale).ravel()
    return sums, floats


def _for_functions(
    several: Iterable[SumsOfMaps], inputs: list[TensorType], node: Node, functions: AtNode
) -> LayerReading:
    """Return an addition, product or average pool whose sums activations read through lookup tables.

    Args:
        several: Sums with different multipliers. The first whose tables give the file's integers is taken, or else the
            one with the least differences.
    """
    one = np.ones(1)

    def read(sums: SumsOfMaps) -> tuple[QOp, FunctionTables]:
        def requantiser(target: SumTarget) -> Requantiser | MultiplyShift:
            return _of_all(sums, target, "linear", node).by

        made = functions.tables_for(float_sums(one * sums.step, -one * sums.zero, sums.reach), requantiser)
        op = sums.op(made.by)
        return op, functions.with_differences(made, *_values_of_maps(op, inputs)) if isinstance(op, QAdd) else made

    op, made = nearest(map(read, several), lambda pair: pair[1].cost)
    functions.store_tables(made)
    return LayerReading(op, made.type)


def _slope(activation: str, type_: TensorType) -> float:
    """Return an activation's slope below 0; 1 if the output has a zero point, because saturation then is the ReLU."""
    return 1.0 if type_.zero_point else SLOPES[activation]


def _compared(edges: FloatArray, step: float, zero: int, node: Node) -> Thresholds:
    """Return the thresholds of integer sums for real thresholds ``edges``; ``step`` is a sum's real value."""
    channels = node.shape.channels
    return _reached(np.broadcast_to(edges / step + float(zero), (channels, edges.shape[1])))


def _fitted(rule: FileRequantiser, reach: Reach, activation: str, node: Node, late: bool = True) -> Fit:
    """Return the integer requantiser that fits the file's requantisation ``rule`` best, and its differences from it.

    Raises:
        InvalidValueError: The output has a zero point and an activation whose bend a requantiser has only at 0, or an
            offset is not finite.
    """
    if rule.zero and activation not in ("linear", "relu", "relu6"):
        what = f"the zero point of its {activation}"
        raise InvalidValueError(what, rule.zero, "0", remedy="quantise its input too")
    for wrong in rule.offset[~np.isfinite(rule.offset)][:1]:
        raise InvalidValueError("its bias, in steps of its output,", float(wrong), "a finite number")
    # With a zero point the integers end where a relu does, because cnn.onnx.quantised.linear chose them so.
    return fitted(rule, reach, "linear" if rule.zero else activation, node, late)


def _of_all(sums: SumsOfMaps, target: SumTarget, activation: str, node: Node, zero_first: bool = False) -> Fit:
    """Return the integer requantiser of an addition, product or average pool: the same in every channel."""
    type_, ratio = target.type, np.array([sums.step / target.type.scale])
    offset = -ratio * sums.zero - target.left / type_.scale
    rule = FileRequantiser(ratio, offset, type_.zero_point, type_.datatype, _slope(activation, type_), zero_first)
    fit = _fitted(rule, sums.reach, activation, node)
    columns: dict[str, Any] = {
        name: np.repeat(numbers, node.shape.channels) for name, numbers in numbers_of(fit.by).items()
    }
    return replace(fit, by=replace(fit.by, **columns))


def scales_of_filters(op: Convolution | Dense, scale: FloatArray | None) -> Doubles:
    """Return the weight scale of each filter; RefusedError if the weights are floats without a scale."""
    rows = op.weights.reshape(len(op.weights), -1).astype(np.float64)
    if scale is not None and scale.size in (1, len(rows)):
        return np.array(np.broadcast_to(scale.astype(np.float64), (len(rows),)))
    whole = np.array_equal(rows, np.rint(rows)) and np.abs(rows).max() < 1 << 15
    # A single weight is exact in any number of bits; a filter of several weights needs the file's scale.
    if max(np.count_nonzero(rows, axis=1)) <= 1:
        greatest = np.abs(rows).max(axis=1)
        return np.where(greatest > 0, greatest, 1.0) / (1 if whole else 127)
    if whole:
        return np.ones(len(rows))
    raise RefusedError(
        "its weights are floats, not of a DequantizeLinear; quantise all layers (onnxruntime: as QDQ) or none"
    )


def _weighted(
    op: Convolution | Dense, source: TensorType, mark: Mark, node: Node, functions: AtNode | None = None
) -> LayerReading:
    """Return an integer convolution or dense layer, with batch norm, bias and zero points in its requantiser.

    functions: the functions that read its sums.
    """
    type_, scale = mark.type, scales_of_filters(op, mark.scale)
    weights = whole_weights(op.weights, scale)
    gain, offset = affine_of(op)
    weights = weights * np.sign(gain).astype(np.int64).reshape(-1, *(1,) * (weights.ndim - 1))
    unit = source.scale * scale * np.abs(gain)  # the real value of a sum of 1
    unit = np.where(unit > 0, unit, source.scale)
    zeros = float(source.zero_point) * weights.reshape(len(weights), -1).sum(axis=1)
    weight_type = _narrow(weights)
    carried = weights.astype(weight_type.carrier)
    reach = _sums_of(weights, source.datatype)
    if type_ is None:
        shift = offset / unit - zeros
        type_ = _pixels_moved(op, source, unit, weights, shift)
        if type_ is None and functions is not None and functions.read_sums and _are_sums(reach, shift):

            def requantiser(target: SumTarget) -> Requantiser | MultiplyShift:
                to = target.type
                offset = (shift * unit - target.left) / to.scale
                return _fitted(
                    FileRequantiser(unit / to.scale, offset, to.zero_point, to.datatype, 1.0), reach, "linear", node
                ).by

            chosen = functions.tables_for(float_sums(unit, shift, reach), requantiser)
            functions.store_tables(chosen)
            return LayerReading(_layer(op, carried, weight_type, chosen.by, source), chosen.type)
        type_ = type_ or _leaving(carried, weight_type, source, unit, shift)
    if mark.thresholds is not None:
        edges = (mark.thresholds - offset[:, None]) / unit[:, None] + zeros[:, None]
        return LayerReading(_layer(op, carried, weight_type, _reached(edges), source), type_)
    late = (offset - unit * zeros) / type_.scale
    ratio = _ratio(unit, type_, op)
    slope = _slope(op.activation, type_)
    rule = FileRequantiser(ratio, late, type_.zero_point, type_.datatype, slope, mark.zero_first)
    fit = _fitted(rule, reach, op.activation, node, late=mark.type is not None)
    if _is_plain(op, weights, source) and (fit.differing.any() or isinstance(fit.by, MultiplyShift)):
        most = DataType(min(type_.datatype.bits, TABLE_BITS), True).high  # a weight has no more bits than the output
        factor, of_pixels = fitted_to_pixels(rule, op.activation, node, most)
        if of_pixels.differing.sum() <= fit.differing.sum():
            fit, weights = of_pixels, weights * factor
            weight_type = _narrow(weights)
            carried = weights.astype(weight_type.carrier)
    return LayerReading(_layer(op, carried, weight_type, fit.by, source), type_, fit)


def _ratio(unit: Doubles, type_: TensorType, op: Convolution | Dense) -> Doubles:
    """Return output integers per accumulator step, per filter, rounded as onnxruntime rounds it."""
    exact = unit / type_.scale
    if op.batch_norm:
        return exact
    single = (unit.astype(np.float32) / np.float32(type_.scale)).astype(np.float64)
    return np.where(np.isfinite(single) & (single > 0), single, exact)


def _is_plain(op: Convolution | Dense, weights: IntArray, source: TensorType) -> bool:
    """Return whether a layer only converts the input image's pixels to another quantised type."""
    bare = isinstance(op, Convolution) and op.groups == len(weights) == weights.size
    return bare and source.datatype == PIXEL.datatype and bool((weights == 1).all())


def _sums_of(weights: IntArray, read: DataType) -> Reach:
    """Return the range of sums that each filter can have, for any inputs of the datatype ``read``."""
    rows = weights.reshape(len(weights), -1)
    above, below = np.maximum(rows, 0).sum(axis=1), np.minimum(rows, 0).sum(axis=1)
    greatest = (above - below) * magnitude(read)
    return Reach(above * read.low + below * read.high, above * read.high + below * read.low, greatest)


def _are_sums(reach: Reach, shift: Doubles) -> bool:
    """Return whether a layer's sums plus their offsets can fit an accumulator."""
    bound = reach.greatest + np.abs(shift)
    return bool(np.isfinite(bound).all()) and float(bound.max()) < LARGEST


def _layer(
    op: Convolution | Dense, weights: IntArray, weight_type: DataType, by: Requantising, source: TensorType
) -> QConvolution | QDense:
    if isinstance(op, Dense):
        return QDense(weights, weight_type, by)
    return QConvolution(weights, weight_type, by, op.stride, op.padding, op.groups, source.zero_point, op.dilation)


def _reached(edges: Doubles) -> Thresholds:
    """Return thresholds: the least integer sum that reaches each real edge [filters, levels]."""
    near = np.rint(edges)
    sums = np.where(np.abs(edges - near) <= 1e-6 * np.maximum(1, np.abs(near)), near, np.ceil(edges))
    limited = np.clip(sums, -THRESHOLD_LIMIT, THRESHOLD_LIMIT).astype(np.int64)
    return Thresholds(limited, np.zeros(len(edges), np.bool_))


def _pixels_moved(
    op: Convolution | Dense, source: TensorType, unit: Doubles, weights: IntArray, shift: Doubles
) -> TensorType | None:
    """Return an 8-bit type for pixels that a layer only scales and shifts by whole steps; None for other layers.

    A Cast of integers does this. Other layers return None.
    """
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
    """Return an INT16 type for a layer's sums that are a float output of the network, with the least scale that fits.

    The scale is the sums' own if they fit without scaling.
    """
    plain = QDense(weights.reshape(len(weights), -1), weight_type, identity(len(weights)))
    bound = plain.accumulator_bound(source.datatype) + np.abs(shift)
    same = float(unit[0]) if bool((unit == unit[0]).all()) else 0.0
    return TensorType(INT16, max(float((bound * unit).max()) / INT16.high, same))


def whole_weights(weights: FloatArray, scale: Doubles) -> IntArray:
    """Return a layer's weights as integers, weights / scale; RefusedError if one is not a multiple of its scale."""
    steps = weights / scale.reshape(-1, *(1,) * (weights.ndim - 1))
    integers = np.rint(steps)
    if np.abs(steps - integers).max() > WHOLE:
        raise RefusedError("its weights are not multiples of their scale; something changed them after quantisation")
    if not np.abs(integers).max() < LARGEST:
        raise RangeError("the greatest weight, in steps of its scale,", float(np.abs(integers).max()), high=LARGEST - 1)
    return integers.astype(np.int64)


def _narrow(weights: IntArray) -> DataType:
    """Return the smallest signed datatype for integer weights: BIPOLAR, TERNARY, or INT of the fewest bits."""
    greatest = int(np.abs(weights).max(initial=1))
    if greatest == 1:
        return BIPOLAR if weights.all() else TERNARY
    return DataType(greatest.bit_length() + 1, True)


def affine_of(op: Convolution | Dense) -> tuple[Doubles, Doubles]:
    """Return the gain and offset per filter that a layer's batch norm and bias apply to its sums."""
    norm = op.batch_norm
    if norm is None:
        return np.ones(len(op.weights)), op.bias.astype(np.float64)
    gain = norm.scale.astype(np.float64) / np.sqrt(norm.variance.astype(np.float64) + norm.epsilon)
    return gain, op.bias.astype(np.float64) - norm.mean.astype(np.float64) * gain
