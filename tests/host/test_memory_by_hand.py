"""Allocated buffers, and packets that the simulated DMA moves; no board is opened."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from host.contract.manifest import of_style, parse_manifest, read_manifest
from host.contract.streaming import StreamingManifest
from host.contract.systolic import SystolicManifest
from host.simulated.ddr import BusError
from host.simulated.dma import DmaModel
from host.streaming.driver import StreamingBuffers
from host.systolic.driver import SystolicBuffers
from tests.support.host.manifests import manifest_fields

GOLDEN = Path(__file__).parents[1] / "golden"


class Memory(np.ndarray):
    """A buffer like the ones that ``pynq.allocate`` returns."""

    device_address = 0

    def flush(self) -> None:
        """Do nothing: this memory has no cache."""

    invalidate = freebuffer = flush


def allocator() -> tuple[list[int], Any]:
    """Return the list of sizes that will be allocated, and the function that allocates."""
    sizes: list[int] = []

    def allocate(shape: tuple[int], kind: type, cacheable: int) -> Memory:
        assert (kind, cacheable) == (np.uint8, 1)
        made = np.full(shape, 0xA5, kind).view(Memory)
        made.device_address = 0x10000 * (1 + len(sizes))
        sizes.append(shape[0])
        return made

    return sizes, allocate


def test_streaming_buffers_are_rounded_up_to_whole_beats() -> None:
    """Use 756 bytes in beats of 16, which take 768, and 98 bytes in beats of 32, which take 128."""
    values = manifest_fields(GOLDEN / "streaming/design")
    manifest = of_style(StreamingManifest, parse_manifest(values, "manifest.json"))
    sent = replace(manifest.packet_in, bytes=756, beat=16)
    received = replace(manifest.packet_out, bytes=98, beat=32)
    sizes, allocate = allocator()
    made = StreamingBuffers(replace(manifest, packet_in=sent, packet_out=received, images=()), GOLDEN, 2, allocate)
    assert sizes == [768, 128, 768, 128]
    for number, batch in enumerate(made.batches):
        assert batch.index == number
        assert (batch.sent.nbytes, batch.received.nbytes) == (768, 128)
        assert not batch.sent.any(), "the bytes after a packet's last are zero"


def test_systolic_buffers_have_passes_and_maps_per_set(tiny_files: Path) -> None:
    manifest = of_style(SystolicManifest, read_manifest(tiny_files))
    sizes, allocate = allocator()
    made = SystolicBuffers(manifest, tiny_files, 2, allocate)
    results = [manifest.layers[layer].output.bytes for layer in manifest.output_layers]
    uploads = [image.path for image in (*manifest.images.weights, manifest.images.requantisers)]
    files = [(tiny_files / path).stat().st_size for path in uploads]
    program = 3 * 4 * manifest.pass_words * manifest.passes
    assert sizes == [*files, manifest.maps_bytes, *[manifest.input.bytes, *results] * 2, program]
    assert [batch.first_pass for batch in made.batches] == [0, manifest.passes]
    assert made.inspection_pass == 2 * manifest.passes
    assert made.map_base == min(address for address, _ in made.table[len(files) : -1])


MM2S, S2MM = 0x00, 0x30
CONTROL, STATUS, LOW, HIGH, LENGTH = 0x00, 0x04, 0x18, 0x1C, 0x28
BASE = 0x8_0000_0000
IDLE, INTERNAL_ERROR, DECODE_ERROR, DONE, ERROR = 0x2, 0x10, 0x40, 0x1000, 0x4000


def move(sent: bytes, room: int, answer: bytes, at: int = BASE + 512) -> tuple[np.ndarray, dict[int, int], list[bytes]]:
    """Move ``sent`` from byte 64 of a DDR of 1024 bytes, and the answer to ``at``, where ``room`` bytes are free.

    Return the DDR, the registers at the end and the received packets.
    """
    memory, came = np.zeros(1024, np.uint8), []
    memory[64 : 64 + len(sent)] = np.frombuffer(sent, np.uint8)

    def ddr(address: int, count: int) -> np.ndarray:
        if not BASE <= address <= address + count <= BASE + memory.size:
            raise BusError(address)
        return memory[address - BASE :][:count]

    def stream(packet: bytes) -> bytes:
        came.append(packet)
        return answer

    dma = DmaModel(ddr, stream)
    for base, address, length in ((S2MM, at, room), (MM2S, BASE + 64, len(sent))):
        dma.write(base + CONTROL, 1)
        dma.write(base + LOW, address & 0xFFFFFFFF)
        dma.write(base + HIGH, address >> 32)
        dma.write(base + LENGTH, length)
    until = time.perf_counter() + 10
    while not dma.read(S2MM + STATUS) & (DONE | ERROR):
        assert time.perf_counter() < until, "no packet came"
        time.sleep(0.001)
    registers = dict(dma.values)
    dma.stop()
    return memory, registers, came


def test_simulated_dma_moves_a_packet_and_reports_its_length() -> None:
    for answer in (b"abcdef", b"abcd", b"abcdefgh"):
        memory, registers, came = move(b"0123456", 8, answer)
        assert came == [b"0123456"]
        assert bytes(memory[512 : 512 + len(answer)]) == answer
        assert not memory[512 + len(answer) :].any(), "nothing is written after a packet"
        assert registers[S2MM + LENGTH] == len(answer)
        assert registers[S2MM + STATUS] == registers[MM2S + STATUS] == IDLE | DONE


def test_simulated_dma_packet_longer_than_its_room_is_an_internal_error() -> None:
    memory, registers, _ = move(b"0123456", 4, b"abcdef")
    assert bytes(memory[512:520]) == b"abcd\0\0\0\0"
    assert registers[S2MM + LENGTH] == 4
    assert registers[S2MM + STATUS] & (INTERNAL_ERROR | ERROR) == INTERNAL_ERROR | ERROR


def test_simulated_dma_address_outside_ddr_is_a_decode_error() -> None:
    memory, registers, came = move(b"0123456", 8, b"abcdef", at=512)
    assert came == []
    assert not memory[512:].any()
    assert registers[S2MM + STATUS] & (DECODE_ERROR | ERROR) == DECODE_ERROR | ERROR
