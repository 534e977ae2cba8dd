"""Layout of a frame's packets: the input picture, and the output maps. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from host.contract.streaming import StreamingManifest, StreamingOutput
from host.contract.tensors import Integers, Pixels, check_input, fill_pixels


def pack_packet(manifest: StreamingManifest, picture: Pixels, packet: Pixels) -> None:
    """Write a picture into a frame's input packet: pixel by pixel, with the channels of a pixel in order.

    Args:
        manifest: The design's manifest.
        picture: uint8 ``(channels, height, width)``. ShapeError if it does not have the input's shape.
        packet: uint8 ``(bytes of whole beats,)``, written in place.
    """
    region = manifest.input
    check_input(picture, region)
    rows = packet[: manifest.packet_in.bytes].reshape(region.height, region.width * region.channels)
    fill_pixels(picture, rows, region.channels)


def unpack_packet(manifest: StreamingManifest, packet: Pixels) -> tuple[Integers, ...]:
    """Return copies of the integers ``(channels, height, width)`` of each output feature map in an output packet."""
    return tuple(_unpacked(manifest.outputs, packet))


def _unpacked(outputs: tuple[StreamingOutput, ...], packet: Pixels) -> Iterator[Integers]:
    for output in outputs:
        kind = np.dtype(f"{'i' if output.signed else 'u'}{output.value_bytes}")
        values = packet[output.offset : output.offset + output.bytes].view(kind.newbyteorder("<"))
        pixels = values.reshape(output.height, output.width, output.stream_channels)[:, :, : output.channels]
        yield np.array(pixels.transpose(2, 0, 1), kind, order="C")
