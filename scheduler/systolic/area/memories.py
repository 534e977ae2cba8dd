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
"""Bits of one channel's requantiser (saver/requantise.h, channel_t): bias 32, two multipliers of 16, shift 8."""

MULTIPLIER_BITS = 16
"""Bits of a requantiser's multiplier."""

PRODUCT_DSPS = 2
"""DSPs of one product of a sum and a multiplier. Estimate: the sum is split into 27 + 5 bits."""

IMPLS = ("bram", "uram", "lutram")
"""Primitives of a simple dual port memory, by their names in BIND_STORAGE: BRAM36, URAM, LUTs of SLICEMs."""

PRODUCT_IMPLS = ("dsp", "fabric")
"""Primitives of a product, by their names in BIND_OP: DSPs, LUTs."""

PRIMITIVES = {"bram": "BRAM36", "uram": "URAM", "lutram": "LUTRAM", "srl": "LUT", "dsp": "DSP", "fabric": "LUT"}
"""The name of each impl in reports; srl is a shift register."""

RESOURCES: Mapping[str, tuple[str, ...]] = {
    "bram": ("bram36",),
    "uram": ("uram",),
    "lutram": ("lut", "lutram"),
    "srl": ("lut", "lutram"),
    "dsp": ("dsp",),
    "fabric": ("lut",),
}
"""The fields of ``Usage`` that count one unit of each impl."""

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
    """Return how many BRAM36s, URAMs or LUTs one memory of ``depth`` words of ``bits`` bits takes.

    For a product, return the DSPs or LUTs of one multiplier of ``bits`` × ``depth`` bits.
    """
    return _UNITS[impl](bits, depth, family)


# --- memories of the engine ----------------------------------------------------------------------------------------

Number = Callable[[Array], int]


@dataclass(frozen=True)
class Buffer:
    """A set of equal memories of the engine, such as the weight memories, with their number, size and possible
    primitives.

    ``count``, ``bits`` and ``depth`` are functions of the array. They only do arithmetic, because the search passes an
    array whose numbers are numpy grids.

    Attributes:
        name: The buffer's name in placements and reports.
        macro: The macro in the generated parameters.h that names the primitive for the BIND pragma; "" if there is
            none.
        count: The number of memories.
        bits: Bits per word.
        depth: Words per memory.
        impls: The names of the primitives that the memories can be built from.
        reason: Why a FIFO has its depth, for reports; "" for other memories.
    """

    name: str
    macro: str
    count: Number
    bits: Number
    depth: Number
    impls: tuple[str, ...] = IMPLS
    reason: str = ""


def word(array: Array) -> int:
    """Return the bits of a DDR word of a feature map, which has one value per lane of the array."""
    return 8 * array.word_bytes


def column_sums(array: Array) -> int:
    """Return the bits of a word with one accumulator sum per column of the array."""
    return array.sum_bits * array.columns


def save_banks(array: Array) -> int:
    """Return the number of row banks in the output stage's reorder buffer (saver/save.h, ROW_BANKS)."""
    return np.maximum(array.save_rows, array.map_ports)  # type: ignore[no-any-return]


def _arranged(array: Array) -> int:
    """Return the depth, in words, of one memory of the output stage's reorder buffer, which holds two chunks of
    columns."""
    rows = array.rows + 1 if array.upscale == 1 else array.upscale * array.rows  # saver/save.h, MAX_OUTPUT_ROWS
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
"""The memories that BIND_STORAGE pragmas place, in load.h, feed.h, pool.h, requantise.h, top.cpp and save.h. Their
counts follow from the ARRAY_PARTITION pragmas."""


def _port(name: str, count: Number, bits: Number) -> Buffer:
    """Return the read or write buffer of a DDR port's m_axi adapter. It has no pragma, and Vitis HLS builds it from
    BRAM."""
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
"""Activation tables (saver/requantise.h). Each result of a cycle reads its own copy, and no primitive but
LUTs has the ports for that."""
