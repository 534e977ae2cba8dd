"""Each word of a pass is checked against the other words, in all passes of small programs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError, SystolicError
from cnn.quantized import QuantizedNetwork
from contract.program import FIELDS, PASS_FIELDS, complete
from contract.violations import read
from host.contract.manifest import of_style, read_manifest
from host.contract.program import ImageWords, check_program
from host.contract.systolic import SystolicManifest
from host.contract.uploads import read_systolic
from systolic.files import write
from tests.support.accelerators import GEOMETRIES, design_of, networks
from tests.support.arrays.joins import weighed
from tests.support.low_bit import Layers

PROGRAMS = [
    ("odd rows", "pools", 1),
    ("odd rows", "depthwise", 1),
    ("one port", "kernels", 1),
    ("two rows", "connected to pixels", 3),
    ("four ports", "skip", 1),
    ("narrow", "wide", 1),
]
"""Geometry, network and batch."""

FOLLOWS = [field.name for field in FIELDS if field.formula is not None and field.name != "group_pixels"]
"""Words that follow from other words in every pass."""

Words = npt.NDArray[np.uint32]
Program = tuple[SystolicManifest, Words, ImageWords]


@cache
def generated(geometry: str, network: str, batch: int) -> Program:
    return program_of(networks()[network], geometry, batch)


def program_of(network: QuantizedNetwork, geometry: str, batch: int = 1) -> Program:
    with TemporaryDirectory() as folder:
        write(design_of(network, GEOMETRIES[geometry], batch), Path(folder) / "design")
        manifest = of_style(SystolicManifest, read_manifest(Path(folder) / "design"))
        uploads = read_systolic(Path(folder) / "design", manifest)
    return (
        manifest,
        uploads.program,
        ImageWords(len(uploads.weights[0]), len(uploads.requantisers), uploads.requantisers[:, 3]),
    )


def refusal(program: Program, number: int, field: str, value: int) -> SystolicError | None:
    """Return the error of the program with another word in a pass; None if it is taken."""
    manifest, words, images = program
    changed = words.copy()
    changed.view(np.int32)[number, PASS_FIELDS.index(field)] = value
    try:
        check_program(manifest, changed, images, "program.bin")
    except SystolicError as error:
        return error
    return None


def refused(program: Program, number: int, field: str, value: int, kind: type[SystolicError], **fields: object) -> bool:
    """Return whether another word in a pass raises an error of this class with these fields."""
    error = refusal(program, number, field, value)
    wanted = {"where": f"program.bin: pass {number}", "what": field, "got": value, **fields}
    return type(error) is kind and {name: getattr(error, name) for name in wanted} == wanted


def field_of(program: tuple[SystolicManifest, Words, ImageWords], number: int, field: str) -> int:
    return int(program[1].view(np.int32)[number, PASS_FIELDS.index(field)])


def test_word_that_differs_from_its_formula_is_refused() -> None:
    for names in PROGRAMS:
        program = generated(*names)
        check_program(*program, "program.bin")
        for field in FOLLOWS:
            for number in range(len(program[1])):
                value = field_of(program, number, field)
                for other in (value - 1, value + 1):
                    assert refusal(program, number, field, other), f"{names}: {field} = {other} in pass {number}"


def test_complete_of_the_primary_words_equals_the_program() -> None:
    for names in PROGRAMS:
        manifest, words, _ = generated(*names)
        passes = read(words, manifest.array)
        primary = {field.name: getattr(passes, field.name) for field in FIELDS if field.primary}
        for name, numbers in complete(primary, manifest.array).items():
            assert np.array_equal(numbers, getattr(passes, name)), f"{names}: {name}"


def test_kernel_column_step_outside_its_range_is_refused() -> None:
    """Use 40 outputs of three columns each, from 12 columns before a row of 40. The last must reach the last column."""
    program = program_of(Layers(3, 9, 40, "INT8", "INT8").conv(8, 1).spaced(8, 3, 12).network(), "odd rows")
    check_program(*program, "program.bin")
    dilated = [n for n in range(len(program[1])) if field_of(program, n, "kernel_groups") == 3]
    assert [field_of(program, number, "group_pixels") for number in dilated] == [12]
    limits = {"low": 12 // 2, "high": (12 + 4095) // 2}
    for number in dilated:
        for wrong in (limits["low"] - 1, limits["high"] + 1):
            assert refused(program, number, "group_pixels", wrong, RangeError, **limits)
        assert not any(refusal(program, number, "group_pixels", end) for end in limits.values())
    program = generated("odd rows", "depthwise", 1)
    last = len(program[1]) - 1
    assert field_of(program, last, "kernel_groups") == 1
    assert refused(program, last, "group_pixels", 2, RangeError, low=1, high=1)


RANGES = {
    **dict.fromkeys(("in_base", "in_block_pitch", "weights_base", "requantiser_base", "out_base"), (0, (1 << 31) - 1)),
    **dict.fromkeys(("in_row_pitch", "out_row_pitch", "out_block_pitch"), (1, (1 << 31) - 1)),
    **dict.fromkeys(("burst_words", "bursts", "block_words", "in_blocks", "in_width", "in_height"), (1, (1 << 31) - 1)),
    **dict.fromkeys(("kernel_groups", "out_height", "out_width", "save_width", "out_blocks"), (1, (1 << 31) - 1)),
    **dict.fromkeys(("pixel_input", "depthwise", "overlap", "inputs_resident", "resident"), (0, 1)),
    **{
        "kernel_height": (1, 4095),
        "stride": (0, 127),
        "advance": (0, 127),
        "pad_top": (0, 255),
        "pad_left": (-64, 4095),
        "group_pixels": (0, 4095),
    },
    **{"pool_size": (1, 2), "pool_stride": (1, 2), "around": (0, 255)},
    **{"in_buffer": (0, 0), "out_buffer": (0, 0), "last_slot": (0, 511), "steps": (1, 256), "channel_tiles": (1, 16)},
    **{"out_turn": (0, 4), "value_words": (1, 2)},
}
"""Ranges of the geometry ``odd rows``.

