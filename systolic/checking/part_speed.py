"""How much slower a board's part is than the one whose delays were measured."""

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
    """speed_grade: of the board's part. delay_factor: by how much longer its delays are than those that were measured,
    as its data sheet has it of DSPs; None where none says."""

    speed_grade: str
    delay_factor: float | None

    def clock_mhz(self, highest: float) -> float | None:
        """What a clock of the measured part is on this one; None where nothing says."""
        return None if self.delay_factor is None else float(int(highest / self.delay_factor))

    def values(self, highest: float | None) -> dict[str, Any]:
        """As one JSON object, with the highest clock on this part."""
        return {**asdict(self), "highest_clock_mhz": None if highest is None else self.clock_mhz(highest)}

    def text(self, highest: float) -> str:
        """What the part makes of the highest clock, in words; "" where it is as fast as the measured one."""
        if self.delay_factor is None:
            return f" at speed grade -2 of UltraScale+; no delay of the board's part ({self.speed_grade}) is known"
        if self.delay_factor == 1:
            return ""
        return (
            f" at speed grade -2, and up to about {self.clock_mhz(highest):g} MHz on the board's part "
            f"({self.speed_grade}), whose DSPs are {self.delay_factor:.2f} times slower (DS925)"
        )


def part_speed(board: Board) -> PartSpeed:
    """Of a board's part."""
    matched = _GRADE.match(board.speed_grade)
    factors = load_table().grades if board.family == ULTRASCALE else {}
    return PartSpeed(board.speed_grade, factors.get(f"{matched[1]} {matched[2]}") if matched else None)
