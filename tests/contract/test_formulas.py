"""Tests of the formulas of derived pass words: each is compared with scalar arithmetic on random small passes."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from contract.formulas import spread
from contract.program import FIELDS, complete
from tests.support.host.passes import ARRAYS, drawn, scalar, times


def spread_of(p: Any) -> int:
    """Return the output columns that the pass writes per position: 1, or more if the pass allows several."""
    alone = (p.pool_size, p.pool_stride, p.upscale, p.kernel_height, p.kernel_groups, p.depthwise) == (1, 1, 1, 1, 1, 0)
    columns = p.save_width // p.out_width
    return columns if alone and columns > 1 and p.in_blocks % columns == 0 else 1


def follows(p: Any, array: Any) -> dict[str, int]:
    """Return the derived words of one pass, except for its place in the weight buffer (``first_step``)."""
    compares = p.pool_stride in (-1, 0)
    stride = p.stride or 1
    places = sum(1 for _ in range(p.kernel_height) for _ in range(p.kernel_groups))
    tile_blocks = array.columns // array.lanes if p.depthwise else p.in_blocks
    spread = spread_of(p)
    positions = 2 if array.bits == 4 and p.stride == 1 and not compares and spread == 1 else 1
    row_tiles = times(p.out_height, array.rows)
    rows_read = min(stride, p.kernel_height)
    reached = max(row // stride for row in range(p.kernel_height))
    row_words = sum(p.burst_words for _ in range(p.bursts))
    width_steps = times(p.out_width, positions) * p.steps * (places if compares else 1) * spread
    uses = p.channel_tiles if p.inputs_resident else p.channel_tiles * row_tiles
    loads = p.channel_tiles if p.resident else uses
    beats = p.steps * array.columns // array.weight_ports // array.weight_words
    groups = array.rows + reached
    beyond = next(rows for rows in range(array.rows) if (p.pad_top + rows) % array.rows == p.in_turn)
    may_be = p.in_buffer > 0 and (p.stride != 2 or (p.kernel_height == 1 and beyond == 1))
    turned = p.pad_top + (beyond if may_be else 0)
    banks = {p.stride * row % array.rows for row in range(array.rows)} if p.stride > 1 else set(range(array.rows))
    moved = len(banks) if p.stride < 3 else min(4, len(banks))
    last = array.lanes * p.out_blocks
    tiles = {times(channels, array.columns) for channels in range(last - array.lanes + 1, last + 1)}
    return {
        "row_words": row_words,
        "block_words": row_words // p.in_blocks,
        "in_lap": turned // array.rows,
        "in_turn": turned - turned // array.rows * array.rows,
        "group_pixels": array.lanes // 4 // (2 if array.bits == 4 else 1) if p.pixel_input else p.group_pixels,
        "tile_blocks": tile_blocks,
        "steps": tile_blocks if compares else places * tile_blocks // spread,
        "row_tiles": row_tiles,
        "phases": rows_read,
        "row_strides": row_tiles * array.rows + reached,
        "ahead": reached,
        "positions": positions,
        "slot_words": rows_read * row_words,
        "first_loads": times(groups, array.map_ports) * rows_read * row_words,
        "first_moves": times(groups, moved) * rows_read * row_words,
        "row_feeds": width_steps if p.inputs_resident else width_steps * p.channel_tiles,
        "weight_feeds": width_steps * row_tiles if p.inputs_resident else width_steps,
        "array_steps": width_steps * row_tiles * p.channel_tiles,
        "tile_beats": beats,
        "tile_uses": uses,
        "tile_loads": loads,
        "load_beats": sum(beats for _ in range(loads)),
        "channels": sum(array.columns for _ in range(p.channel_tiles)),
        "channel_tiles": p.channel_tiles if p.channel_tiles in tiles else max(tiles),
        "save_width": p.upscale * spread * times(p.out_width, max(1, p.pool_stride)),
        "chunks": row_tiles * p.channel_tiles * times(p.save_width, array.chunk),
    }


def check(passes: Any, array: Any) -> int:
    """Compare the formulas with the scalar arithmetic for each pass. Return the weight steps that all passes load."""
    count = len(passes.stride)
    formulas = {field.name: field.formula(passes, array) for field in FIELDS if field.formula is not None}
    derived = {name: np.broadcast_to(values, count) for name, values in formulas.items()}
    loaded = 0
    for index in range(count):
        p = scalar(passes, index)
        wanted = follows(p, array) | {"first_step": loaded % array.weight_depth}
        loaded += wanted["tile_loads"] * p.steps
        assert {name: int(values[index]) for name, values in derived.items()} == wanted
    return loaded


def test_formulas_of_random_passes_equal_scalar_arithmetic() -> None:
    for array in ARRAYS:
        assert check(drawn(array, 1), array) > array.weight_depth


def test_formulas_of_spread_positions_equal_scalar_arithmetic() -> None:
    """Fulfil and violate each condition of ``spread``, with map-buffer rows read one or two at a time."""
    ways: dict[str, tuple[int, ...]] = {
        **{"pool_size": (1, 2), "pool_stride": (1, 0), "upscale": (1, 2), "kernel_height": (1, 2), "depthwise": (0, 1)},
        **{"in_blocks": (2, 3), "save_width": (2, 4), "out_width": (2, 3), "in_turn": (0, 1), "stride": (1, 2)},
    }
    grid = np.array(list(product(*ways.values())), np.int64).T
    for array in ARRAYS[:2]:
        given = dict(zip(ways, grid, strict=True))
        names = [field.name for field in FIELDS if field.primary and field.name not in ways]
        given |= {name: np.ones(grid.shape[1], np.int64) for name in names}
        passes = SimpleNamespace(**complete(given, array))
        assert {1, 2} <= set(spread(passes).tolist())
        check(passes, array)
