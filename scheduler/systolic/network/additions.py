"""The residual adds that the Saver computes, so that no separate pass reads both maps again.

    x ─┬─ conv ── conv ── add           x ─┬─ conv ── conv, x added
       └──────────────────┘                └────────────┘

The layer before the add requantises its sums as always, to the integers that it would write. The Saver reads the other
map from DDR or from a map buffer, adds it value by value, and requantises the sum (systolic/saver/add.h).
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
"""Signed bits of each map's multiplier, and of the offset that is added to the products (systolic/saver/add.h)."""

FUSIBLE = (QConvolution, QDense, QAveragePool, MaxPool, QActivate)
"""Operations whose layer writes each value of its map once and in order, so that an add can be fused into it."""


@dataclass(frozen=True)
class Addition:
    """A residual add fused into a layer's output stage: (own · ``own_multiplier`` + other · ``other_multiplier`` +
    ``offset``) >> ``shift``.

    The result is saturated.

    Attributes:
        own_node: The node whose map the layer itself computes.
        other_node: The node whose map is added.
        own_multiplier: The multiplier of the layer's own values.
        other_multiplier: The multiplier of the other map's values.
        offset: The offset of the sum. It includes half of the divisor if ``halves`` is UP.
        shift: Bits by which the sum is shifted right.
        least_sum: 0 if the add has a ReLU, because the output type may hold smaller values. Else None.
        halves: The rounding of halves, as in Requantiser.
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
    """Return the residual adds that the output stage can compute, per add node. A float network has none."""
    fused: dict[int, Addition] = {}
    if isinstance(network, QuantizedNetwork):
        for index, node in enumerate(network.nodes):
            addition = _addition(network, index, node.op) if isinstance(node.op, QAdd) else None
            if addition is not None:
                fused[index] = addition
    return fused


def _addition(network: QuantizedNetwork, index: int, op: QAdd) -> Addition | None:
    """Return the fused form of ``op``, the add of node ``index``, or None if the output stage cannot compute it."""
    operands = [resolve(network, source) for source in network.nodes[index].inputs]
    layer_node = _layer_before(network, index)
    if len(operands) != 2 or operands.count(layer_node) != 1 or _readers(network, layer_node) != 1:
        return None
    place = operands.index(layer_node)
    other_node = operands[1 - place]
    before = network.nodes[layer_node].op
    reached = isinstance(before, FUSIBLE) and not _in_parts(before) and _alone(network, other_node)
    if not reached or _widens(network, index):
        return None
    return _numbers(op, (layer_node, other_node), (op.multipliers[place], op.multipliers[1 - place]))


def _in_parts(op: QOp) -> bool:
    """Return whether several array layers may together write the map of operation ``op`` (network/dilated.py)."""
    return isinstance(op, QConvolution) and dilation_of(op)[0] > 1


def _layer_before(network: QuantizedNetwork, index: int) -> int:
    """Return the node whose map the array layer executed just before node ``index`` writes.

    It is the last earlier node that is neither a view nor computed by the host.
    """
    nodes = enumerate(network.nodes[:index])
    return max(i for i, node in nodes if not isinstance(node.op, (Concat, Slice)) and not node.op.on_host)


def _readers(network: QuantizedNetwork, node: int) -> int:
    """Return the number of node inputs in the network that read the map of ``node``.

    Nodes on the host count. A concat of one input does not count, but the nodes that read it do.
    """
    return sum(
        resolve(network, source) == node
        for reader, described in enumerate(network.nodes)
        if resolve(network, reader) == reader
        for source in described.inputs
    )


def _alone(network: QuantizedNetwork, node: int) -> bool:
    """Return whether the map of ``node`` is contiguous in one stored map, begins at a whole word of channels, and is
    not the input image."""
    spans = spans_of(network, node)
    return len(spans) == 1 and spans[0].node != 0 and spans[0].first % ALIGNED == 0


def _widens(network: QuantizedNetwork, index: int) -> bool:
    """Return whether the sum of the add at node ``index`` has more bits than its operands.

    The lanes hold values with the bits of the operands, and a wider sum could need several words per block.
    """
    bits = [network.nodes[source].type.datatype.bits for source in network.nodes[index].inputs]
    return network.nodes[index].type.datatype.bits > max(bits)


def _numbers(op: QAdd, nodes: tuple[int, int], multipliers: tuple[int, int]) -> Addition | None:
    """Return ``op`` as an ``Addition``, with the multipliers of operands and output merged into one each, or None if it
    does not fit.

    Return None if the add has thresholds, or if its channels have different requantisers. Return None also if negative
    sums have a multiplier of their own (a leaky ReLU), or if a number has too many bits.

    Args:
        op: The add.
        nodes: The nodes of the layer's own map and of the other map.
        multipliers: The multipliers of these maps in ``op``.
    """
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
