"""The speed of a board's part relative to the UltraScale+ part (-2) whose operator delays were measured."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from boards.board import Board
from hls_schedule.operators import load_table
from scheduler.hardware.primitives import ULTRASCALE

_GRADE = re.compile(r"(-\d).*, VCCINT ([\d.]+) V")


@dataclass(frozen=True)
class PartSpeed:
    """The speed grade of a board's part, and its delays relative to the part whose operator delays were measured.

    Attributes:
        speed_grade: The part's speed grade.
        delay_factor: The part's delays divided by the measured delays, from the DSP figures of the data sheet. None if
            the factor is not known.
    """

    speed_grade: str
    delay_factor: float | None

    def clock_mhz(self, highest: float) -> float | None:
        """Return the clock in MHz on this part that corresponds to ``highest`` on the measured part, or None."""
        return None if self.delay_factor is None else float(int(highest / self.delay_factor))

    def values(self, highest: float | None) -> dict[str, Any]:
        """Return the speed as a JSON object, with the highest clock converted to this part."""
        return {**asdict(self), "highest_clock_mhz": None if highest is None else self.clock_mhz(highest)}

    def text(self, highest: float) -> str:
        """Return the highest clock on this part, as the end of a sentence; "" if it equals the measured part's."""
        if self.delay_factor is None:
            return f" at speed grade -2 of UltraScale+; no delay of the board's part ({self.speed_grade}) is known"
        if self.delay_factor == 1:
            return ""
        return (
            f" at speed grade -2, and up to about {self.clock_mhz(highest):g} MHz on the board's part "
            f"({self.speed_grade}), whose DSPs are {self.delay_factor:.2f} times slower (DS925)"
        )


def grade_of(board: Board) -> str | None:
    """Return the speed grade and core voltage of a board's part, such as ``-2 0.85``, or None if they are not known."""
    matched = _GRADE.match(board.speed_grade)
    return f"{matched[1]} {matched[2]}" if matched else None


def part_speed(board: Board) -> PartSpeed:
    """Return the speed grade of a board's part, and its delays relative to the measured part."""
    factors = load_table().grades if board.family == ULTRASCALE else {}
    return PartSpeed(board.speed_grade, factors.get(grade_of(board) or ""))
