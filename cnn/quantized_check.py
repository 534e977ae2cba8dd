"""The rules that a QuantizedNetwork keeps, checked after quantisation and after reading a file.

Its shapes are checked by cnn.quantized_shape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import (
    ChoiceError,
    ConflictError,
    DoesNotFitError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    UnsupportedError,
)
from cnn.accumulator import accumulator_bound
from cnn.datatype import BIPOLAR, DataType
from cnn.network import Concat, Custom, Detection, TopK
from cnn.quantisation.tables import SLOPE_LIMIT, WIDEST_BITS, all_values, entries
from cnn.quantized import (
    HALVES,
    TABLE_BITS,
    VALUES_BITS,
    IntArray,
    MultiplyShift,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QNode,
    QOp,
    QSoftmax,
    QuantizedNetwork,
    Requantiser,
    Requantising,
    Table,
    TensorType,
    Thresholds,
    label_type,
    on_host,
)
from cnn.quantized_shape import expected_shape, sides_of
from cnn.softmax import METHODS, POWER_BITS, SHARES, check_channels

MULTIPLIER_LIMIT = (1 << 16) - 1
SHIFT_LIMIT = 47
PRODUCT_BIAS_LIMIT = (1 << 47) - 1
THRESHOLD_LIMIT = 1 << 31
THRESHOLD_BITS = 8  # of an output that thresholds make: 255 comparisons a value
ACCUMULATOR_BITS = 32
ADD_LIMIT = 1 << 14  # of the multipliers of an addition
MAP_LIMIT = 1 << 28  # values of one tensor: 256 Mi, far above any picture that fits a board
_COMPUTES = (QConvolution, QDense, QAveragePool, QAdd, QMultiply)


def check_quantized(network: QuantizedNetwork) -> QuantizedNetwork:
    """The network itself if it keeps the arithmetic contract; else an error whose place is the node that breaks it.

    Raises:
        RangeError: A number is outside its range; MismatchError if it must equal another one.
        ShapeError: An array or a map has another shape or data type.
        InvalidValueError: A value has another form; ChoiceError, MissingValueError and ConflictError as they say.
        DoesNotFitError: Sums need more bits than an accumulator has.
    """
    if not network.nodes or not isinstance(network.nodes[0].op, QInput):
        first = type(network.nodes[0].op).__name__ if network.nodes else "nothing"
        raise InvalidValueError("node 0", first, "the input picture", where=network.name)
    for index, node in enumerate(network.nodes):
        inputs = _inputs(network, index)
        _check_type(node)
        _check_shape(node, inputs)
        if isinstance(node.op, _COMPUTES):
            _check_computing(node, inputs)
        elif isinstance(node.op, QActivate):
            _check_table(node, node.op.table, inputs[0].type.datatype)
        elif isinstance(node.op, QSoftmax):
            _check_softmax(node, node.op, inputs[0])
        elif index > 0:
            _check_passing(node, inputs)
    return network


_SEVERAL: dict[type[QOp], tuple[int, int | None]] = {
    QMultiply: (2, 2),
    **dict.fromkeys((Concat, QAdd, Detection, Custom), (1, None)),
}
"""The least and the greatest number of inputs of operations that do not read exactly one map."""


def _inputs(network: QuantizedNetwork, index: int) -> tuple[QNode, ...]:
    node = network.nodes[index]
    for source in node.inputs:
        if not 0 <= source < index:
            raise RangeError("the index of an input", source, 0, index - 1, where=node.place)
    if isinstance(node.op, QInput) != (index == 0):
        raise InvalidValueError("the input picture", f"node {index}", "node 0", where=node.place)
    inputs = tuple(network.nodes[i] for i in node.inputs)
    low, high = (0, 0) if index == 0 else _SEVERAL.get(type(node.op), (1, 1))
    if not low <= len(inputs) <= (len(inputs) if high is None else high):
        what = f"the number of inputs of {type(node.op).__name__}"
        raise RangeError(what, len(inputs), low, high, where=node.place)
    for read in inputs:
        if on_host(read.op) and not on_host(node.op):
            subject = f"an integer layer that reads {read.name!r}"
            raise UnsupportedError(subject, "the host computes that layer in float", where=node.place)
    return inputs


def _check_type(node: QNode) -> None:
    scale = node.type.scale
    if not (math.isfinite(scale) and scale > 0):
        raise InvalidValueError("the scale", scale, "finite and above 0", where=node.place)
    low, high, zero = node.type.datatype.low, node.type.datatype.high, node.type.zero_point
    if zero and not low <= zero <= high:
        raise RangeError("the zero point", zero, low, high, where=node.place)
    least = min(node.shape.channels, node.shape.height, node.shape.width)
    if least < 1:
        raise RangeError(f"the least side of the shape {node.shape}", least, low=1, where=node.place)
    if node.shape.values > MAP_LIMIT:
        raise RangeError("the number of values", node.shape.values, high=MAP_LIMIT, where=node.place)


def _check_shape(node: QNode, inputs: tuple[QNode, ...]) -> None:
    if inputs:
        expected = expected_shape(node, inputs)
        if node.shape != expected:
            raise MismatchError("the shape", str(node.shape), str(expected), where=node.place)


def _check_passing(node: QNode, inputs: tuple[QNode, ...]) -> None:
    if isinstance(node.op, TopK) and node.op.labels:
        expected = label_type(inputs[0].shape.channels)
        if node.type != expected:
            raise MismatchError("the type of the labels", node.type, expected, where=node.place)
        return
    for source in inputs[:1] if on_host(node.op) else inputs:  # the host knows of each map what it is worth
        zero = source.type.zero_point
        if isinstance(node.op, Custom) and zero:
            raise MismatchError(f"the zero point of what {node.op.layer} reads", zero, 0, where=node.place)
        if source.type != node.type:
            what = f"the type, since it passes {source.name!r} on,"
            raise MismatchError(what, node.type, source.type, where=node.place)


def _check_computing(node: QNode, inputs: tuple[QNode, ...]) -> None:
    op = node.op
    assert isinstance(op, _COMPUTES)
    _check_requantiser(node, op.requantiser)
    if isinstance(op, (QConvolution, QDense)):
        _check_weights(node, op)
    if isinstance(op, QConvolution):
        _check_padding(node, op, inputs[0].type)
    if isinstance(op, QAdd):
        if len(op.multipliers) != len(inputs):
            raise MismatchError("the number of multipliers", len(op.multipliers), len(inputs), where=node.place)
        _check_range(node, "a multiplier", np.array(op.multipliers), 1, ADD_LIMIT)
    if isinstance(op, QMultiply):
        zeros = [source.type.zero_point for source in inputs]
        if any(zeros):
            raise MismatchError("the zero points of maps that are multiplied", zeros, [0, 0], where=node.place)
    positions = inputs[0].shape.height * inputs[0].shape.width
    bound = accumulator_bound(op, *(i.type.datatype for i in inputs), positions=positions)
    bits = bound.bit_length() + 1
    if bits > ACCUMULATOR_BITS:
        raise DoesNotFitError(
            f"acc + bias, which reaches Σ|w|·max|a| + |bias| = {bound},",
            "bits",
            bits,
            ACCUMULATOR_BITS,
            where=node.place,
            remedy="use fewer bits for weights or activations, or fewer inputs to this layer",
        )


def _check_padding(node: QNode, op: QConvolution, source: TensorType) -> None:
    if op.around != source.zero_point:
        what = "the value of the padding, the zero point of its input,"
        raise MismatchError(what, op.around, source.zero_point, where=node.place)
    if any(sides_of(op.padding)) and source.datatype == BIPOLAR:
        raise ConflictError(("padding", "a BIPOLAR input"), "padding puts in zeros", where=node.place)


def _check_weights(node: QNode, op: QConvolution | QDense) -> None:
    high = op.weight_type.high
    if not op.weight_type.signed:
        raise InvalidValueError("the datatype of the weights", op.weight_type.name, "signed", where=node.place)
    if op.weights.dtype != op.weight_type.carrier:
        required = f"type {np.dtype(op.weight_type.carrier)}, the carrier of {op.weight_type.name}"
        raise ShapeError("the weights", f"type {op.weights.dtype}", required, where=node.place)
    _check_range(node, "a weight", op.weights, -high, high)
    if op.weight_type == BIPOLAR and not op.weights.all():
        raise InvalidValueError("a BIPOLAR weight", 0, "−1 or +1", where=node.place, remedy="use TERNARY weights")


_LIMITS: dict[type[Requantising], dict[str, tuple[int, int]]] = {
    Requantiser: {
        "bias": (-(1 << 31) + 1, (1 << 31) - 1),
        "multiplier": (1, MULTIPLIER_LIMIT),
        "negative": (0, MULTIPLIER_LIMIT),
        "shift": (1, SHIFT_LIMIT),
    },
    MultiplyShift: {
        "multiplier": (-MULTIPLIER_LIMIT, MULTIPLIER_LIMIT),
        "bias": (-PRODUCT_BIAS_LIMIT, PRODUCT_BIAS_LIMIT),
        "shift": (1, SHIFT_LIMIT),
    },
}


def _check_requantiser(node: QNode, requantiser: Requantising) -> None:
    if isinstance(requantiser, Thresholds):
        _check_thresholds(node, requantiser)
        return
    if node.type.datatype.step != 1:
        subjects = (f"a {node.type.datatype.name} output", type(requantiser).__name__)
        raise ConflictError(subjects, "saturation may leave a value between", where=node.place, remedy="use Thresholds")
    if requantiser.halves not in HALVES:
        raise ChoiceError("what a half becomes", requantiser.halves, HALVES, where=node.place)
    for field, (low, high) in _LIMITS[type(requantiser)].items():
        array = getattr(requantiser, field)
        _check_array(node, field, array, (node.shape.channels,))
        _check_range(node, field, array, low, high)


def _check_array(
    node: QNode, what: str, array: npt.NDArray[Any], shape: tuple[int, ...], dtype: type = np.int64
) -> None:
    """Raise ShapeError if ``array`` has another shape or data type."""
    if array.dtype != dtype or array.shape != shape:
        required = f"type {np.dtype(dtype)} and shape {shape}"
        raise ShapeError(what, f"type {array.dtype} and shape {array.shape}", required, where=node.place)


def _check_range(node: QNode, what: str, array: IntArray, low: int, high: int) -> None:
    """Raise RangeError if the least or the greatest number of ``array`` is outside ``low`` … ``high``."""
    for number in (int(array.min()), int(array.max())):
        if not low <= number <= high:
            raise RangeError(what, number, low, high, where=node.place)


def _check_table(node: QNode, table: Table, read: DataType) -> None:
    datatype = node.type.datatype
    if read.bits > WIDEST_BITS:
        raise RangeError("the bits of the table's input", read.bits, high=WIDEST_BITS, where=node.place)
    if table.slopes is None and read.bits > VALUES_BITS:
        reason = f"{read.name} is looked up in pieces of lines"
        raise MissingValueError("the slopes of the table", reason, where=node.place)
    _check_array(node, "the table", table.values, (entries(table, read),))
    if table.slopes is not None:
        if read.bits <= TABLE_BITS:
            subjects = ("slopes of a table", f"an input of {read.name}")
            raise ConflictError(subjects, "each of its values has an entry of its own", where=node.place)
        _check_array(node, "the slopes", table.slopes, (entries(table, read),))
        _check_range(node, "a slope", table.slopes, -SLOPE_LIMIT, SLOPE_LIMIT)
    _check_range(node, f"a value of the table, {datatype.name},", all_values(table, read), datatype.low, datatype.high)
    if datatype.step != 1:
        subjects = ("a table", f"an output of {datatype.name}")
        raise ConflictError(subjects, "that leaves out values", where=node.place, remedy="use Thresholds")


def _check_softmax(node: QNode, op: QSoftmax, source: QNode) -> None:
    if op.method not in METHODS:
        raise ChoiceError("the method of the softmax", op.method, METHODS, where=node.place)
    if node.type != SHARES:
        raise MismatchError("the type of the shares", node.type, SHARES, where=node.place)
    check_channels(node.place, node.shape.channels)
    if op.table is None:
        if op.method != "argmax":
            raise MissingValueError("the table of powers", f"{op.method} looks them up", where=node.place)
        return
    if op.method == "argmax":
        raise ConflictError(("argmax", "a table of powers"), "argmax looks none up", where=node.place)
    read, values = source.type.datatype, op.table.values
    if read.bits > TABLE_BITS:
        raise RangeError("the bits of what the softmax reads", read.bits, high=TABLE_BITS, where=node.place)
    if op.table.slopes is not None:
        reason = "each power has an entry of its own"
        raise ConflictError(("powers of a softmax", "slopes"), reason, where=node.place)
    _check_array(node, "the powers", values, (entries(op.table, read),))
    falls = values if op.method == "stable" else values[::-1]
    most = (1 << POWER_BITS) - 1
    if not (int(falls[0]) == most and int(falls[-1]) >= 0 and bool(np.all(falls[1:] <= falls[:-1]))):
        required = f"{most} at the greatest value, and fall to 0 or more"
        raise InvalidValueError("the powers", values.tolist(), required, where=node.place)


def _check_thresholds(node: QNode, by: Thresholds) -> None:
    datatype, channels = node.type.datatype, node.shape.channels
    if datatype.bits > THRESHOLD_BITS:
        what = f"the bits of {datatype.name}, which thresholds make,"
        raise RangeError(what, datatype.bits, high=THRESHOLD_BITS, where=node.place)
    array, flip = by.thresholds, by.flip
    _check_array(node, "the thresholds", array, (channels, datatype.levels))
    _check_array(node, "flip", flip, (channels,), np.bool_)
    _check_range(node, "a threshold", array, -THRESHOLD_LIMIT, THRESHOLD_LIMIT)
    falls = np.flatnonzero(np.any(array[:, 1:] < array[:, :-1], axis=1))
    if falls.size:
        channel = int(falls[0])
        required = "in ascending order"
        raise InvalidValueError(
            f"the thresholds of channel {channel}", array[channel].tolist(), required, where=node.place
        )
