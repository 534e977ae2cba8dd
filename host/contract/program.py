"""The program of a systolic design, checked before anything executes it.

The engine trusts its program: it has no divisions and no bounds, and a pass that says too much reads and writes where
nothing is. So every word of every pass is held to what the manifest says of the array and of the maps, and the words
that follow from others to these. docs/explanation/proof.md tells what is checked where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, MismatchError, RangeError, SystolicError
from host.contract.systolic import (
    PIXEL_BYTES,
    SystolicArray,
    SystolicLayer,
    SystolicManifest,
    SystolicRegion,
)

LARGEST_SHIFT, LEAPS = 47, 4
"""Of a requantiser, whose product has 48 bits. Row strides, far apart, that move together from a map buffer at most."""

RESULT_BITS = 16
HALVES_MARKS = 3 << 6
"""Above the shift of an addition: how halves are rounded. The last word of a layer's first requantiser has it ten bits
further up."""
MOST_STEPS = (1 << 31) - 1
"""Of the array in a pass: the engine counts in 32 bits."""

MOST_PADDING = (1 << 12) - 1
"""Columns on one side of a map, and from a column of a kernel to the next: the engine's fields have 12 bits."""

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint32]

_LOWEST = "a pair whose least value, in the low 16 bits, is 0 or negative"
_SMALL_MAP = "that of a map below 2^31 words"


@dataclass(frozen=True)
class ImageWords:
    """How much lies in DDR: words of a weight port, and requantisers. tables: of each of these how many values of a
    table follow behind the last of its pass."""

    weights: int
    requantisers: int
    tables: Words


def check_program(manifest: SystolicManifest, words: Words, images: ImageWords, source: str) -> None:
    """Raise the error of the first pass of ``words`` [passes, words of a pass] that does not belong to this design.

    It names the field of the pass, what it holds and what it must hold: MismatchError for one number, RangeError for a
    range, InvalidValueError for a condition. source: the file, for the error.
    """
    columns = words.view(np.int32).astype(np.int64).T
    fields = dict(zip(manifest.array.pass_fields, columns, strict=False))
    for field, holds, required in _rules(manifest, SimpleNamespace(**fields), images):
        wrong = np.flatnonzero(~np.broadcast_to(holds, len(words)))
        if wrong.size:
            number = int(wrong[0])
            remedy = "generate the design again: the folder is damaged or was edited"
            error = _refusal(field, int(fields[field][number]), required, number)
            raise error.at(f"{source}: pass {number}", remedy)


Bounds = tuple[int | Numbers, int | Numbers]
Required = str | Numbers | Bounds
"""What a field must be: in words, or in each pass a number, or between two numbers."""

Rule = tuple[str, Flags, Required]
"""A field, the passes in which it is right, and what it has to be."""


def _refusal(field: str, got: int, required: Required, number: int) -> SystolicError:
    """Return the error for a field that holds ``got`` in the pass ``number``."""
    if isinstance(required, str):
        return InvalidValueError(field, got, required)
    if isinstance(required, tuple):
        low, high = (int(bound if isinstance(bound, int) else bound[number]) for bound in required)
        return RangeError(field, got, low, high)
    return MismatchError(field, got, int(required[number]))


def _rules(manifest: SystolicManifest, passes: Any, images: ImageWords) -> Iterator[Rule]:
    """In an order in which each may rely on those before it."""
    array = manifest.array
    for field, (low, high) in _ranges(array).items():
        values = getattr(passes, field)
        yield field, (low <= values) & (values <= high), (low, high)
    lowest, highest = _padding(passes, array)
    yield "around", (lowest <= passes.around) & (passes.around <= highest), (lowest, highest)
    yield "array_steps", _few_steps(passes, array), f"at most {MOST_STEPS}, for rows that fit row_depth"
    for field, values in _derived(passes, array).items():
        yield field, getattr(passes, field) == values, values
    yield from _inside(passes, array, images)
    yield from _on_maps(manifest, passes)
    if array.added_maps:
        yield from _added(manifest, passes)


