"""Time of the generated code itself: one traced execution of a design, solved for its board's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from boards.errors import SimulationError
from host.contract.libraries import SystolicLibrary
from host.contract.systolic import SystolicLayer
from scheduler.systolic.array import Array
from systolic.execution.build import Variant, build
from systolic.styles.systolic.simulate import SystolicDesign, fill_batch
from systolic.trace.advice import Advice
from systolic.trace.report import LayerTime
from systolic.trace.solver import Memory, Trace
from systolic.trace.timing import RegionTiming, Timing


@dataclass(frozen=True, eq=False)
class SystolicReport:
    """Traced cycles of one frame, or of one batch of frames. dsp: of the multiply-accumulates, each of so many
    ``products`` a cycle; frames_per_second at the target clock.

    dsp_efficiency: MACs executed / (products · dsp · cycles).
    """

    network: str
    clock_mhz: float
    dsp: int
    products: int
    layers: tuple[LayerTime, ...]
    timing: Timing
    batch: int = 1

    @property
    def cycles_per_frame(self) -> int:
        return round(self.timing.cycles / self.batch)

    @property
    def frames_per_second(self) -> float:
        return self.clock_mhz * 1e6 * self.batch / self.timing.cycles

    @property
    def dsp_efficiency(self) -> float:
        return sum(layer.macs for layer in self.layers) / (self.products * self.dsp * self.timing.cycles)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(one.name)}</td><td>{one.cycles:,}</td><td>{one.modelled_cycles:,}</td>"
            f"<td>{one.macs:,}</td><td>{one.efficiency:.1%}</td><td>{escape(one.bound_by)}</td></tr>"
            for one in self.layers
        )
        return (
            f"<p><b>{escape(self.network)}</b>: {self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz "
            f"(target), {self.dsp_efficiency:.1%} of {self.products} MACs in each of {self.dsp} DSPs (traced)</p>"
            "<table><tr><th>layer</th><th>cycles</th><th>modelled</th><th>MACs</th><th>PEs busy</th>"
            f"<th>bound by</th></tr>{rows}</table>{self.timing._repr_html_()}"
        )


def trace_frame(
    folder: SystolicDesign, picture: npt.NDArray[np.uint8], tell: Callable[[str], None] = lambda _: None
) -> Trace:
    """Executes one frame, uint8 [channels, height, width], or a batch of it, with every process's clock recorded."""
    tell("compiling (native-trace)")
    library = SystolicLibrary(build(folder.path, Variant(trace=True)), folder.manifest)
    maps, _ = fill_batch(folder, (picture,))
    tell("tracing")
    trace = Trace(library.handle)
    trace.begin()
    library.run(folder.memory(maps), 0, folder.manifest.passes)
    trace.end()
    return trace


def measure(folder: SystolicDesign, trace: Trace, memory: Memory, clock_mhz: float | None = None) -> SystolicReport:
    """Solves the trace: no execution. clock_mhz: another than the design's target."""
    clock = folder.manifest.clock_mhz if clock_mhz is None else clock_mhz
    timing = trace.solve(memory, clock, timeline=True)
    regions = {region.label: region for region in timing.regions if not region.top}
    layers = tuple(_layer(folder, layer, regions) for layer in folder.manifest.layers)
    array = Array(**vars(folder.manifest.array))
    return SystolicReport(
        folder.manifest.network, clock, array.mac_dsps, array.packing.products, layers, timing, folder.manifest.batch
    )


def advise(trace: Trace, memory: Memory, clock_mhz: float) -> Advice:
    """Least FIFO depths that lose no throughput, and the curve of depth against cycles."""
    return trace.advise(memory, clock_mhz)


def _layer(folder: SystolicDesign, layer: SystolicLayer, regions: dict[int, RegionTiming]) -> LayerTime:
    try:
        own = [regions[index] for index in range(layer.first_pass, layer.last_pass + 1)]
    except KeyError as error:
        raise SimulationError(f"pass {error} of {layer.name} was not traced; generate the design again") from error
    peak = Array(**vars(folder.manifest.array)).macs_per_cycle
    cycles = sum(region.total for region in own)
    longest = max(own, key=lambda region: region.total)
    efficiency = layer.macs / (peak * cycles)
    return LayerTime(layer.name, cycles, layer.macs, efficiency, longest.bound_by, layer.modelled_cycles)
