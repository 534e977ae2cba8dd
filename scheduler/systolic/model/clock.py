"""The lowest clock of a board at which a schedule still holds a frame rate: what timing closure may fall back to."""

from __future__ import annotations

from boards.board import Board, Clock
from scheduler.hardware.ddr import DDR_EFFICIENCY, DdrTiming, ddr_timing
from scheduler.systolic.model.cost import cost
from scheduler.systolic.tiling import SystolicSchedule

NO_WAIT = 1 << 30
"""1/1000 bytes a cycle of a memory that nothing waits for."""


def lowest_clock(
    schedule: SystolicSchedule, board: Board, frames_per_second: float, efficiency: float = DDR_EFFICIENCY
) -> Clock | None:
    """The lowest clock that the board produces at which ``schedule`` is modelled at ``frames_per_second`` or more;
    None where none is. efficiency: of the DDR.

    Clocks at which it would not even be that fast with a memory that nothing waits for are left out, the others are
    priced from the lowest on.
    """
    unhindered = cost(schedule, DdrTiming(1.0, NO_WAIT, 0, 0)).frames_per_second  # at 1 MHz
    for clock in board.clocks():
        possible = clock.mhz * unhindered >= frames_per_second
        if possible and cost(schedule, ddr_timing(board, clock.mhz, efficiency)).frames_per_second >= frames_per_second:
            return clock
    return None
