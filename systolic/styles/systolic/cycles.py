"""A traced execution of a systolic design, whose cycles are computed for any clock, memory and FIFO depths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boards.progress import Progress, silent
from host.vision.picture import Pixels
from systolic.styles.style import DesignTrace
from systolic.styles.systolic.measure import SystolicReport, cycle_report, trace_design
from systolic.styles.systolic.simulate import SystolicDesign
from systolic.trace.report import FifoDepths
from systolic.trace.timing import MemoryTiming


@dataclass(frozen=True, eq=False, repr=False)
class SystolicTrace(DesignTrace):
    """The recorded reads and writes of one start of a systolic design."""

    design: SystolicDesign

    @staticmethod
    def of(design: SystolicDesign, picture: Pixels, tell: Progress = silent) -> SystolicTrace:
        """Execute and record one batch of copies of ``picture``, uint8 of shape (channels, height, width)."""
        return SystolicTrace(design, trace_design(design, picture, tell))

    def measured(
        self, memory: MemoryTiming, clock_mhz: float | None, depths: Mapping[str, int] | None
    ) -> SystolicReport:
        """Return the cycles of each layer."""
        return cycle_report(self.design, self.trace, memory, clock_mhz, depths)

    def least_depths(self, memory: MemoryTiming, clock_mhz: float) -> FifoDepths:
        """Return the FIFO depths that the solver advises. Each FIFO has one depth, which is enough for all passes."""
        found = self.trace.advise(memory, clock_mhz)
        return FifoDepths(
            least=found.depths,
            declared=found.declared,
            cycles=found.cycles,
            best_cycles=found.best_cycles,
            curve=found.curve,
        )
