"""Checks of a systolic design's program, made before anything executes it.

The engine trusts its program. It checks no bounds, so a wrong pass would read and write outside the buffers. Every word
of every pass is therefore checked against the table of ``contract``, and here against the manifest's maps and the sizes
of the images. docs/explanation/proof.md says what is checked where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from contract.formulas import Numbers, Words, divide_up
from contract.violations import LOWEST, Rule, read, violations, violations_of
from host.contract.systolic import SystolicLayer, SystolicManifest, SystolicRegion

MAX_SHIFT = 47
"""Largest shift of a requantiser, whose product has 48 bits."""

HALVES_MARKS = 3 << 6
"""Bits above the shift of a residual add that say how ties are rounded.

In the last word of a layer's first requantiser the same bits are stored 10 bits further up.
"""

_SMALL_MAP = "the pitch of a map below 2^31 words"


@dataclass(frozen=True)
class ImageWords:
    """The sizes of a systolic design's data in DDR: weights, requantisers and activation tables.

    Attributes:
        weights: Words per weight port.
        requantisers: Number of requantisers.
        tables: For each requantiser, the number of activation-table values that follow the last requantiser of its
            pass.
    """

    weights: int
    requantisers: int
    tables: npt.NDArray[np.uint32]


def check_program(manifest: SystolicManifest, program: npt.NDArray[np.uint32], images: ImageWords, source: str) -> None:
    """Raise an error for the first pass (engine instruction) of ``program`` that would access memory outside this
    design's data.

    The error names the field of the pass, its value and the requirement.

    Args:
        manifest: The design's manifest.
        program: The passes, ``(passes, words of a pass)``.
        images: The sizes of the images.
        source: The program's file, for errors.

    Raises:
        MismatchError: A field must have one particular number.
        RangeError: A field is outside its range.
        InvalidValueError: A field violates another condition.
    """
    words = read(program, manifest.array)
    for violation in chain(violations(words, manifest.array), violations_of(_rules(manifest, words, images), words)):
        remedy = "generate the design again: the folder is damaged or was edited"
        raise violation.error.at(f"{source}: pass {violation.number}", remedy)


def _rules(manifest: SystolicManifest, words: Words, images: ImageWords) -> Iterator[Rule]:
    """Yield the rules of this design for the fields of its passes (engine instructions), which already satisfy the
    rules of the PE array."""
    yield from _images(words, manifest.array.table_depth, images)
    yield from _on_maps(manifest, words)
    if manifest.array.added_maps:
        yield from _added(manifest, words)


def _images(p: Words, table_depth: int, images: ImageWords) -> Iterator[Rule]:
    """Yield the rules that keep each pass's (engine instruction's) reads of weights, requantisers and tables within the
    uploaded data."""
    weights, channels = p.weights_base + p.channel_tiles * p.tile_beats, p.requantiser_base + p.channels
    place = f"low enough for the pass's words to fit in the {images.weights} words of weights"
    yield Rule("weights_base", weights <= images.weights, place)
    place = f"low enough for the pass's channels to fit in the {images.requantisers} requantisers"
    yield Rule("requantiser_base", channels <= images.requantisers, place)
    values = images.tables.astype(np.int64)[p.requantiser_base]
    whole = np.isin(values, (0, table_depth)) & (channels + values <= images.requantisers)
    place = f"the base of requantisers that are followed by a table of {table_depth} values, or by none"
    yield Rule("requantiser_base", whole, place)


def _on_maps(manifest: SystolicManifest, p: Any) -> Iterator[Rule]:
    """Yield the rules that keep each pass (engine instruction) within the feature maps that its layer reads and writes,
    in DDR or on chip."""
    rows, depth = manifest.array.rows, manifest.array.map_depth
    tile_blocks = -(-manifest.array.columns // manifest.array.lanes)
    maps = {0: manifest.input, **{layer.node: layer.output for layer in manifest.layers}}
    layers = [layer for layer in manifest.layers for _ in range(layer.first_pass, layer.last_pass + 1)]
    pixels = np.array([layer.input_node == 0 for layer in layers], np.int64)
    yield Rule("pixel_input", p.pixel_input == pixels, pixels)
    saved = p.upscale * divide_up(p.out_height, np.maximum(1, p.pool_stride))
    for side, regions, height, width, pieces in (
        ("in", [_read(maps, layer) for layer in layers], p.in_height, p.burst_words, p.bursts),
        ("out", [(layer.output, layer.output) for layer in layers], saved, p.save_width, p.out_blocks),
    ):
        buffer, base = getattr(p, f"{side}_buffer"), getattr(p, f"{side}_base")
        row_pitch, block_pitch = getattr(p, f"{side}_row_pitch"), getattr(p, f"{side}_block_pitch")
        words = width if side == "in" else width * p.value_words
        within = (pieces - 1) * block_pitch + words
        in_ddr = base + (height - 1) * row_pitch + within
        on_chip = base + (height - 1) // rows * row_pitch + within
        first, end = _words_of(manifest, regions)
        expected, turns, place = _where_on_chip(regions)
        yield Rule(f"{side}_buffer", buffer == expected, expected)
        yield Rule(f"{side}_turn", (buffer == 0) | (getattr(p, f"{side}_turn") == turns), turns)
        fits = np.where(buffer == 0, (base >= first) & (in_ddr <= end), (base >= place) & (on_chip <= depth))
        yield Rule(f"{side}_base", fits, (np.where(buffer == 0, first, place), np.where(buffer == 0, end, depth)))
        yield Rule(f"{side}_row_pitch", (height + rows) * row_pitch < 1 << 31, _SMALL_MAP)
        yield Rule(
            f"{side}_block_pitch", (pieces + tile_blocks) * block_pitch < 1 << 31, "the pitch of a row below 2^31 words"
        )
    narrow = (p.value_words == 1) | (p.out_buffer == 0)
    yield Rule("value_words", narrow, "1 in a pass that writes a map buffer")


def _added(manifest: SystolicManifest, p: Any) -> Iterator[Rule]:
    """Yield the rules for the passes (engine instructions) that fuse a residual add.

    The residual add reads one word per word that the pass writes, from a map with the same blocks.
    """
    layers = [layer for layer in manifest.layers for _ in range(layer.first_pass, layer.last_pass + 1)]
    nothing = np.array([layer.added_node is None for layer in layers], np.bool_)
    maps = {layer.node: layer.output for layer in manifest.layers}
    regions = [maps[layer.node if layer.added_node is None else layer.added_node] for layer in layers]
    first, end = _words_of(manifest, [(region, region) for region in regions])
    rows = divide_up(p.out_height, np.maximum(1, p.pool_stride))
    words = np.where(nothing, 0, rows * p.out_blocks * p.save_width)
    yield Rule("added_words", p.added_words == words, words)
    expected = np.where(nothing, 0, [region.map_buffer or 0 for region in regions])
    yield Rule("added_buffer", p.added_buffer == expected, expected)
    chip = expected > 0
    apart = (p.added_buffer != p.in_buffer) & ((p.out_buffer == 0) | (p.out_buffer == expected))
    yield Rule("added_buffer", ~chip | apart, "the sum's map buffer if the sum stays on chip, and not the input's")
    within = (p.out_blocks - 1) * p.out_block_pitch + p.save_width
    last = p.added_base + (rows - 1) * p.added_row_pitch + within
    on_chip = p.added_base + (rows - 1) // manifest.array.rows * p.added_row_pitch + within
    in_ddr = np.where(nothing, p.added_base == 0, (p.added_base >= first) & (last <= end))
    yield Rule("added_base", np.where(chip, on_chip <= manifest.array.map_depth, in_ddr), (first, end))
    pitch = np.where(nothing, p.added_row_pitch == 0, p.added_row_pitch >= 1)
    small = (rows + manifest.array.rows) * p.added_row_pitch < 1 << 31
    yield Rule("added_row_pitch", pitch & small, _SMALL_MAP)
    plain = nothing | ((p.value_words == 1) & (p.upscale == 1))
    yield Rule("added_words", plain, "0 in a pass that upsamples, or has wide values")
    marks = HALVES_MARKS if manifest.array.late_offsets > 1 else 0
    shift, unused = p.added_shift & (0xFFFF ^ marks), p.added_shift == 0
    right = np.where(nothing, unused, (shift >= 1) & (shift <= MAX_SHIFT))
    yield Rule("added_shift", right, f"1…{MAX_SHIFT} in its low 6 bits, or 0 in a pass that adds no map")
    lowest = p.added_limits & 0xFFFF
    yield Rule("added_limits", (p.added_limits >= 0) & ((lowest == 0) | (lowest >= 1 << 15)), LOWEST)


def _read(maps: Mapping[int, SystolicRegion], layer: SystolicLayer) -> tuple[SystolicRegion, SystolicRegion]:
    """Return the first and the last of the adjacent feature maps that a layer reads."""
    last = layer.input_node if layer.last_input_node is None else layer.last_input_node
    return maps[layer.input_node], maps[last]


def _where_on_chip(regions: list[tuple[SystolicRegion, SystolicRegion]]) -> Numbers:
    """Return, for each pass, where its first feature map is on chip: buffer, bank of the first row, and first word: an
    array ``(3, passes)``."""
    return np.array([[getattr(r, name) or 0 for r, _ in regions] for name in ("map_buffer", "turn", "place")], np.int64)


def _words_of(
    manifest: SystolicManifest, regions: list[tuple[SystolicRegion, SystolicRegion]]
) -> tuple[Numbers, Numbers]:
    """Return, for each pass, the first word of its adjacent feature maps in DDR and the word after the last, over all
    frames of a batch."""

    def words(region: SystolicRegion, frames: int) -> int:
        return (region.offset + frames * region.bytes) // manifest.word_bytes

    first = np.array([words(first, 0) for first, _ in regions], np.int64)
    return first, np.array([words(last, manifest.batch) for _, last in regions], np.int64)