def _ranges(array: SystolicArray) -> Mapping[str, tuple[int, int]]:
    """What the fields that follow from no other may be, both ends included."""
    wide, flag = (1, MOST_STEPS), (0, 1)
    return {
        **dict.fromkeys(("in_base", "in_block_pitch", "weights_base", "requantiser_base", "out_base"), (0, MOST_STEPS)),
        **dict.fromkeys(("in_row_pitch", "out_row_pitch", "out_block_pitch"), wide),
        **dict.fromkeys(("burst_words", "bursts", "block_words", "in_blocks", "in_width", "in_height"), wide),
        **dict.fromkeys(("kernel_groups", "out_height", "out_width", "save_width", "out_blocks"), wide),
        **dict.fromkeys(("pixel_input", "depthwise", "overlap", "inputs_resident", "resident"), flag),
        **dict.fromkeys(("in_buffer", "out_buffer"), (0, 2 if array.map_depth else 0)),
        "kernel_height": (1, 4095),
        "group_pixels": (1, MOST_PADDING),
        "stride": (0, 127),
        "advance": (0, 127),
        "pad_top": (0, 255),
        "pad_left": (-64, MOST_PADDING),
        "last_slot": (0, array.row_depth - 1),
        "steps": (1, array.weight_depth),
        "channel_tiles": (1, array.channel_tiles),
        "pool_size": (1, 2),
        "pool_stride": (-1 if array.map_products else 1 - array.windows, 2),
        "upscale": (1, array.upscale),
        "out_turn": (0, array.rows - 1),
        "value_words": (1, RESULT_BITS // array.bits),
        "limits": (0, (1 << 31) - 1),
    }


def _padding(passes: Any, array: SystolicArray) -> tuple[Numbers, Numbers]:
    """The least and the greatest that padding may hold: a pixel, or a value of a map."""
    values, pixels = 1 << (array.bits - 1), passes.pixel_input == 1
    return np.where(pixels, 0, -values), np.where(pixels, 255, values - 1)


def _few_steps(passes: Any, array: SystolicArray) -> Flags:
    """In floating point, where nothing overflows: below, all products are those of integers."""
    places = np.where(passes.pool_stride <= 0, passes.kernel_height.astype(np.float64) * passes.kernel_groups, 1.0)
    rows, steps = np.ceil(passes.out_height / array.rows), passes.steps * places * _spread(passes)
    words = passes.burst_words.astype(np.float64) * passes.bursts
    few = (rows * passes.out_width * passes.channel_tiles * steps <= MOST_STEPS) & (words <= array.row_depth)
    return np.asarray(few, np.bool_)


def _up(values: Any, by: Any) -> Numbers:
    return np.asarray(-(-values // by), np.int64)


def _spread(p: Any) -> Numbers:
    """Columns that a position of what is read becomes, each of as many of its channel blocks: a pass of a kernel of one
    place, without a pool and an upsample, whose columns and blocks are so many times others."""
    alone = (p.pool_size == 1) & (p.pool_stride == 1) & (p.upscale == 1) & (p.kernel_height * p.kernel_groups == 1)
    times = p.save_width // p.out_width
    equal = (times > 0) & (p.in_blocks % np.maximum(1, times) == 0) & (p.depthwise == 0)
    return np.where(alone & equal, times, 1)


def _derived(p: Any, array: SystolicArray) -> Mapping[str, Numbers]:
    """What the other fields have to be; scheduler/systolic/program/passes.py computes them of the layer instead."""
    tile_blocks = np.where(p.depthwise, array.columns // array.lanes, p.in_blocks)
    row_tiles, phases = _up(p.out_height, array.rows), np.minimum(np.maximum(1, p.stride), p.kernel_height)
    ahead, slot = (p.kernel_height - 1) // np.maximum(1, p.stride), phases * p.burst_words * p.bursts
    compares = p.pool_stride <= 0  # or multiplies: what both have in common
    spread = _spread(p)
    positions = np.where((p.stride == 1) & ~compares & (spread == 1), 2 if array.bits == 4 else 1, 1)
    places = p.kernel_height * p.kernel_groups
    tile_steps = _up(p.out_width, positions) * np.where(compares, places, 1) * spread * p.steps
    uses = np.where(p.inputs_resident, 1, row_tiles) * p.channel_tiles
    beats = p.steps * array.columns // (array.weight_ports * array.weight_words)
    loads = np.where(p.resident, p.channel_tiles, uses)
    step_pixels = array.lanes // (PIXEL_BYTES * max(1, 8 // array.bits))
    above = _turned_rows(p, array)
    return {
        "row_words": p.burst_words * p.bursts,
        "block_words": p.burst_words * p.bursts // p.in_blocks,
        "in_lap": above // array.rows,
        "in_turn": above % array.rows,
        "group_pixels": np.where(p.pixel_input, step_pixels, p.group_pixels),
        "tile_blocks": tile_blocks,
        "steps": np.where(compares, 1, places) * (tile_blocks // spread),
        "row_tiles": row_tiles,
        "phases": phases,
        "row_strides": row_tiles * array.rows + ahead,
        "ahead": ahead,
        "positions": positions,
        "slot_words": slot,
        "first_loads": _up(array.rows + ahead, array.map_ports) * slot,
        "first_moves": _up(array.rows + ahead, _moved_together(p, array)) * slot,
        "row_feeds": tile_steps * np.where(p.inputs_resident, 1, p.channel_tiles),
        "weight_feeds": tile_steps * np.where(p.inputs_resident, row_tiles, 1),
        "array_steps": tile_steps * row_tiles * p.channel_tiles,
        "first_step": (np.cumsum(loads * p.steps) - loads * p.steps) % array.weight_depth,
        "tile_beats": beats,
        "tile_uses": uses,
        "tile_loads": loads,
        "load_beats": loads * beats,
        "channels": p.channel_tiles * array.columns,
        "channel_tiles": _channel_tiles(p, array),
        "save_width": p.upscale * spread * _up(p.out_width, np.maximum(1, p.pool_stride)),
        "chunks": row_tiles * p.channel_tiles * _up(p.save_width, array.chunk),
    }


def _steps_of_columns(p: Any) -> tuple[Numbers, Numbers]:
    """The least and the greatest step from a column of the kernel to the next in a pass that reads a map: the last
    output reaches at least the last column that is read, and past it no more columns than padding may have."""
    step = np.where(p.stride == 1, 1, p.advance)
    reach = p.in_width - 1 + p.pad_left - (p.out_width - 1) * step
    steps = np.maximum(1, p.kernel_groups - 1)
    least = np.where(p.in_width > 1, np.maximum(1, _up(reach, steps)), 1)
    greatest = (reach + MOST_PADDING) // steps
    alone = (p.kernel_groups == 1) | (p.pool_stride <= 0)
    return np.where(alone, 1, least), np.where(alone, 1, greatest)


def _turned_rows(p: Any, array: SystolicArray) -> Numbers:
    """By which the banks are turned of the map that a pass reads: its padding above; of a map buffer more, as the pass
    says; where two rows are read at a time none, or one where the other row of the two is read."""
    beyond = (p.in_turn - p.pad_top) % array.rows
    may_be = (p.stride != 2) | ((p.kernel_height == 1) & (beyond == 1))
    return np.asarray(p.pad_top + np.where((p.in_buffer > 0) & may_be, beyond, 0), np.int64)


def _moved_together(p: Any, array: SystolicArray) -> Numbers:
    """Row strides that move from a map buffer in a cycle, as scheduler/systolic/shape.py has it."""
    together = np.where(
        p.stride > 2, LEAPS, np.where((p.stride == 2) & (array.rows % 2 == 0), array.rows // 2, array.rows)
    )
    for count in range(LEAPS - 1, 0, -1):
        together = np.where((p.stride > 2) & (count * p.stride % array.rows == 0), count, together)
    return np.asarray(together, np.int64)


def _channel_tiles(p: Any, array: SystolicArray) -> Numbers:
    """Of so many columns each. Where a tile ends in the middle of a block, the last block may be filled by half."""
    most = _up(p.out_blocks * array.lanes, array.columns)
    least = _up(p.out_blocks * array.lanes - array.lanes + 1, array.columns)
    halves = array.columns % array.lanes > 0
    return np.where(halves & (least <= p.channel_tiles) & (p.channel_tiles <= most), p.channel_tiles, most)


def _inside(p: Any, array: SystolicArray, images: ImageWords) -> Iterator[Rule]:
    """What lies in the engine's buffers, and in the images of weights and requantisers."""
    straddles = (p.pool_size == 2) & (p.row_tiles > 1) & ((p.pool_stride == 1) | (array.rows % 2 == 1))
    kept_sums = np.where(straddles, p.save_width * np.where(p.inputs_resident, 1, p.channel_tiles), 0)
    whole_blocks = p.block_words * p.in_blocks == p.row_words
    whole_slots = (p.last_slot % p.slot_words == 0) & (p.last_slot + p.slot_words <= array.row_depth)
    weights, channels = p.weights_base + p.channel_tiles * p.tile_beats, p.requantiser_base + p.channels
    yield "row_words", whole_blocks, "a multiple of in_blocks"
    yield "depthwise", (p.pixel_input == 0) | (p.depthwise == 0), "0 in a pass that reads pixels"
    yield "pad_left", (p.pixel_input == 0) | (p.pad_left <= 63), "at most 63 in a pass that reads pixels"
    yield "pool_stride", (p.pool_size == 2) | (p.pool_stride <= 1), "at most 1 without a fused pool"
    yield "pool_stride", (p.pool_size == 1) | (p.pool_stride >= 1), "at least 1 with a fused pool"
    yield "pool_stride", (p.pixel_input == 0) | (p.pool_stride >= 1), "at least 1 in a pass that reads pixels"
    one_place = (p.in_height == 1) & (p.in_width == 1) & (p.kernel_height == 1)
    yield "stride", (p.stride > 0) | one_place, "at least 1, or 0 in a pass that reads one position for all outputs"
    multiplied = (p.pool_stride >= 0) | (p.kernel_height * p.kernel_groups == 2)
    yield "pool_stride", multiplied, "at least 0, or -1 for a kernel of two positions"
    yield (
        "pool_stride",
        (p.pool_stride != 0) | (array.windows == 1),
        "0 only in an engine with windows",
    )
    usual = np.where(p.stride == 1, p.positions, p.stride)
    own_blocks = (p.depthwise == 1) | (array.columns % array.lanes > 0)
    rows_in_turn = own_blocks & (p.kernel_height == p.stride) & (p.kernel_groups == 1) & (p.advance == 1)
    rows_apart = (p.stride == 4) & (p.advance == 2)
    yield "advance", (p.advance == usual) | rows_in_turn | rows_apart, usual
    yield "upscale", (p.upscale == 1) | ((p.pool_size == 1) & (p.pool_stride == 1)), "1 in a pass with a pool"
    nearest, farthest = _steps_of_columns(p)
    step = (p.pixel_input == 1) | ((nearest <= p.group_pixels) & (p.group_pixels <= farthest))
    yield "group_pixels", step, (nearest, farthest)
    lowest_value = p.limits & 0xFFFF
    yield "limits", (lowest_value == 0) | (lowest_value >= 1 << 15), _LOWEST
    kept = (p.stride >= 1) & (p.stride <= array.map_stride)
    yield "stride", (p.in_buffer == 0) | kept, f"1…{array.map_stride} in a pass that reads a map buffer"
    yield "last_slot", whole_slots, f"the place of a whole slot within row_depth = {array.row_depth}"
    yield "save_width", kept_sums <= array.kept_depth, f"the width of sums that fit kept_depth = {array.kept_depth}"
    yield "weights_base", weights <= images.weights, f"the place of tiles within the {images.weights} words of weights"
    yield (
        "requantiser_base",
        channels <= images.requantisers,
        f"the place of channels within the {images.requantisers} requantisers",
    )
    values = images.tables.astype(np.int64)[p.requantiser_base]
    whole_tables = np.isin(values, (0, array.table_depth)) & (channels + values <= images.requantisers)
    yield (
        "requantiser_base",
        whole_tables,
        f"the place of requantisers followed by a table of {array.table_depth} values, or by none",
    )


def _on_maps(manifest: SystolicManifest, p: Any) -> Iterator[Rule]:
    """What lies in the maps that the layer reads and writes, in DDR or in a map buffer."""
    rows, depth = manifest.array.rows, manifest.array.map_depth
    tile_blocks = -(-manifest.array.columns // manifest.array.lanes)
    maps = {0: manifest.input, **{layer.node: layer.output for layer in manifest.layers}}
    layers = [layer for layer in manifest.layers for _ in range(layer.first_pass, layer.last_pass + 1)]
    pixels = np.array([layer.input_node == 0 for layer in layers], np.int64)
    yield "pixel_input", p.pixel_input == pixels, pixels
    saved = p.upscale * _up(p.out_height, np.maximum(1, p.pool_stride))
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
        yield f"{side}_buffer", buffer == expected, expected
        yield f"{side}_turn", (buffer == 0) | (getattr(p, f"{side}_turn") == turns), turns
        fits = np.where(buffer == 0, (base >= first) & (in_ddr <= end), (base >= place) & (on_chip <= depth))
        yield f"{side}_base", fits, (np.where(buffer == 0, first, place), np.where(buffer == 0, end, depth))
        yield f"{side}_row_pitch", (height + rows) * row_pitch < 1 << 31, _SMALL_MAP
        yield f"{side}_block_pitch", (pieces + tile_blocks) * block_pitch < 1 << 31, "that of a row below 2^31 words"
    narrow = (p.value_words == 1) | (p.out_buffer == 0)
    yield "value_words", narrow, "1 in a pass that writes a map buffer"


def _added(manifest: SystolicManifest, p: Any) -> Iterator[Rule]:
    """What the Saver adds: as many words as the pass writes, of a map of the same blocks."""
    layers = [layer for layer in manifest.layers for _ in range(layer.first_pass, layer.last_pass + 1)]
    nothing = np.array([layer.added_node is None for layer in layers], np.bool_)
    maps = {layer.node: layer.output for layer in manifest.layers}
    regions = [maps[layer.node if layer.added_node is None else layer.added_node] for layer in layers]
    first, end = _words_of(manifest, [(region, region) for region in regions])
    rows = _up(p.out_height, np.maximum(1, p.pool_stride))
    words = np.where(nothing, 0, rows * p.out_blocks * p.save_width)
    yield "added_words", p.added_words == words, words
    expected = np.where(nothing, 0, [region.map_buffer or 0 for region in regions])
    yield "added_buffer", p.added_buffer == expected, expected
    chip = expected > 0
    apart = (p.added_buffer != p.in_buffer) & ((p.out_buffer == 0) | (p.out_buffer == expected))
    yield "added_buffer", ~chip | apart, "that of the sum if it stays on chip, and not the one that is read"
    within = (p.out_blocks - 1) * p.out_block_pitch + p.save_width
    last = p.added_base + (rows - 1) * p.added_row_pitch + within
    on_chip = p.added_base + (rows - 1) // manifest.array.rows * p.added_row_pitch + within
    in_ddr = np.where(nothing, p.added_base == 0, (p.added_base >= first) & (last <= end))
    yield "added_base", np.where(chip, on_chip <= manifest.array.map_depth, in_ddr), (first, end)
    pitch = np.where(nothing, p.added_row_pitch == 0, p.added_row_pitch >= 1)
    small = (rows + manifest.array.rows) * p.added_row_pitch < 1 << 31
    yield "added_row_pitch", pitch & small, _SMALL_MAP
    plain = nothing | ((p.value_words == 1) & (p.upscale == 1))
    yield "added_words", plain, "0 in a pass that upsamples, or has wide values"
    marks = HALVES_MARKS if manifest.array.late_offsets > 1 else 0
    shift, unused = p.added_shift & (0xFFFF ^ marks), p.added_shift == 0
    right = np.where(nothing, unused, (shift >= 1) & (shift <= LARGEST_SHIFT))
    yield "added_shift", right, f"1…{LARGEST_SHIFT} in its low 6 bits, or 0 in a pass that adds nothing"
    lowest = p.added_limits & 0xFFFF
    yield "added_limits", (p.added_limits >= 0) & ((lowest == 0) | (lowest >= 1 << 15)), _LOWEST


def _read(maps: Mapping[int, SystolicRegion], layer: SystolicLayer) -> tuple[SystolicRegion, SystolicRegion]:
    """The first and the last of the maps that lie side by side and are read."""
    last = layer.input_node if layer.last_input_node is None else layer.last_input_node
    return maps[layer.input_node], maps[last]


def _where_on_chip(regions: list[tuple[SystolicRegion, SystolicRegion]]) -> Numbers:
    """[3, regions]: of the first maps buffer, turn and place."""
    return np.array([[getattr(r, name) or 0 for r, _ in regions] for name in ("map_buffer", "turn", "place")], np.int64)


def _words_of(
    manifest: SystolicManifest, regions: list[tuple[SystolicRegion, SystolicRegion]]
) -> tuple[Numbers, Numbers]:
    """First and past-last word of the maps of a batch, one below the other."""

    def words(region: SystolicRegion, frames: int) -> int:
        return (region.offset + frames * region.bytes) // manifest.word_bytes

    first = np.array([words(first, 0) for first, _ in regions], np.int64)
    return first, np.array([words(last, manifest.batch) for _, last in regions], np.int64)