It has five rows, 512 words for rows, 256 words for weights, 16 channel tiles and values of 8 bits.
"""


def test_word_beyond_what_the_engine_counts_in_is_refused() -> None:
    program = generated("odd rows", "pools", 1)
    for field, (low, high) in RANGES.items():
        for value in (low - 1, high + 1):
            if -(1 << 31) <= value < 1 << 31:
                assert refused(program, 0, field, value, RangeError, low=low, high=high), f"{field} = {value}"
        for value in (low, high):
            assert not refused(program, 0, field, value, RangeError, low=low, high=high), f"{field} = {value}"


def test_kernel_column_step_of_0_requires_a_sum_of_several_columns() -> None:
    program = program_of(weighed(), "odd rows")
    check_program(*program, "program.bin")
    same = [n for n in range(len(program[1])) if field_of(program, n, "group_pixels") == 0]
    assert [field_of(program, number, "kernel_groups") for number in same] == [3, 8, 3]
    assert refusal(program, same[0], "kernel_groups", 1)
    assert refusal(program, 0, "group_pixels", 0)


def touched(program: tuple[SystolicManifest, Words, ImageWords], number: int, side: str) -> int:
    """Return the greatest distance in words from the base that a pass reads or writes, computed word by word."""
    names = {"in": ("in_height", "bursts", "burst_words"), "out": ("out_height", "out_blocks", "save_width")}[side]
    height, pieces, words = (field_of(program, number, name) for name in names)
    if side == "out":
        height = len(range(0, height, field_of(program, number, "pool_stride")))
        words *= field_of(program, number, "value_words")
    row_pitch, block_pitch = (field_of(program, number, f"{side}_{kind}_pitch") for kind in ("row", "block"))
    return max(y * row_pitch + piece * block_pitch + words - 1 for y in range(height) for piece in range(pieces))


def test_pass_reads_and_writes_its_own_map_to_the_last_word() -> None:
    for names, side in ((names, side) for names in PROGRAMS for side in ("in", "out")):
        program = generated(*names)
        manifest = program[0]
        maps = {0: manifest.input, **{layer.node: layer.output for layer in manifest.layers}}
        for layer in manifest.layers:
            region = maps[layer.input_node] if side == "in" else layer.output
            first = region.offset // manifest.word_bytes
            end = first + manifest.batch * region.bytes // manifest.word_bytes
            for number in range(layer.first_pass, layer.last_pass + 1):
                last, base = end - 1 - touched(program, number, side), f"{side}_base"
                assert refusal(program, number, base, last) is None, names
                assert refusal(program, number, base, first) is None, names
                for outside in (last + 1, *([first - 1] if first else [])):
                    assert refused(program, number, base, outside, RangeError, low=first, high=end), names


def test_pass_with_weights_or_requantisers_beyond_the_images_is_refused() -> None:
    for names in PROGRAMS:
        program = generated(*names)
        images = program[2]
        for number in range(len(program[1])):
            weights = field_of(program, number, "channel_tiles") * field_of(program, number, "tile_beats")
            for field, total, taken in (
                ("weights_base", images.weights, weights),
                ("requantiser_base", images.requantisers, field_of(program, number, "channels")),
            ):
                assert refusal(program, number, field, total - taken) is None, names
                assert refused(program, number, field, total - taken + 1, InvalidValueError), names
        last = len(program[1]) - 1
        assert field_of(program, last, "requantiser_base") + field_of(program, last, "channels") == images.requantisers


def test_table_requires_its_words_after_the_requantisers() -> None:
    manifest, program, images = generated("odd rows", "pools", 1)
    last, end = len(program) - 1, images.requantisers
    base = field_of((manifest, program, images), last, "requantiser_base")

    def outcome(depth: int, values: int, requantisers: int) -> bool:
        """Return whether a table of ``values`` values after the last pass is accepted."""
        tables = np.zeros(requantisers, np.uint32)
        tables[base] = values
        told = replace(manifest, array=replace(manifest.array, table_depth=depth))
        grown = replace(images, requantisers=requantisers, tables=tables)
        is_refused = refused((told, program, grown), last, "requantiser_base", base, InvalidValueError)
        assert is_refused == (refusal((told, program, grown), last, "requantiser_base", base) is not None)
        return not is_refused

    assert all((outcome(256, 256, end + 256), outcome(256, 0, end), outcome(0, 0, end)))
    assert not any((outcome(256, 256, end + 255), outcome(256, 255, end + 256), outcome(0, 256, end + 256)))


def test_last_slot_other_than_the_last_whole_slot_is_refused() -> None:
    program = generated("odd rows", "pools", 1)
    for number in range(len(program[1])):
        slot = field_of(program, number, "slot_words")
        last = 512 // slot * slot - slot
        assert refusal(program, number, "last_slot", last) is None
        for wrong in (last + 1, last - 1, last + slot):
            if 0 <= wrong < 512 and wrong != last:
                assert refused(program, number, "last_slot", wrong, InvalidValueError), (number, wrong)


def test_pixel_input_with_padding_above_63_is_refused() -> None:
    """Check that a pass pools by two or not at all, and that one that reads pixels has little padding."""
    program = generated("odd rows", "pools", 1)
    pixels = [n for n in range(len(program[1])) if field_of(program, n, "pixel_input")]
    plain = [n for n in range(len(program[1])) if field_of(program, n, "pool_size") == 1]
    assert pixels
    assert plain
    for number in pixels:
        assert not refused(program, number, "pad_left", 63, InvalidValueError)
        assert refused(program, number, "pad_left", 64, InvalidValueError)
    for number in set(range(len(program[1]))) - set(pixels):
        assert not refused(program, number, "pad_left", 64, InvalidValueError)
