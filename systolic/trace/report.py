"""What both styles tell of traced time: the memory that a trace is solved for, and a line a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from host.contract.parts import Manifest
from systolic.report.tables import Cell, overhead_words
from systolic.trace.timing import MemoryTiming, ProcessTiming


@dataclass(frozen=True)
class LayerTime:
    """One layer, or one block of a pipeline. cycles: traced or counted, all passes of the layer. modelled_cycles: the
    scheduler's formula for the same, at the clock and the memory that the design was made for.

    Of what a style or an engine does not know it says None. Arrays: bound_by, overhead, overhead_cycles: what takes
    longest of the modelled cycles, and their largest part but for compute, in the words of the schedule. Traced ones:
    busiest: the process that worked, or waited for the DDR, longest in the layer's longest pass; program: of its cycles
    those in which its passes are fetched, so that layers add up to the frame, as the schedule's do. Counted ones:
    hls_cycles: traced on the engine in C++. Pipelines: folding, in words.
    """

    name: str
    cycles: int
    macs: int
    efficiency: float
    modelled_cycles: int
    bound_by: str | None = None
    overhead: str | None = None
    overhead_cycles: int | None = None
    busiest: str | None = None
    program: int | None = None
    hls_cycles: int | None = None
    folding: str | None = None

    @property
    def running(self) -> int:
        """Cycles of the passes themselves, without those in which they are fetched."""
        return self.cycles - (self.program or 0)

    @property
    def overhead_share(self) -> str | None:
        """The overhead beside the modelled cycles, in words."""
        if self.overhead is None or self.overhead_cycles is None:
            return None
        return overhead_words(self.overhead, self.overhead_cycles, self.modelled_cycles)


class TimedFrame(Protocol):
    """What every report of cycles knows."""

    @property
    def network(self) -> str: ...

    @property
    def clock_mhz(self) -> float: ...

    @property
    def cycles_per_frame(self) -> int: ...

    @property
    def frames_per_second(self) -> float: ...

    @property
    def latency_cycles(self) -> int: ...

    @property
    def dsp(self) -> int: ...

    @property
    def dsp_efficiency(self) -> float: ...

    @property
    def layers(self) -> tuple[LayerTime, ...]: ...


def slowest(layers: Sequence[LayerTime]) -> LayerTime:
    """The layer, or the block of a pipeline, that takes the most cycles."""
    return max(layers, key=lambda layer: layer.cycles)


def cycle_values(
    report: TimedFrame,
    source: str,
    *,
    batch: int = 1,
    memory: MemoryTiming | None = None,
    mismatches: int | None = None,
    processes: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The JSON object of cycles, with the same keys of every style and engine; null for what one of them does not tell.

    {network, batch, clock_mhz, source: "traced" or "counted", cycles_per_frame, latency_cycles, frames_per_second,
    bound_by: the layer or block that takes the most cycles, dsp, dsp_efficiency, memory, mismatches, layers: [the
    fields of LayerTime], processes: [{pass, name, busy, wait_input, wait_space, wait_memory, idle}]}
    """
    return {
        "network": report.network,
        "batch": batch,
        "clock_mhz": report.clock_mhz,
        "source": source,
        "cycles_per_frame": report.cycles_per_frame,
        "latency_cycles": report.latency_cycles,
        "frames_per_second": round(report.frames_per_second, 2),
        "bound_by": slowest(report.layers).name,
        "dsp": report.dsp,
        "dsp_efficiency": round(report.dsp_efficiency, 4),
        "memory": memory and asdict(memory),
        "mismatches": mismatches,
        "layers": [asdict(layer) for layer in report.layers],
        "processes": list(processes),
    }


class Described(Protocol):
    """A generated design, opened: its manifest is all that is asked of it."""

    @property
    def manifest(self) -> Manifest: ...


def board_memory(design: Described, efficiency: float | None = None, gbps: float | None = None) -> MemoryTiming:
    """The memory that the design was made for, unless the arguments say otherwise."""
    made_for = design.manifest.ddr
    return MemoryTiming(
        peak_gbps=made_for.gbps if gbps is None else gbps,
        efficiency=made_for.efficiency if efficiency is None else efficiency,
        read_outstanding=design.manifest.outstanding,
        write_outstanding=design.manifest.outstanding,
        max_burst_beats=design.manifest.burst_words,
    )


def process_values(process: ProcessTiming, number: int) -> dict[str, Any]:
    """Cycles of one process in pass ``number``, by what it did."""
    return {
        "pass": number,
        "name": process.name,
        "busy": process.busy,
        "wait_input": process.wait_input,
        "wait_space": process.wait_space,
        "wait_memory": process.wait_memory,
        "idle": process.idle,
    }


FIFO_HEAD = ("stream", "declared depth", "least that loses nothing")


def fifo_rows(least: Mapping[str, int], declared: Mapping[str, int]) -> list[list[Cell]]:
    """Return a line per stream under FIFO_HEAD."""
    return [[name, declared[name], depth] for name, depth in least.items()]


def fifo_values(
    least: Mapping[str, int],
    declared: Mapping[str, int],
    cycles: int,
    best_cycles: int,
    *,
    latency_cycles: int | None = None,
    widths: Mapping[str, int] | None = None,
    bits: int | None = None,
    fixed_bits: int | None = None,
    curve: Sequence[Sequence[int | None]] | None = None,
) -> dict[str, Any]:
    """The JSON object of FIFO depths, with the same keys of both styles; null for what one of them does not tell.

    {least, declared: {stream: depth}, cycles: of a frame with the least depths, best_cycles: with unbounded FIFOs,
    latency_cycles, widths: {stream: bits}, bits: of all of them, fixed_bits: at one fixed depth, curve: [[no deeper
    than, cycles]]}
    """
    return {
        "least": dict(least),
        "declared": dict(declared),
        "cycles": cycles,
        "best_cycles": best_cycles,
        "latency_cycles": latency_cycles,
        "widths": widths and dict(widths),
        "bits": bits,
        "fixed_bits": fixed_bits,
        "curve": curve and [list(point) for point in curve],
    }
