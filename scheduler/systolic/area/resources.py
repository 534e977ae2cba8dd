"""The DSPs, memory blocks and LUTs of an array for a given choice of primitives, and the area that compares arrays."""

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
    """The board resources of a design or of a part of it, estimated before any vendor tool runs.

    Attributes:
        dsp: DSPs.
        bram36: BRAM36 blocks.
        uram: URAM blocks.
        lut: All LUTs, including the LUTs that are used as memory.
        lutram: LUTs that are used as memory or as shift registers.
    """

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
        """Return whether the board has enough of every resource that is used."""
        limit = board.resources
        return (
            self.dsp <= limit.dsp
            and self.bram36 <= limit.bram36
            and self.uram <= limit.uram
            and self.lut <= limit.lut
            and self.lutram <= limit.lutram
        )


PRODUCT_LUT_SHARE = 0.1
"""The largest share of the board's LUTs that the requantisers' multipliers may take. More LUTs would save less than a
thousandth of the cycles, and would make routing harder. The share is doubled if the DSPs have a doubled clock or
compute six products, because the Saver then gets more sums per cycle from the same number of DSPs."""


def used_as(impl: str, count: int) -> Usage:
    """Return the board resources that ``count`` units of the primitive ``impl`` take."""
    return Usage(**dict.fromkeys(RESOURCES[impl], count))


PRODUCTS = Buffer(
    "requantiser products",
    "REQUANTISE_PRODUCT",
    lambda a: a.save_rows * a.columns,
    lambda a: SUM_BITS,
    lambda a: ENGINE_NAMED[a.engine].factor_bits,
    PRODUCT_IMPLS,
)
"""The requantisers' multipliers, of ``bits`` × ``depth`` bits each. They are not a memory, but they have a choice of
primitives too: BIND_OP puts them into DSPs, or into LUTs if the array needs the DSPs."""

PLACED = (*BUFFERS, PRODUCTS)
"""Everything that has a choice of primitives."""


def built(array: Array) -> tuple[Buffer, ...]:
    """Return the buffers of ``PLACED``, which have a choice of primitives, that this array has. An array may have no
    map buffers."""
    return tuple(buffer for buffer in PLACED if buffer.depth(array) > 0)


def fixed(array: Array) -> tuple[Buffer, ...]:
    """Return the engine's memories without a choice of primitives: port buffers, FIFOs and activation tables."""
    return (*PORT_BUFFERS, *ENGINE_NAMED[array.engine].fifos, TABLES)


def fabric(array: Array) -> Fabric:
    """Return the LUTs and FFs of the logic of ``array``, whose numbers may be numpy grids."""
    return ENGINE_NAMED[array.engine].fabric(array)


def fixed_usage(array: Array, board: Board) -> Usage:
    """Return the board resources that no choice of primitives changes: the PEs' DSPs, the logic and the fixed
    memories."""
    parts = (used_by(buffer, array, buffer.impls[0], board) for buffer in fixed(array))
    return sum(parts, Usage(dsp=array.mac_dsps, lut=fabric(array).lut))


def used_by(buffer: Buffer, array: Array, impl: str, board: Board) -> Usage:
    """Return the board resources of ``buffer`` of ``array`` if it is built from the primitive ``impl``."""
    memory = units(impl, int(buffer.bits(array)), int(buffer.depth(array)), board.family)
    return used_as(impl, int(limit_lut_products(impl, np.int64(buffer.count(array) * memory), array, board)))


def limit_lut_products(impl: str, count: Any, array: Array, board: Board) -> Any:
    """Return the number of units ``count``, or more than the board has if LUT multipliers exceed PRODUCT_LUT_SHARE.

    A count above the board's total makes the choice not fit. ``count`` may be an integer or a grid of integers.
    """
    lut = board.resources.lut
    share = PRODUCT_LUT_SHARE * (2 if array.intense else 1) * lut
    return np.where(count > share, lut + 1, count) if impl == "fabric" else count


# --- area ----------------------------------------------------------------------------------------------------------

WHOLE = 10**12
"""The area of a design that uses the whole board."""


def unit_areas(board: Board) -> Usage:
    """Return the area of one DSP, BRAM36, URAM and LUT, in 10⁻¹² boards. A LUT that is used as memory counts once, as a
    LUT."""
    total = board.resources
    kinds = 4 if total.uram else 3
    return Usage(
        WHOLE // (kinds * total.dsp),
        WHOLE // (kinds * total.bram36),
        WHOLE // (kinds * total.uram) if total.uram else 0,
        WHOLE // (kinds * total.lut),
    )


def area(usage: Usage, board: Board) -> int:
    """Return the resources as one number: the mean used share of the board's DSPs, BRAM36s, LUTs and URAMs (if any),
    times 10¹².

    It is a sum over units, so that each part of a design can be minimised alone while the board has room.
    """
    unit = unit_areas(board)
    return usage.dsp * unit.dsp + usage.bram36 * unit.bram36 + usage.uram * unit.uram + usage.lut * unit.lut


def fifo_table(array: Array) -> tuple[FifoRow, ...]:
    """Return the FIFOs between the processes of the array's engine, as rows for reports. FIFOs with a count of 0 are
    left out."""
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
