"""The strips: maps whose rows are stored next to each other in DDR (views.py).

Every concat, add and product of maps needs its operands in one strip. It makes a new strip, or extends one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from cnn.network import Network, Node
from cnn.ops import Add, Concat, QAdd, Slice
from cnn.quantized import QNode, QuantizedNetwork
from scheduler.nodes import nodes_of, resolve
from scheduler.systolic.network.additions import fused_additions
from scheduler.systolic.network.views import ROWS_IN_TURN, Span, spans_of


@dataclass(frozen=True)
class Strips:
    """The strips of a network: groups of feature maps whose rows are stored next to each other in DDR, for concats and
    adds.

    Attributes:
        nodes: The nodes of each strip, in the order in which their maps are stored.
        refused: The reason per node that cannot read its operands, or cannot be read, in this storage order.
    """

    nodes: tuple[tuple[int, ...], ...]
    refused: dict[int, str]

    def of(self, node: int) -> tuple[int, ...]:
        """Return the nodes whose maps share DDR rows with the map of ``node``, in stored order; only the node itself if
        none do."""
        return next((strip for strip in self.nodes if node in strip), (node,))

    def in_stored_order(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """Return the channel ranges ``spans`` of a strip in the order in which DDR stores them."""
        strip = self.of(spans[0].node)
        return tuple(sorted(spans, key=lambda span: (strip.index(span.node) if span.node in strip else -1, span.first)))

    def are_adjacent(self, spans: tuple[Span, ...]) -> bool:
        """Return whether the channel ranges ``spans`` follow each other in the rows of one strip, without a gap."""
        strip, spans = self.of(spans[0].node), self.in_stored_order(spans)
        return all(span.node in strip for span in spans) and all(
            strip.index(follower.node) == strip.index(span.node) + 1
            and span.end == span.channels
            and not follower.first
            for span, follower in pairwise(spans)
        )


def strips_of(network: Network | QuantizedNetwork, fused: bool = False) -> Strips:
    """Return which feature maps of a network are stored side by side in DDR, as strips.

    A map is stored once. Two concats can therefore share a map only if one row can hold the operands of both: the
    concats [a, b] and [c, b] are both readable from a, b, c.

    Args:
        network: The network.
        fused: Whether the Saver computes residual adds if it can. The operands of these adds can be stored anywhere.
    """
    rows = _Rows(network)
    additions = fused_additions(network) if fused else {}
    for index, node in enumerate(nodes_of(network)):
        refusal = rows.place(index, node) if index not in additions else ""
        if refusal:
            rows.refused[index] = refusal
    strips = Strips(tuple(rows.strips), rows.refused)
    read = {i for node in nodes_of(network) for i in node.inputs}
    by_host = {resolve(network, i) for node in nodes_of(network) if node.op.on_host for i in node.inputs}
    for index, node in enumerate(nodes_of(network)):
        refusal = _refuse_reading(strips, spans_of(network, index), node.op, index in by_host, index in read)
        if refusal:
            rows.refused.setdefault(index, refusal)
    return strips


@dataclass
class _Rows:
    """The strips (maps stored side by side in DDR) while they are built, node by node.

    Attributes:
        network: The network.
        strips: The strips, each with its nodes in the order in which their maps are stored.
        in_turn: The strips whose maps are read in turn. They cannot be extended.
        refused: The reason per node whose maps cannot be stored as it needs them.
    """

    network: Network | QuantizedNetwork
    strips: list[tuple[int, ...]] = field(default_factory=list)
    in_turn: list[tuple[int, ...]] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)

    def place(self, index: int, node: Node | QNode) -> str:
        """Put the input maps of a node side by side in a strip. Return the reason if this is impossible, else "".

        Nodes that do not join maps are skipped.
        """
        if isinstance(node.op, ROWS_IN_TURN):
            return self._place_in_turn("adds" if isinstance(node.op, (Add, QAdd)) else "multiplies", node.inputs)
        return self._place_concat(index) if isinstance(node.op, Concat) and len(node.inputs) > 1 else ""

    def _place_concat(self, index: int) -> str:
        spans = spans_of(self.network, index)
        nodes = tuple(span.node for span in spans)
        if not all(span.is_map for span in spans):
            return "it joins a slice, and only whole maps can be stored side by side"
        if len(set(nodes)) < len(nodes):
            return "it joins a map with itself, and a map is stored once"
        touched = [strip for strip in self.strips if set(strip) & set(nodes)]
        if not touched:
            self.strips.append(nodes)
            return ""
        grown = _grown(touched[0], nodes)
        sealed = touched[0] in self.in_turn and grown != touched[0]
        if len(touched) > 1 or grown is None or sealed:
            return (
                f"it joins maps that are stored next to others already ({self._taken(nodes)}), and a map is stored once"
            )
        self.strips[self.strips.index(touched[0])] = grown
        return ""

    def _place_in_turn(self, verb: str, inputs: tuple[int, ...]) -> str:
        """Put maps whose rows are read alternately into a strip of their own. Return the reason if this is impossible,
        else ""."""
        spans = [spans_of(self.network, source) for source in inputs]
        if any(len(parts) > 1 or not parts[0].is_map for parts in spans):
            return f"it {verb} a concat or a slice, and only whole maps can be stored side by side"
        operands = tuple(parts[0].node for parts in spans)
        if len(set(operands)) < len(operands):
            return f"it {verb} a map and itself, and a map is stored once"
        if self._taken(operands):
            taken = self._taken(operands)
            return f"it {verb} maps that are stored next to others already ({taken}), and a map is stored once"
        self.strips.append(operands)
        self.in_turn.append(operands)
        return ""

    def _taken(self, nodes: tuple[int, ...]) -> str:
        """Return the names of those ``nodes`` whose maps are in a strip already, separated by commas."""
        placed = {node for strip in self.strips for node in strip}
        return ", ".join(self.network.nodes[node].name for node in nodes if node in placed)


def _grown(strip: tuple[int, ...], nodes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return ``strip`` extended so that the maps of ``nodes`` are neighbours in it, or None if that is impossible.

    If nodes are missing, the nodes that the strip shares must be at one of its ends. Else they must be neighbours.
    """
    shared, lacking = tuple(node for node in strip if node in nodes), tuple(node for node in nodes if node not in strip)
    count = len(shared)
    if not lacking:
        first = strip.index(shared[0])
        return strip if strip[first : first + count] == shared else None
    if strip[-count:] == shared:
        return strip + lacking
    return lacking + strip if strip[:count] == shared else None


def _refuse_reading(strips: Strips, spans: tuple[Span, ...], op: object, by_host: bool, read: bool) -> str:
    """Return the reason why a node's map cannot be read from DDR as it is stored, or "".

    No layer writes the map of a concat or a slice, so a layer of the array has to read it. The host reads only maps
    that are alone in their strip.

    Args:
        strips: The strips.
        spans: The spans of the node's map.
        op: The node's operation.
        by_host: Whether the host reads the map.
        read: Whether any node reads it.
    """
    if (isinstance(op, Slice) or len(spans) > 1) and (by_host or not read):
        return "no layer of the array reads it"
    if not strips.are_adjacent(spans):
        return "its channels are not stored side by side" if isinstance(op, Slice) else ""
    return (
        "the host reads it too, and it is stored next to other maps"
        if by_host and len(strips.of(spans[0].node)) > 1
        else ""
    )
