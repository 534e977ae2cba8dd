"""The ends of a pipeline: the input packet's beats become stream words, and all output maps become one packet."""

from __future__ import annotations

from boards.errors import DoesNotFitError, UnsupportedError
from cnn.datatype import DataType
from hls_templates.streaming.sources import Element, Packet
from hls_templates.vendor.ports import BEATS
from scheduler.streaming import lanes
from systolic.styles.streaming.generation.wiring.netlist import MIN_BEAT, Call, Netlist, Site, carrier

WIDEST_BEAT = BEATS[-1]
"""The greatest number of bytes per beat of the AXI DMA."""


def source(net: Netlist, site: Site) -> None:
    """Add to the pipeline the function that unpacks the input packet's beats into the words of a stream."""
    kind = site.block.outputs[0]
    word = lanes.out_lanes(site.block, site.fold)
    net.packet_in = Packet(kind.shape.values, _beat_bytes(word))
    arguments = (net.packet_in.beat, word, kind.shape.values // word, carrier(kind.datatype, 1).value)
    ends = [("in", "in"), ("out", site.writes[0])]
    text = f"{kind.shape} pixels from the DMA, {word} values per cycle"
    net.add(site.block.name, Call("unpack_beats", "dma.h", arguments), ends, text)


def sink(net: Netlist, site: Site) -> None:
    """Store the name of an output map's stream, for ``pack_outputs``, which packs all output maps."""
    if net.datatype_in(site).few == "BIPOLAR":
        raise UnsupportedError(
            "a BIPOLAR output map of the pipeline",
            "a packet holds integers, and a BIPOLAR value is stored as 0 or 1",
            where=f"{site.block.source}: {site.block.name}",
            remedy="let the last layer write its sums or TERNARY values",
        )
    net.sinks[site.index] = site.reads[0]


def pack_outputs(net: Netlist) -> None:
    """Add to the pipeline the functions that pack all output maps, one after the other, into one packet."""
    widths = [_sink_word(net, index) for index in net.sinks]
    beat = _beat_bytes(max(word * size for word, size, _, _ in widths))
    streams: list[tuple[str, int]] = []
    total = 0
    for (index, stream), (word, size, words, element) in zip(net.sinks.items(), widths, strict=True):
        name = net.graph.blocks[index].name
        is_alone = len(net.sinks) == 1
        beats = -(-words * word * size // beat)
        out = "out" if is_alone else net.wire(f"beats_{name}", Element(8 * beat, False, 0))
        call = Call("pack_beats", "dma.h", (beat, size, word, words, is_alone, element.value))
        net.add(name, call, [("in", stream), ("out", out)], f"{name} to the DMA, {size} byte(s) per value")
        streams.append((out, beats))
        total += beats * beat if not is_alone else words * word * size
    _append(net, streams, beat)
    net.packet_out = Packet(total, beat)


def _append(net: Netlist, streams: list[tuple[str, int]], beat: int) -> None:
    """Add functions that join the packed output maps into one packet. streams: name and beats of each map."""
    while len(streams) > 1:
        (first, first_beats), (second, second_beats), *others = streams
        out = net.wire(f"joined_{len(others)}", Element(8 * beat, False, 0)) if others else "out"
        call = Call("append_beats", "dma.h", (beat, first_beats, second_beats, not others))
        ends = [("first", first), ("second", second), ("out", out)]
        net.add(f"join_{len(others)}", call, ends, "two maps in one packet")
        streams = [(out, first_beats + second_beats), *others]


def _sink_word(net: Netlist, index: int) -> tuple[int, int, int, Element]:
    """Return an output map's stream word: values per word, bytes per value, words per frame, and the value's type."""
    block, fold = net.graph.blocks[index], net.folding.folds[index]
    kind = net.graph.type_of(block.inputs[0])
    word = lanes.in_lanes(block, fold)
    values = kind.shape.height * kind.shape.width * lanes.in_values(net.graph, index, fold)
    return word, value_bytes(kind.datatype), values // word, carrier(kind.datatype, 1)


def _beat_bytes(word: int) -> int:
    """Return the bytes of the narrowest DMA beat that holds ``word`` bytes; DoesNotFitError if none does."""
    beat = MIN_BEAT
    while beat < word:
        beat *= 2
    if beat > WIDEST_BEAT:
        raise DoesNotFitError(
            f"a word of {word} bytes at the DMA",
            "bytes of a beat",
            beat,
            WIDEST_BEAT,
            remedy="fold the first or last layer more",
        )
    return beat


def value_bytes(datatype: DataType) -> int:
    """Return the bytes that a value of this type takes in a DMA packet: 1, 2 or 4."""
    return next(width for width in (1, 2, 4) if datatype.bits <= 8 * width)
