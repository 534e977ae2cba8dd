"""What a trace is made of, before any time is known, and what its solver is told."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.hardware.fifos import SHIFT_REGISTER, fifo_kind
from systolic.trace.timing import FabricTiming, MemoryTiming


class SolverOptions(ctypes.Structure):
    """struct Options of solve.h, field by field."""

    _fields_ = (
        ("ddr_bytes_per_cycle", ctypes.c_double),
        ("read_latency", ctypes.c_int64),
        ("write_latency", ctypes.c_int64),
        ("read_outstanding", ctypes.c_int64),
        ("write_outstanding", ctypes.c_int64),
        ("max_burst_beats", ctypes.c_int64),
        ("fifo_latency", ctypes.c_int64),
        ("memory_fifo_latency", ctypes.c_int64),
        ("loop_entry", ctypes.c_int64),
        ("request_stages", ctypes.c_int64),
        ("timeline_bins", ctypes.c_int64),
        ("limit", ctypes.c_int64),
        ("frames", ctypes.c_int64),
    )


def solver_options(
    memory: MemoryTiming,
    clock_mhz: float,
    fabric: FabricTiming | None = None,
    timeline_bins: int = 0,
    limit: int = 0,
    frames: int = 0,
) -> SolverOptions:
    """What the solver is told; limit: of cycles, beyond which it gives up, 0 for none. frames: of a region, for the
    time between two of them; 0 where that is not asked."""
    fabric = fabric or FabricTiming()
    return SolverOptions(
        memory.bytes_per_cycle(clock_mhz),
        round(memory.read_latency_ns * clock_mhz / 1000),
        round(memory.write_latency_ns * clock_mhz / 1000),
        memory.read_outstanding,
        memory.write_outstanding,
        memory.max_burst_beats,
        fabric.fifo_latency,
        fabric.memory_fifo_latency,
        fabric.loop_entry,
        fabric.request_stages,
        timeline_bins,
        limit,
        frames,
    )


@dataclass(frozen=True)
class StreamFacts:
    """A FIFO as declared; ``group`` is its name without array indices, which share one pragma.

    bits: of a word in hardware. impl: that BIND_STORAGE says, "" where the tool chooses.
    """

    name: str
    depth: int
    elements: int
    element_bytes: int
    writer: str
    reader: str
    bits: int
    impl: str = ""

    @property
    def group(self) -> str:
        return self.name.partition("[")[0]

    def kind(self, depth: int, by_depth: bool) -> str:
        """What is built of it at ``depth`` words. by_depth: see ``Trace``."""
        return fifo_kind(self.bits, depth, "" if by_depth else self.impl)


@dataclass(frozen=True)
class RegionFacts:
    """What was traced in one region, before any time is known."""

    label: int
    top: bool
    processes: tuple[str, ...]
    accesses: int
    streams: tuple[StreamFacts, ...]

    def depths(self, given: Mapping[str, int]) -> tuple[int, ...]:
        """One depth a stream: given for its name, given for its array, or declared."""
        return tuple(given.get(s.name, given.get(s.group, s.depth)) for s in self.streams)

    def in_memory(self, depths: Sequence[int], by_depth: bool) -> tuple[bool, ...]:
        """Which streams are memories, and no shift registers, at these depths. by_depth: see ``Trace``."""
        return tuple(s.kind(depth, by_depth) != SHIFT_REGISTER for s, depth in zip(self.streams, depths, strict=True))


class Traced(Protocol):
    """What a search for depths asks of a trace."""

    @property
    def regions(self) -> tuple[RegionFacts, ...]: ...

    def region_cycles(self, number: int, depths: Sequence[int], options: SolverOptions) -> int | None: ...
