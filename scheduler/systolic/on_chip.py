"""Which maps stay on chip until their last reader is through: the rules. Where they lie there is in map_buffers.py.

There are two buffers (systolic/map_buffer.h). A pass reads one and writes the other, or DDR:

    layer        0      1      2      3
    reads       DDR  buffer 1  2      1
    writes       1      2      1     DDR
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork, on_host
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.strips import strips_of
from scheduler.systolic.network.views import resolve, spans_of


@dataclass(frozen=True, eq=False)
class Handover:
    """The map that layer ``number``, ``writer``, writes. readers: layers that read it as it is; adders: layers whose
    Saver adds it, by their numbers; other_readers: joins and operations of the host that read it, or a part of it.
    beside: it shares its rows with other maps."""

    number: int
    writer: Layer
    readers: tuple[tuple[int, Layer], ...]
    adders: tuple[int, ...]
    other_readers: int
    beside: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(sorted({layer.stride for _, layer in self.readers}))

    @property
    def padding_above(self) -> tuple[int, ...]:
        """Rows of it, in the layers that read the map."""
        return tuple(sorted({layer.padding.top for _, layer in self.readers}))

    @property
    def turns(self) -> tuple[int, ...]:
        """Rows by which the map's banks may be turned, so that all who read it find its rows."""
        turns = [turns_for(layer) for _, layer in self.readers]
        return tuple(sorted(set.intersection(*turns))) if turns else ()

    @property
    def last(self) -> int:
        """The last layer that reads or adds it; its writer where none does."""
        return max((*(number for number, _ in self.readers), *self.adders, self.number))


def turns_for(layer: Layer) -> set[int]:
    """Rows by which the banks of a map on chip may be turned that ``layer`` reads: its padding above. Where it takes
    one of two rows, as the 1 × 1 of a shortcut does, the other one may be there too."""
    above = layer.padding.top
    return {above, above + 1} if layer.stride == 2 and layer.kernel[0] == 1 else {above}


@dataclass(frozen=True)
class StayRule:
    """sentence: what is required of a map that stays on chip; actual: what came instead."""

    sentence: str
    holds: Callable[[Handover], bool]
    actual: Callable[[Handover], str]


STAY_RULES = (
    StayRule(
        "a map stays on chip for layers that read all of it or add it, and not for joins or the host",
        lambda h: h.other_readers == 0 and h.last > h.number,
        lambda h: f"{len(h.readers) + len(h.adders)} such layer(s), {h.other_readers} other reader(s)",
    ),
    StayRule(
        "a map on chip is read with stride 1 or 2, because neighbouring rows lie in neighbouring banks",
        lambda h: set(h.strides) <= {1, 2},
        lambda h: f"stride {', '.join(map(str, h.strides))}",
    ),
    StayRule(
        "all layers that read a map on chip have as many rows of padding above it, which say in what bank a row lies; "
        "a kernel of one row with stride 2 may have one less",
        lambda h: not h.readers or len(h.turns) > 0,
        lambda h: f"{' and '.join(map(str, h.padding_above))} rows",
    ),
    StayRule(
        "maps that a join reads lie side by side in DDR",
        lambda h: not h.beside,
        lambda h: "it has others beside it",
    ),
    StayRule(
        "an upsampled map lies in DDR, because a map buffer takes no more rows of a tile than the array has",
        lambda h: h.writer.upscale == 1,
        lambda h: f"upsampled by {h.writer.upscale}",
    ),
    StayRule(
        "a map that is read or written in parts lies in DDR",
        lambda h: h.writer.part is None and all(layer.part is None for _, layer in h.readers),
        lambda h: "several layers read or write it",
    ),
    StayRule(
        "a map stays on chip in designs of one frame a batch",
        lambda h: h.writer.frames == 1,
        lambda h: f"a batch of {h.writer.frames}",
    ),
)


def handovers(network: QuantizedNetwork, layers: Sequence[Layer]) -> tuple[Handover, ...]:
    """One a layer, of the map that it writes."""
    strips = strips_of(network, any(layer.added for layer in layers))
    reads = [node for layer in layers for node in {span.node for span in layer.spans}]
    reads += [span.node for layer in layers if layer.added for span in spans_of(network, layer.added.other_node)]
    reads += [resolve(network, i) for node in network.nodes if on_host(node.op) for i in node.inputs]

    def handover(number: int, writer: Layer) -> Handover:
        node, numbered = writer.output, tuple(enumerate(layers))
        readers = tuple(pair for pair in numbered if pair[1].input == node)
        adders = tuple(index for index, layer in numbered if layer.added and layer.added.other_node == node)
        other_readers = reads.count(node) - len(readers) - len(adders)
        return Handover(number, writer, readers, adders, other_readers, len(strips.of(node)) > 1)

    return tuple(handover(number, layer) for number, layer in enumerate(layers))


def hindrances(handover: Handover) -> tuple[str, ...]:
    """A sentence for every rule that keeps the map from staying, whatever room there is."""
    return tuple(f"{rule.sentence} ({rule.actual(handover)})" for rule in STAY_RULES if not rule.holds(handover))
