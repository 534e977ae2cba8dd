"""A traced execution of a design of either style, solved for clocks, memories and FIFO depths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from systolic.styles.style import CycleReport, OpenedDesign, Told
from systolic.trace.report import board_memory
from systolic.trace.solver import Trace
from systolic.trace.timing import Memory

DesignT = TypeVar("DesignT", bound=OpenedDesign)
ReportT = TypeVar("ReportT", bound=CycleReport)


@dataclass(frozen=True, eq=False)
class TracedDesign(ABC, Generic[DesignT, ReportT]):
    """One traced execution. Clock and memory are the design's own where they are None.

    Attributes:
        design: The design that was executed.
        trace: When each of its processes read and wrote.
    """

    design: DesignT
    trace: Trace

    def __repr__(self) -> str:
        return f"<trace of {self.design.manifest.network} on {self.design.manifest.board}>"

    def report(
        self,
        clock_mhz: float | None = None,
        ddr_efficiency: float | None = None,
        depths: Mapping[str, int] | None = None,
        ddr_gbps: float | None = None,
    ) -> ReportT:
        """Return the cycles, layer by layer or block by block. depths: of FIFOs, by stream."""
        return self.measured(board_memory(self.design, ddr_efficiency, ddr_gbps), clock_mhz, depths)

    def fifos(
        self, clock_mhz: float | None = None, ddr_efficiency: float | None = None, ddr_gbps: float | None = None
    ) -> Told:
        """Return the least FIFO depths that lose nothing."""
        clock = self.design.manifest.clock_mhz if clock_mhz is None else clock_mhz
        return self.least_depths(board_memory(self.design, ddr_efficiency, ddr_gbps), clock)

    @abstractmethod
    def measured(self, memory: Memory, clock_mhz: float | None, depths: Mapping[str, int] | None) -> ReportT:
        """Return ``report`` with a memory."""

    @abstractmethod
    def least_depths(self, memory: Memory, clock_mhz: float) -> Told:
        """Return ``fifos`` with a memory, at a clock."""
