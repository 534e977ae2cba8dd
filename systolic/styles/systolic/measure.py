"""The traced cycles of the C++ array: one recorded execution, solved for a clock, a memory and FIFO depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, MismatchError, MissingValueError
from boards.progress import Progress, ProgressStep, silent
from host.contract.libraries import SystolicLibrary
from host.contract.systolic import SystolicLayer
from scheduler.systolic.array import Array
from systolic.checking.record import stored_clock
from systolic.execution.build import Variant, built
from systolic.report.clock import RateClock
from systolic.report.tables import Cell
from systolic.styles.systolic.simulate import SystolicDesign, fill_batch
from systolic.trace.report import CycleReport, LayerTime, ReportTable, cycle_values, process_values
from systolic.trace.solver import MemoryTiming, Trace
from systolic.trace.timeline import draw
from systolic.trace.timing import TraceTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYER_HEAD = (
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
WAITS_HEAD = ("process", "computes", "waits for input", "for space", "for DDR", "ended")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SystolicReport(CycleReport):
    """The traced cycles of each layer of one frame or one batch, on the C++ array.

    Attributes:
        passes: The layers of the manifest, with the first and last pass of each.
    """

    passes: tuple[SystolicLayer, ...] = ()

    @property
    def cycles(self) -> int:
        """The traced cycles of one start of the engine, which computes a whole batch."""
        return self.timing.cycles

    @property
    def pass_cycles(self) -> list[float]:
        """The cycles of each pass of the engine's program; all share the fetching of the program equally.

        Raises:
            MismatchError: The trace does not have all passes.
        """
        by_pass = {label: cycles for label, cycles in self.timing.cycles_by_label.items() if label >= 0}
        if sorted(by_pass) != list(range(len(by_pass))):
            expected = list(range(len(by_pass)))
            raise MismatchError("the list of traced passes", sorted(by_pass), expected, remedy="trace the design again")
        fetch = (self.cycles - sum(by_pass.values())) / len(by_pass)
        return [by_pass[number] + fetch for number in range(len(by_pass))]

    @property
    def title(self) -> str:
        """The title of the timeline: the network, the cycles per frame and the frame rate."""
        return f"{self.network}: {self.cycles_per_frame:,} cycles traced{self.of_batch}, {self.rate}"

    def values(self) -> dict[str, Any]:
        """Return the traced cycles as the JSON object of ``cycle_values``."""
        processes = [
            process_values(process, region.label)
            for region in self.timing.regions
            if not region.top
            for process in region.processes
        ]
        return cycle_values(self, "traced", self.timing.memory, processes=processes)

    def tables(self) -> list[ReportTable]:
        """Return the table of traced and modelled cycles per layer, and the waiting cycles per process."""
        rows: list[list[Cell]] = [
            [
                layer.name,
                layer.cycles,
                layer.modelled_cycles,
                layer.error,
                layer.macs,
                100 * layer.efficiency,
                layer.bound_by,
                layer.overhead_share,
                layer.busiest,
            ]
            for layer in self.layers
        ]
        return [(LAYER_HEAD, rows), (WAITS_HEAD, self._waits())]

    @property
    def summary(self) -> str:
        """Sentences with the traced frame rate, the use of the DSPs and the DDR rate."""
        memory = self.timing.memory
        return (
            f"{self.title}\n{self.dsp} DSPs multiply, {100 * self.dsp_efficiency:.1f} % of their peak; "
            f"DDR {memory.peak_gbps:.4g} GB/s × {memory.efficiency:g} (cycles traced on the generated code; "
            "the clock is a target; modelled: the scheduler's formula at the clock and the memory that the design was "
            "made for)"
        )

    def _waits(self) -> list[list[Cell]]:
        """Return the table's rows with each process's busy, waiting and idle cycles over all passes."""
        totals: dict[str, list[int]] = {}
        for region in self.timing.regions:
            for process in region.processes if not region.top else ():
                _, _, *parts = process_values(process, region.label).values()
                sums = totals.setdefault(process.name, [0] * len(parts))
                totals[process.name] = [total + part for total, part in zip(sums, parts, strict=True)]
        return [[name, *counts] for name, counts in totals.items()]

    def timeline(self, layer: str | None = None) -> Figure:
        """Draw one lane per process over the whole frame, or over all passes of one layer.

        Raises:
            ChoiceError: There is no such layer.
        """
        check_timeline(self.passes, layer)
        names = {number: name for described in self.passes for number, name in _pass_names(described).items()}
        if layer is None:
            return draw(self.timing, None, self.title, names)
        own = next(list(_pass_names(described)) for described in self.passes if described.name == layer)
        cycles = sum(self.timing.cycles_by_label.get(number, 0) for number in own)
        title = f"{self.network}, layer {layer}: {cycles:,} of {self.cycles:,} cycles traced at {self.clock_mhz:g} MHz"
        return draw(self.timing, own, f"{title} ({self.clock_source})", names)

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.timing._repr_html_()


def _pass_names(layer: SystolicLayer) -> dict[int, str]:
    """Return {number of a pass: name for a timeline}: the layer's name, and the place of the pass if it has several."""
    passes = range(layer.first_pass, layer.last_pass + 1)
    if len(passes) == 1:
        return {layer.first_pass: layer.name}
    return {number: f"{layer.name}, pass {place} of {len(passes)}" for place, number in enumerate(passes, 1)}


