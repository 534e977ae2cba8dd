"""The clock at which reports state a frame rate.

It is the target clock, unless a check of the generated sources has found that their loops do not reach their initiation
intervals at the target. Then it is the highest clock at which they do. A clock that the timing model of an engine in
SystemVerilog does not reach stays the target, and the reports say so next to it.
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
        p50_mhz: The highest clock in MHz that the timing model of an engine in SystemVerilog gives at the median of its
            error, before placement. None if the paths were not modelled.
        p90_mhz: The same at the 90th percentile of its error.
    """

    target_mhz: float
    holds: bool = True
    held_mhz: float | None = None
    p50_mhz: float | None = None
    p90_mhz: float | None = None

    @property
    def link(self) -> str:
        """The origin of ``mhz`` in a word: "target", "derived" from C++, or "modelled" if P90 reaches the target."""
        if not self.holds and self.held_mhz is not None:
            return "derived"
        return "modelled" if self.p90_mhz is not None and self.p90_mhz >= self.target_mhz else "target"

    @property
    def mhz(self) -> float:
        """The clock in MHz of the reported rate: the target, or a lower clock at which every loop reaches its II."""
        return self.target_mhz if self.holds or self.held_mhz is None else min(self.held_mhz, self.target_mhz)

    @property
    def source(self) -> str:
        """The words after the clock in a report: "target", or why another clock is used."""
        if self.holds and self.p90_mhz is not None and self.p50_mhz is not None:
            model = f"the timing model, whose P50 is {self.p50_mhz:.0f} and P90 {self.p90_mhz:.0f} MHz"
            return f"target, {'reached' if self.link == 'modelled' else 'not reached'} by {model}"
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
        return f"{rate:.1f} frames/s at {self.mhz:g} MHz ({self.source}){self.p90_sentence(rate)}"

    def p90_sentence(self, at_target: float) -> str:
        """Return words for the rate at P90 if the timing model does not reach the target, else ""."""
        if self.p90_mhz is None or self.link == "modelled":
            return ""
        return f"; {at_target * self.p90_mhz / self.target_mhz:.1f} frames/s at {self.p90_mhz:.0f} MHz (modelled, P90)"
