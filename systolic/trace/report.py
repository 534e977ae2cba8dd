"""Reports of traced or counted cycles and of FIFO depths for both styles, and the DDR timing of a design."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from host.contract.parts import Manifest
from systolic.report.page import html_table
from systolic.report.tables import Cell, overhead_words, table
from systolic.trace.timing import MemoryTiming, ProcessTiming, TraceTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class LayerTime:
    """The traced or counted cycles of one layer, or of one block of a pipeline, next to the modelled cycles.

    None marks a value that the style or the engine does not know.

    Attributes:
        name: The name of the layer or block.
        cycles: The traced or counted cycles, all passes of the layer together.
        macs: The number of multiply-accumulates.
        efficiency: The multiply-accumulates divided by what the DSPs could do in the same cycles.
        modelled_cycles: The cycles in the scheduler's model, at the clock and memory that the design was made for.
        bound_by: Systolic style: the part that takes the most of the modelled cycles, in the schedule's words.
        overhead: Systolic style: the largest part of the modelled cycles except compute, in the schedule's words.
        overhead_cycles: Systolic style: the cycles of ``overhead``.
        busiest: Traced arrays: the process that worked or waited for DDR longest, in the layer's longest pass.
        program: Traced arrays: the part of ``cycles`` in which the instructions of the passes are fetched. They are
            included, as in the schedule, so that the layers add up to the frame.
        hls_cycles: Counted cycles: the traced cycles of the same layer on the C++ engine.
        folding: Pipelines: the folding, in words.
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
        """The cycles of the layer's passes, without the cycles in which the engine fetches the passes."""
        return self.cycles - (self.program or 0)

    @property
    def error(self) -> float:
        """The percentage by which the modelled cycles exceed the traced or counted cycles."""
        return 100 * (self.modelled_cycles / self.cycles - 1)

    @property
    def overhead_share(self) -> str | None:
        """The largest part of the modelled cycles that is not computing, such as "fill 12%"; None if unknown."""
        if self.overhead is None or self.overhead_cycles is None:
            return None
        return overhead_words(self.overhead, self.overhead_cycles, self.modelled_cycles)


ReportTable = tuple[Sequence[str], Sequence[Sequence[Cell]]]
"""The head and the rows of a table."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FrameCycles(ABC):
    """The traced or counted cycles of one frame or one batch, layer by layer, and the frame rate.

    Attributes:
        network: The name of the network.
        clock_mhz: The clock of the frame rate in MHz.
        clock_link: The origin of that clock in a word, ``RateClock.link``.
        clock_source: The origin of that clock, in words.
        dsp: The number of DSPs that multiply.
        macs_per_cycle: The multiply-accumulates that these DSPs could do in one cycle.
        layers: The cycles of each layer, or of each block of a pipeline.
        batch: The number of frames that one start takes.
    """

    network: str
    clock_mhz: float
    dsp: int
    macs_per_cycle: int
    layers: tuple[LayerTime, ...]
    batch: int = 1
    clock_link: str = "target"
    clock_source: str = "target"

    @property
    @abstractmethod
    def cycles(self) -> int:
        """The cycles per batch if many batches follow each other."""

    @property
    def cycles_per_frame(self) -> int:
        """``cycles`` per frame, rounded."""
        return round(self.cycles / self.batch)

    @property
    def latency_cycles(self) -> int:
        """The cycles from the start to the outputs of the batch: all frames of a batch end together."""
        return self.cycles

    @property
    def frames_per_second(self) -> float:
        """The frames per second at ``clock_mhz``."""
        return self.clock_mhz * 1e6 * self.batch / self.cycles

    @property
    def dsp_efficiency(self) -> float:
        """The multiply-accumulates of the layers as a share of what the DSPs could do in the same cycles."""
        return sum(layer.macs for layer in self.layers) / (self.macs_per_cycle * self.cycles)

    @property
    def slowest(self) -> LayerTime:
        """The layer, or the block of a pipeline, that takes the most cycles."""
        return max(self.layers, key=lambda layer: layer.cycles)

    @property
    def rate(self) -> str:
        """Words with the frame rate, the clock and the clock's origin."""
        return f"{self.frames_per_second:.1f} frames/s at {self.clock_mhz:g} MHz ({self.clock_source})"

    @property
    def of_batch(self) -> str:
        """ " per frame in batches of N …" for the report if there are batches, else ""."""
        return f" per frame in batches of {self.batch} (layers: per batch)" if self.batch > 1 else ""

    @abstractmethod
    def tables(self) -> list[ReportTable]:
        """Return the report's tables as (head, rows); the first has a row for each layer or block."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The sentences below the report's tables."""

    def text(self) -> str:
        """Return the report's tables and summary for a terminal."""
        return "\n\n".join([*(table(head, rows) for head, rows in self.tables()), self.summary])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        tables = "".join(html_table(head, rows) for head, rows in self.tables())
        return f"<p>{escape(self.summary)}</p>{tables}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CycleReport(FrameCycles):
    """The report of cycles that were traced in the generated C++.

    Attributes:
        timing: The solved trace.
    """

    timing: TraceTiming

    @property
    @abstractmethod
    def pass_cycles(self) -> list[float]:
        """The cycles of each pass of one start, so that a simulated board can take as long as the hardware."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The title of the report, one line."""

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the traced cycles as the JSON object of ``cycle_values``."""

    @abstractmethod
    def timeline(self, layer: str | None = None) -> Figure:
        """Draw the timeline: one lane per process, over a frame or over one layer."""


def cycle_values(
    report: FrameCycles,
    source: str,
    memory: MemoryTiming,
    *,
    mismatches: int | None = None,
    processes: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return a report's cycles as a JSON object, with the same keys for every style and engine.

    {network, batch, clock_mhz, clock_link, source: "traced" or "counted", cycles_per_frame, latency_cycles,
    frames_per_second, bound_by: the layer or block that takes the most cycles, dsp, dsp_efficiency, memory, mismatches,
    layers: [the fields of LayerTime], processes: [{pass, name, busy, wait_input, wait_space, wait_memory, idle}]}. A
    value that a style or an engine does not know is null.
    """
    return {
        "network": report.network,
        "batch": report.batch,
        "clock_mhz": report.clock_mhz,
        "clock_link": report.clock_link,
        "source": source,
        "cycles_per_frame": report.cycles_per_frame,
        "latency_cycles": report.latency_cycles,
        "frames_per_second": round(report.frames_per_second, 2),
        "bound_by": report.slowest.name,
        "dsp": report.dsp,
        "dsp_efficiency": round(report.dsp_efficiency, 4),
        "memory": asdict(memory),
        "mismatches": mismatches,
        "layers": [asdict(layer) for layer in report.layers],
        "processes": list(processes),
    }


