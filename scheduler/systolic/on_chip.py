"""Which maps stay on chip until their last reader is through: the rules. Where they lie there is in map_buffers.py.

There are two buffers (systolic/map_buffer.h). A pass reads one and writes the other, or DDR:

    layer        0      1      2      3
    reads       DDR  buffer 1  2      1
    writes       1      2      1     DDR

Maps that lie side by side in DDR (network/strips.py), so that a concat is read as one map, lie so in a buffer too. They
stay together, or none of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork
from contract.geometry import MAX_MAP_STRIDE
from scheduler.nodes import resolve
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.views import spans_of


@dataclass(frozen=True, eq=False)
class Handover:
    """Maps that lie side by side, or the map that lies alone. writers: the layers that write them, with their numbers.
    readers: layers that read any of them; adders: layers whose Saver adds one, by their numbers; other_readers:
    operations of the host that read one."""

    writers: tuple[tuple[int, Layer], ...]
    readers: tuple[tuple[int, Layer], ...]
    adders: tuple[int, ...]
    other_readers: int

    @property
    def number(self) -> int:
        """The first layer that writes one."""
        return self.writers[0][0]

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(sorted({layer.stride for _, layer in self.readers}))

    @property
    def padding_above(self) -> tuple[int, ...]:
        """Rows of it, in the layers that read two rows at a time."""
        return tuple(sorted({layer.padding.top for _, layer in self.readers if layer.stride == 2}))

    @property
    def turns(self) -> frozenset[int] | None:
        """Rows by which the banks may be turned, so that all who read a map find its rows; None where any will do."""
        return common_turns(turns_for(layer) for _, layer in self.readers)

    @property
    def most_above(self) -> int | None:
        """Rows of padding of the layer that has most: turned so, row buffers of others begin a few rows later."""
        in_turn = [layer for _, layer in self.readers if layer.stride < 3] or [layer for _, layer in self.readers]
        return max((layer.padding.top for layer in in_turn), default=None)

    @property
    def last(self) -> int:
        """The last layer that reads, adds or writes one."""
        return max(*(number for number, _ in (*self.readers, *self.writers)), *self.adders, self.number)


def turns_for(layer: Layer) -> frozenset[int] | None:
    """Rows by which the banks of a map on chip may be turned that ``layer`` reads two by two: its padding above. Where
    it takes one of two rows, as the 1 × 1 of a shortcut does, the other one may be there too. None for any where it
    reads row after row, because its row buffer begins with any bank, or a few rows at a time, of whatever bank."""
    above = layer.padding.top
    if layer.stride != 2:
        return None
    return frozenset({above, above + 1} if layer.kernel[0] == 1 else {above})


def common_turns(of_each: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    """Those that suit all; None where any does."""
    wanted = [turns for turns in of_each if turns is not None]
    return frozenset.intersection(*wanted) if wanted else None


@dataclass(frozen=True)
class StayRule:
    """What maps that stay on chip keep.

    Both texts are written into the sources of a design, as the reason why a map is stored in DDR.

    Attributes:
        sentence: What is required.
        holds: Whether maps keep the rule.
        actual: What they have instead.
    """

    sentence: str
    holds: Callable[[Handover], bool]
    actual: Callable[[Handover], str]


STAY_RULES = (
    StayRule(
        "a map stays on chip for layers that read or add it, and not for the host",
        lambda h: h.other_readers == 0 and len(h.readers) + len(h.adders) > 0,
        lambda h: f"{len(h.readers) + len(h.adders)} such layer(s), {h.other_readers} other reader(s)",
    ),
    StayRule(
        f"a map on chip is read with a stride of 1…{MAX_MAP_STRIDE}, so many rows lie between two that move together",
        lambda h: set(h.strides) <= set(range(1, MAX_MAP_STRIDE + 1)),
        lambda h: f"stride {', '.join(map(str, h.strides))}",
    ),
    StayRule(
        "all layers that read a map on chip with stride 2 have as many rows of padding above it, which say in what "
        "bank a row lies; a kernel of one row may have one less",
        lambda h: h.turns is None or len(h.turns) > 0,
        lambda h: f"{' and '.join(map(str, h.padding_above))} rows",
    ),
    StayRule(
        "maps whose rows are read in turn lie in DDR, where a row of one is half a row of both",
        lambda h: all(layer.summed == 1 for _, layer in h.readers),
        lambda h: "they are added or multiplied by the array",
    ),
    StayRule(
        "a map that is read or written in parts lies in DDR",
        lambda h: all(layer.part is None for _, layer in (*h.writers, *h.readers)),
        lambda h: "several layers read or write it",
    ),
    StayRule(
        "a map stays on chip in designs of one frame a batch",
        lambda h: h.writers[0][1].frames == 1,
        lambda h: f"a batch of {h.writers[0][1].frames}",
    ),
)


def handovers(network: QuantizedNetwork, layers: Sequence[Layer]) -> tuple[Handover, ...]:
    """One a layer, of the map that it writes and those beside it."""
    numbered = tuple(enumerate(layers))
    added = {number: _added_node(network, layer) for number, layer in numbered if layer.added}
    by_host = [resolve(network, i) for node in network.nodes if node.op.on_host for i in node.inputs]

    def handover(strip: tuple[int, ...]) -> Handover:
        nodes = set(strip)
        return Handover(
            tuple(pair for pair in numbered if pair[1].output in nodes),
            tuple(pair for pair in numbered if pair[1].spans[0].node in nodes),
            tuple(number for number, node in added.items() if node in nodes),
            sum(node in nodes for node in by_host),
        )

    by_strip = {strip: handover(strip) for strip in {layer.strip for layer in layers}}
    return tuple(by_strip[layer.strip] for layer in layers)


def _added_node(network: QuantizedNetwork, layer: Layer) -> int:
    """In whose map the one lies that the layer's Saver adds."""
    assert layer.added is not None
    return spans_of(network, layer.added.other_node)[0].node


def hindrances(handover: Handover) -> tuple[str, ...]:
    """Return a reason for every rule that keeps the maps from staying, whatever room there is."""
    return tuple(f"{rule.sentence} ({rule.actual(handover)})" for rule in STAY_RULES if not rule.holds(handover))
