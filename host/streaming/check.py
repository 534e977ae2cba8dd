"""A streaming design's test frame, and the golden model's output maps for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from boards.errors import MismatchError, MissingValueError
from host.contract.manifest import of_style
from host.contract.parts import DataFile, Manifest, read_data_file
from host.contract.streaming import Packet, StreamingManifest
from host.contract.tensors import Integers, Pixels
from host.streaming.layout import unpack_packet


def check_frame(manifest: Manifest, folder: Path) -> tuple[Pixels, Iterator[Integers]]:
    """Return the test frame's network input, uint8 ``(channels, height, width)``, and the golden model's integers of
    each output layer."""
    described = of_style(StreamingManifest, manifest)
    frame = described.check
    if frame is None:
        raise MissingValueError("the test frame", where=str(folder), remedy="generate the design again")
    sent = _packet(folder, frame.packet_in, described.packet_in)
    expected = _packet(folder, frame.packet_out, described.packet_out)
    region = described.input
    pixels = sent.reshape(region.height, region.width, region.channels).transpose(2, 0, 1)
    return np.ascontiguousarray(pixels), iter(unpack_packet(described, expected))


def _packet(folder: Path, file: DataFile, packet: Packet) -> Pixels:
    data = np.frombuffer(read_data_file(folder, file), np.uint8)
    if data.size != packet.bytes:
        raise MismatchError(
            "the number of bytes", data.size, packet.bytes, where=file.path, remedy="copy the file again"
        )
    return data
