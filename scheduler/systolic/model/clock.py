"""The lowest clock of a board at which a schedule still reaches a frame rate, for when timing closure fails."""

from __future__ import annotations

from boards.board import Board
from boards.errors import RangeError
from boards.facts import Clock
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.systolic.model.cost import cost
from scheduler.systolic.schedule import SystolicSchedule

IDEAL_DDR = DdrTiming(clock_mhz=1.0, milli_bytes=1 << 30, read_latency=0, write_latency=0, rate=DdrRate(1.0, 1.0))
"""A DDR without latency or a bandwidth limit, at 1 MHz. With it the array alone determines the cycles."""


def highest_mhz(board: Board, dsp_clock: int) -> float:
    """Return the highest clock of a design in MHz, from the switching limits in the board's file.

    The DSPs and their clock tree run ``dsp_clock`` times as fast as the design, all other logic at the design's clock.
    """
    return min(board.fmax.lowest, min(board.fmax.dsp, board.fmax.global_clock) / dsp_clock)


def check_dsp_clock(board: Board, mhz: float, dsp_clock: int) -> None:
    """Raise RangeError if the board's DSPs or clock tree cannot run at ``dsp_clock`` × ``mhz``."""
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
    """Return the lowest clock of the board at which the schedule's modelled frame rate is high enough, or None.

    Clocks that are too low even with an ideal memory are skipped. The other clocks are priced in ascending order.

    Args:
        schedule: The schedule, which is the same at every clock.
        board: The board.
        frames_per_second: The frame rate that is required.
        rate: The DDR rate, as for ``ddr_timing``.
    """
    ideal_rate = cost(schedule, IDEAL_DDR).frames_per_second  # per MHz
    for clock in board.target_clocks(highest_mhz(board, schedule.array.dsp_clock)):
        possible = clock.mhz * ideal_rate >= frames_per_second
        if possible and cost(schedule, ddr_timing(board, clock.mhz, rate)).frames_per_second >= frames_per_second:
            return clock
    return None
