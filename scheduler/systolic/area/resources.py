"""On-chip memory, LUTs and DSPs of an array, by primitive (scheduler/hardware/primitives.py). Nothing is placed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from boards.board import Board
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING
from scheduler.hardware.fifos import MEMORY_LATENCY, SHIFT_LATENCY, SHIFT_REGISTER
from scheduler.hardware.primitives import SHIFT_WORDS, bram36, distributed_luts, product_luts, shift_luts, uram
from scheduler.systolic.area.fabric import fabric
from scheduler.systolic.area.logic import levels_of
from scheduler.systolic.array import GROUP_BITS, RESULT_BITS, RTL, SIX, SLOPE_BITS, SUM_BITS, Array

REQUANTISER_BITS = 72
"""saver/requantise.h, channel_t: bias 32, two multipliers 16 each, shift 8."""

MULTIPLIER_BITS = 16
"""Of them, what a sum is multiplied by."""

DIGIT_ROWS = 13
"""saver/lut_product.sv: digits of two bits add as many rows as a factor of 13 bits, nine, and two longer adders for the
thirds: 396 LUTs. Yosys counts 385; where the two are made one of three (a LUT a bit, UG574) it is some 40 less."""

PRODUCT_DSPS = 2
"""Of a product of a sum and a multiplier (estimate: 27 + 5 bits of the sum)."""

FIFO_DEPTH = 16
"""Words of the FIFOs between DDR ports and buffers: shift registers. The trace shows that no more is gained, because
the ports' own buffers hide the DDR."""

ROW_FIFO_DEPTH = 32
"""The same of the readers of rows, which ask for pieces between those that they read, each at another time: meanwhile
the others go on."""

WAIT_DEPTH = 4
"""FIFO depth between processes that run in step; the cycle trace tells whether more would help."""


@dataclass(frozen=True)
class Usage:
    """Estimate from primitive shapes, before any vendor tool. lut: all of them, those that are memory included;
    lutram: these alone, shift registers too."""

    dsp: int = 0
    bram36: int = 0
    uram: int = 0
    lut: int = 0
    lutram: int = 0

    def __add__(self, part: Usage) -> Usage:
        return Usage(
            self.dsp + part.dsp,
            self.bram36 + part.bram36,
            self.uram + part.uram,
            self.lut + part.lut,
            self.lutram + part.lutram,
        )

    def fits(self, board: Board) -> bool:
        limit = board.resources
        return (
            self.dsp <= limit.dsp
            and self.bram36 <= limit.bram36
            and self.uram <= limit.uram
            and self.lut <= limit.lut
            and self.lutram <= limit.lutram
        )


PRODUCT_LUT_SHARE = 0.1
"""Of the board's LUTs, those that may multiply in requantisers. More of them would save less than a thousandth of the
cycles, and stand in the router's way. Where DSPs have a clock twice as fast, or multiply six times, the Saver gets
more sums a cycle from as many DSPs, and twice the share."""

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


def used_as(impl: str, count: int) -> Usage:
    """``count`` units of a primitive."""
    return Usage(**dict.fromkeys(RESOURCES[impl], count))


# --- memories of the engine ----------------------------------------------------------------------------------------

Number = Callable[[Array], int]


@dataclass(frozen=True)
class Buffer:
    """``count`` simple dual port memories of ``depth`` words of ``bits``, all of one of ``impls``.

    The three are functions of the array, of arithmetic alone: the search gives them an array whose numbers are grids.
    macro: the impl of its BIND pragma in the generated parameters.h, "" where the code has none.
    """

    name: str
    macro: str
    count: Number
    bits: Number
    depth: Number
    impls: tuple[str, ...] = IMPLS


def _word(array: Array) -> int:
    return 8 * array.word_bytes


def _sums(array: Array) -> int:
    return array.sum_bits * array.columns


def save_banks(array: Array) -> int:
    """saver/save.h, ROW_BANKS."""
    return np.maximum(array.save_rows, array.map_ports)  # type: ignore[no-any-return]


def _arranged(array: Array) -> int:
    rows = array.rows + 1 if array.upscale == 1 else array.upscale * array.rows  # saver/save.h, SAVED_ROWS
    return 2 * ceil_div(rows, save_banks(array)) * array.chunk


MAP_BUFFERS = Buffer("map buffers", "MAP_MEMORY", lambda a: 2 * a.rows, _word, lambda a: a.map_depth)

