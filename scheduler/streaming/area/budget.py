"""The most that a folding may take of a board, and the area: one number for how much it does.

Area is the sum over LUT, DSP, BRAM and URAM of the fraction of the board that is taken, in boards. The sum and not the
greatest fraction, because what is not scarcest would otherwise be free and would be wasted; and because the area of a
folding is then the sum of its blocks' areas, which is what makes a search exact and fast. What does not fit is
excluded, whatever its area.
"""

from __future__ import annotations

from boards.board import Board
from scheduler.hardware.budget import Budget, room
from scheduler.streaming.area.usage import StreamingUsage

BOARD = 1_000_000_000
"""All LUTs of a board, or all DSPs, or …: areas are whole numbers of 10⁻⁹ boards, so that sums are exact."""


def available(board: Board) -> StreamingUsage:
    """All that the board has."""
    resources = board.resources
    return StreamingUsage(resources.lut, resources.lutram, resources.dsp, 2 * resources.bram36, resources.uram)


def limits(board: Board, budget: Budget) -> StreamingUsage:
    """The most of each resource that a folding may take."""
    return available(room(board, budget))


def unit_areas(board: Board) -> StreamingUsage:
    """The area of one of each, in 10⁻⁹ boards; LUTs that are memory count once, as LUTs."""
    whole_board = available(board)
    return StreamingUsage(
        lut=BOARD // whole_board.lut,
        dsp=BOARD // whole_board.dsp,
        bram18=BOARD // whole_board.bram18,
        uram=BOARD // max(1, whole_board.uram),
    )


def area(usage: StreamingUsage, board: Board) -> int:
    """The area of ``usage`` in 10⁻⁹ boards."""
    unit = unit_areas(board)
    return usage.lut * unit.lut + usage.dsp * unit.dsp + usage.bram18 * unit.bram18 + usage.uram * unit.uram


def fits(usage: StreamingUsage, limit: StreamingUsage) -> bool:
    """Whether no resource of the fabric is above ``limit``; bits from DDR are not looked at."""
    return (
        usage.lut <= limit.lut
        and usage.lutram <= limit.lutram
        and usage.dsp <= limit.dsp
        and usage.bram18 <= limit.bram18
        and usage.uram <= limit.uram
    )
