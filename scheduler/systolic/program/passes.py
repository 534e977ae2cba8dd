"""The words of one pass of the engine: its addresses, counts and flags, by the names of hls_templates/systolic/pass.h.

A pass is one column tile of one layer, in one frame of a batch where the layer is executed frame by frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array
from scheduler.systolic.network.layer import PASS_WORDS as PASS_WORDS
from scheduler.systolic.network.reorg import Rows
from scheduler.systolic.program.images import halves_mark
from scheduler.systolic.program.maps import MapRegion
from scheduler.systolic.schedule import ScheduledLayer
from scheduler.systolic.shape import moved_together, step_blocks
from scheduler.systolic.tiling import ColumnTile, input_columns, row_slots, row_words

PASS_FIELDS = (
    "in_base",
    "in_row_pitch",
    "in_block_pitch",
    "burst_words",
    "bursts",
    "row_words",
    "block_words",
    "in_blocks",
    "in_width",
    "in_height",
    "in_buffer",
    "in_lap",
    "in_turn",
    "pixel_input",
    "kernel_height",
    "kernel_groups",
    "group_pixels",
    "stride",
    "advance",
    "pad_top",
    "pad_left",
    "depthwise",
    "tile_blocks",
    "steps",
    "out_height",
    "out_width",
    "row_tiles",
    "channel_tiles",
    "phases",
    "row_strides",
    "ahead",
    "positions",
    "slot_words",
    "last_slot",
    "first_loads",
    "first_moves",
    "overlap",
    "inputs_resident",
    "row_feeds",
    "weight_feeds",
    "array_steps",
    "weights_base",
    "first_step",
    "resident",
    "tile_beats",
    "tile_uses",
    "tile_loads",
    "load_beats",
    "requantiser_base",
    "channels",
    "pool_size",
    "pool_stride",
    "upscale",
    "save_width",
    "out_base",
    "out_row_pitch",
    "out_block_pitch",
    "out_blocks",
    "value_words",
    "out_buffer",
    "out_turn",
    "chunks",
    "limits",
    "around",
)
"""Order of the fields; a test compares it with hls_templates/systolic/pass.h."""

ADDED_FIELDS = (
    "added_base",
    "added_row_pitch",
    "added_buffer",
    "added_words",
    "added_own",
    "added_other",
    "added_offset",
    "added_shift",
    "added_limits",
)
"""The same of what the Saver adds; 0 in passes in which it adds nothing."""


def program_fields(array: Array) -> tuple[str, ...]:
    """The fields of a pass of such an array, each a word."""
    return (*PASS_FIELDS, *ADDED_FIELDS) if array.added_maps else PASS_FIELDS


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass: what it computes, and where that lies. source, target: the maps that it reads and writes; added: the
    one that the Saver adds.
    weights_base, requantiser_base: where the layer's begin, in steps of all ports and in channels. first_step: where
    its first tile of weights lies in the weight buffer."""

    network: QuantizedNetwork
    scheduled: ScheduledLayer
    tile: ColumnTile
    source: MapRegion
    target: MapRegion
    added: MapRegion | None
    weights_base: int
    requantiser_base: int
    first_step: int


def pass_fields(one_pass: Pass) -> dict[str, int]:
    """A number for each of PASS_FIELDS and of ADDED_FIELDS."""
    scheduled, tile = one_pass.scheduled, one_pass.tile
    layer, shape, tiling, array = scheduled.layer, scheduled.shape, scheduled.tiling, scheduled.array
    tile_blocks = step_blocks(layer, array)
    return {
        **_input_fields(one_pass),
        **_output_fields(one_pass),
        **_added_fields(one_pass),
        **_feed_fields(scheduled, tile),
        **_weight_fields(scheduled),
        "kernel_height": layer.kernel[0],
        "kernel_groups": shape.position_steps // (layer.kernel[0] * tile_blocks),
        "group_pixels": array.step_pixels if layer.reads_pixels else layer.column_step,
        "stride": layer.stride,
        "advance": shape.positions if layer.stride == 1 else layer.column_stride,
        "pad_top": layer.padding.top,
        "depthwise": int(shape.depthwise),
        "tile_blocks": tile_blocks,
        "steps": shape.steps,
        "out_height": layer.out.height,
        "out_width": tile.columns,
        "row_tiles": scheduled.row_tiles,
        "channel_tiles": scheduled.channel_tiles,
        "phases": shape.phases,
        "row_strides": scheduled.row_tiles * array.rows + shape.ahead,
        "ahead": shape.ahead,
        "positions": shape.positions,
        "overlap": int(tiling.overlap),
        "inputs_resident": int(tiling.inputs_resident),
        "weights_base": one_pass.weights_base,
        "first_step": one_pass.first_step,
        "requantiser_base": one_pass.requantiser_base,
        "pool_size": layer.pool_size,
        "pool_stride": -1 if layer.multiplied else 0 if layer.compared else layer.pool_stride,
        "upscale": layer.upscale,
    }


def _feed_fields(scheduled: ScheduledLayer, tile: ColumnTile) -> dict[str, int]:
    """Steps that the array takes from one tile of rows, with one tile of weights, in the whole pass."""
    tile_steps = ceil_div(tile.columns, scheduled.shape.positions) * scheduled.shape.position_steps
    inputs_resident = scheduled.tiling.inputs_resident
    return {
        "row_feeds": tile_steps * (1 if inputs_resident else scheduled.channel_tiles),
        "weight_feeds": tile_steps * (scheduled.row_tiles if inputs_resident else 1),
        "array_steps": tile_steps * scheduled.row_tiles * scheduled.channel_tiles,
    }


