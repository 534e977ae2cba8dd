"""Which primitive holds which buffer: every choice of BRAM36 or URAM for rows and weights, the one of least area.

A row buffer is ``rows`` banks of two halves (include/load.h), a weight buffer ``columns`` memories (include/feed.h);
both are simple dual port, which either primitive is. LUTRAM is not offered: 64 bits a LUT (UG574) make a bank of 512
words of 128 bits 1,170 LUTs, and an array has dozens of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from boards.board import Board
from scheduler.array import Array
from scheduler.resources import Usage, bram36, uram, usage, weights_in_uram
from scheduler.space import area


@dataclass(frozen=True)
class Placement:
    """bram or uram for each buffer: the ``impl`` of its BIND_STORAGE."""

    row_memory: str
    weight_memory: str


def placements(board: Board) -> tuple[Placement, ...]:
    """What a board has the primitives for, the usual one first: weights are deep, as URAM is; banks of rows are not."""
    if not board.resources.uram:
        return (Placement("bram", "bram"),)
    return tuple(Placement(rows, weights) for rows in ("bram", "uram") for weights in ("uram", "bram"))


def placed_usage(array: Array, board: Board, placement: Placement) -> Usage:
    """``scheduler.resources.usage`` with the buffers where ``placement`` has them."""
    used = usage(array, board)
    word = 8 * array.word_bytes
    moves = (
        (2 * array.rows, array.row_depth // 2, "bram", placement.row_memory),
        (array.columns, array.weight_depth, "uram" if weights_in_uram(board) else "bram", placement.weight_memory),
    )
    for count, depth, before, after in moves:
        sign = (after == "uram") - (before == "uram")
        blocks, ultra = sign * count * bram36(word, depth), sign * count * uram(word, depth)
        used = Usage(used.dsp, used.bram36 - blocks, used.uram + ultra)
    return used


def place(array: Array, board: Board) -> tuple[Placement, Usage]:
    """The placement of least area that fits; where none does, the usual one."""
    found = [(one, placed_usage(array, board, one)) for one in placements(board)]
    fitting = [(one, used) for one, used in found if used.fits(board)]
    return min(fitting, key=lambda f: area(f[1], board), default=found[0])
