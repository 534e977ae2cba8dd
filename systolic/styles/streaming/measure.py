"""The traced cycles of a generated pipeline: its latency for one frame, and the interval between frames in a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boards.errors import UnsupportedError
from boards.progress import Progress, ProgressStep, silent
from host.contract.libraries import StreamingLibrary
from scheduler.hardware.primitives import MIN_FIFO_DEPTH
from systolic.checking.record import stored_clock
from systolic.execution.build import Variant, built
from systolic.report.clock import RateClock
from systolic.report.tables import Cell
from systolic.styles.streaming.dma import with_dma
from systolic.styles.streaming.simulate import StreamingDesign, pack_picture
from systolic.trace.depths import greatest
from systolic.trace.report import CycleReport, LayerTime, ReportTable, board_memory, cycle_values, process_values
from systolic.trace.solver import MemoryTiming, Trace
from systolic.trace.timeline import draw
from systolic.trace.timing import RegionTiming, TraceTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRAMES = (3, 5, 9)
"""The numbers of frames in a row that are tried, until the last frame follows at the steady rate.

The first frames fill the pipeline. In a pipeline with branches, the next frames may follow faster or slower than later
frames.
"""

STEADY = 0.001
"""The share by which the interval may exceed the work of the slowest process and still count as steady."""

BLOCK_HEAD = ("block", "cycles", "modelled", "busy %", "MACs", "waits for input", "for space", "folding")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StreamingReport(CycleReport):
    """Traced cycles of a pipeline. Its ``layers`` are the blocks, with the cycles per frame in which each works.

    Attributes:
        interval: Cycles between two frames in the steady state, in which the slowest stream passes one frame
            (RegionTiming). The output of a frame may follow sooner if the frame before it was late.
        latency: Cycles from the first frame's input to its output.
        timing: The solved trace of all traced frames.
    """

    interval: int
    latency: int

    @property
    def cycles(self) -> int:
        """The cycles per frame: the interval between two frames in the steady state."""
        return self.interval

    @property
    def latency_cycles(self) -> int:
        """The cycles from the first frame's input to its output."""
        return self.latency

    @property
    def frames(self) -> int:
        """The number of frames that were traced in a row."""
        return len(self.timing.regions[0].frame_ends)

    @property
    def frame_ends(self) -> dict[int, str]:
        """{cycle of a frame's last output: "frame N"}, for the marks of a timeline."""
        (region,) = self.timing.regions
        return {end: f"frame {number}" for number, end in enumerate(region.frame_ends, 1)}

    @property
    def pass_cycles(self) -> list[float]:
        """[cycles per frame], for a simulated board: a pipeline has one pass per frame."""
        return [self.interval]

    @property
    def title(self) -> str:
        """The title of the timeline: the network, the cycles per frame and the frame rate."""
        return f"{self.network}: a frame every {self.interval:,} cycles traced, {self.rate}"

    def values(self) -> dict[str, Any]:
        """Return the traced cycles as the JSON object of ``cycle_values``."""
        (region,) = self.timing.regions
        processes = [process_values(process, 0) for process in region.processes]
        return cycle_values(self, "traced", self.timing.memory, processes=processes)

    def tables(self) -> list[ReportTable]:
        """Return the table with the traced and modelled cycles of each block."""
        processes = {process.name: process for process in self.timing.regions[0].processes}
        rows: list[list[Cell]] = [
            [
                block.name,
                block.cycles,
                block.modelled_cycles,
                100 * block.cycles / self.interval,
                block.macs,
                processes[block.name].wait_input // self.frames,
                processes[block.name].wait_space // self.frames,
                block.folding,
            ]
            for block in self.layers
        ]
        return [(BLOCK_HEAD, rows)]

    @property
    def summary(self) -> str:
        """A sentence with the traced frame rate, the latency and the slowest block."""
        return (
            f"{self.network}: a frame every {self.interval:,} cycles, {self.rate}, latency {self.latency:,} cycles; "
            f"bound by {self.slowest.name} (cycles traced on the generated code over {self.frames} frames; modelled: "
            "closed formulas)"
        )

    def timeline(self, layer: str | None = None) -> Figure:
        """Draw one lane per process over the traced frames. Raises UnsupportedError if ``layer`` is given."""
        check_timeline(layer)
        return draw(self.timing, title=self.title, marks=self.frame_ends)


