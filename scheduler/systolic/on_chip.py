"""The rules for maps that stay on chip from the pass that writes them to their last reader.

map_buffers.py chooses their places. There are two map buffers (systolic/map_buffer.h). A pass reads one of them or DDR,
and writes the other one or DDR:

    layer        0      1      2      3
    reads       DDR  buffer 1  2      1
    writes       1      2      1     DDR

Maps that are stored side by side in DDR (network/strips.py), so that a concat is read as one map, are stored side by
side in a buffer too. Either all of them stay on chip or none.
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
    """A group of maps that are stored side by side (or a single map), with the layers that write and read them.

    Attributes:
        writers: The layers that write the maps, with their numbers.
        readers: The layers that read any of the maps, with their numbers.
        adders: The numbers of the layers whose Saver adds one of the maps.
        other_readers: The number of inputs of host operations that read one of the maps.
    """

    writers: tuple[tuple[int, Layer], ...]
    readers: tuple[tuple[int, Layer], ...]
    adders: tuple[int, ...]
    other_readers: int

    @property
    def number(self) -> int:
        """The index of the first layer that writes one of the maps."""
        return self.writers[0][0]

    @property
    def strides(self) -> tuple[int, ...]:
        """The different strides of the layers that read the maps, in ascending order."""
        return tuple(sorted({layer.stride for _, layer in self.readers}))

    @property
    def padding_above(self) -> tuple[int, ...]:
        """The different numbers of padding rows above the map, in reading layers of stride 2, in ascending order."""
        return tuple(sorted({layer.padding.top for _, layer in self.readers if layer.stride == 2}))

    @property
    def bank_rotations(self) -> frozenset[int] | None:
        """The bank rotations (in rows) of the map buffer with which all readers find their rows; None if any will
        do."""
        return common_rotations(bank_rotations_for(layer) for _, layer in self.readers)

    @property
    def most_above(self) -> int | None:
        """The most rows of padding above the map that any reading layer has; None if there is no reader.

        If the banks are rotated by this number, the row buffers of the other readers start some banks later. Readers of
        stride 3 or more count only if there are no others.
        """
        in_turn = [layer for _, layer in self.readers if layer.stride < 3] or [layer for _, layer in self.readers]
        return max((layer.padding.top for layer in in_turn), default=None)

    @property
    def last(self) -> int:
        """The index of the last layer that reads, adds or writes one of the maps."""
        return max(*(number for number, _ in (*self.readers, *self.writers)), *self.adders, self.number)


def bank_rotations_for(layer: Layer) -> frozenset[int] | None:
    """Return the bank rotations (in rows) of a map on chip with which ``layer`` can read it; None if any will do.

    A layer of stride 2 reads two rows at a time. It needs a rotation by its rows of padding above. If its kernel has
    one row, as the 1×1 convolution of a shortcut has, it uses one of the two rows, and one row more is allowed too. At
    stride 1, the row buffer can start with any bank. Above 2, the rows that move together may be in any banks.
    """
    above = layer.padding.top
    if layer.stride != 2:
        return None
    return frozenset({above, above + 1} if layer.kernel[0] == 1 else {above})


def common_rotations(allowed: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    """Return the bank rotations that all of ``allowed`` allow. None stands for all rotations, also as the result."""
    wanted = [rotations for rotations in allowed if rotations is not None]
    return frozenset.intersection(*wanted) if wanted else None


@dataclass(frozen=True)
class StayRule:
    """A rule that a feature map must obey to stay on chip instead of in DDR, with texts for the generated sources.

    Both texts are written into the sources of a design, as the reason why a map is stored in DDR.

    Attributes:
        sentence: The requirement, as a sentence.
        holds: Returns whether a group of maps obeys the rule.
        actual: Returns the property of the maps that breaks the rule, as a text.
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
        f"a map on chip is read with a stride of 1…{MAX_MAP_STRIDE}",
        lambda h: set(h.strides) <= set(range(1, MAX_MAP_STRIDE + 1)),
        lambda h: f"stride {', '.join(map(str, h.strides))}",
    ),
    StayRule(
        "layers that read a map on chip with stride 2 have equal padding above it, as it decides a row's bank; "
        "a kernel of one row may have one row less",
        lambda h: h.bank_rotations is None or len(h.bank_rotations) > 0,
        lambda h: f"{' and '.join(map(str, h.padding_above))} rows",
    ),
    StayRule(
        "maps whose rows are read in turn are stored in DDR, where a row of one map is half a row of both",
        lambda h: all(layer.summed == 1 for _, layer in h.readers),
        lambda h: "they are added or multiplied by the array",
    ),
    StayRule(
        "a map that is read or written in parts is stored in DDR",
        lambda h: all(layer.part is None for _, layer in (*h.writers, *h.readers)),
        lambda h: "several layers read or write it",
    ),
    StayRule(
        "a map stays on chip only in designs of one frame per batch",
        lambda h: h.writers[0][1].frames == 1,
        lambda h: f"a batch of {h.writers[0][1].frames}",
    ),
)


def handovers(network: QuantizedNetwork, layers: Sequence[Layer]) -> tuple[Handover, ...]:
    """Return for each layer the ``Handover`` of its output map: the maps that are stored with it, their writers and
    readers."""
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
    """Return the node that computes the stored map which the layer's residual add reads."""
    assert layer.added is not None
    return spans_of(network, layer.added.other_node)[0].node


def broken_stay_rules(handover: Handover) -> tuple[str, ...]:
    """Return the reasons why the maps cannot stay on chip, one per broken rule. The depth of the map buffers plays no
    part."""

    return tuple(f"{rule.sentence} ({rule.actual(handover)})" for rule in STAY_RULES if not rule.holds(handover))
