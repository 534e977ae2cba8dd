"""The lowest clock of a board at which a schedule still holds a frame rate: what timing closure may fall back to."""

from __future__ import annotations

from boards.board import Board
from boards.facts import Clock
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.systolic.model.cost import cost
from scheduler.systolic.schedule import SystolicSchedule

IDEAL_DDR = DdrTiming(clock_mhz=1.0, milli_bytes=1 << 30, read_latency=0, write_latency=0, rate=DdrRate(1.0, 1.0))
"""A memory that nothing waits for, at 1 MHz: what a schedule takes by its array alone."""


def lowest_clock(
    schedule: SystolicSchedule, board: Board, frames_per_second: float, rate: DdrRate | None = None
) -> Clock | None:
    """The lowest clock that the board produces at which ``schedule`` is modelled at ``frames_per_second`` or more;
    None where none is. rate: of the DDR, as of ``ddr_timing``.

    Clocks at which it would not even be that fast with an ideal memory are left out, the others are priced from the
    lowest on.
    """
    ideal_rate = cost(schedule, IDEAL_DDR).frames_per_second  # a MHz
    for clock in board.clocks():
        possible = clock.mhz * ideal_rate >= frames_per_second
        if possible and cost(schedule, ddr_timing(board, clock.mhz, rate)).frames_per_second >= frames_per_second:
            return clock
    return None
