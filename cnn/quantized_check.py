"""The rules that a QuantizedNetwork keeps, checked after quantisation and after reading a file.

Its shapes are checked by cnn.quantized_shape.
"""

from __future__ import annotations

import math

import numpy as np

from boards.errors import QuantiseError
from cnn.accumulator import accumulator_bound
from cnn.datatype import BIPOLAR, DataType
from cnn.network import Concat, Custom, Detection, TopK
from cnn.quantisation.tables import SLOPE_LIMIT, WIDEST_BITS, all_values, entries
from cnn.quantized import (
    TABLE_BITS,
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
from cnn.quantized_shape import expected_shape, require, sides_of
from cnn.softmax import METHODS, POWER_BITS, SHARES, check_channels

MULTIPLIER_LIMIT = (1 << 16) - 1
SHIFT_LIMIT = 47
PRODUCT_BIAS_LIMIT = (1 << 47) - 1
THRESHOLD_LIMIT = 1 << 31
THRESHOLD_BITS = 8  # of an output that thresholds make: 255 comparisons a value
ACCUMULATOR_BITS = 32
MAP_LIMIT = 1 << 28  # values of one tensor: 256 Mi, far above any picture that fits a board
_COMPUTES = (QConvolution, QDense, QAveragePool, QAdd, QMultiply)


def check_quantized(network: QuantizedNetwork) -> QuantizedNetwork:
    """The network itself where it keeps the arithmetic contract; QuantiseError names the node that breaks it."""
    if not network.nodes or not isinstance(network.nodes[0].op, QInput):
        raise QuantiseError(f"node 0 of {network.name!r} must be the input picture")
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


def _inputs(network: QuantizedNetwork, index: int) -> tuple[QNode, ...]:
    node = network.nodes[index]
    require(all(0 <= i < index for i in node.inputs), node, f"inputs must come before it, not {node.inputs}")
    require(isinstance(node.op, QInput) == (index == 0), node, "only node 0 is the input picture")
    inputs = tuple(network.nodes[i] for i in node.inputs)
    several = {QMultiply: "two", **dict.fromkeys((Concat, QAdd, Detection, Custom), "one or more")}
    count = "no" if index == 0 else several.get(type(node.op), "one")
    right = {"no": not inputs, "one or more": bool(inputs), "one": len(inputs) == 1, "two": len(inputs) == 2}[count]
    require(right, node, f"{type(node.op).__name__} has {count} input(s), not {len(inputs)}")
    if not on_host(node.op):
        require(not any(on_host(i.op) for i in inputs), node, "no integer layer reads one that runs on the host")
    return inputs


def _check_type(node: QNode) -> None:
    scale = node.type.scale
    require(math.isfinite(scale) and scale > 0, node, f"a scale is finite and above 0, not {scale}")
    low, high, zero = node.type.datatype.low, node.type.datatype.high, node.type.zero_point
    require(zero == 0 or low <= zero <= high, node, f"a zero point is {low}…{high}, not {zero}")
    sides = (node.shape.channels, node.shape.height, node.shape.width)
    require(min(sides) >= 1, node, f"a shape is at least 1×1×1, not {node.shape}")
    require(node.shape.values <= MAP_LIMIT, node, f"a tensor has at most {MAP_LIMIT} values, not {node.shape}")


def _check_shape(node: QNode, inputs: tuple[QNode, ...]) -> None:
    if inputs:
        expected = expected_shape(node, inputs)
        require(node.shape == expected, node, f"its inputs give the shape {expected}, not {node.shape}")


def _check_passing(node: QNode, inputs: tuple[QNode, ...]) -> None:
    if isinstance(node.op, TopK) and node.op.labels:
        expected = label_type(inputs[0].shape.channels)
        require(node.type == expected, node, f"labels are of the type {expected}, not {node.type}")
        return
    for source in inputs[:1] if on_host(node.op) else inputs:  # the host knows of each map what it is worth
        if isinstance(node.op, Custom):
            zero = source.type.zero_point
            require(zero == 0, node, f"what {node.op.layer} reads has a zero point of 0, not {zero}")
        fits = source.type == node.type
        require(fits, node, f"it passes {source.name!r} on as {source.type}, but its own type is {node.type}")


def _check_computing(node: QNode, inputs: tuple[QNode, ...]) -> None:
    op = node.op
    assert isinstance(op, _COMPUTES)
    _check_requantiser(node, op.requantiser)
    if isinstance(op, (QConvolution, QDense)):
        _check_weights(node, op)
    if isinstance(op, QConvolution):
        _check_padding(node, op, inputs[0].type)
    if isinstance(op, QAdd):
        fits = len(op.multipliers) == len(inputs) and all(1 <= m <= 1 << 14 for m in op.multipliers)
        require(fits, node, f"an add needs one multiplier of 1…16384 an input, not {op.multipliers}")
    if isinstance(op, QMultiply):
        zeros = [source.type.zero_point for source in inputs]
        require(not any(zeros), node, f"maps that are multiplied have zero points of 0, not {zeros}")
    positions = inputs[0].shape.height * inputs[0].shape.width
    bound = accumulator_bound(op, *(i.type.datatype for i in inputs), positions=positions)
    bits = bound.bit_length() + 1
    require(
        bits <= ACCUMULATOR_BITS,
        node,
        f"acc + bias must fit {ACCUMULATOR_BITS} bits, but Σ|w|·max|a| + |bias| = {bound} needs {bits}; "
        "use fewer bits for weights or activations, or fewer inputs to this layer",
    )


def _check_padding(node: QNode, op: QConvolution, source: TensorType) -> None:
    padded, around = any(sides_of(op.padding)), source.zero_point
    require(op.around == around, node, f"padding has the zero point of its input, {around}, not {op.around}")
    require(not padded or source.datatype != BIPOLAR, node, "padding puts in zeros, which BIPOLAR inputs cannot be")


def _check_weights(node: QNode, op: QConvolution | QDense) -> None:
    high = op.weight_type.high
    signed = op.weight_type.signed and op.weights.dtype == op.weight_type.carrier
    require(signed, node, f"weights must be a signed {op.weight_type.name} in its carrier, not {op.weights.dtype}")
    narrow = int(op.weights.min()) >= -high and int(op.weights.max()) <= high
    require(narrow, node, f"weights must be narrow, {-high}…{high}, not {op.weights.min()}…{op.weights.max()}")
    if op.weight_type == BIPOLAR:
        require(bool(op.weights.all()), node, "BIPOLAR weights are −1 or +1, not 0; TERNARY ones may be 0")


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
    saturates = node.type.datatype.step == 1
    require(
        saturates, node, f"a {node.type.datatype.name} output needs Thresholds: saturation may leave a value between"
    )
    for field, (low, high) in _LIMITS[type(requantiser)].items():
        array = getattr(requantiser, field)
        fits = array.dtype == np.int64 and array.shape == (node.shape.channels,)
        require(fits, node, f"{field} must be int64 [{node.shape.channels}], not {array.dtype} {array.shape}")
        fits = low <= int(array.min()) and int(array.max()) <= high
        require(fits, node, f"{field} must be {low}…{high}, not {array.min()}…{array.max()}")


def _check_table(node: QNode, table: Table, read: DataType) -> None:
    datatype = node.type.datatype
    require(read.bits <= WIDEST_BITS, node, f"a table's input has at most {WIDEST_BITS} bits, not {read.name}")
    _check_entries(node, table.values, read, "a table")
    if table.slopes is None:
        require(read.bits <= TABLE_BITS, node, f"a table of {read.name} has slopes: it is pieces of lines")
    else:
        require(read.bits > TABLE_BITS, node, f"a table of {read.name} has no slopes: each value has its own entry")
        _check_entries(node, table.slopes, read, "slopes")
        steepest = int(np.abs(table.slopes).max())
        require(steepest <= SLOPE_LIMIT, node, f"slopes must be −{SLOPE_LIMIT}…{SLOPE_LIMIT}, not {steepest}")
    values = all_values(table, read)
    fits = datatype.low <= int(values.min()) and int(values.max()) <= datatype.high
    require(fits, node, f"a table's values must be {datatype.name}, not {values.min()}…{values.max()}")
    require(datatype.step == 1, node, f"a table gives no {datatype.name}, which leaves out values; Thresholds do")


def _check_entries(node: QNode, array: IntArray, read: DataType, what: str) -> None:
    shape = (entries(read),)
    fits = array.dtype == np.int64 and array.shape == shape
    require(fits, node, f"{what} must be int64 {list(shape)}, not {array.dtype} {list(array.shape)}")


def _check_softmax(node: QNode, op: QSoftmax, source: QNode) -> None:
    require(op.method in METHODS, node, f"a softmax is by {', '.join(METHODS)}, not {op.method!r}")
    require(node.type == SHARES, node, f"the shares of a softmax are {SHARES}, not {node.type}")
    check_channels(f"{node.name!r} ({node.source})", node.shape.channels)
    looks_up = op.method != "argmax"
    require(looks_up == (op.table is not None), node, "stable and latency look up powers of e, argmax none")
    if op.table is None:
        return
    read, values = source.type.datatype, op.table.values
    exact = read.bits <= TABLE_BITS and op.table.slopes is None
    require(exact, node, f"the powers of a softmax are looked up by at most {TABLE_BITS} bits, not {read.name}")
    _check_entries(node, values, read, "powers")
    falls = values if op.method == "stable" else values[::-1]
    most = (1 << POWER_BITS) - 1
    fits = int(falls[0]) == most and int(falls[-1]) >= 0 and bool(np.all(falls[1:] <= falls[:-1]))
    require(fits, node, f"powers must be {most} at the greatest value, and fall to 0 or more, not {values.tolist()}")


def _check_thresholds(node: QNode, by: Thresholds) -> None:
    datatype, channels = node.type.datatype, node.shape.channels
    require(
        datatype.bits <= THRESHOLD_BITS, node, f"thresholds make at most {THRESHOLD_BITS} bits, not {datatype.name}"
    )
    array, flip = by.thresholds, by.flip
    shape = (channels, datatype.levels)
    fits = array.dtype == np.int64 and array.shape == shape
    require(fits, node, f"thresholds must be int64 {list(shape)}, not {array.dtype} {list(array.shape)}")
    fits = flip.dtype == np.bool_ and flip.shape == (channels,)
    require(fits, node, f"flip must be bool [{channels}], not {flip.dtype} {list(flip.shape)}")
    fits = int(array.min()) >= -THRESHOLD_LIMIT and int(array.max()) <= THRESHOLD_LIMIT
    require(fits, node, f"thresholds must be −2^31…2^31, not {array.min()}…{array.max()}")
    require(bool(np.all(array[:, 1:] >= array[:, :-1])), node, "thresholds must ascend in every channel")
