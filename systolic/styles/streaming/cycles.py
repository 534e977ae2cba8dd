"""A traced execution of a pipeline, solved for clocks, memories and FIFO depths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boards.progress import Progress, silent
from host.vision.picture import Pixels
from systolic.report.page import html_table
from systolic.report.tables import table
from systolic.styles.streaming.fifos import Fifos, estimated_fifos, size_fifos
from systolic.styles.streaming.measure import StreamingReport, measure, trace_design
from systolic.styles.streaming.simulate import StreamingDesign
from systolic.styles.style import DesignTrace
from systolic.trace.report import FIFO_HEAD, board_memory, fifo_rows, fifo_values
from systolic.trace.timing import MemoryTiming


@dataclass(frozen=True, eq=False, repr=False)
class StreamingTrace(DesignTrace):
    """One frame of a pipeline, and a few in a row, recorded."""

    design: StreamingDesign

    @staticmethod
    def of(design: StreamingDesign, picture: Pixels, tell: Progress = silent) -> StreamingTrace:
        """Execute frames of ``picture``, uint8 [channels, height, width]."""
        return StreamingTrace(design, trace_design(design, picture, tell))

    def measured(
        self, memory: MemoryTiming, clock_mhz: float | None, depths: Mapping[str, int] | None
    ) -> StreamingReport:
        """Return the cycles, block by block."""
        return measure(self.design, self.trace, memory, clock_mhz, depths)

    def least_depths(self, memory: MemoryTiming, clock_mhz: float) -> StreamingFifos:
        """Return the least depths next to the declared ones."""
        return StreamingFifos(size_fifos(self.trace, memory, clock_mhz, self.design.fifo_bits), self.declared)

    @property
    def declared(self) -> dict[str, int]:
        """The depths that the design declares, by stream."""
        return {fifo.name: fifo.depth for fifo in self.design.manifest.fifos}

    def declared_fifos(self) -> Fifos:
        """Return the FIFOs of the design, at its clock; DeadlockError if they are too shallow."""
        clock, bits = self.design.manifest.clock_mhz, self.design.fifo_bits
        return estimated_fifos(self.trace, board_memory(self.design), clock, bits, self.declared)


@dataclass(frozen=True, eq=False)
class StreamingFifos:
    """The FIFO depths of a pipeline.

    Attributes:
        least: The depths that lose nothing, and what they take.
        declared: The depths of the design, by stream.
    """

    least: Fifos
    declared: Mapping[str, int]

    def values(self) -> dict[str, Any]:
        """Return the object of ``fifo_values``, with widths, bits and the latency."""
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
        """Return a table for a terminal."""
        return table(FIFO_HEAD, fifo_rows(self.least.depths, self.declared))

    __repr__ = text

    def _repr_html_(self) -> str:
        return html_table(FIFO_HEAD, fifo_rows(self.least.depths, self.declared))
