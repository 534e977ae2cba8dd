"""The manifest of a streaming design, which exchanges packets instead of maps in DDR."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

from host.contract.codec import OPTIONAL, Count, OneOf, Range
from host.contract.parts import (
    MAX_BUFFER_BYTES,
    DataFile,
    Manifest,
    ManifestLayer,
    TensorMap,
    check_equal,
    check_range,
    check_tensor,
    check_that,
)

MAX_PACKET_BYTES = (1 << 26) - 1
"""Maximum size of a packet in bytes: the DMA's length register has 26 bits (PG021)."""

MAX_CHANNELS = 1 << 17
_DATATYPE = re.compile(r"U?INT([1-9]|[12][0-9]|3[0-2])|BIPOLAR|TERNARY")
_Channels = Annotated[int, Range(1, MAX_CHANNELS)]


@dataclass(frozen=True, kw_only=True)
class Packet:
    """The size of one frame's packet on the AXI DMA: ``bytes`` in beats of ``beat`` bytes, with the last beat padded.

    The ranges of both fields are checked when a manifest is read, not when a Packet is made.
    """

    bytes: Annotated[int, Range(1, MAX_PACKET_BYTES)]
    beat: Annotated[int, OneOf((1, 2, 4, 8, 16, 32, 64, 128))]

    @property
    def beat_bytes(self) -> int:
        """The packet's bytes on the DMA: its size rounded up to whole beats."""
        return -(-self.bytes // self.beat) * self.beat


@dataclass(frozen=True, kw_only=True)
class StreamingOutput(TensorMap):
    """The place of one output feature map in the packet that the pipeline sends, ``[height][width][stream_channels]``,
    little-endian.

    Attributes:
        layer: Index of its layer in ``layers``.
        signed: Whether its integers are signed.
        value_bytes: Bytes per integer.
        stream_channels: Channels in the packet, including channels that only fill the stream's words.
        offset: First byte in the packet.
        bytes: Size in bytes.
    """

    layer: Annotated[int, Range(0, 1 << 20)]
    signed: bool
    value_bytes: Annotated[int, OneOf((1, 2, 4))]
    stream_channels: int
    offset: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExternalDataFile(DataFile):
    """A file of weights that the pipeline reads from DDR through the port ``port``, in words of ``word_bytes``
    bytes."""

    word_bytes: Annotated[int, Range(1, MAX_BUFFER_BYTES)]
    port: str


@dataclass(frozen=True, kw_only=True)
class StreamingLayer(ManifestLayer):
    """A layer of a streaming design, whose output stream a simulation can record.

    Attributes:
        pixels: Adjacent pixels of a row per word of the stream.
        lanes: Values per word of the stream.
        stream_channels: Channels in the stream, including channels that only fill the stream's words.
    """

    pixels: _Channels
    lanes: _Channels
    stream_channels: _Channels


@dataclass(frozen=True, kw_only=True)
class StreamingBlock:
    """One process of the streaming pipeline, with its modelled throughput.

    Attributes:
        name: The block's name.
        kind: The kind of block.
        folding: The values that it processes per cycle, as text such as "pe 2, simd 4".
        macs: Multiply-accumulates per frame.
        macs_per_cycle: Multiply-accumulates per cycle, 0 if it does not multiply.
        modelled_cycles: Modelled cycles per frame.
    """

    name: str
    kind: str
    folding: str
    macs: Count
    macs_per_cycle: Count
    modelled_cycles: Count


@dataclass(frozen=True, kw_only=True)
class StreamingFifo:
    """A FIFO between two blocks of the pipeline: ``depth`` elements of ``bits`` bits."""

    name: str
    depth: Annotated[int, Range(1, 1 << 31)]
    bits: Annotated[int, Range(1, 1 << 20)]


@dataclass(frozen=True, kw_only=True)
class StreamingCheck:
    """The files of the design's test frame: its input packet, and the output packet that the golden model expects."""

    packet_in: DataFile
    packet_out: DataFile


@dataclass(frozen=True, kw_only=True)
class StreamingManifest(Manifest):
    """The manifest of a streaming design: a pipeline of blocks that takes one frame after another as packets.

    Attributes:
        packet_in: The input packet.
        packet_out: The output packet.
        outputs: The feature maps in the output packet.
        images: The files of external weights.
        frames_per_start: Number of frames after which the pipeline restarts itself.
        blocks: The processes of the pipeline.
        fifos: The FIFOs between them.
        check: The test frame, if the design has one.
    """

    style = "streaming"

    layers: tuple[StreamingLayer, ...]
    packet_in: Packet
    packet_out: Packet
    outputs: tuple[StreamingOutput, ...]
    images: tuple[ExternalDataFile, ...]
    frames_per_start: Annotated[int, Range(1, (1 << 31) - 1)]
    blocks: tuple[StreamingBlock, ...]
    fifos: tuple[StreamingFifo, ...]
    check: StreamingCheck | None = field(default=None, metadata=OPTIONAL)

    @property
    def cycles(self) -> int:
        """Modelled clock cycles between two frames: all blocks work at the same time, and the slowest sets the rate."""
        return max(block.modelled_cycles for block in self.blocks)

    @property
    def pass_cycles(self) -> tuple[float, ...]:
        """The modelled cycles per frame, as a tuple of one: a frame is one pass."""
        return (float(self.cycles),)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The data files that the host reads: external weights, and the packets of the test frame."""
        frame = self.check
        return (*self.images, *(() if frame is None else (frame.packet_in, frame.packet_out)))

    @property
    def output_layers(self) -> tuple[int, ...]:
        """Indices of the layers whose feature maps are in the output packet."""
        return tuple(output.layer for output in self.outputs)

    def validate(self) -> None:
        """Raise an error for the first values of the manifest that contradict each other."""
        check_equal("passes", self.passes, 1)
        check_equal("batch", self.batch, 1)
        check_range("the number of blocks", len(self.blocks), 1)
        check_range("the cycles of the slowest block", self.cycles, 1, (1 << 48) - 1)
        for name, packet in (("packet_in", self.packet_in), ("packet_out", self.packet_out)):
            check_range("the number of bytes in whole beats", packet.beat_bytes, 1, MAX_PACKET_BYTES, name)
        _check_outputs(self)
        super().validate()
        _check_input(self)
        for layer in self.layers:
            _check_layer(layer)


# --- checks ------------------------------------------------------------------------------------------------


def _check_input(manifest: StreamingManifest) -> None:
    _check_map("input", manifest.input)
    size = manifest.input.channels * manifest.input.height * manifest.input.width
    check_equal("datatype", manifest.input.datatype, "UINT8", "input")
    check_equal("bytes", manifest.packet_in.bytes, size, "packet_in")


def _check_layer(layer: StreamingLayer) -> None:
    _check_map(layer.name, layer.output)
    lanes = layer.lanes // layer.pixels
    complete = layer.lanes == lanes * layer.pixels and layer.output.width % layer.pixels == 0
    check_that(complete, "pixels", layer.pixels, "a divisor of the lanes and of the width", layer.name)
    filled = layer.stream_channels % max(lanes, 1) == 0 and layer.stream_channels >= layer.output.channels
    check_that(filled, "stream_channels", layer.stream_channels, "whole words that hold all channels", layer.name)


def _check_outputs(manifest: StreamingManifest) -> None:
    check_range("the number of outputs", len(manifest.outputs), 1)
    end = 0
    for output in manifest.outputs:
        check_range("the layer of an output", output.layer, 0, len(manifest.layers) - 1)
        name = manifest.layers[output.layer].name
        _check_map(name, output)
        check_range("stream_channels", output.stream_channels, output.channels, MAX_CHANNELS, name)
        size = output.height * output.width * output.stream_channels * output.value_bytes
        check_equal("bytes", output.bytes, size, name)
        check_range("offset", output.offset, end, None, name)
        whole = output.offset % output.value_bytes == 0
        check_that(whole, "offset", output.offset, f"a multiple of the {output.value_bytes} bytes of a value", name)
        end = output.offset + output.bytes
        check_range("the end of the output in packet_out", end, 0, manifest.packet_out.bytes, name)


def _check_map(name: str, tensor: TensorMap) -> None:
    check_tensor(name, tensor, _DATATYPE, "INT1…INT32, UINT1…UINT32, BIPOLAR or TERNARY")
