"""What makes a QuantizedNetwork legal, checked after quantisation and after reading a file."""

from __future__ import annotations

import math

import numpy as np

from boards.errors import QuantiseError
from cnn.accumulator import accumulator_bound
from cnn.datatype import BIPOLAR
from cnn.network import Concat, Detection, MaxPool, Padding, Reorg, Shape, Slice, Softmax, Upsample
from cnn.quantized import (
    MultiplyShift,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QNode,
    QuantizedNetwork,
    Requantiser,
    Requantising,
    Thresholds,
    on_host,
)

MULTIPLIER_LIMIT = (1 << 16) - 1
SHIFT_LIMIT = 47
PRODUCT_BIAS_LIMIT = (1 << 47) - 1
THRESHOLD_LIMIT = 1 << 31
THRESHOLD_BITS = 8  # of an output that thresholds make: 255 comparisons a value
ACCUMULATOR_BITS = 32
MAP_LIMIT = 1 << 28  # values of one tensor: 256 Mi, far above any picture that fits a board
_COMPUTES = (QConvolution, QDense, QAveragePool, QAdd)


def check_quantized(network: QuantizedNetwork) -> QuantizedNetwork:
    """The network itself where it keeps the arithmetic contract; else QuantiseError names the node."""
    if not network.nodes or not isinstance(network.nodes[0].op, QInput):
        raise QuantiseError(f"node 0 of {network.name!r} must be the input picture")
    for index, node in enumerate(network.nodes):
        inputs = _inputs(network, index)
        _check_type(node)
        _check_shape(node, inputs)
        if isinstance(node.op, _COMPUTES):
            _check_computing(node, inputs)
        elif index > 0:
            _check_passing(node, inputs)
    return network


def _require(condition: bool, node: QNode, sentence: str) -> None:
    if not condition:
        raise QuantiseError(f"{node.name!r} ({node.source}): {sentence}")


def _inputs(network: QuantizedNetwork, index: int) -> tuple[QNode, ...]:
    node = network.nodes[index]
    _require(all(0 <= i < index for i in node.inputs), node, f"inputs must come before it, not {node.inputs}")
    _require(isinstance(node.op, QInput) == (index == 0), node, "only node 0 is the input picture")
    inputs = tuple(network.nodes[i] for i in node.inputs)
    count = "no" if index == 0 else "one or more" if isinstance(node.op, (Concat, QAdd)) else "one"
    right = {"no": not inputs, "one or more": len(inputs) >= 1, "one": len(inputs) == 1}[count]
    _require(right, node, f"{type(node.op).__name__} has {count} input(s), not {len(inputs)}")
    if not on_host(node.op):
        _require(not any(on_host(i.op) for i in inputs), node, "no integer layer reads one that runs on the host")
    return inputs


def _check_type(node: QNode) -> None:
    scale = node.type.scale
    _require(math.isfinite(scale) and scale > 0, node, f"a scale is finite and above 0, not {scale}")
    sides = (node.shape.channels, node.shape.height, node.shape.width)
    _require(min(sides) >= 1, node, f"a shape is at least 1×1×1, not {node.shape}")
    _require(node.shape.values <= MAP_LIMIT, node, f"a tensor has at most {MAP_LIMIT} values, not {node.shape}")


def _check_shape(node: QNode, inputs: tuple[QNode, ...]) -> None:
    if inputs:
        expected = _expected_shape(node, inputs)
        _require(node.shape == expected, node, f"its inputs give the shape {expected}, not {node.shape}")


