"""The values read from the vendor's reports. None or an empty tuple marks a value that a report does not contain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """The LUTs, flip-flops, DSPs, BRAMs and URAMs of a design, a module or a device.

    Attributes:
        lut: All LUTs, used as logic or as memory.
        bram18: Block RAMs of 18 Kbit; a BRAM36 counts as two.
        lutram: The LUTs that are memory or shift registers.
    """

    lut: float | None = None
    ff: float | None = None
    dsp: float | None = None
    bram18: float | None = None
    uram: float | None = None
    lutram: float | None = None

    def count(self, kind: str) -> float | None:
        """Return the number of ``kind``: dsp, bram36, uram, lut, lutram or ff; None if unknown."""
        if kind == "bram36":
            return None if self.bram18 is None else self.bram18 / 2
        value: float | None = getattr(self, kind)
        return value


@dataclass(frozen=True)
class LoopFact:
    """A loop in the report of Vitis HLS: its achieved II and depth.

    Attributes:
        name: The tool's name of the loop.
        module: The module that contains it.
        ii: The achieved initiation interval; None if the loop is not pipelined.
        depth: The cycles of one iteration.
        source: "FILE:LINE" of the outermost loop of the nest; "" if this version of the tool does not report it.
        issue: The violations that the tool reports for the loop; "" if it reports none.
    """

    name: str
    module: str
    ii: int | None
    depth: int | None
    source: str = ""
    issue: str = ""


@dataclass(frozen=True)
class StorageFact:
    """A memory, FIFO or AXI adapter in the report of Vitis HLS, with its BRAMs and URAMs.

    Attributes:
        kind: The tool's name of the kind, such as ram_s2p, rom_1p, fifo or m_axi.
        impl: bram, uram, lutram, srl or auto.
        bram18: The number of BRAM18.
        uram: The number of URAMs.
    """

    module: str
    variable: str
    kind: str
    impl: str
    bram18: int
    uram: int


@dataclass(frozen=True)
class ModuleFact:
    """An RTL module in the report of Vitis HLS, which implements a C++ function or a loop.

    Attributes:
        estimated_ns: The estimated delay of its longest path.
        kind: The tool's word for its pipelining, such as no, yes, dataflow or rewind.
    """

    name: str
    estimated_ns: float | None
    kind: str
    resources: Resources
    loops: tuple[LoopFact, ...]
    storages: tuple[StorageFact, ...] = ()


@dataclass(frozen=True)
class PragmaFact:
    """A pragma that Vitis HLS did not accept, with its reason.

    Attributes:
        location: "FILE:LINE".
        text: The directive.
        message: The tool's reason.
    """

    location: str
    text: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.text} ({self.message})"


@dataclass(frozen=True)
class Synthesis:
    """The results of Vitis HLS's C synthesis, read from csynth.xml, or from csynth.rpt if that is missing.

    Attributes:
        target_ns: The target clock period.
        uncertainty_ns: The part of the period that is reserved for routing.
        estimated_ns: The estimated delay of the longest path.
        latency: The largest latency of the top function, in cycles.
        interval: The largest interval between two starts of the top function, in cycles.
        resources: The counts of the whole design.
        available: The counts of the device.
        refused: Directives that the tool did not accept.
    """

    version: str
    top: str
    part: str
    target_ns: float | None
    uncertainty_ns: float | None
    estimated_ns: float | None
    latency: int | None
    interval: int | None
    resources: Resources
    available: Resources
    modules: tuple[ModuleFact, ...]
    refused: tuple[PragmaFact, ...] = ()

    @property
    def loops(self) -> tuple[LoopFact, ...]:
        """The loops of all modules, with their achieved II and depth."""
        return tuple(loop for module in self.modules for loop in module.loops)

    @property
    def storages(self) -> tuple[StorageFact, ...]:
        """The memories, FIFOs and adapters of all modules."""
        return tuple(storage for module in self.modules for storage in module.storages)

    @property
    def budget_ns(self) -> float | None:
        """The time available for a path in ns: the target period without the uncertainty. None if unknown."""
        if self.target_ns is None or self.uncertainty_ns is None:
            return None
        return self.target_ns - self.uncertainty_ns


@dataclass(frozen=True)
class Violation:
    """The reason, in the words of Vitis HLS's log, why a loop did not reach its target II."""

    module: str
    loop: str
    cause: str


@dataclass(frozen=True)
class Step:
    """One operation of a critical path, with its delay in ns.

    Attributes:
        source: "FILE:LINE"; "" if the operation has no place in the sources.
        ns: The delay of the operation.
    """

    operation: str
    source: str
    ns: float


@dataclass(frozen=True)
class CriticalPath:
    """The longest chain of operations that an RTL module executes in one cycle, with its delay in ns."""

    module: str
    ns: float
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class CoSimulation:
    """The results of a co-simulation: Pass, Fail or NA, and clock cycles.

    Attributes:
        status: Pass, Fail or NA.
        latency: The largest latency of the top function, in cycles. All three counts are missing after a failure.
        interval: The largest interval between two starts, in cycles.
        total: The cycles of the whole simulation.
    """

    status: str
    latency: int | None
    interval: int | None
    total: int | None


@dataclass(frozen=True)
class Utilisation:
    """The resource counts of Vivado's report_utilization, for the whole design or one instance.

    Attributes:
        state: Vivado's name of the design's state: Synthesized, Fully Placed or Routed.
        cell: The instance whose resources are counted; "" for the whole design.
    """

    version: str
    part: str
    state: str
    cell: str
    counts: Resources
    available: Resources


@dataclass(frozen=True)
class ClockFact:
    """One clock of Vivado's timing summary: period, setup slack and hold slack in ns.

    Attributes:
        wns_ns: The worst setup slack of paths within this clock; None if it has no path.
        whs_ns: The worst hold slack of paths within this clock; None if it has no path.
    """

    name: str
    period_ns: float
    wns_ns: float | None
    whs_ns: float | None


@dataclass(frozen=True)
class Timing:
    """Vivado's timing summary: the worst slacks in ns, failing endpoints, and all clocks.

    Attributes:
        wns_ns: The worst setup slack of all clocks.
        whs_ns: The worst hold slack of all clocks.
        failing: The number of endpoints that miss setup.
    """

    version: str
    state: str
    wns_ns: float
    whs_ns: float
    failing: int
    clocks: tuple[ClockFact, ...]
