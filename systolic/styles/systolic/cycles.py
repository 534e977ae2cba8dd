"""A traced execution of a systolic design, solved for clocks, memories and FIFO depths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boards.progress import Progress
from host.vision.picture import Pixels
from systolic.report.tables import Cell, table
from systolic.styles.systolic.measure import SystolicReport, measure, trace_design
from systolic.styles.systolic.simulate import SystolicDesign
from systolic.trace.advice import Advice
from systolic.trace.report import board_memory, fifo_values
from systolic.trace.solver import Trace


@dataclass(frozen=True, eq=False)
class SystolicTrace:
    """One start of the design, recorded."""

    design: SystolicDesign
    trace: Trace

    @staticmethod
    def of(design: SystolicDesign, picture: Pixels, tell: Progress = lambda _: None) -> SystolicTrace:
        """Executes one batch of ``picture``, uint8 [channels, height, width]."""
        return SystolicTrace(design, trace_design(design, picture, tell))

    def __repr__(self) -> str:
        return f"<trace of {self.design.manifest.network} on {self.design.manifest.board}>"

    def report(
        self,
        clock_mhz: float | None = None,
        ddr_efficiency: float | None = None,
        depths: Mapping[str, int] | None = None,
        ddr_gbps: float | None = None,
    ) -> SystolicReport:
        """Cycles, layer by layer; the design's clock and memory where none are named."""
        return measure(self.design, self.trace, board_memory(self.design, ddr_efficiency, ddr_gbps), clock_mhz, depths)

    def fifos(
        self, clock_mhz: float | None = None, ddr_efficiency: float | None = None, ddr_gbps: float | None = None
    ) -> SystolicFifos:
        """The least FIFO depths that lose nothing."""
        clock = self.design.manifest.clock_mhz if clock_mhz is None else clock_mhz
        return SystolicFifos(self.trace.advise(board_memory(self.design, ddr_efficiency, ddr_gbps), clock))


@dataclass(frozen=True, eq=False)
class SystolicFifos:
    """advice: one depth a name serves all passes."""

    advice: Advice

    def values(self) -> dict[str, Any]:
        """The object of ``fifo_values``, with the curve."""
        found = self.advice
        return fifo_values(found.depths, found.declared, found.cycles, found.best_cycles, curve=found.curve)

    def text(self) -> str:
        """A table for a terminal."""
        declared = self.advice.declared
        rows: list[list[Cell]] = [[name, declared[name], least] for name, least in self.advice.depths.items()]
        return table(("stream", "declared depth", "least that loses nothing"), rows)

    __repr__ = text

    def _repr_html_(self) -> str:
        return self.advice._repr_html_()