class Described(Protocol):
    """A type with a manifest, such as an opened design."""

    @property
    def manifest(self) -> Manifest: ...


def board_memory(design: Described, efficiency: float | None = None, gbps: float | None = None) -> MemoryTiming:
    """Return the timing of the DDR that the design was made for, or with another rate or efficiency.

    Args:
        design: The design.
        efficiency: Another fraction of the peak rate that carries data.
        gbps: Another peak rate, in 10⁹ bytes per second.
    """
    made_for = design.manifest.ddr
    return MemoryTiming(
        peak_gbps=made_for.gbps if gbps is None else gbps,
        efficiency=made_for.efficiency if efficiency is None else efficiency,
        read_outstanding=design.manifest.outstanding,
        write_outstanding=design.manifest.outstanding,
        max_burst_beats=design.manifest.burst_words,
    )


def process_values(process: ProcessTiming, number: int) -> dict[str, Any]:
    """Return the busy, waiting and idle cycles of one process in pass ``number`` of the program, as JSON."""
    return {
        "pass": number,
        "name": process.name,
        "busy": process.busy,
        "wait_input": process.wait_input,
        "wait_space": process.wait_space,
        "wait_memory": process.wait_memory,
        "idle": process.idle,
    }


FIFO_HEAD = ("stream", "declared depth", "least that keeps the pace")


CURVE_HEAD = ("no deeper than", "cycles")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FifoDepths:
    """The least FIFO depths of a traced design that lose no cycle, next to the declared depths.

    Attributes:
        least: The depths in words, by stream.
        declared: The depths that the design declares, by stream.
        cycles: Cycles of a frame with the least depths.
        best_cycles: Cycles of a frame with unbounded FIFOs.
        latency_cycles: Cycles of the first frame with the least depths.
        widths: The bits of a word, by stream.
        bits: The bits of all FIFOs at the least depths.
        fixed_bits: The bits of all FIFOs at one depth for all of them.
        curve: Pairs of a limit for the depths and the cycles of a frame within that limit. None is a deadlock.
    """

    least: Mapping[str, int]
    declared: Mapping[str, int]
    cycles: int
    best_cycles: int
    latency_cycles: int | None = None
    widths: Mapping[str, int] | None = None
    bits: int | None = None
    fixed_bits: int | None = None
    curve: Sequence[tuple[int, int | None]] | None = None

    def rows(self) -> list[list[Cell]]:
        """Return the rows of the FIFO table: name, declared depth and least depth in words."""
        return [[name, self.declared[name], depth] for name, depth in self.least.items()]

    def values(self) -> dict[str, Any]:
        """Return the FIFO depths as a JSON object, with the same keys for both styles."""
        return {
            **vars(self),
            "least": dict(self.least),
            "declared": dict(self.declared),
            "widths": self.widths and dict(self.widths),
            "curve": self.curve and [list(point) for point in self.curve],
        }

    def text(self) -> str:
        """Return a table of declared and least FIFO depths for a terminal."""
        return table(FIFO_HEAD, self.rows())

    __repr__ = text

    def _repr_html_(self) -> str:
        points = [[cap, "deadlock" if cycles is None else cycles] for cap, cycles in self.curve or ()]
        return html_table(FIFO_HEAD, self.rows()) + (html_table(CURVE_HEAD, points) if points else "")
