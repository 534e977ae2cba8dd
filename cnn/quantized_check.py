"""The rules of a QuantizedNetwork. They are checked after quantisation and after a file is read.

Each operation checks its own rules (``IntegerOperation.check``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from boards.errors import InvalidValueError, MismatchError, RangeError, SystolicError, UnsupportedError
from cnn.maps import Shape
from cnn.network import Node
from cnn.ops import QInput
from cnn.quantized import QNode, QuantizedNetwork

MAP_LIMIT = 1 << 28
"""The most values of one tensor: 256 Mi, far above every picture that fits on a board."""


def check_quantized(network: QuantizedNetwork) -> QuantizedNetwork:
    """Return an integer network unchanged if it keeps the arithmetic contract; else raise an error naming the node.

    Raises:
        RangeError: A number is outside its range.
        MismatchError: A value differs from another one that it must equal.
        ShapeError: An array or a map has another shape or data type than required.
        InvalidValueError: A value does not have the required form.
        ChoiceError: A value does not occur among its choices.
        MissingValueError: A required value is missing.
        ConflictError: Two values exclude each other.
        DoesNotFitError: Sums need more bits than an accumulator has.
        UnsupportedError: An integer layer reads a layer that the host computes.
    """
    if not network.nodes or not isinstance(network.nodes[0].op, QInput):
        first = type(network.nodes[0].op).__name__ if network.nodes else "nothing"
        raise InvalidValueError("node 0", first, "the input picture", where=network.name)
    for index, node in enumerate(network.nodes):
        inputs = _inputs(network, index)
        _check_type(node)
        if inputs:
            _check_node(node, inputs)
    return network


def expected_shape(node: Node | QNode, inputs: Sequence[Node | QNode]) -> Shape:
    """Return the output shape that follows from the operation and the inputs of ``node``, which has at least one.

    Raises the errors of ``Operation.output_shape``, with the node as their place.
    """
    try:
        return node.op.output_shape([source.shape for source in inputs])
    except SystolicError as error:
        raise error.at(node.place) from error


def _check_node(node: QNode, inputs: tuple[QNode, ...]) -> None:
    expected = expected_shape(node, inputs)
    if node.shape != expected:
        raise MismatchError("the shape", str(node.shape), str(expected), where=node.place)
    try:
        node.op.check(inputs, node)
    except SystolicError as error:
        raise error.at(node.place) from error


def _inputs(network: QuantizedNetwork, index: int) -> tuple[QNode, ...]:
    node = network.nodes[index]
    for source in node.inputs:
        if not 0 <= source < index:
            raise RangeError("the index of an input", source, 0, index - 1, where=node.place)
    if isinstance(node.op, QInput) != (index == 0):
        raise InvalidValueError("the input picture", f"node {index}", "node 0", where=node.place)
    inputs = tuple(network.nodes[i] for i in node.inputs)
    low, high = node.op.input_counts
    if not low <= len(inputs) <= (len(inputs) if high is None else high):
        what = f"the number of inputs of {type(node.op).__name__}"
        raise RangeError(what, len(inputs), low, high, where=node.place)
    for read in inputs:
        if read.op.on_host and not node.op.on_host:
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
