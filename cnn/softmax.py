"""Softmax in integers, the same in every place: of each position the shares of its channels, p · 256 as UINT8.

    stable     e = T[m − x], m the greatest x of the position: exact to T, whatever the values are
    latency    e = T[x], 1 for the greatest x that the datatype has: a pass less, and shares of few bits where all
               values lie far below that
    both       p = min(255, (e · ⌊2^36 / Σ e⌋ + 2^27) >> 28), T = round((2^20 − 1) · e^…); where all e are 0, so are p
    argmax     p = 255 for the first of the greatest values, 0 for all others

hls4ml has them under these names. Its legacy is the function of stable with a look-up for each pair of channels.

With C channels a share of ``stable`` is at most 1/512 + 2^−16 + C / 2^21 from p, and 255/256 stands for all that is
above: 1/512 for the rounding of p, 2^−16 for that of the quotient, C / 2^21 for that of T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from boards.errors import MissingValueError, RangeError, SystolicError, UnsupportedError
from cnn.datatype import UINT8
from cnn.network import IntegerSoftmax, Network, Node, Softmax, TopK
from cnn.quantized import TABLE_BITS, IntArray, QNode, QSoftmax, QuantizedNetwork, Table, TensorType, on_host

METHODS = ("stable", "latency", "argmax")

SHARES = TensorType(UINT8, 1 / 256)
POWER_BITS, DIVIDEND_BITS, SHARE_BITS = 20, 37, 8
"""Of e, of the dividend 2^36, and of p · 256, as in softmax.h."""

MOST_CHANNELS = 1 << 12
"""Of which shares of 8 bits say something: of more, the roundings of T alone may be a step."""


def softmax_of(method: str, source: TensorType) -> QSoftmax:
    """What ``method`` makes of values of the type ``source``. RangeError if it looks up values of more than 8 bits."""
    if method == "argmax":
        return QSoftmax(method, None)
    read = source.datatype
    if read.bits > TABLE_BITS:
        raise RangeError(
            f"the bits that a softmax by {method} looks up",
            read.bits,
            high=TABLE_BITS,
            remedy=f"give its input {TABLE_BITS} bits or fewer, take argmax, or leave the softmax to the host",
        )
    distance = np.arange(read.high - read.low + 1) * np.float64(source.scale)
    powers = np.floor(((1 << POWER_BITS) - 1) * np.exp(-distance) + 0.5).astype(np.int64)
    return QSoftmax(method, Table(powers if method == "stable" else np.ascontiguousarray(powers[::-1])))


def shares(values: IntArray, op: QSoftmax, low: int) -> IntArray:
    """Integers [C, …] → int64 [C, …], 0…255. low: the least value of their datatype."""
    wide = values.astype(np.int64)
    if op.table is None:
        first = np.argmax(wide, axis=0, keepdims=True)
        chosen = np.zeros(wide.shape, np.int64)
        np.put_along_axis(chosen, first, (1 << SHARE_BITS) - 1, axis=0)
        return chosen
    places = wide.max(axis=0, keepdims=True) - wide if op.method == "stable" else wide - low
    powers = op.table.values[places]
    inverse = (1 << DIVIDEND_BITS - 1) // np.maximum(powers.sum(axis=0, keepdims=True), 1)
    shift = DIVIDEND_BITS - 1 - SHARE_BITS
    rounded: IntArray = np.minimum((powers * inverse + (1 << (shift - 1))) >> shift, (1 << SHARE_BITS) - 1)
    return rounded


# --- where a network has one ----------------------------------------------------------------------------------------


def on_accelerator(network: Network, method: str) -> Network:
    """The same network, its softmax computed by the accelerator, by ``method`` also where it was by another one.

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
    """The same of a network that has its integers; errors as above, and as of ``softmax_of``."""
    _check(network.name, network.nodes)
    nodes: list[QNode] = []
    for node in network.nodes:
        source = nodes[node.inputs[0]].type if node.inputs else node.type
        if isinstance(node.op, (Softmax, QSoftmax)):
            nodes.append(replace(node, op=_named(node, method, source), type=SHARES))
        elif on_host(node.op) and not (isinstance(node.op, TopK) and node.op.labels):
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
    """Refuse a softmax of another kind than the accelerator's."""
    assert isinstance(node.op, Softmax)
    shape = node.shape
    if node.op.logarithm:
        reason = "the accelerator gives the shares themselves"
        raise UnsupportedError("a softmax that gives logarithms", reason, where=node.place, remedy=_HOST)
    if node.op.groups > 1 or (not node.op.each and shape.height * shape.width > 1):
        subject = f"a softmax over {node.op.groups} groups of {shape}"
        reason = "the accelerator's is over all channels of a position"
        raise UnsupportedError(subject, reason, where=node.place, remedy=_HOST)
    check_channels(node.place, shape.channels)


_HOST = "leave out --softmax, so that the host does it"


def check_channels(where: str, channels: int) -> None:
    """Raise RangeError if the channels are more than shares of 8 bits tell apart."""
    if channels > MOST_CHANNELS:
        raise RangeError("the number of channels of a softmax", channels, high=MOST_CHANNELS, where=where, remedy=_HOST)
