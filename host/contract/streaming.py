"""The manifest of a streaming design: packets instead of maps in DDR. ``host.manifest`` reads the file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from host.contract.parts import (
    LARGEST_BUFFER,
    MOST_LAYERS,
    Design,
    Image,
    NetworkHead,
    check_common,
    design_of,
    image_of,
    require,
)
from host.vision.detection import Head

LARGEST_PACKET = (1 << 26) - 1
"""Bytes: what the DMA's length register of 26 bits says (PG021)."""

_BEATS = (1, 2, 4, 8, 16, 32, 64, 128)
_DATATYPE = re.compile(r"U?INT([1-9]|[12][0-9]|3[0-2])|BIPOLAR|TERNARY")


@dataclass(frozen=True)
class StreamMap:
    """Integers [channels, height, width]; tensor value = integer × scale."""

    channels: int
    height: int
    width: int
    datatype: str
    scale: float


@dataclass(frozen=True)
class Packet:
    """One frame on the DMA: ``bytes`` in beats of ``beat`` bytes, the last one filled up."""

    bytes: int
    beat: int

    @property
    def whole(self) -> int:
        """Bytes of its beats."""
        return -(-self.bytes // self.beat) * self.beat


@dataclass(frozen=True)
class StreamOutput:
    """A map in the packet that leaves, at ``offset``: [height][width][stream_channels], little-endian.

    layer: its index in ``layers``. stream_channels: with those that only fill the stream's words.
    """

    layer: int
    map: StreamMap
    signed: bool
    value_bytes: int
    stream_channels: int
    offset: int

    @property
    def size(self) -> int:
        """Bytes in the packet."""
        return self.map.height * self.map.width * self.stream_channels * self.value_bytes


@dataclass(frozen=True)
class ExternalImage:
    """Weights in DDR that the port ``port`` reads, in words of ``word_bytes``."""

    image: Image
    word_bytes: int
    port: str


@dataclass(frozen=True)
class StreamLayer:
    """source: file and line of the network that it came from. cycles: of a frame, modelled."""

    name: str
    output_name: str
    source: str
    node: int
    macs: int
    cycles: int
    output: StreamMap


@dataclass(frozen=True)
class StreamManifest(Design):
    """Everything that the host needs to know of a streaming design.

    frames_per_start: frames after which the pipeline restarts itself. cycles: between two frames, modelled: all blocks
    are at work at once, and the slowest sets the pace. check: packets of the design's test frame,
    the one that goes in and the one that the golden model says leaves; None in a design without one.
    """

    input: StreamMap
    packet_in: Packet
    packet_out: Packet
    outputs: tuple[StreamOutput, ...]
    external: tuple[ExternalImage, ...]
    frames_per_start: int
    cycles: int
    layers: tuple[StreamLayer, ...]
    heads: tuple[NetworkHead, ...]
    check: tuple[Image, Image] | None

    passes = 1
    """A frame is one packet."""

    batch = 1
    """Frame follows frame: a pipeline's weights stay where they are."""

    @property
    def pass_cycles(self) -> tuple[float, ...]:
        """``cycles``, as the simulated board's pace wants them."""
        return (float(self.cycles),)

    @property
    def images(self) -> tuple[Image, ...]:
        """Every file that the host reads."""
        return (*(one.image for one in self.external), *(self.check or ()))

    def kept_layers(self) -> tuple[int, ...]:
        """Layers whose maps leave."""
        return tuple(one.layer for one in self.outputs)


def stream_manifest(values: Mapping[str, Any]) -> StreamManifest:
    """What the JSON holds; HostError, KeyError, TypeError, ValueError or OverflowError where it is not usable."""
    found = StreamManifest(
        *design_of(values),
        input=_map(values["input"]),
        packet_in=_packet(values["packet_in"]),
        packet_out=_packet(values["packet_out"]),
        outputs=_outputs(values["outputs"], int(values["packet_out"]["beat"])),
        external=tuple(_external(one) for one in values["images"]),
        frames_per_start=int(values["frames_per_start"]),
        cycles=max(int(one["modelled_cycles"]) for one in values.get("blocks") or values["layers"]),
        layers=tuple(_layer(one) for one in values["layers"]),
        heads=tuple(NetworkHead(int(head["layer"]), Head.from_json(head)) for head in values["heads"]),
        check=_check_images(values["check"]) if "check" in values else None,
    )
    _check(found)
    return found


def _map(values: Mapping[str, Any]) -> StreamMap:
    channels, height, width = (int(values[name]) for name in ("channels", "height", "width"))
    return StreamMap(channels, height, width, str(values["datatype"]), float(values["scale"]))


def _packet(values: Mapping[str, Any]) -> Packet:
    return Packet(int(values["bytes"]), int(values["beat"]))


def _outputs(values: Sequence[Mapping[str, Any]], beat: int) -> tuple[StreamOutput, ...]:
    """One after the other, each from a whole beat on, where the manifest does not say where they lie."""
    require(0 < beat <= max(_BEATS), "packet_out.beat is 1…128", beat)
    found: list[StreamOutput] = []
    for one in values:
        behind = found[-1].offset + found[-1].size if found else 0
        at = int(one["offset"]) if "offset" in one else -(-behind // beat) * beat
        shape = (int(one["value_bytes"]), int(one["stream_channels"]), at)
        found.append(StreamOutput(int(one["layer"]), _map(one), bool(one["signed"]), *shape))
    return tuple(found)


def _external(values: Mapping[str, Any]) -> ExternalImage:
    return ExternalImage(image_of(values["path"], values["crc32"]), int(values["word_bytes"]), str(values["port"]))


def _layer(values: Mapping[str, Any]) -> StreamLayer:
    return StreamLayer(
        name=str(values["name"]),
        output_name=str(values["output_name"]),
        source=str(values["source"]),
        node=int(values["node"]),
        macs=int(values["macs"]),
        cycles=int(values["modelled_cycles"]),
        output=_map(values["output"]),
    )


def _check_images(values: Mapping[str, Any]) -> tuple[Image, Image]:
    sent, expected = (image_of(values[name]["path"], values[name]["crc32"]) for name in ("packet_in", "packet_out"))
    return sent, expected


# --- what must hold ----------------------------------------------------------------------------------------


def _check(found: StreamManifest) -> None:
    check_common(found.fit, found.clock_mhz)
    require(1 <= len(found.layers) <= MOST_LAYERS, f"there are 1…{MOST_LAYERS} layers", len(found.layers))
    require(0 < found.cycles < 1 << 48, "the slowest block takes 1…2^48 cycles", found.cycles)
    require(1 <= found.frames_per_start < 1 << 31, "frames_per_start is 1…2147483647", found.frames_per_start)
    for name, packet in (("packet_in", found.packet_in), ("packet_out", found.packet_out)):
        require(packet.beat in _BEATS, f"{name}.beat is one of {', '.join(map(str, _BEATS))}", packet.beat)
        require(packet.bytes > 0, f"{name}.bytes is above 0", packet.bytes)
        require(packet.whole <= LARGEST_PACKET, f"{name} has at most {LARGEST_PACKET} bytes", packet.whole)
    for layer in found.layers:
        _check_map(layer.name, layer.output)
    for one in found.external:
        require(1 <= one.word_bytes <= LARGEST_BUFFER, f"{one.image.path}: word_bytes is above 0", one.word_bytes)
    _check_input(found)
    _check_outputs(found)
    _check_heads(found)


def _check_input(found: StreamManifest) -> None:
    _check_map("input", found.input)
    size = found.input.channels * found.input.height * found.input.width
    require(found.input.datatype == "UINT8", "input: datatype is UINT8", found.input.datatype)
    require(found.packet_in.bytes == size, f"packet_in.bytes is {size}, a byte a value", found.packet_in.bytes)


def _check_outputs(found: StreamManifest) -> None:
    require(bool(found.outputs), "at least one output leaves", found.outputs)
    end = 0
    for one in found.outputs:
        require(0 <= one.layer < len(found.layers), "an output is that of one of the layers", one.layer)
        name = found.layers[one.layer].name
        _check_map(name, one.map)
        require(one.value_bytes in (1, 2, 4), f"{name}: value_bytes is 1, 2 or 4", one.value_bytes)
        wide = one.map.channels <= one.stream_channels <= 1 << 17
        require(wide, f"{name}: stream_channels holds its channels", one.stream_channels)
        require(one.offset >= end, f"{name}: offset is at least {end}", one.offset)
        require(one.offset % one.value_bytes == 0, f"{name}: offset is whole values", one.offset)
        end = one.offset + one.size
        require(end <= found.packet_out.bytes, f"{name} lies within packet_out", (one.offset, one.size))


def _check_heads(found: StreamManifest) -> None:
    for one in found.heads:
        require(one.layer in found.kept_layers(), "a head reads one of the outputs", one.layer)
        channels = found.layers[one.layer].output.channels
        require(one.head.channels == channels, f"a head of {channels} channels", one.head.channels)


def _check_map(name: str, one: StreamMap) -> None:
    sizes = (one.channels, one.height, one.width)
    require(all(0 < size <= 1 << 16 for size in sizes), f"{name}: channels, height, width are 1…65536", sizes)
    typed = _DATATYPE.fullmatch(one.datatype) is not None
    require(typed, f"{name}: datatype is INT1…INT32, UINT1…UINT32, BIPOLAR or TERNARY", one.datatype)
    require(math.isfinite(one.scale) and one.scale > 0, f"{name}: scale is above 0", one.scale)
