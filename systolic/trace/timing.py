"""The solved cycles of a trace, and the timing of the DDR and of the HLS logic that it is solved for."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from boards.errors import RangeError, SystolicError, faults
from scheduler.hardware.ddr import READ_LATENCY_NS, WRITE_LATENCY_NS
from scheduler.hardware.fifos import MEMORY_LATENCY, SHIFT_LATENCY


@dataclass(frozen=True)
class MemoryTiming:
    """The rate, latencies and burst limits of the DDR at the accelerator's ports; defaults are the ZCU104's.

    Vitis HLS schedules for a latency of 64 kernel cycles, 213 ns at 300 MHz (UG1399, m_axi ``latency``).

    Attributes:
        peak_gbps: The peak rate in 10⁹ bytes per second, all ports and both directions together.
        efficiency: The fraction of the peak rate that carries data. Refresh, row misses and bus turnarounds take the
            rest.
        read_latency_ns: The time from a read request to its first beat.
        write_latency_ns: The time from the last beat of a write to its response.
        read_outstanding: The m_axi option ``num_read_outstanding``.
        write_outstanding: The m_axi option ``num_write_outstanding``.
        max_burst_beats: The m_axi options ``max_read_burst_length`` and ``max_write_burst_length``.
    """

    peak_gbps: float = 17.064
    efficiency: float = 0.75
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
        """Return the data bytes that the DDR moves per cycle of this clock."""
        return self.peak_gbps * self.efficiency * 1000 / clock_mhz


@dataclass(frozen=True)
class FabricTiming:
    """The cycles that logic of Vitis HLS adds: FIFO latency, loop entry and handshakes.

    Attributes:
        fifo_latency: The cycles from a write to the first possible read, for a FIFO in shift registers.
        memory_fifo_latency: The same for a FIFO in a memory.
        loop_entry: The cycles of the state that starts a pipelined loop.
        request_stages: The cycles from a read request to its load if one pipelined loop does both. This is the m_axi
            option ``latency``, by which HLS makes the pipeline deeper.
        region_start: The cycles of the handshake that starts a DATAFLOW region.
        region_stop: The cycles of the handshake that ends a DATAFLOW region.
    """

    fifo_latency: int = SHIFT_LATENCY
    memory_fifo_latency: int = MEMORY_LATENCY
    loop_entry: int = 1
    request_stages: int = 64
    region_start: int = 2
    region_stop: int = 2

    def __post_init__(self) -> None:
        """Check the ranges. ``request_stages`` is at least 1, because no load is served in its request's cycle."""
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
    """The cycles in which a process waits, per time bin and by reason: input, output space or DDR.

    Attributes:
        bin_cycles: The cycles of one bin.
        wait_input: The cycles in each bin that the process waited for input data.
        wait_space: The cycles in each bin that the process waited for space in an output FIFO.
        wait_memory: The cycles in each bin that the process waited for DDR.
    """

    bin_cycles: int
    wait_input: tuple[int, ...]
    wait_space: tuple[int, ...]
    wait_memory: tuple[int, ...]


@dataclass(frozen=True)
class ProcessTiming:
    """The cycles of one process in one region. The sum of busy, waiting and idle cycles is the region's cycles.

    Attributes:
        name: The name of the process.
        busy: The cycles in which the process worked.
        wait_input: The cycles that it waited for input data.
        wait_space: The cycles that it waited for space in an output FIFO.
        wait_memory: The cycles that it waited for DDR.
        idle: The cycles after its end.
        iterations: The number of loop iterations.
        lane: The waiting cycles over time, if the trace was solved with a timeline.
    """

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
    """The words, occupancy and stalls of one FIFO in one region.

    Attributes:
        name: The name of the FIFO.
        writer: The name of the process that writes.
        reader: The name of the process that reads.
        depth: The depth in words.
        elements: The number of words that passed through the FIFO.
        element_bytes: The size of a word in the simulation, in bytes.
        max_occupancy: The most words that the FIFO held.
        stall_input: The cycles that the reader waited for data.
        stall_space: The cycles that the writer waited for space.
    """

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
    """The bytes and bursts of one DDR port in one direction, in one region.

    Attributes:
        bundle: The number of the m_axi bundle.
        write: Whether the direction is write.
        bytes: The number of bytes.
        busy: The number of cycles in which a beat was transferred.
        bursts: The number of bursts.
        bin_cycles: The cycles of one bin of ``moved``.
        moved: The bytes in each bin from the region's start. Empty if the trace was solved without a timeline.
        name: The name of a port that is not an m_axi bundle of the code.
    """

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
        """The name of the DDR port for reports, such as "port 0"."""
        return self.name or f"port {self.bundle}"


@dataclass(frozen=True)
class RegionTiming:
    """The solved cycles of one execution of a DATAFLOW region, or of the top's sequential code.

    Attributes:
        label: The number that the generated code gives the region.
        top: Whether this is the top's sequential code.
        cycles: The cycles of the processes.
        overhead: The cycles of the start and stop handshakes, in addition to ``cycles``.
        processes: The timing of each process.
        streams: The use of each FIFO.
        bundles: The use of each memory port and direction.
        interval: For a trace of several frames, the most cycles between the last two frame ends of any stream.
        frame_ends: For a trace of several frames, the cycle at which each frame was read from all streams.
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
        """The cycles of the region with its start and stop handshakes."""
        return self.cycles + self.overhead

    @property
    def bound_by(self) -> str:
        """The name of the process that works, or waits for DDR, longest; the other processes wait for it."""
        worst = max(self.processes, key=lambda process: process.busy + process.wait_memory)
        if worst.wait_memory > worst.busy:
            return f"DDR ({worst.name})"
        return worst.name


@dataclass(frozen=True)
class TraceTiming:
    """The solved cycles of a whole trace: every region in order of execution."""

    clock_mhz: float
    memory: MemoryTiming
    regions: tuple[RegionTiming, ...]

    @property
    def cycles(self) -> int:
        """The cycles from the start of the top function to its end."""
        return sum(region.total for region in self.regions)

    @property
    def seconds(self) -> float:
        """The seconds from the start of the top function to its end, at the clock of the solution."""
        return self.cycles / (self.clock_mhz * 1e6)

    @property
    def cycles_by_label(self) -> dict[int, int]:
        """{region's label: cycles of all its executions}. The top's sequential code has the label -1."""
        cycles: dict[int, int] = {}
        for region in self.regions:
            cycles[region.label] = cycles.get(region.label, 0) + region.total
        return cycles

    def _repr_html_(self) -> str:
        rows = "".join(_html_region(region) for region in self.regions)
        rate = 1 / self.seconds if self.cycles else 0
        ddr = f"{self.memory.peak_gbps:.4g} GB/s × {self.memory.efficiency:g}"
        return (
            f"<p><b>{self.cycles:,} cycles</b> · {rate:.1f} per second at {self.clock_mhz:g} MHz (target), "
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
    """One process of a deadlock, and what it waits for.

    Attributes:
        process: The name of the process.
        waits_for: "data" or "space" of ``stream``, or "memory".
        stream: The name of the FIFO, or "".
        element: The index of the element that the process waits to read or write.
        depth: The depth of the FIFO in words.
    """

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
    """The error of a deadlock: processes wait for each other in a ring, because FIFOs are too shallow.

    Attributes:
        label: The label of the region.
        ring: The processes in the ring. Each waits for the next one, and the last waits for the first.
        cure: The name of one stream and the least depth that resolves the deadlock, or None if no single depth does.
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
