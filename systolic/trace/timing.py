"""How long it took: the frozen results of solving a trace, and the memory that is solved for."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from boards.errors import RangeError, SystolicError, faults
from scheduler.hardware.ddr import DDR_EFFICIENCY, READ_LATENCY_NS, WRITE_LATENCY_NS
from scheduler.hardware.fifos import MEMORY_LATENCY, SHIFT_LATENCY


@dataclass(frozen=True)
class MemoryTiming:
    """DDR behind the accelerator's ports; the defaults are those of the ZCU104's boot image.

    peak_gbps: 10⁹ bytes a second at full rate, all ports together, both directions.
    efficiency: the share of it that carries data (refresh, row misses, turn-arounds take the rest).
    read_latency_ns: from a request to its first beat; write_latency_ns: from the last beat to the response.
    Vitis HLS schedules for 64 kernel cycles, 213 ns at 300 MHz (UG1399, m_axi ``latency``).
    read_outstanding, write_outstanding, max_burst_beats: the m_axi options ``num_read_outstanding``,
    ``num_write_outstanding``, ``max_*_burst_length``.
    """

    peak_gbps: float = 17.064
    efficiency: float = DDR_EFFICIENCY
    read_latency_ns: float = READ_LATENCY_NS
    write_latency_ns: float = WRITE_LATENCY_NS
    read_outstanding: int = 16
    write_outstanding: int = 16
    max_burst_beats: int = 256

    def __post_init__(self) -> None:
        _check_range("efficiency", self.efficiency, 0, 1, exclusive=True)
        _check_range("peak_gbps", self.peak_gbps, 0, exclusive=True)
        _check_range("read_latency_ns", self.read_latency_ns, 0)
        _check_range("write_latency_ns", self.write_latency_ns, 0)
        _check_range("read_outstanding", self.read_outstanding, 1, 256)
        _check_range("write_outstanding", self.write_outstanding, 1, 256)
        _check_range("max_burst_beats", self.max_burst_beats, 1, 256)

    def bytes_per_cycle(self, clock_mhz: float) -> float:
        return self.peak_gbps * self.efficiency * 1000 / clock_mhz


@dataclass(frozen=True)
class FabricTiming:
    """Cycles that the HLS tool's own logic takes; docs/explanation/cycles.md gives the source of each.

    fifo_latency: of a FIFO in shift registers, from a write to the first cycle in which it can be read;
    memory_fifo_latency: the same of a FIFO in a memory.
    loop_entry: the state that starts a pipelined loop.
    request_stages: from a read request to its load where one pipelined loop does both; the m_axi option
    ``latency``, for which HLS makes the pipeline deeper.
    region_start, region_stop: hand-shakes around a DATAFLOW region.
    """

    fifo_latency: int = SHIFT_LATENCY
    memory_fifo_latency: int = MEMORY_LATENCY
    loop_entry: int = 1
    request_stages: int = 64
    region_start: int = 2
    region_stop: int = 2

    def __post_init__(self) -> None:
        """A load in the cycle of its own request could never be served, hence the least of 1."""
        for name, least in (
            ("fifo_latency", 1),
            ("memory_fifo_latency", 1),
            ("loop_entry", 0),
            ("request_stages", 1),
            ("region_start", 0),
            ("region_stop", 0),
        ):
            _check_range(name, getattr(self, name), least)


def _check_range(name: str, value: float, low: float, high: float | None = None, exclusive: bool = False) -> None:
    above = value > low if exclusive else value >= low
    if not (above and (high is None or value <= high)):
        raise RangeError(name, value, low, high, exclusive=exclusive, where="the cycle model")


@dataclass(frozen=True)
class Lane:
    """Cycles a bin of ``bin_cycles`` that a process waited, by reason."""

    bin_cycles: int
    wait_input: tuple[int, ...]
    wait_space: tuple[int, ...]
    wait_memory: tuple[int, ...]


@dataclass(frozen=True)
class ProcessTiming:
    """Cycles of one process in one region: busy + waits + idle = the region's cycles."""

    name: str
    busy: int
    wait_input: int
    wait_space: int
    wait_memory: int
    idle: int
    iterations: int
    lane: Lane | None = field(default=None, repr=False)


@dataclass(frozen=True)
class StreamTiming:
    """One FIFO: the most elements it held, and the cycles that its two ends waited for each other."""

    name: str
    writer: str
    reader: str
    depth: int
    elements: int
    element_bytes: int
    max_occupancy: int
    stall_input: int
    stall_space: int


