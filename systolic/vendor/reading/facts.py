"""What a report says, as values. None, or an empty tuple, where a report does not say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """Counts of a design or a module, or of a device. bram18: halves of a block RAM. lutram: of the LUTs, those that
    are memory or shift registers."""

    lut: float | None = None
    ff: float | None = None
    dsp: float | None = None
    bram18: float | None = None
    uram: float | None = None
    lutram: float | None = None

    def count(self, kind: str) -> float | None:
        """Of ``kind``: dsp, bram36, uram, lut, lutram or ff."""
        if kind == "bram36":
            return None if self.bram18 is None else self.bram18 / 2
        value: float | None = getattr(self, kind)
        return value


@dataclass(frozen=True)
class LoopFact:
    """A loop as it was scheduled. ii: achieved initiation interval, None where it is not pipelined. depth: cycles of an
    iteration. module: that it stands in. source: "FILE:LINE" of its outermost loop, where the version tells it. issue:
    what the tool calls a violation."""

    name: str
    module: str
    ii: int | None
    depth: int | None
    source: str = ""
    issue: str = ""


@dataclass(frozen=True)
class StorageFact:
    """A memory, FIFO or adapter. kind: ram_s2p, rom_1p, fifo, m_axi … impl: bram, uram, lutram, srl, auto."""

    module: str
    variable: str
    kind: str
    impl: str
    bram18: int
    uram: int


@dataclass(frozen=True)
class ModuleFact:
    """A function as hardware. estimated_ns: of its longest path. kind: how it works: no, yes, dataflow, rewind …"""

    name: str
    estimated_ns: float | None
    kind: str
    resources: Resources
    loops: tuple[LoopFact, ...]
    storages: tuple[StorageFact, ...] = ()


@dataclass(frozen=True)
class PragmaFact:
    """A directive that the tool did not take. location: "FILE:LINE"."""

    location: str
    text: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.text} ({self.message})"


@dataclass(frozen=True)
class Synthesis:
    """What C synthesis says: csynth.xml, or csynth.rpt where that alone is there.

    target_ns, uncertainty_ns: asked for; the estimate is to stay below their difference. latency, interval: cycles of
    the top, the most. refused: directives that the tool did not take.
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
        """Of all modules."""
        return tuple(loop for module in self.modules for loop in module.loops)

    @property
    def storages(self) -> tuple[StorageFact, ...]:
        """Of all modules."""
        return tuple(storage for module in self.modules for storage in module.storages)

    @property
    def budget_ns(self) -> float | None:
        """What a path may take: the period without the uncertainty."""
        if self.target_ns is None or self.uncertainty_ns is None:
            return None
        return self.target_ns - self.uncertainty_ns


@dataclass(frozen=True)
class Violation:
    """Why a loop did not reach the II that it was to have, in the tool's words."""

    module: str
    loop: str
    cause: str


@dataclass(frozen=True)
class Step:
    """An operation of a critical path. source: "FILE:LINE" or ""."""

    operation: str
    source: str
    ns: float


@dataclass(frozen=True)
class CriticalPath:
    """The longest chain of operations that a module does in one cycle."""

    module: str
    ns: float
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class CoSimulation:
    """What the RTL did. status: Pass, Fail or NA. Cycles are None where it failed."""

    status: str
    latency: int | None
    interval: int | None
    total: int | None


@dataclass(frozen=True)
class Utilisation:
    """What Vivado counts. state: Synthesized, Fully Placed, Routed. cell: that it was counted in, "" the whole
    design."""

    version: str
    part: str
    state: str
    cell: str
    counts: Resources
    available: Resources


@dataclass(frozen=True)
class ClockFact:
    """A clock of a timing summary. wns_ns, whs_ns: worst slacks of setup and hold inside it, None where it has no
    path."""

    name: str
    period_ns: float
    wns_ns: float | None
    whs_ns: float | None


@dataclass(frozen=True)
class Timing:
    """What Vivado says of timing. wns_ns, whs_ns: the worst slacks of all clocks. failing: endpoints that miss
    setup."""

    version: str
    state: str
    wns_ns: float
    whs_ns: float
    failing: int
    clocks: tuple[ClockFact, ...]
