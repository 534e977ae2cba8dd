"""Time of a generated pipeline: traced executions of one frame and of several, and what lies between the last two."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boards.errors import UnsupportedError
from boards.progress import Progress, ProgressStep, silent
from host.contract.libraries import StreamingLibrary
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from systolic.checking.record import kept
from systolic.execution.build import Variant, built
from systolic.report.tables import Cell, table
from systolic.styles.streaming.dma import with_dma
from systolic.styles.streaming.simulate import StreamingDesign, pack_picture
from systolic.trace.depths import greatest
from systolic.trace.report import LayerTime, board_memory, cycle_values, process_values, slowest
from systolic.trace.solver import MemoryTiming, Trace
from systolic.trace.timeline import draw
from systolic.trace.timing import RegionTiming, TraceTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRAMES = (3, 5, 9)
"""In one traced execution: the first count of these in which the last frame follows at the steady rate. The first
frames fill the pipeline; where it has branches, some more follow faster or slower than all later ones."""

STEADY = 0.001
"""Of the interval: what it may lie above the work of the slowest process, and be called steady."""


@dataclass(frozen=True, eq=False)
class StreamingReport:
    """cycles_per_frame: between two frames in the steady state, which is what the slowest stream takes (RegionTiming):
    what leaves may follow sooner as long as an earlier frame was late. latency_cycles: of the first frame, in and out.

    timing: of all traced frames. layers: one a block; its cycles are those in which it works, a frame. clock_source:
    where the clock comes from.
    """

    network: str
    clock_mhz: float
    dsp: int
    cycles_per_frame: int
    latency_cycles: int
    layers: tuple[LayerTime, ...]
    timing: TraceTiming
    clock_source: str = "target"

    @property
    def frames_per_second(self) -> float:
        return self.clock_mhz * 1e6 / self.cycles_per_frame

    @property
    def dsp_efficiency(self) -> float:
        """MACs a frame / (2 · DSPs that multiply · cycles a frame); above 1 where a DSP does four, or LUTs multiply."""
        return sum(layer.macs for layer in self.layers) / (2 * max(1, self.dsp) * self.cycles_per_frame)

    @property
    def frames(self) -> int:
        """That were traced in a row."""
        return len(self.timing.regions[0].frame_ends)

    @property
    def slowest(self) -> LayerTime:
        return slowest(self.layers)

    @property
    def frame_ends(self) -> dict[int, str]:
        """Cycle of the timing in which each traced frame has left, and its name; for a timeline's marks."""
        (region,) = self.timing.regions
        return {end: f"frame {number}" for number, end in enumerate(region.frame_ends, 1)}

    @property
    def pass_cycles(self) -> list[float]:
        """A pipeline has one pass a frame: what lies between two frames."""
        return [self.cycles_per_frame]

    @property
    def title(self) -> str:
        """One line, for a timeline."""
        return (
            f"{self.network}: a frame every {self.cycles_per_frame:,} cycles traced, "
            f"{self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz ({self.clock_source})"
        )

    def values(self) -> dict[str, Any]:
        """The object of ``cycle_values``; a pipeline has one pass."""
        (region,) = self.timing.regions
        processes = [process_values(process, 0) for process in region.processes]
        return cycle_values(self, "traced", memory=self.timing.memory, processes=processes)

    def text(self) -> str:
        """A table for a terminal, a line a block."""
        processes = {process.name: process for process in self.timing.regions[0].processes}
        rows: list[list[Cell]] = [
            [
                block.name,
                block.cycles,
                block.modelled_cycles,
                100 * block.cycles / self.cycles_per_frame,
                block.macs,
                processes[block.name].wait_input // self.frames,
                processes[block.name].wait_space // self.frames,
                block.folding,
            ]
            for block in self.layers
        ]
        head = ("block", "cycles", "modelled", "busy %", "MACs", "waits for input", "for space", "folding")
        return (
            f"{table(head, rows)}\n\n{self.network}: a frame every {self.cycles_per_frame:,} cycles, "
            f"{self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz ({self.clock_source}), latency "
            f"{self.latency_cycles:,} cycles; bound by {self.slowest.name} (cycles traced on the generated code over "
            f"{self.frames} frames; modelled: closed formulas)"
        )

    __repr__ = text

    def timeline(self, layer: str | None = None) -> Figure:
        """Draw one lane per process over the traced frames; UnsupportedError for one layer alone."""
        check_timeline(layer)
        return draw(self.timing, title=self.title, marks=self.frame_ends)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(layer.name)}</td><td>{layer.cycles:,}</td><td>{layer.modelled_cycles:,}</td>"
            f"<td>{layer.macs:,}</td><td>{layer.cycles / self.cycles_per_frame:.1%}</td></tr>"
            for layer in self.layers
        )
        return (
            f"<p><b>{escape(self.network)}</b>: a frame every {self.cycles_per_frame:,} cycles, "
            f"{self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz ({self.clock_source}), latency "
            f"{self.latency_cycles:,} cycles; bound by {escape(self.slowest.name)} (cycles traced)</p>"
            f"<table><tr><th>block</th><th>cycles</th><th>modelled</th><th>MACs</th><th>busy</th></tr>{rows}</table>"
        )