def check_timeline(layer: str | None) -> None:
    """Raise UnsupportedError if ``layer`` names a layer: a pipeline works on all layers at once."""
    if layer is not None:
        raise UnsupportedError(
            f"a timeline of --layer {layer} alone",
            "a pipeline works on all layers at once, in one region of the trace",
            remedy="remove --layer: the timeline has a lane for every block",
        )


def trace_design(design: StreamingDesign, picture: npt.NDArray[np.uint8], progress: Progress = silent) -> Trace:
    """Execute one frame and then several frames in a row, and record the cycle of every read and write.

    The number of frames in a row is the first of FRAMES at which the last frame follows at the steady rate, or the
    greatest of FRAMES.

    Args:
        design: The design.
        picture: The picture of every frame, uint8 of shape (channels, height, width).
    """
    library = built(lambda path: StreamingLibrary(path, design.manifest), design.path, Variant(trace=True), progress)
    packet = pack_picture(design, picture)
    for frames in FRAMES:
        trace = Trace(library.handle, frames, progress, by_depth=True)
        trace.begin()
        for count in (1, frames):  # each execution is a region of the trace
            progress(ProgressStep(f"tracing {frames} frames in a row", count > 1, 1 + frames))
            library.run(design.images, np.repeat(packet[None], count, axis=0))
        trace.end()
        if frames == FRAMES[-1] or _is_steady(design, trace):
            break
    return trace


def _is_steady(design: StreamingDesign, trace: Trace) -> bool:
    """Return whether the last traced frame follows at the rate of the slowest process, with unbounded FIFOs.

    No later frame can follow faster than that.
    """
    solved = trace.solve(board_memory(design), design.manifest.clock_mhz, unbounded(trace, design.fifo_bits))
    *_, region = (region for region in solved.regions if not region.top)
    work = max(process.busy + process.wait_memory for process in region.processes) / trace.frames
    return region.interval <= (1 + STEADY) * work


def unbounded(trace: Trace, names: Collection[str]) -> dict[str, int]:
    """Return {stream: depth in words} of the named FIFOs, so deep that the trace never fills them."""
    streams = [stream for region in trace.regions for stream in region.streams if stream.name in names]
    return greatest({stream.name: max(MIN_FIFO_DEPTH, stream.elements)} for stream in streams)


def cycle_report(
    design: StreamingDesign,
    trace: Trace,
    memory: MemoryTiming,
    clock_mhz: float | None = None,
    depths: Mapping[str, int] | None = None,
) -> StreamingReport:
    """Return the cycles of each block, solved from the trace for a memory, a clock and FIFO depths.

    Args:
        design: The design.
        trace: The recorded executions of one frame and of several.
        memory: The timing of the memory.
        clock_mhz: The clock. None means the design's target clock, or the clock that ``systolic check`` found for its
            sources.
        depths: FIFO depths in words, by the name of the stream. None means the design's depths.
    """
    clock = stored_clock(design.path, design.manifest.clock_mhz) if clock_mhz is None else RateClock(clock_mhz)
    timing = trace.solve(memory, clock.mhz, depths, timeline=True)
    single, several = (region for region in timing.regions if not region.top)
    packets = design.manifest.packet_in, design.manifest.packet_out
    dsp = design.manifest.estimate.dsp
    return StreamingReport(
        network=design.manifest.network,
        clock_mhz=clock.mhz,
        clock_link=clock.link,
        clock_source=clock.source,
        dsp=dsp,
        macs_per_cycle=2 * max(1, dsp),
        interval=several.interval,
        latency=single.total,
        layers=_blocks(design, several, trace.frames),
        timing=TraceTiming(clock.mhz, memory, (with_dma(several, *packets, trace.frames),)),
    )


def _blocks(design: StreamingDesign, region: RegionTiming, frames: int) -> tuple[LayerTime, ...]:
    busy = {process.name: -(-process.busy // frames) for process in region.processes}
    times = []
    for block in design.manifest.blocks:
        cycles, peak = busy[block.name], block.macs_per_cycle
        efficiency = block.macs / (peak * cycles) if peak else 0.0
        modelled = block.modelled_cycles
        times.append(LayerTime(block.name, cycles, block.macs, efficiency, modelled, folding=block.folding))
    return tuple(times)