def check_timeline(layers: Sequence[SystolicLayer], layer: str | None) -> None:
    """Raise ChoiceError if ``layer`` is not the name of a layer. None is valid and means all layers."""
    names = [described.name for described in layers]
    if layer is not None and layer not in names:
        raise ChoiceError("the layer to draw", layer, names)


def trace_design(design: SystolicDesign, picture: npt.NDArray[np.uint8], progress: Progress = silent) -> Trace:
    """Execute one batch, and record the cycle of every read and write of every process.

    Args:
        design: The design.
        picture: The picture of every frame, uint8 of shape (channels, height, width).
    """
    library = built(lambda path: SystolicLibrary(path, design.manifest), design.path, Variant(trace=True), progress)
    maps, _ = fill_batch(design, (picture,))
    progress("tracing")
    trace = Trace(library.handle, progress=progress)
    trace.begin()
    passes = design.manifest.passes

    def after_pass(index: int) -> None:
        progress(ProgressStep(f"tracing, pass {index + 1} of {passes}", index + 1, passes))

    library.run(design.memory(maps), 0, passes, after_pass)
    trace.end()
    return trace


def cycle_report(
    design: SystolicDesign,
    trace: Trace,
    memory: MemoryTiming,
    clock_mhz: float | None = None,
    depths: Mapping[str, int] | None = None,
) -> SystolicReport:
    """Return the cycles of each layer, solved from the trace for a memory, a clock and FIFO depths.

    Args:
        design: The design.
        trace: The recorded execution.
        memory: The timing of the memory.
        clock_mhz: The clock. None means the design's target clock, or the clock that ``systolic check`` found for its
            sources.
        depths: FIFO depths in words, by the name of the stream. None means the design's depths.
    """
    clock = stored_clock(design.path, design.manifest.clock_mhz) if clock_mhz is None else RateClock(clock_mhz)
    timing = trace.solve(memory, clock.mhz, depths, timeline=True)
    array = Array(**vars(design.manifest.array))
    return SystolicReport(
        network=design.manifest.network,
        clock_mhz=clock.mhz,
        clock_link=clock.link,
        clock_source=clock.source,
        dsp=array.mac_dsps,
        macs_per_cycle=array.packing.products * array.mac_dsps,
        layers=tuple(_layer(design, layer, timing) for layer in design.manifest.layers),
        timing=timing,
        batch=design.manifest.batch,
        passes=design.manifest.layers,
    )


def _layer(design: SystolicDesign, layer: SystolicLayer, timing: TraceTiming) -> LayerTime:
    """Return the traced cycles of one layer: the cycles of its passes, and its share of fetching the program."""
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
    """Return the part of the ``fetching`` cycles that belongs to ``passes``, of ``of_all`` passes with equal parts.

    All passes have equal shares up to rounding, and the shares add up to ``fetching``.
    """
    return fetching * passes.stop // of_all - fetching * passes.start // of_all
