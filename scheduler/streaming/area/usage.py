"""The board resources of a part of a folding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.hardware.arithmetic import ceil_div


@dataclass(frozen=True)
class StreamingUsage:
    """The amount of each board resource that a part of a streaming design takes.

    Attributes:
        lut: All LUTs, including LUTs used as memory.
        lutram: The LUTs used as memory.
        dsp: The DSPs.
        bram18: The BRAM18s. A BRAM36 is two of them.
        uram: The URAMs.
        ddr_bits: The bits of weights read from DDR per frame.
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
        """Return ``count`` times these resource amounts."""
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
    """Return the resource amounts ``usages``, added up per resource."""
    return sum(usages, NOTHING)
