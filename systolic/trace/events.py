"""The recorded content of a trace before it is solved, and the options of the solver."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.hardware.fifos import SHIFT_REGISTER, fifo_kind
from systolic.trace.timing import FabricTiming, MemoryTiming


class SolverOptions(ctypes.Structure):
    """The options of the trace solver, as the C struct ``Options`` of solve.h: DDR timing, latencies and limits."""

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
    """Return the solver's options for this DDR timing and clock, converted to cycles.

    Args:
        memory: The DDR's timing.
        clock_mhz: The clock in MHz.
        fabric: The cycles of the HLS tool's own logic. None takes the defaults.
        timeline_bins: The number of bins per region and process of a timeline. 0 records no timeline.
        limit: The number of cycles beyond which the solver stops. 0 means no limit.
        frames: The number of frames in a region, for the interval between two frames. 0 computes no interval.
    """
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
    """A FIFO of a traced region: its declaration in the generated code, and the words that passed through.

    Attributes:
        name: The name in the generated code, with array indices.
        depth: The declared depth in words.
        elements: The number of words that pass through the FIFO in the region.
        element_bytes: The size of a word in the simulation, in bytes.
        writer: The name of the process that writes, or "".
        reader: The name of the process that reads, or "".
        bits: The width of a word in hardware.
        impl: The implementation in the BIND_STORAGE pragma, or "" if the tool chooses.
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
        """The name without array indices. The FIFOs of an array share one pragma, and so one depth."""
        return self.name.partition("[")[0]

    def kind(self, depth: int, by_depth: bool) -> str:
        """Return the primitive of the FIFO at ``depth`` words: "srl" (shift register), "bram" or "lutram".

        Args:
            depth: The depth in words.
            by_depth: Whether the depth decides alone. If not, the pragma's ``impl`` decides where the design has one.
        """
        return fifo_kind(self.bits, depth, "" if by_depth else self.impl)


@dataclass(frozen=True)
class RegionFacts:
    """The recorded content of one region: an execution of a DATAFLOW region, or the top's sequential code.

    Attributes:
        label: The number that the generated code gives the region.
        top: Whether the region is the top's sequential code.
        processes: The names of the processes.
        accesses: The number of recorded accesses to FIFOs and memory.
        streams: The FIFOs.
    """

    label: int
    top: bool
    processes: tuple[str, ...]
    accesses: int
    streams: tuple[StreamFacts, ...]

    def depths(self, given: Mapping[str, int]) -> tuple[int, ...]:
        """Return each FIFO's depth: the one in ``given`` by its name or its array's name, else the declared."""
        return tuple(given.get(s.name, given.get(s.group, s.depth)) for s in self.streams)

    def in_memory(self, depths: Sequence[int], by_depth: bool) -> tuple[bool, ...]:
        """Return for each FIFO whether it is a BRAM or LUTRAM at its depth, and not a shift register."""
        return tuple(s.kind(depth, by_depth) != SHIFT_REGISTER for s, depth in zip(self.streams, depths, strict=True))


class Traced(Protocol):
    """The methods of a trace that a search for FIFO depths uses."""

    @property
    def regions(self) -> tuple[RegionFacts, ...]: ...

    def region_cycles(self, number: int, depths: Sequence[int], options: SolverOptions) -> int | None: ...
