"""The words of one pass that the schedule decides: addresses, counts and flags, named as in contract/program.py."""

from __future__ import annotations

from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork
from contract.program import ADDED_FIELDS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.network.reorg import Rows
from scheduler.systolic.program.images import halves_mark
from scheduler.systolic.program.maps import MapRegion
from scheduler.systolic.schedule import ScheduledLayer
from scheduler.systolic.shape import step_blocks
from scheduler.systolic.tiling import ColumnTile, input_columns, row_slots, row_words


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass: a run of the engine over one column tile of a layer for one frame, with the places of its maps and
    weights.

    Attributes:
        network: The network.
        scheduled: The layer with its tiling.
        tile: The column tile.
        source: The region of the map that the pass reads.
        target: The region of the map that the pass writes.
        added: The region of the map that the residual add reads, or None.
        weights_base: The layer's first word in the weights of each port, in words of the port's width.
        requantiser_base: The first channel of the layer's requantisers.
    """

    network: QuantizedNetwork
    scheduled: ScheduledLayer
    tile: ColumnTile
    source: MapRegion
    target: MapRegion
    added: MapRegion | None
    weights_base: int
    requantiser_base: int


def primary_words(one_pass: Pass) -> dict[str, int]:
    """Return the control words of a pass that the schedule decides. contract/program.py computes the others from
    them."""
    scheduled, tile = one_pass.scheduled, one_pass.tile
    layer, shape, tiling, array = scheduled.layer, scheduled.shape, scheduled.tiling, scheduled.array
    return {
        **_input_words(one_pass),
        **_output_words(one_pass),
        **(_added_words(one_pass) if array.added_maps else {}),
        "kernel_height": layer.kernel[0],
        "kernel_groups": shape.position_steps // (layer.kernel[0] * step_blocks(layer, array)),
        "group_pixels": array.step_pixels if layer.reads_pixels else layer.column_step,
        "stride": layer.stride,
        "advance": shape.positions if layer.stride == 1 else layer.column_stride,
        "pad_top": layer.padding.top,
        "depthwise": int(shape.depthwise),
        "out_height": layer.out.height,
        "out_width": tile.columns,
        "channel_tiles": scheduled.channel_tiles,
        "overlap": int(tiling.overlap),
        "inputs_resident": int(tiling.inputs_resident),
        "weights_base": one_pass.weights_base,
        "resident": int(tiling.weights_resident),
        "requantiser_base": one_pass.requantiser_base,
        "pool_size": layer.pool_size,
        "pool_stride": -1 if layer.multiplied else 0 if layer.compared else layer.pool_stride,
        "upscale": layer.upscale,
    }


def _input_words(one_pass: Pass) -> dict[str, int]:
    """Return a pass's control words for reading: where the column tile's input rows are, and how they fill the row
    buffer."""
    scheduled, tile, region = one_pass.scheduled, one_pass.tile, one_pass.source
    layer, shape, array = scheduled.layer, scheduled.shape, scheduled.array
    first, end = input_columns(layer, tile, layer.read_width(region.shape.width), shape.pixels)
    words = row_words(one_pass.network, layer, array, tile)
    rows = layer.part.reads if layer.part else Rows(0, 1, shape.in_height if layer.stride else region.shape.height)
    whole_row = shape.blocks == 1 or end - first == region.shape.width
    block = layer.part.group * shape.blocks if layer.part else 0
    first_word = (layer.part.read_column if layer.part else 0) + first // shape.pixels
    pieces = layer.joined if layer.row_step else 1 if whole_row else shape.blocks
    return {
        "in_base": region.start + rows.first * region.pitch + block * region.block_pitch + first_word,
        "in_row_pitch": rows.step * region.pitch * (1 if layer.row_step else layer.joined) // layer.summed,
        "in_block_pitch": layer.row_step * region.pitch if layer.row_step else region.block_pitch,
        "burst_words": words // pieces,
        "bursts": pieces,
        "in_blocks": shape.blocks,
        "in_width": end - first,
        "in_height": rows.count,
        "in_buffer": region.buffer,
        "in_turn": (region.bank_rotation if region.buffer else layer.padding.top) % array.rows,
        "last_slot": (row_slots(shape, array.rows, scheduled.tiling) - 1) * shape.phases * words,
        "pixel_input": int(layer.reads_pixels),
        "pad_left": layer.padding.left - (tile.first * layer.column_stride - first),
        "around": -(1 << (array.bits - 1)) if layer.compared else layer.around,
    }


def _output_words(one_pass: Pass) -> dict[str, int]:
    """Return a pass's control words for writing: where the results are stored, and to which limits they are
    saturated."""
    scheduled, tile, region = one_pass.scheduled, one_pass.tile, one_pass.target
    layer = scheduled.layer
    written = layer.output if layer.added is None else layer.added.own_node
    requantised = written if layer.looked_up is None else layer.looked_up
    datatype = one_pass.network.nodes[requantised].type.datatype
    widened = layer.upscale * layer.spread
    width = widened * ceil_div(tile.columns, layer.pool_stride)
    rows = layer.part.writes if layer.part else Rows(0, 1, layer.saved.height)
    block = layer.part.channel // scheduled.array.lanes if layer.part else 0
    column = layer.part.write_column if layer.part else 0
    corner = rows.first * region.pitch + block * region.block_pitch + column * region.value_words
    return {
        "save_width": width,
        "out_base": region.start + corner + widened * tile.first // layer.pool_stride * region.value_words,
        "out_row_pitch": rows.step * region.pitch,
        "out_block_pitch": region.block_pitch,
        "out_blocks": scheduled.shape.out_blocks,
        "value_words": region.value_words,
        "out_buffer": region.buffer,
        "out_turn": one_pass.added.bank_rotation if one_pass.added and one_pass.added.buffer else region.bank_rotation,
        "limits": _limits(datatype.low, datatype.high),
    }


def _limits(low: int, high: int) -> int:
    """Return the lower and upper saturation limit, 16 bits each, as one control word with the high one in the upper
    half."""
    return (high << 16) + (low & 0xFFFF)


def _added_words(one_pass: Pass) -> dict[str, int]:
    """Return a pass's control words for the residual add: the other map's place and the arithmetic. They are 0 without
    an add."""
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
