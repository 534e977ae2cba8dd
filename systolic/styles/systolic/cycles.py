"""A traced execution of a systolic design, solved for clocks, memories and FIFO depths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boards.progress import Progress, silent
from host.vision.picture import Pixels
from systolic.report.tables import table
from systolic.styles.style import DesignTrace
from systolic.styles.systolic.measure import SystolicReport, measure, trace_design
from systolic.styles.systolic.simulate import SystolicDesign
from systolic.trace.advice import Advice
from systolic.trace.report import FIFO_HEAD, fifo_rows, fifo_values
from systolic.trace.timing import MemoryTiming


@dataclass(frozen=True, eq=False, repr=False)
class SystolicTrace(DesignTrace):
    """One start of a systolic design, recorded."""

    design: SystolicDesign

    @staticmethod
    def of(design: SystolicDesign, picture: Pixels, tell: Progress = silent) -> SystolicTrace:
        """Execute one batch of ``picture``, uint8 [channels, height, width]."""
        return SystolicTrace(design, trace_design(design, picture, tell))

    def measured(
        self, memory: MemoryTiming, clock_mhz: float | None, depths: Mapping[str, int] | None
    ) -> SystolicReport:
        """Return the cycles, layer by layer."""
        return measure(self.design, self.trace, memory, clock_mhz, depths)

    def least_depths(self, memory: MemoryTiming, clock_mhz: float) -> SystolicFifos:
        """Return the depths that the solver advises."""
        return SystolicFifos(self.trace.advise(memory, clock_mhz))


@dataclass(frozen=True, eq=False)
class SystolicFifos:
    """The FIFO depths of a systolic design, of which one per name serves all passes."""

    advice: Advice

    def values(self) -> dict[str, Any]:
        """Return the object of ``fifo_values``, with the curve."""
        found = self.advice
        return fifo_values(found.depths, found.declared, found.cycles, found.best_cycles, curve=found.curve)

    def text(self) -> str:
        """Return a table for a terminal."""
        return table(FIFO_HEAD, fifo_rows(self.advice.depths, self.advice.declared))

    __repr__ = text

    def _repr_html_(self) -> str:
        return self.advice._repr_html_()
