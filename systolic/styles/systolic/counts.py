"""The clock cycles of an engine in SystemVerilog, counted while Verilator simulates it.

The report compares the counted cycles with the scheduler's model. On request it also compares them with the traced
cycles of the engine in C++ with the same schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boards.board import of_design
from boards.progress import Progress
from contract.geometry import HLS
from contract.program import names_of
from host.contract.simulation_library import library_folder
from host.vision.picture import Pixels
from scheduler.hardware.ddr import DdrRate, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.schedule import SystolicSchedule, array_in, schedule_workload
from scheduler.systolic.tiling import Tiling, column_tiles
from scheduler.systolic.workload import workload_of
from systolic.checking.record import stored_clock
from systolic.files import write
from systolic.model import DesignInputs
from systolic.report.tables import Cell
from systolic.styles.systolic.cycles import SystolicTrace
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.simulate import SystolicDesign, open_design, simulate_batch
from systolic.trace.report import FrameCycles, LayerTime, ReportTable, board_memory, cycle_values
from systolic.trace.timing import MemoryTiming

MODELLED = ("bound by (modelled)", "overhead (modelled)")
"""The last columns of the table, from the scheduler's model."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SystolicCounts(FrameCycles):
    """The cycles per layer of an engine in SystemVerilog, counted in a simulation of one frame or batch.

    Attributes:
        memory: The timing of the simulated memory.
        pass_cycles: The cycles of each pass of the program.
        mismatches: The number of integers, of all layers, that differ from the golden model.
        p90_sentence: Words for the rate at the clock that the timing model reaches, ``RateClock.p90_sentence``.
    """

    memory: MemoryTiming
    pass_cycles: list[float]
    mismatches: int
    p90_sentence: str = ""

    @property
    def cycles(self) -> int:
        """The counted cycles of one start of the engine, which computes a whole batch."""
        return sum(layer.cycles for layer in self.layers)

    def values(self) -> dict[str, Any]:
        """Return the counted cycles as the JSON object of ``cycle_values``; it has no processes."""
        return cycle_values(self, "counted", self.memory, mismatches=self.mismatches)

    def tables(self) -> list[ReportTable]:
        """Return the table of counted and modelled cycles per layer, with a last row for all layers."""
        comparison = ("HLS, traced", "difference %") if self._traced else ()
        head = ("layer", "counted", "modelled", "error %", *comparison, "MACs", "PEs busy %", *MODELLED)
        rows = [
            [
                layer.name,
                *self._compared(layer),
                layer.macs,
                100 * layer.efficiency,
                layer.bound_by,
                layer.overhead_share,
            ]
            for layer in self.layers
        ]
        rows.append(["all", *self._compared(self._sum), self._sum.macs, 100 * self._sum.efficiency, "", ""])
        return [(head, rows)]

    @property
    def summary(self) -> str:
        """A sentence with the counted cycles per frame, the frame rate and the number of mismatches."""
        right = "every bit equal" if self.mismatches == 0 else "THE DESIGN IS NOT RIGHT"
        traced = "; HLS: the engine in C++ with the same schedule, its code traced" if self._traced else ""
        return (
            f"{self.network}: {self.cycles_per_frame:,} cycles counted{self.of_batch}, {self.rate}{self.p90_sentence}; "
            f"{self.mismatches:,} mismatches: {right}\n"
            "(counted: executed under Verilator, with the memory that the design was made for; modelled: the "
            f"scheduler's formula for this engine{traced})"
        )

    @property
    def _traced(self) -> bool:
        return any(layer.hls_cycles is not None for layer in self.layers)

    @property
    def _sum(self) -> LayerTime:
        macs = sum(layer.macs for layer in self.layers)
        possible = sum(layer.macs / layer.efficiency for layer in self.layers)
        return LayerTime(
            "all",
            self.cycles,
            macs,
            macs / possible,
            sum(layer.modelled_cycles for layer in self.layers),
            hls_cycles=sum(layer.hls_cycles or 0 for layer in self.layers) if self._traced else None,
        )

    def _compared(self, layer: LayerTime) -> list[Cell]:
        cells: list[Cell] = [layer.cycles, layer.modelled_cycles, layer.error]
        if layer.hls_cycles is None:
            return cells
        return [*cells, layer.hls_cycles, 100 * (layer.hls_cycles / layer.cycles - 1)]


