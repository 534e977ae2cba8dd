"""Which maps stay on chip between two layers: the rules, and where a map buffer has their rows (systolic/map_buffer.h).

There are two buffers. A pass reads one and writes the other, so that any number of maps in a row may stay, one after
the other:

    layer        0      1      2      3
    reads       DDR  buffer 1  2      1
    writes       1      2      1     DDR

A buffer has as many banks as the row buffer, and row y lies in the bank in which the reading layer's row buffer has it,
(y + turn) mod rows with the layer's upper padding as turn: a word of every row of a group moves in a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork, on_host
from scheduler.systolic.array import Array
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.strips import strips_of
from scheduler.systolic.network.views import resolve, spans_of


@dataclass(frozen=True, eq=False)
class Handover:
    """A map between two layers. reader: the layer after its ``writer``, None after the last; readers: how many layers,
    or operations of the host, read the map. beside: it shares its rows with other maps."""

    writer: Layer
    reader: Layer | None
    readers: int
    beside: bool = False

    @property
    def next_reads(self) -> bool:
        return self.reader is not None and self.reader.input == self.writer.output


@dataclass(frozen=True)
class StayRule:
    """sentence: what is required of a map that stays on chip; actual: what came instead."""

    sentence: str
    holds: Callable[[Handover], bool]
    actual: Callable[[Handover], str]


def _readers(handover: Handover) -> str:
    if handover.reader is None:
        return "it is the last one's"
    next_layer = "is not its only one" if handover.next_reads else "is not one"
    return f"{handover.readers} reader(s), the next layer {next_layer}"


STAY_RULES = (
    StayRule(
        "a map stays on chip for the next layer alone, and the host does not read it",
        lambda h: h.next_reads and h.readers == 1,
        _readers,
    ),
    StayRule(
        "a map on chip is read with stride 1, because neighbouring rows lie in neighbouring banks",
        lambda h: h.reader is None or h.reader.stride == 1,
        lambda h: f"stride {h.reader.stride if h.reader else 1}",
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
        lambda h: h.writer.part is None and (h.reader is None or h.reader.part is None),
        lambda h: "several layers read or write it",
    ),
    StayRule(
        "a map to which another is added lies in DDR, because it is added where rows leave for DDR",
        lambda h: h.writer.added is None,
        lambda h: f"{h.writer.name} adds one",
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
    readers = (*layers[1:], None)
    return tuple(
        Handover(layer, reader, reads.count(layer.output), len(strips.of(layer.output)) > 1)
        for layer, reader in zip(layers, readers, strict=True)
    )


def hindrances(handover: Handover) -> tuple[str, ...]:
    """A sentence for every rule that keeps the map from staying, whatever room there is."""
    return tuple(f"{rule.sentence} ({rule.actual(handover)})" for rule in STAY_RULES if not rule.holds(handover))


def may_stay(network: QuantizedNetwork, layers: Sequence[Layer]) -> tuple[bool, ...]:
    """Of each layer's map whether it may stay where there is room."""
    return tuple(not hindrances(handover) for handover in handovers(network, layers))


def turn_of(reader: Layer | None, array: Array) -> int:
    """Row y of the map lies in bank (y + turn) mod rows."""
    return 0 if reader is None else reader.padding.top % array.rows


def buffers(on_chip: Sequence[bool]) -> tuple[int, ...]:
    """Of each layer's map the buffer in which it stays, 1 or 2, never the one that its layer reads; 0 where it does
    not."""
    numbers: list[int] = []
    for stays in on_chip:
        read = numbers[-1] if numbers else 0
        numbers.append((2 if read == 1 else 1) if stays else 0)
    return tuple(numbers)