def _weight_fields(scheduled: ScheduledLayer) -> dict[str, int]:
    """Tiles of weights that are fed and loaded, and how much of them a port gives."""
    tiling, array = scheduled.tiling, scheduled.array
    uses = scheduled.channel_tiles * (1 if tiling.inputs_resident else scheduled.row_tiles)
    loads = scheduled.channel_tiles if tiling.weights_resident else uses
    beats = scheduled.shape.steps * array.columns // (array.weight_ports * array.weight_words)
    return {
        "resident": int(tiling.weights_resident),
        "tile_beats": beats,
        "tile_uses": uses,
        "tile_loads": loads,
        "load_beats": loads * beats,
        "channels": scheduled.channel_tiles * array.columns,
    }


def _input_fields(one_pass: Pass) -> dict[str, int]:
    """Where the rows of the column tile lie, and how they fill the row buffer."""
    scheduled, tile, region = one_pass.scheduled, one_pass.tile, one_pass.source
    layer, shape, array = scheduled.layer, scheduled.shape, scheduled.array
    first, end = input_columns(layer, tile, region.shape.width, shape.pixels)
    words = row_words(one_pass.network, layer, array, tile)
    rows = layer.part.reads if layer.part else Rows(0, 1, shape.in_height if layer.stride else region.shape.height)
    whole_row = shape.blocks == 1 or end - first == region.shape.width
    block = layer.part.group * shape.blocks if layer.part else 0
    pieces = layer.joined if layer.row_step else 1 if whole_row else shape.blocks
    slot, first_strides = shape.phases * words, array.rows + shape.ahead
    above = layer.padding.top + ((region.turn - layer.padding.top) % array.rows if region.buffer else 0)
    return {
        "in_base": region.start + rows.first * region.pitch + block * region.block_pitch + first // shape.pixels,
        "in_row_pitch": rows.step * region.pitch * (1 if layer.row_step else layer.joined) // layer.summed,
        "in_block_pitch": layer.row_step * region.pitch if layer.row_step else region.block_pitch,
        "burst_words": words // pieces,
        "bursts": pieces,
        "row_words": words,
        "block_words": words // shape.blocks,
        "in_blocks": shape.blocks,
        "in_width": end - first,
        "in_height": rows.count,
        "in_buffer": region.buffer,
        "in_lap": above // array.rows,
        "in_turn": above % array.rows,
        "slot_words": slot,
        "last_slot": (row_slots(shape, array.rows, scheduled.tiling) - 1) * slot,
        "first_loads": ceil_div(first_strides, array.map_ports) * slot,
        "first_moves": ceil_div(first_strides, moved_together(shape, array.rows)) * slot,
        "pixel_input": int(layer.reads_pixels),
        "pad_left": layer.padding.left - (tile.first * layer.column_stride - first),
        "around": -(1 << (array.bits - 1)) if layer.compared else layer.around,
    }


def _output_fields(one_pass: Pass) -> dict[str, int]:
    """Where the results go, and between what they are saturated."""
    scheduled, tile, region = one_pass.scheduled, one_pass.tile, one_pass.target
    layer = scheduled.layer
    written = layer.output if layer.added is None else layer.added.own_node
    requantised = written if layer.looked_up is None else layer.looked_up
    datatype = one_pass.network.nodes[requantised].type.datatype
    widened = layer.upscale * layer.spread
    width = widened * ceil_div(tile.columns, layer.pool_stride)
    rows = layer.part.writes if layer.part else Rows(0, 1, layer.saved.height)
    block = layer.part.channel // scheduled.array.lanes if layer.part else 0
    corner = rows.first * region.pitch + block * region.block_pitch
    return {
        "save_width": width,
        "out_base": region.start + corner + widened * tile.first // layer.pool_stride * region.value_words,
        "out_row_pitch": rows.step * region.pitch,
        "out_block_pitch": region.block_pitch,
        "out_blocks": scheduled.shape.out_blocks,
        "value_words": region.value_words,
        "out_buffer": region.buffer,
        "out_turn": one_pass.added.turn if one_pass.added and one_pass.added.buffer else region.turn,
        "chunks": scheduled.row_tiles * scheduled.channel_tiles * ceil_div(width, scheduled.array.chunk),
        "limits": _limits(datatype.low, datatype.high),
    }


def _limits(low: int, high: int) -> int:
    return (high << 16) + (low & 0xFFFF)


def _added_fields(one_pass: Pass) -> dict[str, int]:
    """What the Saver adds, how much of it, and how; 0 where it adds nothing."""
    scheduled, tile, region = one_pass.scheduled, one_pass.tile, one_pass.added
    layer, addition = scheduled.layer, scheduled.layer.added
    if addition is None or region is None:
        return dict.fromkeys(ADDED_FIELDS, 0)
    datatype = one_pass.network.nodes[layer.output].type.datatype
    low = datatype.low if addition.least_sum is None else max(datatype.low, addition.least_sum)
    columns = ceil_div(tile.columns, layer.pool_stride)
    return {
        "added_base": region.start + tile.first // layer.pool_stride,
        "added_row_pitch": region.pitch,
        "added_buffer": region.buffer,
        "added_words": layer.saved.height * scheduled.shape.out_blocks * columns,
        "added_own": addition.own_multiplier,
        "added_other": addition.other_multiplier,
        "added_offset": addition.offset & 0xFFFFFFFF,
        "added_shift": addition.shift + (halves_mark(addition.halves) >> 10) + ((addition.offset >> 32 & 0xFFFF) << 16),
        "added_limits": _limits(low, datatype.high),
    }
