"""A traced execution of a pipeline, whose cycles are computed for any clock, memory and FIFO depths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boards.progress import Progress, silent
from host.vision.picture import Pixels
from systolic.styles.streaming.fifos import PipelineFifos, estimated_fifos, size_fifos
from systolic.styles.streaming.measure import StreamingReport, cycle_report, trace_design
from systolic.styles.streaming.simulate import StreamingDesign
from systolic.styles.style import DesignTrace
from systolic.trace.report import FifoDepths, board_memory
from systolic.trace.timing import MemoryTiming


@dataclass(frozen=True, eq=False, repr=False)
class StreamingTrace(DesignTrace):
    """The recorded reads and writes of a pipeline, executed with one frame and with several frames in a row."""

    design: StreamingDesign

    @staticmethod
    def of(design: StreamingDesign, picture: Pixels, progress: Progress = silent) -> StreamingTrace:
        """Execute a pipeline on copies of ``picture``, uint8 (channels, height, width), and record its accesses."""
        return StreamingTrace(design, trace_design(design, picture, progress))

    def measured(
        self, memory: MemoryTiming, clock_mhz: float | None, depths: Mapping[str, int] | None
    ) -> StreamingReport:
        """Return the cycles of each block, solved from the trace for this memory, clock and these FIFO depths."""
        return cycle_report(self.design, self.trace, memory, clock_mhz, depths)

    def least_depths(self, memory: MemoryTiming, clock_mhz: float) -> FifoDepths:
        """Return the least FIFO depths that lose no throughput, next to the design's declared depths."""
        found = self.sized_fifos(memory, clock_mhz)
        return FifoDepths(
            least=found.depths,
            declared=self.declared,
            cycles=found.interval,
            best_cycles=found.best_interval,
            latency_cycles=found.latency,
            widths=found.widths,
            bits=found.bits,
            fixed_bits=found.fixed_bits,
        )

    def sized_fifos(self, memory: MemoryTiming, clock_mhz: float) -> PipelineFifos:
        """Return all FIFOs with the least depths that lose no throughput. Raises the errors of ``size_fifos``."""
        return size_fifos(self.trace, memory, clock_mhz, self.design.fifo_bits)

    @property
    def declared(self) -> dict[str, int]:
        """The FIFO depths in words that the design declares, by the name of the stream."""
        return {fifo.name: fifo.depth for fifo in self.design.manifest.fifos}

    def declared_fifos(self) -> PipelineFifos:
        """Return all FIFOs with the depths that the design declares, and the traced cycles with these depths.

        Raises:
            DeadlockError: The pipeline deadlocks with these depths.
        """
        clock, bits = self.design.manifest.clock_mhz, self.design.fifo_bits
        return estimated_fifos(self.trace, board_memory(self.design), clock, bits, self.declared)