def _expected_shape(node: QNode, inputs: tuple[QNode, ...]) -> Shape:
    op, first = node.op, inputs[0].shape
    if isinstance(op, QConvolution):
        return _convolved(node, op, first)
    if isinstance(op, QDense):
        fits = op.weights.ndim == 2 and op.weights.shape[1] == first.values
        _require(fits, node, f"weights [outputs, {first.values}] are needed, not {op.weights.shape}")
        return Shape(op.weights.shape[0], 1, 1)
    if isinstance(op, MaxPool):
        _require(min(op.size, op.stride) >= 1, node, "size and stride of a pool are at least 1")
        _require(max(_sides(op.padding)) < op.size, node, "a pool's padding is smaller than its size")
        return _slid(node, first, first.channels, (op.size, op.size), op.stride, op.padding)
    if isinstance(op, QAveragePool):
        return Shape(first.channels, 1, 1)
    return _moved(node, inputs)


def _moved(node: QNode, inputs: tuple[QNode, ...]) -> Shape:
    """The shape of an operation that moves values about, or adds them."""
    op, first = node.op, inputs[0].shape
    if isinstance(op, Concat):
        same = all((i.shape.height, i.shape.width) == (first.height, first.width) for i in inputs)
        _require(same, node, "a concat needs inputs of one height and width")
        return Shape(sum(i.shape.channels for i in inputs), first.height, first.width)
    if isinstance(op, Slice):
        inside = op.first >= 0 and op.channels >= 1 and op.first + op.channels <= first.channels
        _require(inside, node, f"channels {op.first}…{op.first + op.channels - 1} are not all in {first}")
        return Shape(op.channels, first.height, first.width)
    if isinstance(op, Reorg):
        s = op.stride
        _require(op.order in ("darknet", "block"), node, f"a reorg is of order darknet or block, not {op.order!r}")
        deep = s * s if op.order == "darknet" else 1
        fits = s >= 1 and not (first.channels % deep or first.height % s or first.width % s)
        _require(fits, node, f"reorg by {s} needs channels % {deep}, height % {s} and width % {s} to be 0: {first}")
        return Shape(first.channels * s * s, first.height // s, first.width // s)
    if isinstance(op, Upsample):
        _require(op.stride >= 1 and op.scale == 1.0, node, f"upsample keeps integers with scale 1, not {op.scale}")
        return Shape(first.channels, first.height * op.stride, first.width * op.stride)
    if isinstance(op, QAdd):
        _require(all(i.shape == first for i in inputs), node, "an add needs inputs of one shape")
        return first
    return _on_host(node, first)


def _on_host(node: QNode, first: Shape) -> Shape:
    if isinstance(node.op, Detection):
        return node.shape
    _require(isinstance(node.op, Softmax), node, f"{type(node.op).__name__} is not an integer layer")
    return first


def _convolved(node: QNode, op: QConvolution, first: Shape) -> Shape:
    _require(op.weights.ndim == 4, node, f"weights have 4 dimensions, not {op.weights.ndim}")
    filters, channels, high, wide = op.weights.shape
    _require(
        min(op.weights.shape) >= 1 and op.stride >= 1,
        node,
        "weights are not empty and the stride is at least 1",
    )
    grouped = op.groups >= 1 and filters % op.groups == 0 and channels * op.groups == first.channels
    _require(
        grouped,
        node,
        f"{channels} weights' channels × {op.groups} groups do not fit {first} and {filters} filters",
    )
    return _slid(node, first, filters, (high, wide), op.stride, op.padding)


def _sides(padding: Padding) -> tuple[int, int, int, int]:
    return padding.top, padding.left, padding.bottom, padding.right


def _slid(node: QNode, first: Shape, channels: int, window: tuple[int, int], stride: int, padding: Padding) -> Shape:
    _require(min(_sides(padding)) >= 0 and max(_sides(padding)) < 256, node, f"padding is 0…255, not {padding}")
    high = first.height + padding.top + padding.bottom - window[0]
    wide = first.width + padding.left + padding.right - window[1]
    _require(min(high, wide) >= 0, node, f"a window of {window[0]}×{window[1]} is larger than the padded {first}")
    return Shape(channels, high // stride + 1, wide // stride + 1)


def _check_passing(node: QNode, inputs: tuple[QNode, ...]) -> None:
    for one in inputs:
        same = one.type == node.type
        _require(same, node, f"it passes {one.name!r} on as {one.type}, but its own type is {node.type}")


def _check_computing(node: QNode, inputs: tuple[QNode, ...]) -> None:
    op = node.op
    assert isinstance(op, _COMPUTES)
    _check_requantiser(node, op.requantiser)
    if isinstance(op, (QConvolution, QDense)):
        _check_weights(node, op)
    if isinstance(op, QConvolution) and inputs[0].type.datatype == BIPOLAR:
        _require(not any(_sides(op.padding)), node, "padding puts in zeros, which BIPOLAR inputs cannot be")
    if isinstance(op, QAdd):
        fits = len(op.multipliers) == len(inputs) and all(1 <= m <= 1 << 14 for m in op.multipliers)
        _require(fits, node, f"an add needs one multiplier of 1…16384 an input, not {op.multipliers}")
    positions = inputs[0].shape.height * inputs[0].shape.width
    bound = accumulator_bound(op, *(i.type.datatype for i in inputs), positions=positions)
    bits = bound.bit_length() + 1
    _require(
        bits <= ACCUMULATOR_BITS,
        node,
        f"acc + bias must fit {ACCUMULATOR_BITS} bits, but Σ|w|·max|a| + |bias| = {bound} needs {bits}; "
        "use fewer bits for weights or activations, or fewer inputs to this layer",
    )


def _check_weights(node: QNode, op: QConvolution | QDense) -> None:
    high = op.weight_type.high
    signed = op.weight_type.signed and op.weights.dtype == op.weight_type.carrier
    _require(signed, node, f"weights must be a signed {op.weight_type.name} in its carrier, not {op.weights.dtype}")
    narrow = int(op.weights.min()) >= -high and int(op.weights.max()) <= high
    _require(narrow, node, f"weights must be narrow, {-high}…{high}, not {op.weights.min()}…{op.weights.max()}")
    if op.weight_type == BIPOLAR:
        _require(bool(op.weights.all()), node, "BIPOLAR weights are −1 or +1, not 0; TERNARY ones may be 0")


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
    apart = node.type.datatype.step == 1
    _require(apart, node, f"a {node.type.datatype.name} output needs Thresholds: saturation may leave a value between")
    for field, (low, high) in _LIMITS[type(requantiser)].items():
        array = getattr(requantiser, field)
        fits = array.dtype == np.int64 and array.shape == (node.shape.channels,)
        _require(fits, node, f"{field} must be int64 [{node.shape.channels}], not {array.dtype} {array.shape}")
        inside = low <= int(array.min()) and int(array.max()) <= high
        _require(inside, node, f"{field} must be {low}…{high}, not {array.min()}…{array.max()}")


def _check_thresholds(node: QNode, by: Thresholds) -> None:
    datatype, channels = node.type.datatype, node.shape.channels
    _require(
        datatype.bits <= THRESHOLD_BITS, node, f"thresholds make at most {THRESHOLD_BITS} bits, not {datatype.name}"
    )
    array, flip = by.thresholds, by.flip
    wanted = (channels, datatype.levels)
    fits = array.dtype == np.int64 and array.shape == wanted
    _require(fits, node, f"thresholds must be int64 {list(wanted)}, not {array.dtype} {list(array.shape)}")
    fits = flip.dtype == np.bool_ and flip.shape == (channels,)
    _require(fits, node, f"flip must be bool [{channels}], not {flip.dtype} {list(flip.shape)}")
    inside = int(array.min()) >= -THRESHOLD_LIMIT and int(array.max()) <= THRESHOLD_LIMIT
    _require(inside, node, f"thresholds must be −2^31…2^31, not {array.min()}…{array.max()}")
    _require(bool(np.all(array[:, 1:] >= array[:, :-1])), node, "thresholds must ascend in every channel")
