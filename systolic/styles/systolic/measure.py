"""Time of the generated code itself: one traced execution of a design, solved for its board's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, MismatchError, MissingValueError
from boards.progress import Progress, ProgressStep, silent
from host.contract.libraries import SystolicLibrary
from host.contract.systolic import SystolicLayer
from scheduler.systolic.array import Array
from systolic.checking.record import kept
from systolic.execution.build import Variant, built
from systolic.report.tables import Cell, table
from systolic.styles.systolic.simulate import SystolicDesign, fill_batch
from systolic.trace.report import LayerTime, cycle_values, process_values
from systolic.trace.solver import MemoryTiming, Trace
from systolic.trace.timeline import draw
from systolic.trace.timing import TraceTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WAITS_HEAD = ("process", "computes", "waits for input", "for space", "for DDR", "ended")


@dataclass(frozen=True, eq=False)
class SystolicReport:
    """Traced cycles of one frame, or of one batch of frames. dsp: of the multiply-accumulates, each of so many
    ``products`` a cycle; frames_per_second at the clock, of which clock_source tells where it comes from. passes: which
    of them are of which layer.

    dsp_efficiency: MACs executed / (products · dsp · cycles).
    """

    network: str
    clock_mhz: float
    dsp: int
    products: int
    layers: tuple[LayerTime, ...]
    timing: TraceTiming
    batch: int = 1
    passes: tuple[SystolicLayer, ...] = ()
    clock_source: str = "target"

    @property
    def cycles_per_frame(self) -> int:
        return round(self.timing.cycles / self.batch)

    @property
    def latency_cycles(self) -> int:
        """Of a frame, or of a whole batch of frames: all of them are there at its end."""
        return self.timing.cycles

    @property
    def frames_per_second(self) -> float:
        return self.clock_mhz * 1e6 * self.batch / self.timing.cycles

    @property
    def dsp_efficiency(self) -> float:
        return sum(layer.macs for layer in self.layers) / (self.products * self.dsp * self.timing.cycles)

    @property
    def pass_cycles(self) -> list[float]:
        """Cycles of each pass of the program, with an even share of the program's fetches; MismatchError if the trace
        does not hold all passes."""
        by_pass = {label: cycles for label, cycles in self.timing.cycles_by_label.items() if label >= 0}
        if sorted(by_pass) != list(range(len(by_pass))):
            expected = list(range(len(by_pass)))
            raise MismatchError("the passes that the trace holds", sorted(by_pass), expected, remedy="trace it again")
        fetch = (self.timing.cycles - sum(by_pass.values())) / len(by_pass)
        return [by_pass[number] + fetch for number in range(len(by_pass))]

    @property
    def title(self) -> str:
        """One line, for a timeline."""
        batches = f" a frame in batches of {self.batch} (layers: of a batch)" if self.batch > 1 else ""
        return (
            f"{self.network}: {self.cycles_per_frame:,} cycles traced{batches}, "
            f"{self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz ({self.clock_source})"
        )

    def values(self) -> dict[str, Any]:
        """The object of ``cycle_values``."""
        processes = [
            process_values(process, region.label)
            for region in self.timing.regions
            if not region.top
            for process in region.processes
        ]
        memory = self.timing.memory
        return cycle_values(self, "traced", batch=self.batch, memory=memory, processes=processes)

    def text(self) -> str:
        """Tables for a terminal: a line a layer, and a line a process."""
        rows: list[list[Cell]] = [
            [
                layer.name,
                layer.cycles,
                layer.modelled_cycles,
                100 * (layer.modelled_cycles / layer.cycles - 1),
                layer.macs,
                100 * layer.efficiency,
                layer.bound_by,
                layer.overhead_share,
                layer.busiest,
            ]
            for layer in self.layers
        ]
        head = (
            "layer",
            "cycles",
            "modelled",
            "error %",
            "MACs",
            "PEs busy %",
            "bound by (modelled)",
            "overhead (modelled)",
            "busiest process",
        )
        memory = self.timing.memory
        return (
            f"{table(head, rows)}\n\n{table(WAITS_HEAD, self._waits())}\n\n"
            f"{self.title}\n{self.dsp} DSPs multiply, {100 * self.dsp_efficiency:.1f} % of what they could; "
            f"DDR {memory.peak_gbps:.4g} GB/s × {memory.efficiency:g} (cycles traced on the generated code; "
            "the clock is a target; modelled: the scheduler's formula at the clock and the memory that the design was "
            "made for)"
        )

    __repr__ = text

    def _waits(self) -> list[list[Cell]]:
        """A line a process, over all passes."""
        totals: dict[str, list[int]] = {}
        for region in self.timing.regions:
            for process in region.processes if not region.top else ():
                _, _, *parts = process_values(process, region.label).values()
                sums = totals.setdefault(process.name, [0] * len(parts))
                totals[process.name] = [total + part for total, part in zip(sums, parts, strict=True)]
        return [[name, *counts] for name, counts in totals.items()]

    def timeline(self, layer: str | None = None) -> Figure:
        """Draw one lane per process over the frame, or over the passes of one layer; ChoiceError if there is no such
        layer."""
        names = {described.first_pass: described.name for described in self.passes}
        label = None
        if layer is not None:
            label = next((number for number, name in names.items() if name == layer), None)
            if label is None:
                raise ChoiceError("the layer to draw", layer, tuple(names.values()))
        return draw(self.timing, label, self.title, names)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(layer.name)}</td><td>{layer.cycles:,}</td><td>{layer.modelled_cycles:,}</td>"
            f"<td>{layer.macs:,}</td><td>{layer.efficiency:.1%}</td><td>{escape(layer.bound_by or '–')}</td>"
            f"<td>{escape(layer.overhead_share or '–')}</td><td>{escape(layer.busiest or '–')}</td></tr>"
            for layer in self.layers
        )
        return (
            f"<p><b>{escape(self.network)}</b>: {self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz "
            f"({escape(self.clock_source)}), "
            f"{self.dsp_efficiency:.1%} of {self.products} MACs in each of {self.dsp} DSPs (traced)</p>"
            "<table><tr><th>layer</th><th>cycles</th><th>modelled</th><th>MACs</th><th>PEs busy</th>"
            "<th>bound by (modelled)</th><th>overhead (modelled)</th><th>busiest process</th></tr>"
            f"{rows}</table>{self.timing._repr_html_()}"
        )


def trace_design(design: SystolicDesign, picture: npt.NDArray[np.uint8], tell: Progress = silent) -> Trace:
    """Executes one frame, uint8 [channels, height, width], or a batch of it, with every process's clock recorded."""
    library = built(lambda path: SystolicLibrary(path, design.manifest), design.path, Variant(trace=True), tell)
    maps, _ = fill_batch(design, (picture,))
    tell("tracing")
    trace = Trace(library.handle, tell=tell)
    trace.begin()
    passes = design.manifest.passes

    def after_pass(index: int) -> None:
        tell(ProgressStep(f"tracing, pass {index + 1} of {passes}", index + 1, passes))

    library.run(design.memory(maps), 0, passes, after_pass)
    trace.end()
    return trace