def count(design: SystolicDesign, picture: Pixels, compare_with_hls: bool, progress: Progress) -> SystolicCounts:
    """Simulate one batch on an engine in SystemVerilog, and return its counted cycles per layer.

    Args:
        design: A design whose engine is in SystemVerilog.
        picture: The picture, uint8 of shape (channels, height, width), which is repeated to fill the batch.
        compare_with_hls: Whether to also generate, compile and trace the engine in C++ with the same schedule.
    """
    manifest = design.manifest
    frames = simulate_batch(design, (picture,), progress=progress)
    counted = frames[0]
    traced = _traced(design, picture, progress) if compare_with_hls else [None] * len(manifest.layers)
    array = Array(**vars(manifest.array))
    peak = array.macs_per_cycle
    layers = tuple(
        LayerTime(
            layer.name,
            cycles,
            layer.macs,
            layer.macs / (peak * cycles),
            layer.modelled_cycles,
            layer.bound_by,
            layer.overhead,
            layer.overhead_cycles,
            hls_cycles=hls,
        )
        for layer, cycles, hls in zip(manifest.layers, counted.cycles, traced, strict=True)
    )
    clock = stored_clock(design.path, manifest.clock_mhz)
    mismatches = sum(frame.mismatches for frame in frames)
    passes = [float(cycles) for cycles in counted.pass_cycles]
    return SystolicCounts(
        network=manifest.network,
        clock_mhz=clock.mhz,
        clock_link=clock.link,
        clock_source=clock.source,
        p90_sentence=clock.p90_sentence(clock.mhz * 1e6 * manifest.batch / sum(counted.cycles)),
        dsp=array.mac_dsps,
        macs_per_cycle=peak,
        memory=board_memory(design),
        layers=layers,
        pass_cycles=passes,
        mismatches=mismatches,
        batch=manifest.batch,
    )


def _traced(design: SystolicDesign, picture: Pixels, progress: Progress) -> list[int | None]:
    """Return the traced cycles of each layer on the C++ engine of the same schedule, which is generated for this.

    The engine in C++ has one clock, so its DSPs run at the clock of the array.
    """
    board, manifest = of_design(design.path, design.manifest.board), design.manifest
    schedule = schedule_of_design(design)
    array = replace(array_in(schedule, HLS), dsp_clock=1)
    rate = DdrRate(manifest.ddr.gbps, manifest.ddr.efficiency)
    mapping = price(replace(schedule, array=array), board, ddr_timing(board, manifest.clock_mhz, rate))
    folder = library_folder(design.path) / HLS
    write(generate(mapping, DesignInputs({}, picture, manifest.fit)), folder)
    report = SystolicTrace.of(open_design(folder), picture, progress).report()
    return [layer.cycles for layer in report.layers]


def schedule_of_design(design: SystolicDesign) -> SystolicSchedule:
    """Return the schedule that a design was generated from, decoded from the engine's program."""
    array = Array(**vars(design.manifest.array))
    workload = workload_of(design.network, design.manifest.batch, array.added_maps)
    names, passes = names_of(array), design.program.view(np.int32)
    tilings, number = [], 0
    for layer in workload.layers:
        fields = dict(zip(names, passes[number].tolist(), strict=False))
        tilings.append(_tiling(design, layer, array, fields))
        number += layer.repeats * tilings[-1].columns.count
    return schedule_workload(workload, array, tilings)


def _tiling(design: SystolicDesign, layer: Layer, array: Array, fields: dict[str, int]) -> Tiling:
    """Return the tiling of a layer. fields: {name: value} of the layer's first pass in the engine's program."""
    order = "inputs-resident" if fields["inputs_resident"] else "streamed"
    order = "weights-resident" if fields["resident"] else order
    columns = column_tiles(design.network, layer, array, fields["out_width"])
    return Tiling(columns, order, bool(fields["overlap"]), bool(fields["out_buffer"]))
