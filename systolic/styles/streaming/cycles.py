"""A traced execution of a pipeline, solved for clocks, memories and FIFO depths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boards.progress import Progress
from host.vision.picture import Pixels
from systolic.report.page import html_table
from systolic.report.tables import Cell, table
from systolic.styles.streaming.fifos import Fifos, estimated_fifos, size_fifos
from systolic.styles.streaming.measure import StreamingReport, measure, trace_design
from systolic.styles.streaming.simulate import StreamingDesign
from systolic.trace.report import board_memory, fifo_values
from systolic.trace.solver import Trace


@dataclass(frozen=True, eq=False)
class StreamingTrace:
    """One frame, and a few in a row, recorded."""

    design: StreamingDesign
    trace: Trace

    @staticmethod
    def of(design: StreamingDesign, picture: Pixels, tell: Progress = lambda _: None) -> StreamingTrace:
        """Executes frames of ``picture``, uint8 [channels, height, width]."""
        return StreamingTrace(design, trace_design(design, picture, tell))

    def __repr__(self) -> str:
        return f"<trace of {self.design.manifest.network} on {self.design.manifest.board}>"

    def report(
        self,
        clock_mhz: float | None = None,
        ddr_efficiency: float | None = None,
        depths: Mapping[str, int] | None = None,
        ddr_gbps: float | None = None,
    ) -> StreamingReport:
        """Cycles, block by block; the design's clock and memory where none are named."""
        return measure(self.design, self.trace, board_memory(self.design, ddr_efficiency, ddr_gbps), clock_mhz, depths)

    def fifos(
        self, clock_mhz: float | None = None, ddr_efficiency: float | None = None, ddr_gbps: float | None = None
    ) -> StreamingFifos:
        """The least FIFO depths that lose nothing."""
        declared = {fifo.name: fifo.depth for fifo in self.design.manifest.fifos}
        return StreamingFifos(self.least_fifos(clock_mhz, ddr_efficiency, ddr_gbps), declared)

    def least_fifos(
        self, clock_mhz: float | None = None, ddr_efficiency: float | None = None, ddr_gbps: float | None = None
    ) -> Fifos:
        """The same without what is declared."""
        clock = self.design.manifest.clock_mhz if clock_mhz is None else clock_mhz
        return size_fifos(self.trace, board_memory(self.design, ddr_efficiency, ddr_gbps), clock, self.design.fifo_bits)

    def declared_fifos(self) -> Fifos:
        """Those of the design, at its clock. DeadlockError where they are too shallow."""
        declared = {fifo.name: fifo.depth for fifo in self.design.manifest.fifos}
        clock, bits = self.design.manifest.clock_mhz, self.design.fifo_bits
        return estimated_fifos(self.trace, board_memory(self.design), clock, bits, declared)


@dataclass(frozen=True, eq=False)
class StreamingFifos:
    """least: the depths that lose nothing, and what they take. declared: the design's own, by stream."""

    least: Fifos
    declared: Mapping[str, int]

    def values(self) -> dict[str, Any]:
        """The object of ``fifo_values``, with widths, bits and the latency."""
        found = self.least
        return fifo_values(
            found.depths,
            self.declared,
            found.interval,
            found.best_interval,
            latency_cycles=found.latency,
            widths=found.widths,
            bits=found.bits,
            fixed_bits=found.fixed_bits,
        )

    def text(self) -> str:
        """A table for a terminal."""
        return table(HEAD, self._rows())

    __repr__ = text

    def _rows(self) -> list[list[Cell]]:
        return [[name, self.declared[name], depth] for name, depth in self.least.depths.items()]

    def _repr_html_(self) -> str:
        return html_table(HEAD, self._rows())


HEAD = ("stream", "declared depth", "least that loses nothing")
