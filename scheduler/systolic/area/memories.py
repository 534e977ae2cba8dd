"""Memories of the engine as data, and the primitives that hold them (scheduler/hardware/primitives.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from contract.geometry import RESULT_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING
from scheduler.hardware.primitives import bram36, distributed_luts, product_luts, shift_luts, uram
from scheduler.systolic.array import SLOPE_BITS, Array

REQUANTISER_BITS = 72
"""saver/requantise.h, channel_t: bias 32, two multipliers 16 each, shift 8."""

MULTIPLIER_BITS = 16
"""Of them, what a sum is multiplied by."""

PRODUCT_DSPS = 2
"""Of a product of a sum and a multiplier (estimate: 27 + 5 bits of the sum)."""

IMPLS = ("bram", "uram", "lutram")
"""Primitives of a simple dual port memory, as BIND_STORAGE calls them: BRAM36, URAM, LUTs of SLICEMs."""

PRODUCT_IMPLS = ("dsp", "fabric")
"""The same of a product, as BIND_OP calls them: DSPs, LUTs."""

PRIMITIVES = {"bram": "BRAM36", "uram": "URAM", "lutram": "LUTRAM", "srl": "LUT", "dsp": "DSP", "fabric": "LUT"}

RESOURCES: Mapping[str, tuple[str, ...]] = {
    "bram": ("bram36",),
    "uram": ("uram",),
    "lutram": ("lut", "lutram"),
    "srl": ("lut", "lutram"),
    "dsp": ("dsp",),
    "fabric": ("lut",),
}
"""What a unit of each is counted as."""

_UNITS: Mapping[str, Callable[[int, int, str], int]] = {
    "bram": lambda bits, depth, _: bram36(bits, depth),
    "uram": lambda bits, depth, _: uram(bits, depth),
    "lutram": distributed_luts,
    "srl": lambda bits, depth, _: shift_luts(bits, depth),
    "dsp": lambda bits, depth, _: PRODUCT_DSPS,
    "fabric": lambda bits, depth, _: product_luts(bits, depth),
}


@lru_cache(maxsize=1 << 16)
def units(impl: str, bits: int, depth: int, family: str) -> int:
    """Blocks (of BRAM36 or URAM) or LUTs that one memory of ``depth`` words of ``bits`` takes; DSPs or LUTs of one
    product of ``bits`` × ``depth`` bits."""
    return _UNITS[impl](bits, depth, family)


# --- memories of the engine ----------------------------------------------------------------------------------------

Number = Callable[[Array], int]


@dataclass(frozen=True)
class Buffer:
    """``count`` simple dual port memories of ``depth`` words of ``bits``, all of one of ``impls``.

    The three are functions of the array, of arithmetic alone: the search gives them an array whose numbers are grids.
    macro: the impl of its BIND pragma in the generated parameters.h, "" where the code has none. reason: why a FIFO has
    its depth.
    """

    name: str
    macro: str
    count: Number
    bits: Number
    depth: Number
    impls: tuple[str, ...] = IMPLS
    reason: str = ""


def word(array: Array) -> int:
    """Return the bits of a word in DDR."""
    return 8 * array.word_bytes


def column_sums(array: Array) -> int:
    """Return the bits of a sum of every column."""
    return array.sum_bits * array.columns


def save_banks(array: Array) -> int:
    """saver/save.h, ROW_BANKS."""
    return np.maximum(array.save_rows, array.map_ports)  # type: ignore[no-any-return]


def _arranged(array: Array) -> int:
    rows = array.rows + 1 if array.upscale == 1 else array.upscale * array.rows  # saver/save.h, SAVED_ROWS
    return 2 * ceil_div(rows, save_banks(array)) * array.chunk


MAP_BUFFERS = Buffer("map buffers", "MAP_MEMORY", lambda a: 2 * a.rows, word, lambda a: a.map_depth)

BUFFERS = (
    Buffer("rows", "ROW_MEMORY", lambda a: 2 * a.rows, word, lambda a: a.row_depth // 2),
    Buffer("weights", "WEIGHT_MEMORY", lambda a: a.columns, word, lambda a: a.weight_depth),
    Buffer("kept sums", "KEPT_MEMORY", lambda a: 1, column_sums, lambda a: a.kept_depth),
    Buffer(
        "requantisers", "REQUANTISER_MEMORY", lambda a: a.columns, lambda a: REQUANTISER_BITS, lambda a: a.channel_tiles
    ),
    MAP_BUFFERS,
    Buffer("arranged", "ARRANGED_MEMORY", lambda a: save_banks(a) * a.tile_blocks * a.result_words, word, _arranged),
)
"""What BIND_STORAGE places: load.h, feed.h, pool.h, requantise.h, top.cpp and save.h; their ARRAY_PARTITIONs give the
counts."""


def _port(name: str, count: Number, bits: Number) -> Buffer:
    """Of an m_axi adapter, which has no pragma: BRAM is what it gets."""
    return Buffer(name, "", count, bits, lambda a: BURST_WORDS * OUTSTANDING, ("bram",))


PORT_BUFFERS = (
    _port("maps", lambda a: 2 * (a.map_ports + a.added_maps), word),
    _port("weights", lambda a: a.weight_ports, lambda a: word(a) * a.weight_words),
)

TABLES = Buffer(
    "tables",
    "TABLE_MEMORY",
    lambda a: a.save_rows * a.columns,
    lambda a: RESULT_BITS + SLOPE_BITS * a.table_slopes,
    lambda a: a.table_depth,
    ("lutram",),
)
"""saver/requantise.h: a copy for each result of a cycle, which no primitive but LUTs has the ports for."""
