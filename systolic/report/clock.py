"""The clock that a frame rate is told at: the target, or where a check has shown that the sources do not hold it, the
clock that they do hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RateClock:
    """holds: whether every loop keeps its interval at the target, as far as is known. held_mhz: the highest clock at
    which each does, on the board's part where its delays are known; None where ports of a memory keep one from it at
    every clock."""

    target_mhz: float
    holds: bool = True
    held_mhz: float | None = None

    @property
    def mhz(self) -> float:
        """The clock that the rate is computed at: the target where no other is known."""
        return self.target_mhz if self.holds or self.held_mhz is None else min(self.held_mhz, self.target_mhz)

    @property
    def source(self) -> str:
        """Say where the clock comes from."""
        if self.holds:
            return "target"
        if self.held_mhz is None:
            return "target, but the sources reach their intervals at no clock"
        return f"derived: the sources do not hold the target of {self.target_mhz:g} MHz"

    def rate(self, at_target: float) -> float | None:
        """Frames a second, of so many at the target; None where the sources reach their intervals at no clock."""
        return None if not self.holds and self.held_mhz is None else at_target * self.mhz / self.target_mhz

    def text(self, at_target: float) -> str:
        """Say the rate, and its clock."""
        rate = self.rate(at_target)
        if rate is None:
            return (
                f"no frame rate at {self.target_mhz:g} MHz (target): ports of a memory keep loops from their intervals "
                "at every clock; systolic simulate --cycles --derived has the cycles"
            )
        return f"{rate:.1f} frames/s at {self.mhz:g} MHz ({self.source})"
