"""Addresses and packets of small designs, computed by hand; no design is compiled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.errors import InvalidValueError, RangeError, ShapeError
from host.contract.manifest import of_style, parse_manifest
from host.contract.streaming import Packet, StreamingManifest, StreamingOutput
from host.contract.systolic import SystolicManifest
from host.streaming.layout import pack_packet, unpack_packet
from host.systolic.layout import BufferAddresses, _words, map_base, pack_batch, place_program, unpack_batch
from tests.support.errors import raises

GOLDEN = Path(__file__).parents[1] / "golden"


def described(style: str) -> object:
    path = GOLDEN / style / "design" / "manifest.json"
    return parse_manifest(json.loads(path.read_text("utf-8")), str(path))


@pytest.fixture
def manifest() -> SystolicManifest:
    """Return a manifest of two layers with words of 8 bytes.

    Passes 0 and 1 read the picture at byte 16 and write node 2 into map buffer 1. Its place in the arena is byte 80.
    Pass 2 reads node 2 on chip and writes node 3 at byte 400.
    """
    made = of_style(SystolicManifest, described("systolic"))  # type: ignore[arg-type]
    first, second = made.layers
    return replace(
        made,
        passes=3,
        input=replace(made.input, offset=16),
        layers=(
            replace(first, first_pass=0, last_pass=1, output=replace(first.output, offset=80)),
            replace(second, first_pass=2, last_pass=2, output=replace(second.output, offset=400)),
        ),
    )


@pytest.fixture
def program() -> np.ndarray:
    words = np.full((3, 64), 7, np.uint32)
    # in_base, in_buffer, out_base, out_buffer
    words[:, (0, 10, 54, 59)] = [(2, 0, 0, 1), (5, 0, 3, 1), (1, 1, 50, 0)]
    return words


ARENA = 0x1000
SETS = (BufferAddresses(0x5000, (0x9000,)), BufferAddresses(0x0800, (0xA008,)))


def test_place_program_bases_equal_those_by_hand(manifest: SystolicManifest, program: np.ndarray) -> None:
    """Check distances in words from 0x800, the lowest address.

    The first set's picture is at 0x900 and its result at 0x1100, the second set's at 0 and 0x1301. The copy for
    inspection has node 2 in the arena, which begins at 0x100, 10 words after its begin.
    """
    assert map_base(ARENA, SETS) == 0x800
    placed = place_program(manifest, program, ARENA, SETS)
    assert placed.dtype == np.uint32
    assert placed[:, (0, 10, 54, 59)].tolist() == [
        *([0x900, 0, 0, 1], [0x903, 0, 3, 1], [1, 1, 0x1100, 0]),
        *([0, 0, 0, 1], [3, 0, 3, 1], [1, 1, 0x1301, 0]),
        *([0x900, 0, 0x10A, 0], [0x903, 0, 0x10D, 0], [0x10B, 0, 0x1100, 0]),
    ]
    assert (np.delete(placed, (0, 10, 54, 59), axis=1) == 7).all()


def test_place_program_base_is_cut_to_32_bits(manifest: SystolicManifest, program: np.ndarray) -> None:
    """Check that 2³² − 1 is a base, and that the bits above are cut off."""
    program[0, 0], program[1, 0] = 0xFFFFFFFF - 0x8FE, 0xFFFFFFFF - 0x8FE + 2
    placed = place_program(manifest, program, ARENA, SETS)
    assert placed[:2, 0].tolist() == [0xFFFFFFFF, 1]


def test_place_program_map_on_chip_without_a_layer_begins_at_the_arena(
    manifest: SystolicManifest, program: np.ndarray
) -> None:
    """Check the map of a node that no layer writes. Its addresses count from the begin of the arena."""
    layers = (manifest.layers[0], replace(manifest.layers[1], input_node=9))
    shown = place_program(replace(manifest, layers=layers), program, ARENA, SETS)[6:]
    assert shown[2, (0, 10)].tolist() == [0x101, 0]


def test_place_program_map_in_the_arena_moves_with_it(manifest: SystolicManifest, program: np.ndarray) -> None:
    """Use node 2 in DDR, at word 10 of an arena that begins 0x100 words above the lowest address."""
    program[:2, 59], program[2, 10] = 0, 0
    program[:2, 54], program[2, 0] = (10, 13), 10
    placed = place_program(manifest, program, ARENA, SETS[1:])
    assert placed[:3, (0, 54)].tolist() == [[0, 0x10A], [3, 0x10D], [0x10A, 0x1301]]
    assert (placed[3:] == placed[:3]).all()


def test_map_base_is_the_lowest_address_of_any_buffer() -> None:
    assert map_base(0x100, SETS) == 0x100
    assert map_base(0xF000, SETS) == 0x800
    assert map_base(0xF000, [BufferAddresses(0x5000, (0x900, 0x300))]) == 0x300


def test_distance_of_map_buffers_beyond_32_bits_is_refused(manifest: SystolicManifest) -> None:
    """Check whole words of 8 bytes, from −2³¹ to 2³¹ − 1."""
    for words in (-(1 << 31), -1, 0, (1 << 31) - 1):
        assert _words(manifest, 8 * words) == words
    for distance in (-8 * ((1 << 31) + 1), 8 << 31, 4, -4):
        with raises(InvalidValueError, what="the distance of two map buffers, in bytes,", got=distance):
            _words(manifest, distance)


def pictures(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).integers(0, 200, (3, 16, 16)).astype(np.uint8) for i in range(count)]


def test_pack_batch_fills_the_batch_with_the_last_picture(manifest: SystolicManifest) -> None:
    """Check pixels of 4 bytes, of which 3 are written. Copies of the last picture fill the batch."""
    batch = replace(manifest, batch=3)
    for count in (1, 2, 3):
        given = pictures(count)
        buffer = np.full(3 * 1024, 255, np.uint8)
        pack_batch(batch, given, buffer)
        pixels = buffer.reshape(3, 16, 16, 4)
        for frame in range(3):
            picture = given[min(frame, count - 1)]
            for channel in range(3):
                assert (pixels[frame, :, :, channel] == picture[channel]).all()
        assert (pixels[..., 3] == 255).all()
    for count in (0, 4):
        with raises(RangeError, what="the number of pictures of a start", got=count, low=1, high=3):
            pack_batch(batch, pictures(count), np.zeros(3 * 1024, np.uint8))


def test_unpack_batch_equals_the_layout_by_hand(manifest: SystolicManifest) -> None:
    """Check int16 maps [frame][row][block][column][lane], with 14 channels in 16 lanes."""
    region = manifest.layers[1].output
    values = np.random.default_rng(1).integers(-(1 << 15), 1 << 15, (3, 8, 2, 8, 8)).astype("<i2")
    for data in (values, values.view(np.uint8).ravel(), values.view(np.int32)):
        found = unpack_batch(region, 8, data, 2)
        assert [frame.shape for frame in found] == [(14, 8, 8)] * 2
        for frame, (channel, y, x) in ((f, place) for f in range(2) for place in np.ndindex(14, 8, 8)):
            assert found[frame][channel, y, x] == values[frame, y, channel // 8, x, channel % 8]


def output(shape: tuple[int, int, int], stream_channels: int, value: str, offset: int, size: int) -> StreamingOutput:
    channels, height, width = shape
    return StreamingOutput(
        channels=channels,
        height=height,
        width=width,
        datatype="INT8",
        scale=1.0,
        layer=0,
        signed=value[0] == "i",
        value_bytes=int(value[1:]),
        stream_channels=stream_channels,
        offset=offset,
        bytes=size,
    )


def test_pack_packet_stores_the_channels_of_a_pixel_together() -> None:
    made = of_style(StreamingManifest, described("streaming"))  # type: ignore[arg-type]
    picture = np.random.default_rng(2).integers(0, 256, (3, 16, 32)).astype(np.uint8)
    packet = np.full(1544, 9, np.uint8)
    pack_packet(made, picture, packet)
    assert (packet[:1536].reshape(16, 32, 3).transpose(2, 0, 1) == picture).all()
    assert (packet[1536:] == 9).all()
    with raises(ShapeError, what="the input"):
        pack_packet(made, picture[:2], packet)
    for count in (1, 4):  # channels per pixel
        grey = replace(made, input=replace(made.input, channels=count), packet_in=Packet(bytes=512 * count, beat=8))
        maps = np.random.default_rng(count).integers(0, 256, (count, 16, 32)).astype(np.uint8)
        pack_packet(grey, maps, packet := np.zeros(2048, np.uint8))
        assert (packet[: 512 * count].reshape(16, 32, count).transpose(2, 0, 1) == maps).all()


def test_unpack_packet_equals_the_layout_by_hand() -> None:
    """Check 3 of 4 channels of 2×5 pixels as int8, then 2 channels of 3×2 pixels as little-endian uint16."""
    made = of_style(StreamingManifest, described("streaming"))  # type: ignore[arg-type]
    outputs = (output((3, 2, 5), 4, "i1", 0, 40), output((2, 3, 2), 2, "u2", 40, 24))
    packet = np.random.default_rng(3).integers(0, 256, 64).astype(np.uint8)
    narrow, wide = unpack_packet(replace(made, outputs=outputs), packet)
    assert [(str(one.dtype), one.shape) for one in (narrow, wide)] == [("int8", (3, 2, 5)), ("uint16", (2, 3, 2))]
    for channel, y, x in np.ndindex(3, 2, 5):
        byte = int(packet[(y * 5 + x) * 4 + channel])
        assert narrow[channel, y, x] == (byte - 256 if byte > 127 else byte)
    for channel, y, x in np.ndindex(2, 3, 2):
        place = 40 + 2 * ((y * 2 + x) * 2 + channel)
        assert wide[channel, y, x] == int(packet[place]) + 256 * int(packet[place + 1])
    assert not np.shares_memory(narrow, packet)
