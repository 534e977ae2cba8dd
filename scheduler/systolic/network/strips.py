"""Which maps lie side by side (views.py): every concat and every addition asks for a strip, or to let one grow."""

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
    """nodes: of each strip, in the order in which their maps lie. refused: of what has no place in one the reason."""

    nodes: tuple[tuple[int, ...], ...]
    refused: dict[int, str]

    def of(self, node: int) -> tuple[int, ...]:
        """The strip of a node's map: the node alone where its rows hold no other map."""
        return next((strip for strip in self.nodes if node in strip), (node,))

    def as_they_lie(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """``spans`` in the order in which their maps lie."""
        strip = self.of(spans[0].node)
        return tuple(sorted(spans, key=lambda span: (strip.index(span.node) if span.node in strip else -1, span.first)))

    def side_by_side(self, spans: tuple[Span, ...]) -> bool:
        """Whether ``spans`` are one run of channels of a strip."""
        strip, spans = self.of(spans[0].node), self.as_they_lie(spans)
        return all(span.node in strip for span in spans) and all(
            strip.index(follower.node) == strip.index(span.node) + 1
            and span.end == span.channels
            and not follower.first
            for span, follower in pairwise(spans)
        )


def strips_of(network: Network | QuantizedNetwork, fused: bool = False) -> Strips:
    """Which maps lie side by side. A map has one place, so that it can be in two concats only where the maps of both
    can lie in one row: [a, b] and [c, b] as a, b, c. fused: whether the Saver adds maps where it can; these lie
    anywhere."""
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
    """The strips so far. in_turn: those whose rows are read in turn, beside which nothing may lie."""

    network: Network | QuantizedNetwork
    strips: list[tuple[int, ...]] = field(default_factory=list)
    in_turn: list[tuple[int, ...]] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)

    def place(self, index: int, node: Node | QNode) -> str:
        """Why the operands of a join have no place, "" where they have now, and where the node joins nothing."""
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
        """The operands lie side by side, and nothing beside them: their rows are read in turn."""
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
        placed = {node for strip in self.strips for node in strip}
        return ", ".join(self.network.nodes[node].name for node in nodes if node in placed)


def _grown(strip: tuple[int, ...], nodes: tuple[int, ...]) -> tuple[int, ...] | None:
    """``strip`` with those of ``nodes`` that it lacks, so that ``nodes`` lie side by side; None where they cannot."""
    shared, lacking = tuple(node for node in strip if node in nodes), tuple(node for node in nodes if node not in strip)
    count = len(shared)
    if not lacking:
        first = strip.index(shared[0])
        return strip if strip[first : first + count] == shared else None
    if strip[-count:] == shared:
        return strip + lacking
    return lacking + strip if strip[:count] == shared else None


def _refuse_reading(strips: Strips, spans: tuple[Span, ...], op: object, by_host: bool, read: bool) -> str:
    """Joins that the host, or nobody, reads: nothing writes their map, and the host finds maps that lie alone."""
    if (isinstance(op, Slice) or len(spans) > 1) and (by_host or not read):
        return "no layer of the array reads it"
    if not strips.side_by_side(spans):
        return "its channels are not stored side by side" if isinstance(op, Slice) else ""
    return (
        "the host reads it too, and it is stored next to other maps"
        if by_host and len(strips.of(spans[0].node)) > 1
        else ""
    )