@dataclass(frozen=True)
class BundleTiming:
    """One direction of one memory port; busy: cycles in which a beat moved. moved: bytes in each ``bin_cycles`` from
    the region's start on, nothing where the trace was solved without a timeline. name: of a port that is no m_axi
    bundle of the code."""

    bundle: int
    write: bool
    bytes: int
    busy: int
    bursts: int
    bin_cycles: int = 1
    moved: tuple[int, ...] = field(default=(), repr=False)
    name: str = ""

    @property
    def port(self) -> str:
        return self.name or f"port {self.bundle}"


@dataclass(frozen=True)
class RegionTiming:
    """One execution of a DATAFLOW region, or of the top's sequential code (``top``).

    cycles: of its processes; overhead: start and stop hand-shakes beside them. Of a trace of several frames, interval:
    the most cycles that any stream took between the last two of them, frame_ends: the cycle at which each had been read
    from all streams.
    """

    label: int
    top: bool
    cycles: int
    overhead: int
    processes: tuple[ProcessTiming, ...]
    streams: tuple[StreamTiming, ...]
    bundles: tuple[BundleTiming, ...]
    interval: int = 0
    frame_ends: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        return self.cycles + self.overhead

    @property
    def bound_by(self) -> str:
        """The process that the others wait for: it works, or waits for memory, longest of all."""
        worst = max(self.processes, key=lambda process: process.busy + process.wait_memory)
        if worst.wait_memory > worst.busy:
            return f"DDR ({worst.name})"
        return worst.name


@dataclass(frozen=True)
class TraceTiming:
    """Every region in order; ``cycles`` is from the top's start to its end."""

    clock_mhz: float
    memory: MemoryTiming
    regions: tuple[RegionTiming, ...]

    @property
    def cycles(self) -> int:
        return sum(region.total for region in self.regions)

    @property
    def seconds(self) -> float:
        return self.cycles / (self.clock_mhz * 1e6)

    @property
    def cycles_by_label(self) -> dict[int, int]:
        """Cycles of all regions with the same label; the top's sequential code stands under -1."""
        cycles: dict[int, int] = {}
        for region in self.regions:
            cycles[region.label] = cycles.get(region.label, 0) + region.total
        return cycles

    def _repr_html_(self) -> str:
        rows = "".join(_html_region(region) for region in self.regions)
        rate = 1 / self.seconds if self.cycles else 0
        ddr = f"{self.memory.peak_gbps:.4g} GB/s × {self.memory.efficiency:g}"
        return (
            f"<p><b>{self.cycles:,} cycles</b> · {rate:.1f} a second at {self.clock_mhz:g} MHz (target), "
            f"DDR {ddr}</p>"
            "<table><tr><th>region</th><th>cycles</th><th>busiest</th><th>process</th><th>computes</th>"
            f"<th>waits for input</th><th>space</th><th>DDR</th><th>ended</th></tr>{rows}</table>"
        )


def _html_region(region: RegionTiming) -> str:
    name = "top" if region.top else str(region.label)
    span = f'rowspan="{len(region.processes)}"'
    head = f"<td {span}>{name}</td><td {span}>{region.total:,}</td><td {span}>{escape(region.bound_by)}</td>"
    rows = [_html_process(process, region.cycles) for process in region.processes]
    return "".join(f"<tr>{head if i == 0 else ''}{row}</tr>" for i, row in enumerate(rows))


def _html_process(process: ProcessTiming, cycles: int) -> str:
    parts = (process.busy, process.wait_input, process.wait_space, process.wait_memory, process.idle)
    cells = "".join(f"<td>{part / max(cycles, 1):.1%}</td>" for part in parts)
    return f"<td>{escape(process.name)}</td>{cells}"


@dataclass(frozen=True)
class Waiting:
    """A process of a deadlock: ``waits_for`` "data" or "space" of ``stream``, or "memory"."""

    process: str
    waits_for: str
    stream: str
    element: int
    depth: int

    def __str__(self) -> str:
        if self.waits_for == "data":
            return f"'{self.process}' waits for element {self.element} of '{self.stream}'"
        if self.waits_for == "space":
            full = f"'{self.stream}' (depth {self.depth})"
            return f"'{self.process}' waits for space in {full} for element {self.element}"
        return f"'{self.process}' waits for memory"


@dataclass(eq=False)
class DeadlockError(SystolicError):
    """Processes wait for each other in a ring.

    Attributes:
        label: The region.
        ring: What each process waits for from the next one; the last waits for the first.
        cure: One stream and the least depth that frees it, or None if no single depth does.
    """

    label: int
    ring: tuple[Waiting, ...]
    cure: tuple[str, int] | None

    def message(self) -> str:
        cure = (
            f"a depth of {self.cure[1]} for '{self.cure[0]}' frees it"
            if self.cure
            else "no single FIFO depth frees it: use advise() for depths of all streams"
        )
        return f"region {self.label} deadlocks: {faults([str(waiting) for waiting in self.ring])}; {cure}"
