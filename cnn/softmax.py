"""Moves the softmax of a network to the accelerator, and selects the method by which it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boards.errors import MissingValueError, RangeError, SystolicError, UnsupportedError
from cnn.datatype import TensorType
from cnn.network import Network, Node
from cnn.ops import IntegerSoftmax, QSoftmax, Softmax, TopK
from cnn.ops.softmax import HOST_INSTEAD, SHARES, check_channels, softmax_of
from cnn.quantized import QNode, QuantizedNetwork


def on_accelerator(network: Network, method: str) -> Network:
    """Return the float network with every softmax moved from the host to the accelerator, computed by ``method``.

    A softmax that is already on the accelerator changes to this method.

    Raises:
        MissingValueError: The network has no softmax.
        UnsupportedError: A softmax is not over the channels of one position.
        RangeError: A softmax has too many channels.
    """
    _check(network.name, network.nodes)
    kinds = (Softmax, IntegerSoftmax)
    nodes = [replace(node, op=IntegerSoftmax(method)) if isinstance(node.op, kinds) else node for node in network.nodes]
    return replace(network, nodes=tuple(nodes))


def integers_on_accelerator(network: QuantizedNetwork, method: str) -> QuantizedNetwork:
    """Return the integer network with every softmax moved from the host to the accelerator, by ``method``.

    Raises the errors of ``on_accelerator`` and of ``softmax_of``.
    """
    _check(network.name, network.nodes)
    nodes: list[QNode] = []
    for node in network.nodes:
        source = nodes[node.inputs[0]].type if node.inputs else node.type
        if isinstance(node.op, (Softmax, QSoftmax)):
            nodes.append(replace(node, op=_named(node, method, source), type=SHARES))
        elif node.op.on_host and not (isinstance(node.op, TopK) and node.op.labels):
            nodes.append(replace(node, type=source))
        else:
            nodes.append(node)
    return replace(network, nodes=tuple(nodes))


def _named(node: QNode | Node, method: str, source: TensorType) -> QSoftmax:
    try:
        return softmax_of(method, source)
    except SystolicError as error:
        raise error.at(node.place) from error


def _check(name: str, nodes: Sequence[Node] | Sequence[QNode]) -> None:
    if not any(isinstance(node.op, (Softmax, IntegerSoftmax, QSoftmax)) for node in nodes):
        raise MissingValueError("a softmax", "the network has none", where=name, remedy="leave out --softmax")
    for node in nodes:
        if isinstance(node.op, Softmax):
            _check_softmax(node, nodes)


def _check_softmax(node: Node | QNode, nodes: Sequence[Node] | Sequence[QNode]) -> None:
    """Raise an error if the accelerator cannot compute the softmax: only one over the channels of a position."""
    assert isinstance(node.op, Softmax)
    shape = node.shape
    if node.op.logarithm:
        reason = "the accelerator computes the probabilities themselves"
        raise UnsupportedError("a softmax that gives logarithms", reason, where=node.place, remedy=HOST_INSTEAD)
    if node.op.groups > 1 or (not node.op.each and shape.height * shape.width > 1):
        subject = f"a softmax over {node.op.groups} groups of {shape}"
        reason = "the accelerator computes a softmax over all channels of a position"
        raise UnsupportedError(subject, reason, where=node.place, remedy=HOST_INSTEAD)
    try:
        check_channels(shape.channels)
    except RangeError as error:
        raise error.at(node.place) from error