BUFFERS = (
    Buffer("rows", "ROW_MEMORY", lambda a: 2 * a.rows, _word, lambda a: a.row_depth // 2),
    Buffer("weights", "WEIGHT_MEMORY", lambda a: a.columns, _word, lambda a: a.weight_depth),
    Buffer("kept sums", "KEPT_MEMORY", lambda a: 1, _sums, lambda a: a.kept_depth),
    Buffer(
        "requantisers", "REQUANTISER_MEMORY", lambda a: a.columns, lambda a: REQUANTISER_BITS, lambda a: a.channel_tiles
    ),
    MAP_BUFFERS,
    Buffer("arranged", "ARRANGED_MEMORY", lambda a: save_banks(a) * a.tile_blocks * a.result_words, _word, _arranged),
)
"""What BIND_STORAGE places: load.h, feed.h, pool.h, requantise.h, top.cpp and save.h; their ARRAY_PARTITIONs give the
counts."""


PRODUCTS = Buffer(
    "requantiser products",
    "REQUANTISE_PRODUCT",
    lambda a: a.save_rows * a.columns,
    lambda a: SUM_BITS,
    lambda a: DIGIT_ROWS if a.engine == RTL else MULTIPLIER_BITS,
    PRODUCT_IMPLS,
)
"""No memory, but placed as one: products of ``bits`` × ``depth`` bits, which BIND_OP puts into DSPs, or into LUTs where
the array needs the DSPs."""

PLACED = (*BUFFERS, PRODUCTS)
"""All that has a choice of primitives."""


def built(array: Array) -> tuple[Buffer, ...]:
    """Those of ``PLACED`` that the array has: map buffers may be none."""
    return tuple(buffer for buffer in PLACED if buffer.depth(array) > 0)


def _port(name: str, count: Number, bits: Number) -> Buffer:
    """Of an m_axi adapter, which has no pragma: BRAM is what it gets."""
    return Buffer(name, "", count, bits, lambda a: BURST_WORDS * OUTSTANDING, ("bram",))


def _fifo(name: str, count: Number, bits: Number, depth: Number) -> Buffer:
    """A stream of the generated top function, by its name there: ``count`` FIFOs. Shallow and wide, they are bound to
    shift registers; of those of more than 1,024 bits the tool would make memories."""
    return Buffer(name, "", count, bits, depth, (SHIFT_REGISTER,))


POOL_TILE_BITS, CHUNK_BITS = 5 * 16 + 1 + 32, 4 * 16 + 3 * 32
"""saver/pool.h, pool_tile_t, and saver/save.h, chunk_t."""

ROW_LAG = 1 + SHIFT_LATENCY
"""array/pe_array.h: cycles by which a row of PEs is behind the one above; weights are read, written a cycle later, and
then pass a FIFO."""


def _wait(_: Array) -> int:
    return WAIT_DEPTH


def row_fifo_words(rows: int, positions: int) -> int:
    """Return the depth of the FIFOs before and after the rows of PEs.

    It covers the lag of the last row even if the tool builds these FIFOs as memories, so that such a tool costs no
    cycle. A bit of more than 32 words takes a second LUT, that is from 11 rows on. Where two positions share a row,
    its words are twice as wide, and the depth is kept to what the LUTs hold that the lag of shift registers needs.
    """
    covered = (1 + MEMORY_LATENCY) * (rows - 1) + WAIT_DEPTH
    if positions == 1:
        return covered
    needed = ROW_LAG * (rows - 1) + WAIT_DEPTH
    return min(covered, SHIFT_WORDS * ceil_div(needed, SHIFT_WORDS))


def _skewed(array: Array) -> int:
    return row_fifo_words(array.rows, array.packing.positions)


PORT_BUFFERS = (
    _port("maps", lambda a: 2 * (a.map_ports + a.added_maps), _word),
    _port("weights", lambda a: a.weight_ports, lambda a: _word(a) * a.weight_words),
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

FIFOS = (
    _fifo("rows", lambda a: a.map_ports, _word, lambda a: ROW_FIFO_DEPTH),
    _fifo("beats", lambda a: a.weight_ports, lambda a: _word(a) * a.weight_words, lambda a: FIFO_DEPTH),
    _fifo("saved", lambda a: a.map_ports + a.added_maps, _word, lambda a: FIFO_DEPTH),
    # Row m takes a step ROW_LAG · m cycles after row 0. load gives all rows theirs at once, and the Saver takes the
    # sums of all at once: a shallower FIFO makes the rows wait for each other, or deadlocks at one step a position.
    _fifo("activations", lambda a: a.rows, lambda a: _word(a) * a.packing.positions, _skewed),
    _fifo("weights", lambda a: a.rows, lambda a: _word(a) * a.columns, _wait),
    _fifo("sums", lambda a: a.rows, lambda a: _sums(a) * a.packing.positions, _skewed),
    _fifo("tiles", lambda a: 1, lambda a: POOL_TILE_BITS, lambda a: WAIT_DEPTH),
    _fifo("chunks", lambda a: 1, lambda a: CHUNK_BITS, lambda a: WAIT_DEPTH),
    _fifo("port_chunks", lambda a: a.map_ports + 2 * a.added_maps, lambda a: CHUNK_BITS, lambda a: WAIT_DEPTH),
    _fifo("groups", lambda a: 1, lambda a: a.save_rows * _sums(a) + GROUP_BITS, lambda a: WAIT_DEPTH),
    _fifo("results", lambda a: 1, lambda a: a.save_rows * RESULT_BITS * a.columns, lambda a: WAIT_DEPTH),
    _fifo("added", lambda a: a.added_maps, _word, lambda a: ROW_FIFO_DEPTH),
)


def _queue(name: str, count: Number, bits: Number, depth: Number) -> Buffer:
    """Of common/fifo.sv, in the engine in SystemVerilog: a memory in LUTs."""
    return Buffer(name, "", count, bits, depth, ("lutram",))


def _under_way(array: Array) -> int:
    """array/pe_array.sv, UNDER_WAY: positions of a row between a step and its FIFO."""
    if array.packing is SIX:
        return 8 + levels_of(array.lanes // 2)
    return array.pack_chain + 6 if array.dsp_clock == 1 else array.pack_chain // 2 + 7


READ_WORDS, ROW_WORD_BITS = 32, 2
"""common/axi_read.sv, DEPTH; saver/arrange.sv: which halves of a word are written."""

CHUNK_WORD_BITS = 7 * 32 + 1
"""systolic_geometry, chunk_t."""

TILE_BITS = 6 * 32 + 1
"""The same, pool_tile_t."""

PASS_BITS = 64 * 32
"""Of a pass of the layer program, of which the next one waits."""

QUEUES = (
    _queue("program", lambda a: 1, lambda a: 32, lambda a: READ_WORDS),
    _queue("passes", lambda a: 1, lambda a: PASS_BITS, lambda a: 2),
    _queue("rows", lambda a: a.map_ports + a.added_maps, _word, lambda a: READ_WORDS),
    _queue("beats", lambda a: a.weight_ports, lambda a: _word(a) * a.weight_words, lambda a: READ_WORDS),
    _queue("constants", lambda a: 1, lambda a: 128, lambda a: READ_WORDS),
    _queue("lengths", lambda a: a.map_ports + a.added_maps, lambda a: 8, lambda a: OUTSTANDING),
    _queue("activations", lambda a: 1, lambda a: a.rows * a.packing.positions * _word(a), lambda a: 12),
    _queue("weights", lambda a: 1, lambda a: a.columns * _word(a), lambda a: 6),
    _queue(
        "sums",
        lambda a: a.rows,
        lambda a: _sums(a) * a.packing.positions,
        lambda a: _under_way(a) + ceil_div(a.rows - 1, a.dsp_clock) + 5,
    ),
    _queue("tiles", lambda a: 1, lambda a: TILE_BITS, lambda a: 2),
    _queue("products", lambda a: a.map_products, lambda a: a.save_rows * _sums(a) + 33, lambda a: 7),
    _queue("results", lambda a: 1, lambda a: a.save_rows * RESULT_BITS * a.columns, lambda a: 18),
    _queue("chunks", lambda a: 1 + a.map_ports + 2 * a.added_maps, lambda a: CHUNK_WORD_BITS, lambda a: 4),
    _queue("words", lambda a: a.map_ports, lambda a: _word(a) + ROW_WORD_BITS, lambda a: 6),
    _queue("added", lambda a: a.added_maps, _word, lambda a: 13),
)
"""The same of the engine in SystemVerilog, with the depths of its modules."""


def fixed(array: Array) -> tuple[Buffer, ...]:
    """All that has no choice of primitives."""
    return (*PORT_BUFFERS, *(QUEUES if array.engine == RTL else FIFOS), TABLES)


def fixed_usage(array: Array, board: Board) -> Usage:
    """What has no choice: DSPs of the PEs, the logic of scheduler/systolic/area/fabric.py, ports and FIFOs."""
    parts = (used_by(buffer, array, buffer.impls[0], board) for buffer in fixed(array))
    return sum(parts, Usage(dsp=array.mac_dsps, lut=fabric(array).lut))


def used_by(buffer: Buffer, array: Array, impl: str, board: Board) -> Usage:
    """What ``buffer`` of ``array`` takes in this primitive."""
    memory = units(impl, int(buffer.bits(array)), int(buffer.depth(array)), board.family)
    return used_as(impl, int(allowed(impl, np.int64(buffer.count(array) * memory), array, board)))


def allowed(impl: str, count: Any, array: Array, board: Board) -> Any:
    """``count`` of a primitive, or more than the board has where so many may not be: see PRODUCT_LUT_SHARE."""
    lut = board.resources.lut
    share = PRODUCT_LUT_SHARE * (2 if array.intense else 1) * lut
    return np.where(count > share, lut + 1, count) if impl == "fabric" else count


# --- area ----------------------------------------------------------------------------------------------------------

WHOLE = 10**12
"""The area of all that a board has."""


def unit_areas(board: Board) -> Usage:
    """The area of one DSP, BRAM36, URAM and LUT; a LUT that is memory is counted as the LUT that it is."""
    total = board.resources
    kinds = 4 if total.uram else 3
    return Usage(
        WHOLE // (kinds * total.dsp),
        WHOLE // (kinds * total.bram36),
        WHOLE // (kinds * total.uram) if total.uram else 0,
        WHOLE // (kinds * total.lut),
    )


def area(usage: Usage, board: Board) -> int:
    """Mean share of the board's DSP, BRAM36, LUT and (where there is any) URAM, in 10⁻¹²: a sum over units, so that the
    least area of a design is that of its parts where the board has room."""
    unit = unit_areas(board)
    return usage.dsp * unit.dsp + usage.bram36 * unit.bram36 + usage.uram * unit.uram + usage.lut * unit.lut
