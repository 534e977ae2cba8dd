"""Operators that apply a function to each value. The layer before them includes them, or they become a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError
from cnn.activations import ACTIVATIONS as FUSED
from cnn.activations import FUNCTIONS, LEAKY_SLOPE
from cnn.onnx.graph import OnnxOperation, RefusedError, require
from cnn.onnx.layers import Layers, Map, bare_convolution
from cnn.onnx.quantised.mark import Mark
from cnn.ops import Activate, Add, Convolution, Dense, Multiply

SUMS = (Convolution, Dense, Add, Multiply)
"""Layers that may have an activation."""

GATES = {"logistic": "silu", "hard_sigmoid": "hard_swish", "tanh_softplus": "mish"}
"""The name of the function x · f(x), by the name of f."""

_TABLES = {
    "relu": Activate("clip", (0.0, np.inf)),
    "relu6": Activate("clip", (0.0, 6.0)),
    "leaky": Activate("leaky_relu", (LEAKY_SLOPE,)),
}
"""The layer that computes an activation of a quantised map: a table.

A 1×1 convolution, as for floats, would need quantised weights, which the file does not have."""

NEVER_BELOW_0 = ("relu", "relu6", "logistic", "hard_sigmoid", "softplus")
"""Functions whose results are never negative, so that a ReLU after them changes nothing."""


def activation(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX activation operator, such as Relu: put it into the layer before it or append a layer for it."""
    function = ACTIVATIONS[operation.kind](layers, operation)
    source = layers.map(operation)
    node, alone = layers.nodes[source.node], layers.can_merge(operation)
    if function.function == "relu" and (_name_of(node.op) in NEVER_BELOW_0 or _cut_at_0(layers, source)):
        return layers.with_values(operation, source)
    if function.function in FUSED:
        return _fused(layers, operation, function.function)
    if function.function == "tanh" and alone and node.op == Activate("softplus"):
        return layers.changed(operation, source, Activate("tanh_softplus"))
    larger = layers.with_node(operation, function.function, function, node.shape, source.node)
    return larger.with_values(operation, Map(len(layers.nodes), source.shape))


def _fused(layers: Layers, operation: OnnxOperation, name: str) -> Layers:
    """Put an activation into the layer before it or, if that is not possible, into a new identity convolution."""
    source = layers.map(operation)
    node = layers.nodes[source.node]
    if layers.can_merge(operation) and isinstance(node.op, SUMS) and node.op.activation == "linear":
        return layers.changed(operation, source, replace(node.op, activation=name))
    if name == "relu" and _takes_relu(layers, source.node):
        assert isinstance(node.op, SUMS)
        return layers.changed(operation, source, replace(node.op, activation=name))
    if layers.type_of(source.node) is not None:
        return layers.with_node(operation, "cut", _TABLES[name], node.shape, source.node).with_values(
            operation, Map(len(layers.nodes), source.shape)
        )
    pointwise = replace(bare_convolution(None, node.shape.channels), activation=name)
    return layers.with_node(operation, "conv", pointwise, node.shape, source.node).with_values(
        operation, Map(len(layers.nodes), source.shape)
    )


def _cut_at_0(layers: Layers, source: Map) -> bool:
    """Return whether the map's quantised type cannot represent negative values: its lowest integer stands for 0."""
    type_ = layers.type_of(source.node)
    return type_ is not None and type_.zero_point == type_.datatype.low


def _takes_relu(layers: Layers, index: int) -> bool:
    """Return whether the requantiser of a layer with a quantised output may include a following ReLU.

    It may if nothing else reads the layer and its zero point is 0. The integers that are not negative then stay equal.
    """
    op, mark = layers.nodes[index].op, layers.mark(index)
    if not isinstance(op, SUMS) or op.activation != "linear" or not layers.read_once(index):
        return False
    return mark.type is not None and mark.type.zero_point == 0 and mark.thresholds is None


def _name_of(op: object) -> str:
    if isinstance(op, Activate):
        return op.function
    return op.activation if isinstance(op, SUMS) else ""


def gated(layers: Layers, operation: OnnxOperation) -> Layers | None:
    """Read a Mul of a map x and f(x), as exporters write SiLU, hard swish and mish; None for another Mul."""
    for position in (0, 1):
        gate, source = layers.map(operation, position), layers.map(operation, 1 - position)
        node = layers.nodes[gate.node]
        known = isinstance(node.op, Activate) and node.op.function in GATES and node.inputs == (source.node,)
        if not known:
            continue
        assert isinstance(node.op, Activate)
        gate_type = layers.mark(gate.node).type
        if gate_type is not None:
            product = Activate(GATES[node.op.function], node.op.parameters)
            larger = layers.with_node(operation, product.function, product, node.shape, source.node)
            index = len(layers.nodes)
            named = larger.with_values(operation, Map(index, source.shape))
            return named.marked(index, Mark(gate=gate_type))
        if layers.can_merge(operation, position):
            function = GATES[node.op.function]
            return layers.changed(operation, gate, replace(node.op, function=function), function)
    return None


LOOK_UP = "systolic.LookUp"
"""The operator that cnn.onnx.patterns writes for a table; inputs x, scale, offset, values.

It computes values[⌊x / scale + offset⌋]."""

