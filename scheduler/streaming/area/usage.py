"""What a piece of a folding uses of a board."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.hardware.arithmetic import ceil_div


@dataclass(frozen=True)
class StreamingUsage:
    """Resources. lut: all of them, those that are memory included; lutram: these alone; bram18: halves of a BRAM36.

    ddr_bits: weights that come from DDR in a frame.
    """

    lut: int = 0
    lutram: int = 0
    dsp: int = 0
    bram18: int = 0
    uram: int = 0
    ddr_bits: int = 0

    def __add__(self, other: StreamingUsage) -> StreamingUsage:
        return StreamingUsage(
            self.lut + other.lut,
            self.lutram + other.lutram,
            self.dsp + other.dsp,
            self.bram18 + other.bram18,
            self.uram + other.uram,
            self.ddr_bits + other.ddr_bits,
        )

    def times(self, count: int) -> StreamingUsage:
        """Of ``count`` such pieces."""
        return StreamingUsage(
            self.lut * count,
            self.lutram * count,
            self.dsp * count,
            self.bram18 * count,
            self.uram * count,
            self.ddr_bits * count,
        )

    @property
    def bram36(self) -> int:
        return ceil_div(self.bram18, 2)


NOTHING = StreamingUsage()


def sum_of(usages: Iterable[StreamingUsage]) -> StreamingUsage:
    """Of all of them together."""
    return sum(usages, NOTHING)
