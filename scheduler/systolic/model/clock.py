"""The lowest clock of a board at which a schedule still holds a frame rate: what timing closure may fall back to."""

from __future__ import annotations

from boards.board import Board
from boards.errors import RangeError
from boards.facts import Clock
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.systolic.model.cost import cost
from scheduler.systolic.schedule import SystolicSchedule

IDEAL_DDR = DdrTiming(clock_mhz=1.0, milli_bytes=1 << 30, read_latency=0, write_latency=0, rate=DdrRate(1.0, 1.0))
"""A memory that nothing waits for, at 1 MHz: what a schedule takes by its array alone."""


def highest_mhz(board: Board, dsp_clock: int) -> float:
    """What a design may be clocked at where its DSPs have ``dsp_clock`` cycles in one of it, and nothing else has. The
    switching limits are those of the board's file, of its speed grade."""
    return min(board.fmax.lowest, min(board.fmax.dsp, board.fmax.global_clock) / dsp_clock)


def check_dsp_clock(board: Board, mhz: float, dsp_clock: int) -> None:
    """Raise RangeError if the DSPs of the board, or its clock tree, cannot be clocked so fast."""
    fmax = board.fmax
    limit, slower = min((fmax.dsp, "a DSP"), (fmax.global_clock, "the clock tree"))
    if dsp_clock * mhz > limit:
        raise RangeError(
            f"the clock in MHz with dsp_clock {dsp_clock}, which clocks the DSPs at {dsp_clock * mhz:g} MHz, where "
            f"{slower} is limited to {limit:g} MHz,",
            mhz,
            high=limit / dsp_clock,
            where=f"{board.title} ({board.part})",
            remedy="take a lower clock, or dsp_clock 1",
        )


def lowest_clock(
    schedule: SystolicSchedule, board: Board, frames_per_second: float, rate: DdrRate | None = None
) -> Clock | None:
    """The lowest clock that the board produces at which ``schedule`` is modelled at ``frames_per_second`` or more;
    None where none is. rate: of the DDR, as of ``ddr_timing``.

    Clocks at which it would not even be that fast with an ideal memory are left out, the others are priced from the
    lowest on.
    """
    ideal_rate = cost(schedule, IDEAL_DDR).frames_per_second  # a MHz
    for clock in board.clocks(highest_mhz(board, schedule.array.dsp_clock)):
        possible = clock.mhz * ideal_rate >= frames_per_second
        if possible and cost(schedule, ddr_timing(board, clock.mhz, rate)).frames_per_second >= frames_per_second:
            return clock
    return None
