"""The clock at which reports state a frame rate.

It is the target clock, unless a check of the generated sources has found that their loops do not reach their initiation
intervals at the target. Then it is the highest clock at which they do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RateClock:
    """The clock at which reports give a design's frame rate, and whether its loops reach their II there.

    Attributes:
        target_mhz: The clock that the design was generated for.
        holds: Whether every loop reaches its initiation interval at the target. True if the design was not checked.
        held_mhz: The highest clock in MHz at which every loop reaches its interval. It considers the delays of the
            board's part if they are known. None if the design was not checked, or if memory ports keep some loop from
            its interval at every clock.
    """

    target_mhz: float
    holds: bool = True
    held_mhz: float | None = None

    @property
    def mhz(self) -> float:
        """The clock in MHz of the reported rate: the target, or a lower clock at which every loop reaches its II."""
        return self.target_mhz if self.holds or self.held_mhz is None else min(self.held_mhz, self.target_mhz)

    @property
    def source(self) -> str:
        """The words after the clock in a report: "target", or why another clock is used."""
        if self.holds:
            return "target"
        if self.held_mhz is None:
            return "target, but the loops do not reach their intervals at any clock"
        return f"derived: the loops do not reach their intervals at the target of {self.target_mhz:g} MHz"

    def rate(self, at_target: float) -> float | None:
        """Return the frames per second at ``mhz``; None if some loop misses its II at every clock.

        Args:
            at_target: The frames per second at the target clock.
        """
        return None if not self.holds and self.held_mhz is None else at_target * self.mhz / self.target_mhz

    def text(self, at_target: float) -> str:
        """Return words such as "100.0 frames/s at 300 MHz (target)", or why there is no frame rate."""
        rate = self.rate(at_target)
        if rate is None:
            return (
                f"no frame rate at {self.target_mhz:g} MHz (target): memory ports keep loops from their intervals at "
                "every clock; systolic simulate --cycles --derived reports the cycles"
            )
        return f"{rate:.1f} frames/s at {self.mhz:g} MHz ({self.source})"
