"""A traced execution of the C++ array, whose cycles are computed for any clock, memory and FIFO depths."""

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
    """The recorded reads and writes of one start of the array's C++ engine, which computes a batch."""

    design: SystolicDesign

    @staticmethod
    def of(design: SystolicDesign, picture: Pixels, progress: Progress = silent) -> SystolicTrace:
        """Execute a batch of copies of ``picture``, uint8 (channels, height, width), and record its accesses."""
        return SystolicTrace(design, trace_design(design, picture, progress))

    def measured(
        self, memory: MemoryTiming, clock_mhz: float | None, depths: Mapping[str, int] | None
    ) -> SystolicReport:
        """Return the cycles of each layer, solved from the trace for this memory, clock and these FIFO depths."""
        return cycle_report(self.design, self.trace, memory, clock_mhz, depths)

    def least_depths(self, memory: MemoryTiming, clock_mhz: float) -> FifoDepths:
        """Return FIFO depths that cost at most 0.5 % of the cycles. A FIFO has one depth for all passes."""
        found = self.trace.advise(memory, clock_mhz)
        return FifoDepths(
            least=found.depths,
            declared=found.declared,
            cycles=found.cycles,
            best_cycles=found.best_cycles,
            curve=found.curve,
        )
