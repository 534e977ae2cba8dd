"""Time of a generated pipeline: traced executions of one frame and of three, and what lies between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from host.contract.libraries import StreamingLibrary
from systolic.execution.build import Variant, build
from systolic.styles.streaming.simulate import StreamingDesign, pack_picture
from systolic.trace.report import LayerTime
from systolic.trace.solver import Memory, Trace
from systolic.trace.timing import RegionTiming, Timing

FRAMES = 3
"""In one traced execution: the first fills the pipeline, the others follow at its steady rate."""


@dataclass(frozen=True, eq=False)
class StreamingReport:
    """cycles_per_frame: between two frames in the steady state. latency_cycles: of the first frame, in and out.

    timing: of FRAMES frames. layers: one a block; its cycles are those in which it works, a frame.
    """

    network: str
    clock_mhz: float
    dsp: int
    cycles_per_frame: int
    latency_cycles: int
    layers: tuple[LayerTime, ...]
    timing: Timing

    @property
    def frames_per_second(self) -> float:
        return self.clock_mhz * 1e6 / self.cycles_per_frame

    @property
    def dsp_efficiency(self) -> float:
        """MACs a frame / (2 · DSPs that multiply · cycles a frame); above 1 where a DSP does four, or LUTs multiply."""
        return sum(layer.macs for layer in self.layers) / (2 * max(1, self.dsp) * self.cycles_per_frame)

    @property
    def slowest(self) -> LayerTime:
        return max(self.layers, key=lambda layer: layer.cycles)

    @property
    def frame_ends(self) -> dict[int, str]:
        """Cycle of the timing in which each traced frame has left, and its name; for a timeline's marks."""
        ends = (self.latency_cycles + number * self.cycles_per_frame for number in range(FRAMES))
        return {end: f"frame {number}" for number, end in enumerate(ends, 1)}

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(one.name)}</td><td>{one.cycles:,}</td><td>{one.modelled_cycles:,}</td>"
            f"<td>{one.macs:,}</td><td>{one.cycles / self.cycles_per_frame:.1%}</td></tr>"
            for one in self.layers
        )
        return (
            f"<p><b>{escape(self.network)}</b>: a frame every {self.cycles_per_frame:,} cycles, "
            f"{self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz (target), latency "
            f"{self.latency_cycles:,} cycles; bound by {escape(self.slowest.name)} (cycles traced)</p>"
            f"<table><tr><th>block</th><th>cycles</th><th>modelled</th><th>MACs</th><th>busy</th></tr>{rows}</table>"
        )


def trace_pipeline(
    pipeline: StreamingDesign, picture: npt.NDArray[np.uint8], tell: Callable[[str], None] = lambda _: None
) -> Trace:
    """Executes FRAMES frames of one picture, uint8 [channels, height, width], with every process's clock recorded."""
    tell("compiling (native-trace)")
    library = StreamingLibrary(build(pipeline.path, Variant(trace=True)), pipeline.manifest)
    packet = pack_picture(pipeline, picture)
    tell("tracing")
    trace = Trace(library.handle)
    trace.begin()
    for frames in (1, FRAMES):  # two regions, one after the other
        library.run(pipeline.images, np.repeat(packet[None], frames, axis=0))
    trace.end()
    return trace


def measure_pipeline(
    pipeline: StreamingDesign,
    trace: Trace,
    memory: Memory,
    clock_mhz: float | None = None,
    depths: Mapping[str, int] | None = None,
) -> StreamingReport:
    """Solves the trace: no execution. clock_mhz, depths: other than the design's own."""
    clock = pipeline.manifest.clock_mhz if clock_mhz is None else clock_mhz
    timing = trace.solve(memory, clock, depths, timeline=True)
    first, more = (region for region in timing.regions if not region.top)
    interval = -(-(more.total - first.total) // (FRAMES - 1))
    return StreamingReport(
        network=pipeline.manifest.network,
        clock_mhz=clock,
        dsp=pipeline.manifest.estimate.dsp,
        cycles_per_frame=interval,
        latency_cycles=first.total,
        layers=_blocks(pipeline, more),
        timing=Timing(clock, memory, (more,)),
    )


def _blocks(pipeline: StreamingDesign, region: RegionTiming) -> tuple[LayerTime, ...]:
    busy = {process.name: -(-process.busy // FRAMES) for process in region.processes}
    times = []
    for block in pipeline.manifest.blocks:
        cycles, peak = busy[block.name], block.macs_per_cycle
        efficiency = block.macs / (peak * cycles) if peak else 0.0
        times.append(LayerTime(block.name, cycles, block.macs, efficiency, block.folding, block.modelled_cycles))
    return tuple(times)