CLEAR = 0.4
"""Limit for the distance between a table position and the middle of its entry. An entry is 1 wide, so that rounding of
floats cannot select another entry."""

MAX_BITS = 16
"""Limit for the bits of integers that are looked up in a table."""


def looked_up(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read a table look-up written by cnn.onnx.patterns: append a layer with a table entry per input integer."""
    source, values = layers.map(operation), layers.constant(operation, 3)
    type_, node = layers.type_of(source.node), layers.nodes[source.node]
    if type_ is None:
        raise RefusedError(f"a table is looked up by integers of at most {MAX_BITS} bits; a Quant must be before it")
    require(type_.datatype.bits <= MAX_BITS, RangeError("bits of its input", type_.datatype.bits, high=MAX_BITS))
    x = (np.arange(type_.datatype.low, type_.datatype.high + 1) - type_.zero_point) * type_.scale
    places = x / layers.scalar(operation, 1) + layers.scalar(operation, 2)
    index = np.floor(places)
    in_table = values.ndim == 1 and bool(((index >= 0) & (index < values.size)).all())
    require(in_table, ShapeError("its table", values.shape, f"an entry for each of {x.size:,} integers"))
    clear = float(np.abs(places - index - 0.5).max()) < CLEAR
    require(clear, "an integer would be looked up between two entries of the table")
    layers = layers.with_bytes_spent(8 * x.size)
    op = Activate("interpolated", (float(x[0]), type_.scale, *values[index.astype(np.int64)].tolist()))
    bare = replace(operation, inputs=operation.inputs[:1])
    larger = layers.with_node(bare, "lookup", op, node.shape, source.node)
    return larger.with_values(operation, Map(len(layers.nodes), source.shape))


def _leaky(_: Layers, operation: OnnxOperation) -> Activate:
    slope = operation.number("alpha", 0.01)
    return Activate("leaky") if abs(slope - LEAKY_SLOPE) < 1e-6 else Activate("leaky_relu", (slope,))


def _prelu(layers: Layers, operation: OnnxOperation) -> Activate:
    slopes = layers.constant(operation, 1)
    require(slopes.size == 1, ShapeError("the slope", f"{slopes.size} values", "one value"))
    return Activate("leaky_relu", (layers.scalar(operation, 1),))


def _clip(layers: Layers, operation: OnnxOperation) -> Activate:
    low, high = (_bound(layers, operation, key, i) for key, i in (("min", 1), ("max", 2)))
    if low == 0 and high in (6, np.inf):
        return Activate("relu6" if high == 6 else "relu")
    fits = low <= high and low < np.inf and high > -np.inf
    require(fits, InvalidValueError("min and max", (low, high), "the ends of a range, with min not above max"))
    return Activate("clip", (low, high))


def _bound(layers: Layers, operation: OnnxOperation, key: str, position: int) -> float:
    if key in operation.attributes:
        return operation.number(key, 0.0)
    if layers.optional(operation, position) is None:
        return -np.inf if key == "min" else np.inf
    require(
        layers.constant(operation, position).dtype.kind not in "iu",
        "integers are clipped only to a range of 1 to 16 bits, between quantisers of one scale",
    )
    return layers.scalar(operation, position)


def _swish(_: Layers, operation: OnnxOperation) -> Activate:
    alpha = operation.number("alpha", 1.0)
    require(alpha == 1, InvalidValueError("alpha", alpha, "1, because swish is x · sigmoid(x)"))
    return Activate("silu")


def _gelu(_: Layers, operation: OnnxOperation) -> Activate:
    return Activate("gelu_tanh" if operation.text("approximate", "none") == "tanh" else "gelu")


def _named(name: str, *attributes: str) -> Callable[[Layers, OnnxOperation], Activate]:
    """Return a function that reads an ONNX activation as ``Activate(name)``, its parameters from the attributes."""
    defaults = FUNCTIONS[name].defaults if name in FUNCTIONS else ()

    def parameters(_: Layers, operation: OnnxOperation) -> Activate:
        numbers = (operation.number(key, value) for key, value in zip(attributes, defaults, strict=True))
        return Activate(name, tuple(numbers) if attributes else defaults)

    return parameters


ACTIVATIONS: dict[str, Callable[[Layers, OnnxOperation], Activate]] = {
    "Abs": _named("abs"),
    "Celu": _named("celu", "alpha"),
    "Clip": _clip,
    "Elu": _named("elu", "alpha"),
    "Erf": _named("erf"),
    "Exp": _named("exp"),
    "Gelu": _gelu,
    "HardSigmoid": _named("hard_sigmoid", "alpha", "beta"),
    "HardSwish": _named("hard_swish"),
    "LeakyRelu": _leaky,
    "Mish": _named("mish"),
    "PRelu": _prelu,
    "Relu": _named("relu"),
    "Selu": _named("selu", "alpha", "gamma"),
    "Sigmoid": _named("logistic"),
    "Softplus": _named("softplus"),
    "Softsign": _named("softsign"),
    "Sqrt": _named("sqrt"),
    "Swish": _swish,
    "Tanh": _named("tanh"),
    "ThresholdedRelu": _named("thresholded_relu", "alpha"),
}
"""The builder of each operator's function: a name in cnn.activations, and its parameters."""