def check_timeline(layer: str | None) -> None:
    """Raise UnsupportedError for one layer alone: a pipeline works on all of them at once."""
    if layer is not None:
        raise UnsupportedError(
            f"a timeline of --layer {layer} alone",
            "a pipeline works on all layers at once, in one region of the trace",
            remedy="leave --layer out and see every block's lane",
        )


def trace_design(design: StreamingDesign, picture: npt.NDArray[np.uint8], tell: Progress = silent) -> Trace:
    """Executes one frame, and several in a row, of one picture, uint8 [channels, height, width], with every process's
    clock recorded: so many that the last follows at the steady rate, FRAMES at most."""
    library = built(lambda path: StreamingLibrary(path, design.manifest), design.path, Variant(trace=True), tell)
    packet = pack_picture(design, picture)
    for frames in FRAMES:
        trace = Trace(library.handle, frames, tell, by_depth=True)
        trace.begin()
        for count in (1, frames):  # two regions, one after the other
            tell(ProgressStep(f"tracing {frames} frames in a row", count > 1, 1 + frames))
            library.run(design.images, np.repeat(packet[None], count, axis=0))
        trace.end()
        if frames == FRAMES[-1] or _is_steady(design, trace):
            break
    return trace


def _is_steady(design: StreamingDesign, trace: Trace) -> bool:
    """Whether, with unbounded FIFOs, the last frame follows as fast as the slowest process works. No later one can be
    faster."""
    solved = trace.solve(board_memory(design), design.manifest.clock_mhz, unbounded(trace, design.fifo_bits))
    *_, region = (region for region in solved.regions if not region.top)
    work = max(process.busy + process.wait_memory for process in region.processes) / trace.frames
    return region.interval <= (1 + STEADY) * work


def unbounded(trace: Trace, names: Collection[str]) -> dict[str, int]:
    """Depths that no FIFO of these names ever fills, in no region."""
    streams = [stream for region in trace.regions for stream in region.streams if stream.name in names]
    return greatest({stream.name: max(LEAST_FIFO_DEPTH, stream.elements)} for stream in streams)


def measure(
    design: StreamingDesign,
    trace: Trace,
    memory: MemoryTiming,
    clock_mhz: float | None = None,
    depths: Mapping[str, int] | None = None,
) -> StreamingReport:
    """Solves the trace: no execution. clock_mhz, depths: other than the design's own, which is its target, or what a
    check found that its sources hold."""
    found = kept(design.path, design.manifest.clock_mhz)
    clock, source = (found.mhz, found.source) if clock_mhz is None else (clock_mhz, "target")
    timing = trace.solve(memory, clock, depths, timeline=True)
    single, several = (region for region in timing.regions if not region.top)
    packets = design.manifest.packet_in, design.manifest.packet_out
    return StreamingReport(
        network=design.manifest.network,
        clock_mhz=clock,
        dsp=design.manifest.estimate.dsp,
        cycles_per_frame=several.interval,
        latency_cycles=single.total,
        layers=_blocks(design, several, trace.frames),
        timing=TraceTiming(clock, memory, (with_dma(several, *packets, trace.frames),)),
        clock_source=source,
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