def measure(
    design: SystolicDesign,
    trace: Trace,
    memory: MemoryTiming,
    clock_mhz: float | None = None,
    depths: Mapping[str, int] | None = None,
) -> SystolicReport:
    """Solves the trace: no execution. clock_mhz, depths: other than the design's own, which is its target, or what a
    check found that its sources hold."""
    found = kept(design.path, design.manifest.clock_mhz)
    clock, source = (found.mhz, found.source) if clock_mhz is None else (clock_mhz, "target")
    timing = trace.solve(memory, clock, depths, timeline=True)
    layers = tuple(_layer(design, layer, timing) for layer in design.manifest.layers)
    array = Array(**vars(design.manifest.array))
    return SystolicReport(
        network=design.manifest.network,
        clock_mhz=clock,
        dsp=array.mac_dsps,
        products=array.packing.products,
        layers=layers,
        timing=timing,
        batch=design.manifest.batch,
        passes=design.manifest.layers,
        clock_source=source,
    )


def _layer(design: SystolicDesign, layer: SystolicLayer, timing: TraceTiming) -> LayerTime:
    regions = {region.label: region for region in timing.regions if not region.top}
    passes = range(layer.first_pass, layer.last_pass + 1)
    missing = [index for index in passes if index not in regions]
    if missing:
        remedy = "generate the design again"
        raise MissingValueError(f"pass {missing[0]} of {layer.name}", where="the trace", remedy=remedy)
    own = [regions[index] for index in passes]
    peak = Array(**vars(design.manifest.array)).macs_per_cycle
    program = _share(timing.cycles - sum(region.total for region in regions.values()), passes, len(regions))
    cycles = program + sum(region.total for region in own)
    longest = max(own, key=lambda region: region.total)
    modelled = layer.modelled_cycles + _share(design.manifest.program_cycles, passes, design.manifest.passes)
    return LayerTime(
        name=layer.name,
        cycles=cycles,
        macs=layer.macs,
        efficiency=layer.macs / (peak * cycles),
        modelled_cycles=modelled,
        bound_by=layer.bound_by,
        overhead=layer.overhead,
        overhead_cycles=layer.overhead_cycles,
        busiest=longest.bound_by,
        program=program,
    )


def _share(fetching: int, passes: range, of_all: int) -> int:
    """Of the cycles in which all passes are fetched those of some of them, evenly: all shares are the whole."""
    return fetching * passes.stop // of_all - fetching * passes.start // of_all
