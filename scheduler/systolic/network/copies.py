"""Maps that two joins want in two places, or a join in a place that they cannot have, are copied: a layer of its own,
which writes what it reads.

A map lies once in DDR (strips.py). Where a concat, an addition or the host would need it elsewhere, an identity of one
step a position is put before the reader, whose map lies where that reader wants it:

    a ─┬─ concat [a, b]              a ─┬─ concat [a, b]
       └─ concat [c, a, d]              └─ copy of a ── concat [c, copy of a, d]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from cnn.datatype import DataType
from cnn.network import Concat, Convolution, Network, Node, Padding, Slice
from cnn.quantized import QConvolution, QNode, QuantizedNetwork, identity, on_host
from scheduler.systolic.network.strips import strips_of
from scheduler.systolic.network.views import ROWS_IN_TURN, nodes_of, resolve

AnyNetwork = TypeVar("AnyNetwork", bound=Network | QuantizedNetwork)


def with_copies(network: AnyNetwork) -> AnyNetwork:
    """The same network, with the copies that its joins need; the nodes keep their order and their names.

    What copies do not help stays, and is refused where the network is lowered.
    """
    helpless: set[str] = set()
    while True:
        refused = strips_of(network).refused
        index = next((i for i in sorted(refused) if nodes_of(network)[i].name not in helpless), None)
        if index is None:
            return network
        copied = _settled(network, index)
        if copied is None:
            helpless.add(nodes_of(network)[index].name)
        else:
            network = copied


def _settled(network: AnyNetwork, index: int) -> AnyNetwork | None:
    """``network`` with copies for the refused node, None where none help: of one operand of a join, or of the first
    ones, or of what the host reads."""
    node = nodes_of(network)[index]
    if isinstance(node.op, (*ROWS_IN_TURN, Concat, Slice)):
        places = range(len(node.inputs))
        choices = [*((place,) for place in places), *(tuple(places[:count]) for count in range(2, len(places) + 1))]
        trials = (_copied(network, index, choice) for choice in choices)
        settled = next((trial for trial in trials if _is_placed(trial, node.name)), None)
        if settled is not None:
            return settled
    readers = [i for i, reader in enumerate(nodes_of(network)) if on_host(reader.op) and _reads(network, i, index)]
    return _copied(network, readers[0], (0,)) if readers else None


def _reads(network: Network | QuantizedNetwork, reader: int, index: int) -> bool:
    """Whether the host's operation reads the map of node ``index`` through its first input."""
    return resolve(network, nodes_of(network)[reader].inputs[0]) == index


def _is_placed(network: Network | QuantizedNetwork, name: str) -> bool:
    refused = strips_of(network).refused
    return all(nodes_of(network)[index].name != name for index in refused)


def _copied(network: AnyNetwork, reader: int, places: Sequence[int]) -> AnyNetwork:
    """With a copy of these inputs of node ``reader`` before it."""
    nodes: Sequence[Any] = nodes_of(network)
    names = {node.name for node in nodes}
    inputs: list[int] = list(nodes[reader].inputs)
    copies: list[Any] = []
    for place in places:
        source = nodes[inputs[place]]
        name = next(n for n in (f"{source.name}_copy{i or ''}" for i in range(len(nodes))) if n not in names)
        names.add(name)
        copies.append(
            replace(source, name=name, op=_copy_of(source), inputs=(inputs[place],), source=nodes[reader].source)
        )
        inputs[place] = reader + len(copies) - 1

    def renumbered(node: Any) -> Any:
        return replace(node, inputs=tuple(i if i < reader else i + len(copies) for i in node.inputs))

    joined = replace(nodes[reader], inputs=tuple(inputs))
    behind = [renumbered(node) for node in nodes[reader + 1 :]]
    with_all: Any = replace(cast(Any, network), nodes=(*nodes[:reader], *copies, joined, *behind))
    return cast(AnyNetwork, with_all)


def _copy_of(source: Node | QNode) -> Convolution | QConvolution:
    """A convolution of one place on every channel by itself, whose weight is 1."""
    channels = source.shape.channels
    unit = np.ones((channels, 1, 1, 1))
    if isinstance(source, QNode):
        return QConvolution(unit.astype(np.int8), DataType(2, True), identity(channels), 1, Padding(), channels)
    weights = unit.astype(np.float32)
    return Convolution(weights, np.zeros(channels, np.float32), None, 1, Padding(), channels, "linear")
