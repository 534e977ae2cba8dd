"""Layout of maps in DDR, and the program's addresses for it. Needs numpy alone.

The generator places every map in one arena. The host moves some maps out of it:

- The **input** and the **results** get buffers of their own, once per batch in flight. The CPU fills and reads one set
  while the accelerator works on another. A flush or invalidate, which covers whole buffers since pynq 3.1, then
  touches the pixels and results of one batch alone.
- All other maps stay in one **inner** arena.

The accelerator is not aware of this. It gets a copy of the program for each set, with the addresses moved. A start
selects its set by the number of its first pass, in a single register write.

A start takes a batch of frames, by default one. The maps of a batch's frames follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError
from host.contract.systolic import SystolicManifest, SystolicRegion
from host.contract.tensors import Integers, Pixels, check_input, fill_pixels

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class BufferAddresses:
    """Physical addresses of one batch's input buffer and result buffers. ``results`` are in the order of
    ``output_layers``."""

    input: int
    results: tuple[int, ...]


def map_base(arena: int, sets: Sequence[BufferAddresses]) -> int:
    """Return the lowest address of all feature-map buffers, to which every map pointer of the accelerator is set."""
    return min([arena, *(address for batch in sets for address in (batch.input, *batch.results))])


def place_program(manifest: SystolicManifest, program: Words, arena: int, sets: Sequence[BufferAddresses]) -> Words:
    """Return the program with the buffers' physical addresses, one copy per batch in flight and one for inspection,
    ``((sets + 1) · passes, words)``.

    There is one copy per set. The last copy is the first set's with every map in DDR, including maps that otherwise
    stay on chip, for inspection. InvalidValueError if the distance of two buffers is not in whole words, or too large.

    Args:
        manifest: The design's manifest.
        program: The generated program, ``(passes, words)``, with addresses in the arena.
        arena: Physical address of the inner arena.
        sets: The addresses of each set's buffers.
    """
    base = map_base(arena, sets)
    copies = [_moved(manifest, program, base, arena, batch) for batch in sets]
    return np.concatenate([*copies, _moved(manifest, _all_in_ddr(manifest, program), base, arena, sets[0])])


def _all_in_ddr(manifest: SystolicManifest, program: Words) -> Words:
    """Return the program changed so that every feature map is in DDR, none on chip.

    A map that stays on chip has a place in the arena too, with equal pitch.
    """
    shown: Words = program.copy()
    outputs = {layer.node: layer.output for layer in manifest.layers}
    offsets = {node: output.offset // manifest.word_bytes - (output.place or 0) for node, output in outputs.items()}
    for index, ends in _ends(manifest):
        for base, buffer, node in ends:
            if shown[index, buffer]:
                shown[index, base] = int(shown[index, base]) + offsets.get(node, 0)
                shown[index, buffer] = 0
    return shown


def _ends(manifest: SystolicManifest) -> Iterator[tuple[int, tuple[tuple[int, int, int], ...]]]:
    """Yield each pass (instruction) with the maps that it reads, writes or adds: indices of their address word and
    buffer word, and their node."""
    fields = manifest.pass_fields
    for layer in manifest.layers:
        ends = [
            (fields.in_base, fields.in_buffer, layer.input_node),
            (fields.out_base, fields.out_buffer, layer.node),
        ]
        if layer.added_node is not None and fields.added_base is not None and fields.added_buffer is not None:
            ends.append((fields.added_base, fields.added_buffer, layer.added_node))
        for index in range(layer.first_pass, layer.last_pass + 1):
            yield index, tuple(ends)


def _moved(manifest: SystolicManifest, program: Words, base: int, arena: int, batch: BufferAddresses) -> Words:
    starts = _node_addresses(manifest, batch)
    placed = program.astype(np.int64)
    for index, ends in _ends(manifest):
        for field, buffer, node in ends:
            if program[index, buffer] == 0:
                placed[index, field] += _words(manifest, starts.get(node, arena) - base)
    return (placed & 0xFFFFFFFF).astype(np.uint32)


def _node_addresses(manifest: SystolicManifest, batch: BufferAddresses) -> dict[int, int]:
    """Return, for each node of the network whose feature map has its own buffer, the buffer's address minus the map's
    offset in the arena."""
    outputs = [manifest.layers[index] for index in manifest.output_layers]
    starts = {layer.node: address - layer.output.offset for layer, address in zip(outputs, batch.results, strict=True)}
    return {0: batch.input - manifest.input.offset, **starts}


def _words(manifest: SystolicManifest, distance: int) -> int:
    words, remainder = divmod(distance, manifest.word_bytes)
    if remainder or not -(1 << 31) <= words < 1 << 31:
        raise InvalidValueError(
            "the distance of two map buffers, in bytes,",
            distance,
            f"a multiple of the word of {manifest.word_bytes} bytes and less than 2^31 words",
            remedy="free other buffers or restart the kernel",
        )
    return words


def pack_batch(manifest: SystolicManifest, pictures: Sequence[Pixels], buffer: Pixels) -> None:
    """Write 1 … batch network inputs into a batch's input buffer, see ``pack_input``. The last one fills the rest of
    the batch.

    Args:
        manifest: The design's manifest.
        pictures: uint8 ``(channels, height, width)`` each.
        buffer: uint8 ``(batch · bytes of the input,)``, written in place.
    """
    count = len(pictures)
    if not 1 <= count <= manifest.batch:
        raise RangeError("the number of pictures of a start", count, 1, manifest.batch)
    maps = buffer.reshape(manifest.batch, manifest.input.bytes)
    for picture, rows in zip(pictures, maps, strict=False):
        pack_input(manifest, picture, rows)
    maps[count:] = maps[count - 1]


def pack_input(manifest: SystolicManifest, picture: Pixels, buffer: Pixels) -> None:
    """Write a network input, uint8 ``(channels, height, width)``, into ``buffer`` in the layout that the engine reads:
    rows of planes of pixels.

    Bytes of a pixel beyond the channels, and bytes of a plane beyond the pixels, are not written: no weight uses them.
    """
    region = manifest.input
    check_input(picture, region)
    fill_pixels(picture, buffer.reshape(region.height, region.row_bytes), region.pixel_bytes)


def unpack_map(region: SystolicRegion, lanes: int, data: npt.NDArray[Any]) -> Integers:
    """Return a copy of a feature map's integers ``(channels, height, width)``, ``value_bytes`` each, from its bytes in
    DDR."""
    kind = "u" if region.datatype.startswith("U") else "i"
    rows = np.asarray(data).reshape(-1).view(np.uint8)[: region.bytes].reshape(region.height, -1)
    row_bytes = region.blocks * region.width * lanes * region.value_bits // 8
    values = _values(np.ascontiguousarray(rows[:, :row_bytes]).reshape(-1), region.value_bits, kind)
    blocks = values.reshape(region.height, region.blocks, region.width, lanes)
    integers = blocks.transpose(1, 3, 0, 2).reshape(-1, region.height, region.width)[: region.channels]
    return np.array(integers, np.dtype(f"{kind}{region.value_bytes}"), order="C")


def unpack_batch(region: SystolicRegion, lanes: int, data: npt.NDArray[Any], frames: int) -> tuple[Integers, ...]:
    """Return the integers of a feature map, as ``unpack_map`` does, for each of the first ``frames`` frames of a
    batch."""
    maps = np.asarray(data).reshape(-1).view(np.uint8)[: frames * region.bytes].reshape(frames, region.bytes)
    return tuple(unpack_map(region, lanes, rows) for rows in maps)


def _values(data: Pixels, bits: int, kind: str) -> npt.NDArray[Any]:
    """Return the integers stored in a map's bytes: little-endian; at 4 bits two signed integers per byte, the first one
    low."""
    if bits >= 8:
        return data.view(np.dtype(f"<{kind}{bits // 8}"))
    halves: Pixels = np.stack([data & 15, data >> 4], axis=1).reshape(-1)
    return np.asarray((halves ^ 8).astype(np.int8) - np.int8(8))
