"""Formulas of the words of a pass that follow from other words; the table in program.py lists them.

Each formula takes the words of passes and the geometry. ``words.NAME`` is an array with one number per pass. Its dtype
may be object: Python's integers never overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from contract.geometry import Geometry

MAX_STRIDED_ROWS = 4
"""Limit for the row strides that move together from a map buffer if the stride is above 2 (map_buffer.h)."""

Numbers = npt.NDArray[Any]
"""Numbers of passes, one per pass."""

Words = Any
"""The words of passes: one attribute per field, with its ``Numbers``."""


def divide_up(values: Any, by: Any) -> Any:
    """Return ⌈values / by⌉."""
    return -(-values // by)


# --- the window and the array ----------------------------------------------------------------------------------------


def compares(p: Words) -> Numbers:
    """Return, per pass, whether the kernel's taps are fed as separate positions, to take their maximum or product."""
    return np.asarray(p.pool_stride <= 0)


def taps(p: Words) -> Numbers:
    """Return, per pass, the number of taps of the kernel's window: its rows times its column groups."""
    return np.asarray(p.kernel_height * p.kernel_groups)


def spread(p: Words) -> Numbers:
    """Return, per pass, the number of output columns that are computed from one input column; 1 in most passes.

    It is above 1 only for a 1×1 kernel without pool and upsample whose output is wider than its input by an integer
    factor. The channel blocks of a position are then distributed over that number of columns.
    """
    alone = (p.pool_size == 1) & (p.pool_stride == 1) & (p.upscale == 1) & (taps(p) == 1)
    times = p.save_width // p.out_width
    equal = (times > 0) & (p.in_blocks % np.maximum(1, times) == 0) & (p.depthwise == 0)
    return np.where(alone & equal, times, 1)


def tile_blocks(p: Words, g: Geometry) -> Numbers:
    return np.where(p.depthwise != 0, g.columns // g.lanes, p.in_blocks)


def steps(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(np.where(compares(p), 1, taps(p)) * (p.tile_blocks // spread(p)))


def positions(p: Words, g: Geometry) -> Numbers:
    return np.where((p.stride == 1) & ~compares(p) & (spread(p) == 1), 2 if g.bits == 4 else 1, 1)


def tile_steps(p: Words) -> Numbers:
    """Return, per pass, the array's cycles (steps) for one tile of output rows with one tile of weights."""
    each = np.where(compares(p), taps(p), 1) * spread(p) * p.steps
    return np.asarray(divide_up(p.out_width, p.positions) * each)


def row_feeds(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(tile_steps(p) * np.where(p.inputs_resident != 0, 1, p.channel_tiles))


def weight_feeds(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(tile_steps(p) * np.where(p.inputs_resident != 0, p.row_tiles, 1))


def array_steps(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(tile_steps(p) * p.row_tiles * p.channel_tiles)


def group_pixels(p: Words, g: Geometry) -> Numbers:
    """Return, per pass, the input columns between two kernel columns: STEP_PIXELS if it reads the input image."""
    return np.where(p.pixel_input != 0, g.step_pixels, p.group_pixels)


# --- rows of the input -----------------------------------------------------------------------------------------------


def turned_rows(p: Words, g: Geometry) -> Numbers:
    """Return, per pass, by how many rows the assignment of input rows to row-buffer banks is rotated.

    It is at least the padding above. A map buffer may be rotated further, as ``in_turn`` says. With stride 2, in which
    rows are read in pairs, the only further rotation is by one row, for a kernel of one row.
    """
    extra_rotation = (p.in_turn - p.pad_top) % g.rows
    may_be = (p.stride != 2) | ((p.kernel_height == 1) & (extra_rotation == 1))
    return np.asarray(p.pad_top + np.where((p.in_buffer > 0) & may_be, extra_rotation, 0))


def ahead(p: Words, _g: Geometry) -> Numbers:
    return np.asarray((p.kernel_height - 1) // np.maximum(1, p.stride))


def phases(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(np.minimum(np.maximum(1, p.stride), p.kernel_height))


def row_strides_per_cycle(stride: int, rows: int) -> int:
    """Return how many row strides (groups of ``stride`` input rows) a map buffer delivers per cycle (map_buffer.h).

    With stride 2, the rows read have one parity; with an even number of banks they occupy every second bank. With a
    larger stride, at most MAX_STRIDED_ROWS rows move together, as long as their banks differ.
    """
    if stride > 2:
        return next((count for count in range(1, MAX_STRIDED_ROWS) if count * stride % rows == 0), MAX_STRIDED_ROWS)
    return rows // 2 if stride == 2 and rows % 2 == 0 else rows


def first_loads(p: Words, g: Geometry) -> Numbers:
    return np.asarray(divide_up(g.rows + p.ahead, g.map_ports) * p.slot_words)


def first_moves(p: Words, g: Geometry) -> Numbers:
    strides_per_cycle = np.array([row_strides_per_cycle(int(stride), g.rows) for stride in p.stride], np.int64)
    return np.asarray(divide_up(g.rows + p.ahead, strides_per_cycle) * p.slot_words)


# --- weights ---------------------------------------------------------------------------------------------------------


def first_step(p: Words, g: Geometry) -> Numbers:
    """Return the address at which each pass's weights start in the weight buffer, which passes fill as a ring."""
    loaded = p.tile_loads * p.steps
    return np.asarray((np.cumsum(loaded) - loaded) % g.weight_depth)


def tile_beats(p: Words, g: Geometry) -> Numbers:
    return np.asarray(p.steps * g.columns // (g.weight_ports * g.weight_words))


def tile_uses(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(np.where(p.inputs_resident != 0, 1, p.row_tiles) * p.channel_tiles)


def tile_loads(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(np.where(p.resident != 0, p.channel_tiles, p.tile_uses))


def channel_tiles(p: Words, g: Geometry) -> Numbers:
    """Return the number of tiles into which the array's columns cut the output channels of each pass (instruction).

    If a tile can end within a block, the last block may be partly filled, and the given number is kept if it is valid.
    """
    most = divide_up(p.out_blocks * g.lanes, g.columns)
    least = divide_up(p.out_blocks * g.lanes - g.lanes + 1, g.columns)
    may_be = (g.columns % g.lanes > 0) & (least <= p.channel_tiles) & (p.channel_tiles <= most)
    return np.asarray(np.where(may_be, p.channel_tiles, most))


# --- the output ------------------------------------------------------------------------------------------------------


def save_width(p: Words, _g: Geometry) -> Numbers:
    return np.asarray(p.upscale * spread(p) * divide_up(p.out_width, np.maximum(1, p.pool_stride)))


def chunks(p: Words, g: Geometry) -> Numbers:
    return np.asarray(p.row_tiles * p.channel_tiles * divide_up(p.save_width, g.chunk))
