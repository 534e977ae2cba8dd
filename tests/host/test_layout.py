"""Maps outside the arena: every pass reads and writes only the buffers of its own set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.errors import InvalidValueError, ShapeError
from host.contract.manifest import of_style, read_manifest
from host.contract.systolic import SystolicManifest, SystolicRegion
from host.contract.tensors import to_floats
from host.systolic.layout import BufferAddresses, map_base, pack_input, place_program, unpack_map
from tests.support.errors import raises


@pytest.fixture(scope="module")
def manifest(tiny_files: Path) -> SystolicManifest:
    return of_style(SystolicManifest, read_manifest(tiny_files))


@pytest.fixture(scope="module")
def program(tiny_files: Path, manifest: SystolicManifest) -> np.ndarray:
    words = np.fromfile(tiny_files / manifest.images.program.path, "<u4")
    return words.reshape(manifest.passes, manifest.pass_words)


INNER = 0x8_0010_0000
SETS = (BufferAddresses(0x8_0000_0000, (0x8_0080_0000,)), BufferAddresses(0x8_0040_0000, (0x8_0090_0000,)))


def copies(manifest: SystolicManifest, program: np.ndarray) -> np.ndarray:
    """Return the program of each set of buffers, and last the program for inspection."""
    return place_program(manifest, program, INNER, SETS).reshape(len(SETS) + 1, *program.shape)


def test_layout_design_has_a_map_on_chip(manifest: SystolicManifest, program: np.ndarray) -> None:
    """Check that the second layer reads the first layer's map on chip. The tests below need such a map."""
    first, second = manifest.layers[:2]
    assert (
        program[first.last_pass, manifest.pass_fields.out_buffer]
        == program[second.first_pass, manifest.pass_fields.in_buffer]
        != 0
    )
    assert program[-1, manifest.pass_fields.out_buffer] == 0


def test_place_program_changes_only_the_places_of_maps(manifest: SystolicManifest, program: np.ndarray) -> None:
    bases, buffers = (
        [manifest.pass_fields.in_base, manifest.pass_fields.out_base],
        [manifest.pass_fields.in_buffer, manifest.pass_fields.out_buffer],
    )
    placed = copies(manifest, program)
    assert (np.delete(placed, bases + buffers, axis=2) == np.delete(program, bases + buffers, axis=1)).all()
    assert (placed[:-1][:, :, buffers] == program[:, buffers]).all()
    assert not placed[-1][:, buffers].any()


def test_place_program_gives_every_pass_the_addresses_of_its_maps(
    manifest: SystolicManifest, program: np.ndarray
) -> None:
    base = map_base(INNER, SETS)
    offsets = {layer.node: layer.output.offset for layer in manifest.layers}
    last = manifest.layers[-1]
    for one, words, inside in zip((*SETS, SETS[0]), copies(manifest, program), (False, False, True), strict=True):
        at = {0: one.input - manifest.input.offset, last.node: one.results[0] - last.output.offset}
        for layer in manifest.layers:
            for index in range(layer.first_pass, layer.last_pass + 1):
                ends = (
                    (manifest.pass_fields.in_base, manifest.pass_fields.in_buffer, layer.input_node),
                    (manifest.pass_fields.out_base, manifest.pass_fields.out_buffer, layer.node),
                )
                for field, buffer, node in ends:
                    before, on_chip = int(program[index, field]) * manifest.word_bytes, program[index, buffer] != 0
                    found = int(words[index, field])
                    if on_chip and not inside:
                        assert found == program[index, field], "it counts from the start of its map buffer"
                        continue
                    wanted = at.get(node, INNER) + before + (offsets[node] if on_chip else 0)
                    assert base + found * manifest.word_bytes == wanted, (layer.name, inside)


def test_buffers_that_cannot_be_addressed_are_refused(manifest: SystolicManifest, program: np.ndarray) -> None:
    far = (BufferAddresses(0x100_0000_0000, (0x8_0080_0000,)),)
    what = "the distance of two map buffers, in bytes,"
    with raises(InvalidValueError, what=what):
        place_program(manifest, program, INNER, far)
    odd = (BufferAddresses(0x8_0000_0001, (0x8_0080_0000,)),)
    with raises(InvalidValueError, what=what):
        place_program(manifest, program, INNER, odd)


def test_unpacked_map_equals_the_packed_map() -> None:
    for datatype, bits, low, high in (
        ("INT16", 16, -30000, 30000),
        ("INT8", 8, -128, 128),
        ("UINT8", 8, 0, 256),
        ("INT4", 4, -8, 8),
    ):
        check_unpacking(datatype, bits, low, high, gap=0)
        check_unpacking(datatype, bits, low, high, gap=16)


def check_unpacking(datatype: str, bits: int, low: int, high: int, gap: int) -> None:
    """Check a map with ``gap`` bytes of another map after each row."""
    lanes, shape = 4, (10, 3, 5)
    integers = np.random.default_rng(1).integers(low, high, shape)
    padded = np.zeros((12, *shape[1:]), np.int64)
    padded[:10] = integers
    words = padded.reshape(3, lanes, 3, 5).transpose(2, 0, 3, 1).reshape(-1) & (1 << bits) - 1
    # Values are little-endian. The first of two nibbles is the low one.
    data = (words[::2] | words[1::2] << 4).astype(np.uint8) if bits == 4 else words.astype(f"<u{bits // 8}")
    rows = data.view(np.uint8).reshape(3, -1)
    data = np.pad(rows, ((0, 0), (0, gap)), constant_values=0x5A).reshape(-1)
    region = SystolicRegion(
        **dict(zip(("channels", "height", "width"), shape, strict=True)),
        datatype=datatype,
        scale=1.0,
        value_bytes=max(bits // 8, 1),
        offset=0,
        bytes=data.size,
        pitch=data.size // 3 if gap else None,
        blocks=3,
        value_bits=bits,
    )
    found = unpack_map(region, lanes, data)
    assert np.array_equal(found, integers)
    assert not np.shares_memory(found, data)


def test_to_floats_multiplies_integers_by_the_scale(manifest: SystolicManifest) -> None:
    region = replace(manifest.layers[0].output, scale=0.1)
    found = to_floats(region, np.array([[[-3, 7]]], np.int16))
    assert found.dtype == np.float32
    assert found.reshape(-1).tolist() == [np.float32(-3 * 0.1), np.float32(7 * 0.1)]


def test_place_program_with_a_later_input_gives_equal_passes(manifest: SystolicManifest, program: np.ndarray) -> None:
    later = replace(manifest, input=replace(manifest.input, offset=64 * manifest.word_bytes))
    moved = program.copy()
    first = manifest.layers[0]
    assert first.input_node == 0
    moved[: first.last_pass + 1, manifest.pass_fields.in_base] += 64
    assert np.array_equal(
        place_program(later, moved, INNER, SETS)[: first.last_pass + 1],
        place_program(manifest, program, INNER, SETS)[: first.last_pass + 1],
    )


def test_pack_input_of_another_type_or_shape_is_refused(manifest: SystolicManifest) -> None:
    wanted = "type uint8 and shape (3, 14, 18)"
    with raises(ShapeError, what="the input", got="type float64 and shape (3, 2, 2)", required=wanted):
        pack_input(manifest, np.zeros((3, 2, 2)), np.zeros(manifest.input.bytes, np.uint8))  # type: ignore[arg-type]
    with raises(ShapeError, what="the input", got="type int8 and shape (3, 14, 18)"):
        pack_input(manifest, np.zeros((3, 14, 18), np.int8), np.zeros(manifest.input.bytes, np.uint8))
