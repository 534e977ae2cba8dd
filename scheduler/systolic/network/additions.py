"""Which additions the Saver does behind the layer before them, so that no pass of their own reads both maps again.

    x ─┬─ conv ── conv ── add           x ─┬─ conv ── conv, x added
       └──────────────────┘                └────────────┘

The layer requantises its own map as ever, to the integers that it would have written. To each of them the Saver adds
the other map's, which it reads where that lies, and requantises the sum (systolic/add.h).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cnn.network import Network
from cnn.ops import Concat, MaxPool, QActivate, QAdd, QAveragePool, QConvolution, QDense, QOp, Slice
from cnn.quantized import QuantizedNetwork
from cnn.requantise import UP, MultiplyShift, Thresholds
from scheduler.convolutions import dilation_of
from scheduler.nodes import resolve
from scheduler.systolic.network.views import ALIGNED, spans_of

MULTIPLIER_BITS, OFFSET_BITS = 32, 48
"""Signed bits of a map's multiplier and of the offset behind the products (systolic/add.h)."""

BEHIND = (QConvolution, QDense, QAveragePool, MaxPool, QActivate)
"""What writes each value of its map once, and in order."""


@dataclass(frozen=True)
class Addition:
    """(own · ``own_multiplier`` + other · ``other_multiplier`` + ``offset``) >> ``shift``, saturated.

    own_node, other_node: whose maps are added, the first of them the layer's own. least_sum: 0 behind a ReLU, where the
    least value of the result may be below; else None. halves: as of a Requantiser, and then no half is in the offset.
    """

    own_node: int
    other_node: int
    own_multiplier: int
    other_multiplier: int
    offset: int
    shift: int
    least_sum: int | None = None
    halves: str = UP


def fused_additions(network: Network | QuantizedNetwork) -> dict[int, Addition]:
    """Of each addition that is fused its node and what the Saver does. Of a float network none: it has no integers."""
    fused: dict[int, Addition] = {}
    if isinstance(network, QuantizedNetwork):
        for index, node in enumerate(network.nodes):
            addition = _addition(network, index, node.op) if isinstance(node.op, QAdd) else None
            if addition is not None:
                fused[index] = addition
    return fused


def _addition(network: QuantizedNetwork, index: int, op: QAdd) -> Addition | None:
    """What the Saver would do of ``op``; None where a rule of it is broken."""
    operands = [resolve(network, source) for source in network.nodes[index].inputs]
    layer_node = _layer_before(network, index)
    if len(operands) != 2 or operands.count(layer_node) != 1 or _readers(network, layer_node) != 1:
        return None
    place = operands.index(layer_node)
    other_node = operands[1 - place]
    before = network.nodes[layer_node].op
    reached = isinstance(before, BEHIND) and not _in_parts(before) and _alone(network, other_node)
    if not reached or _widens(network, index):
        return None
    return _numbers(op, (layer_node, other_node), (op.multipliers[place], op.multipliers[1 - place]))


def _in_parts(op: QOp) -> bool:
    """Return whether several layers may write the map of the operation (network/dilated.py)."""
    return isinstance(op, QConvolution) and dilation_of(op)[0] > 1


def _layer_before(network: QuantizedNetwork, index: int) -> int:
    """The node whose map the layer before writes, where each node but views is at the end of one."""
    nodes = enumerate(network.nodes[:index])
    return max(i for i, node in nodes if not isinstance(node.op, (Concat, Slice)) and not node.op.on_host)


def _readers(network: QuantizedNetwork, node: int) -> int:
    """How many nodes read the map, the host's too."""
    return sum(
        resolve(network, source) == node
        for reader, described in enumerate(network.nodes)
        if resolve(network, reader) == reader
        for source in described.inputs
    )


def _alone(network: QuantizedNetwork, node: int) -> bool:
    """Whether the map is one run of whole channel blocks, and no picture."""
    spans = spans_of(network, node)
    return len(spans) == 1 and spans[0].node != 0 and spans[0].first % ALIGNED == 0


def _widens(network: QuantizedNetwork, index: int) -> bool:
    """Whether the sum has more bits than what is added: lanes hold those, and it might leave in several words."""
    bits = [network.nodes[source].type.datatype.bits for source in network.nodes[index].inputs]
    return network.nodes[index].type.datatype.bits > max(bits)


def _numbers(op: QAdd, nodes: tuple[int, int], multipliers: tuple[int, int]) -> Addition | None:
    """Both multiplications of ``op`` in one; None where channels differ, a negative sum has a slope of its own, or a
    number has too many bits."""
    by = op.requantiser
    if isinstance(by, Thresholds):
        return None
    late = isinstance(by, MultiplyShift)
    columns = (by.bias, by.multiplier, by.multiplier if isinstance(by, MultiplyShift) else by.negative, by.shift)
    rows = np.unique(np.stack(columns, axis=1), axis=0)
    bias, multiplier, negative, shift = (int(number) for number in rows[0])
    own_factor, other_factor = (each * multiplier for each in multipliers)
    offset = bias * (1 if late else multiplier) + (1 << (shift - 1)) * (by.halves == UP)
    fits = max(abs(own_factor), abs(other_factor)) < 1 << (MULTIPLIER_BITS - 1) and abs(offset) < 1 << (OFFSET_BITS - 1)
    if len(rows) > 1 or negative not in (0, multiplier) or not fits:
        return None
    return Addition(*nodes, own_factor, other_factor, offset, shift, None if negative == multiplier else 0, by.halves)
