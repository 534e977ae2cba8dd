"""What an array takes of a board: on-chip memory, LUTs and DSPs, and their area. Nothing is placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.board import Board
from contract.geometry import SUM_BITS
from scheduler.hardware.fifos import FifoRow
from scheduler.systolic.area.logic import Fabric
from scheduler.systolic.area.memories import (
    BUFFERS,
    PORT_BUFFERS,
    PRODUCT_IMPLS,
    RESOURCES,
    TABLES,
    Buffer,
    units,
)
from scheduler.systolic.array import Array
from scheduler.systolic.engines.table import ENGINE_NAMED


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


def used_as(impl: str, count: int) -> Usage:
    """``count`` units of a primitive."""
    return Usage(**dict.fromkeys(RESOURCES[impl], count))


PRODUCTS = Buffer(
    "requantiser products",
    "REQUANTISE_PRODUCT",
    lambda a: a.save_rows * a.columns,
    lambda a: SUM_BITS,
    lambda a: ENGINE_NAMED[a.engine].factor_bits,
    PRODUCT_IMPLS,
)
"""No memory, but placed as one: products of ``bits`` × ``depth`` bits, which BIND_OP puts into DSPs, or into LUTs where
the array needs the DSPs."""

PLACED = (*BUFFERS, PRODUCTS)
"""All that has a choice of primitives."""


def built(array: Array) -> tuple[Buffer, ...]:
    """Those of ``PLACED`` that the array has: map buffers may be none."""
    return tuple(buffer for buffer in PLACED if buffer.depth(array) > 0)


def fixed(array: Array) -> tuple[Buffer, ...]:
    """All that has no choice of primitives."""
    return (*PORT_BUFFERS, *ENGINE_NAMED[array.engine].fifos, TABLES)


def fabric(array: Array) -> Fabric:
    """Return the logic of ``array``; its numbers may be grids."""
    return ENGINE_NAMED[array.engine].fabric(array)


def fixed_usage(array: Array, board: Board) -> Usage:
    """What has no choice: DSPs of the PEs, the logic of its engine, ports and FIFOs."""
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


def fifo_table(array: Array) -> tuple[FifoRow, ...]:
    """Return the FIFOs between the processes of the array's engine; those that it has none of are left out."""
    rows = (
        FifoRow(
            fifo.name,
            int(fifo.count(array)),
            int(fifo.bits(array)),
            int(fifo.depth(array)),
            fifo.impls[0],
            fifo.reason,
        )
        for fifo in ENGINE_NAMED[array.engine].fifos
    )
    return tuple(row for row in rows if row.count)
