"""FIFO depths from the cycle trace: the least that lose no throughput."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from boards.errors import MismatchError
from scheduler.hardware.fifos import IN_STEP, FifoRow, fifo_kind
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from systolic.styles.streaming.measure import unbounded
from systolic.trace.depths import Depths, DepthSearch, TracedFifos, least_depths
from systolic.trace.solver import MemoryTiming, Trace, solver_options
from systolic.trace.timing import DeadlockError

LATENCY_SLACK = 0.05
"""Of a frame's interval: what the depths may add to the latency; they may add nothing to the interval."""

SEARCH = DepthSearch(shallowest=LEAST_FIFO_DEPTH, alike=32, solutions=120)
"""A FIFO of up to 32 words takes one LUT a bit (SRL32, UG574). Solutions of a large network take a second each."""

FIXED_DEPTH = 1024
"""What users of other flows take where they have no time to find the least."""


@dataclass(frozen=True)
class Fifos:
    """depths, widths: by stream, in words and in bits. interval, latency: cycles with them.

    best_interval: with unbounded FIFOs. bits: what they hold; fixed_bits: with every FIFO FIXED_DEPTH deep, as deep as
    the deepest need if that is more. solved: how often the trace was solved. sized: whether the depths are the least
    that lose nothing, or those that the search estimated.
    """

    depths: Mapping[str, int]
    widths: Mapping[str, int]
    interval: int
    latency: int
    best_interval: int
    bits: int
    fixed_bits: int
    solved: int
    sized: bool = True

    @property
    def table(self) -> tuple[FifoRow, ...]:
        """The FIFOs, one by one."""
        deep = "the least depth at which the trace loses no cycle" if self.sized else "estimated"
        rows = ((name, self.widths[name], depth) for name, depth in self.depths.items())
        return tuple(
            FifoRow(name, 1, bits, depth, fifo_kind(bits, depth), IN_STEP if depth <= LEAST_FIFO_DEPTH else deep)
            for name, bits, depth in rows
        )


def estimated_fifos(
    trace: Trace, memory: MemoryTiming, clock_mhz: float, bits: Mapping[str, int], declared: Depths
) -> Fifos:
    """Return the FIFOs as they are declared, with the pace of the pipeline; DeadlockError if it deadlocks."""
    trace.solve(memory, clock_mhz, declared)
    frames = _TracedFrames(trace, _two_runs(trace), memory, clock_mhz, bits)
    pace, best = frames.pace(declared), frames.pace(unbounded(trace, bits))
    assert pace is not None  # no deadlock, as has just been solved
    return replace(_fifos(bits, declared, pace, best or pace), solved=3, sized=False)


def size_fifos(trace: Trace, memory: MemoryTiming, clock_mhz: float, bits: Mapping[str, int]) -> Fifos:
    """Least depths for the trace of one frame and of several (systolic.styles.streaming.measure.trace_design).

    bits: of a word of each stream inside of the pipeline; others, the DMA's, stay as they are. Raises DeadlockError if
    the pipeline deadlocks with FIFOs of any depth.
    """
    frames = _TracedFrames(trace, _two_runs(trace), memory, clock_mhz, bits)
    endless = unbounded(trace, bits)
    best = frames.pace(endless)
    if best is None:
        raise DeadlockError(
            trace.regions[frames.regions[0]].label,
            ring=(),
            cure=None,
            remedy="fold the blocks between fork and join so that each gives a word without waiting for the next frame",
        )

    def keeps_pace(depths: Depths) -> bool:
        pace = frames.pace(depths)
        return (
            pace is not None
            and pace.interval <= best.interval
            and pace.all_frames <= best.all_frames + int(best.interval * LATENCY_SLACK)
        )

    fifos = TracedFifos(endless, keeps_pace, lambda name, depth: bits[name] * depth, frames.fullest)
    depths, solved = least_depths(fifos, SEARCH, trace.tell)
    return replace(_fifos(bits, depths, frames.pace(depths) or best, best), solved=solved + 1)


def _fifos(bits: Mapping[str, int], depths: Depths, pace: _Pace, best: _Pace) -> Fifos:
    deepest = max(FIXED_DEPTH, *depths.values())
    return Fifos(
        depths=depths,
        widths=dict(bits),
        interval=pace.interval,
        latency=pace.first_frame,
        best_interval=best.interval,
        bits=sum(bits[name] * depth for name, depth in depths.items()),
        fixed_bits=sum(width * deepest for width in bits.values()),
        solved=0,
    )


@dataclass(frozen=True)
class _Pace:
    """Cycles of one frame, of several in a row, and between the last two of these."""

    first_frame: int
    all_frames: int
    interval: int


@dataclass(frozen=True, eq=False)
class _TracedFrames:
    """The two traced regions: one frame, and several."""

    trace: Trace
    regions: tuple[int, int]
    memory: MemoryTiming
    clock_mhz: float
    bits: Mapping[str, int]

    def fullest(self, depths: Depths) -> dict[str, int]:
        """The most words that each stream held at once."""
        fullest = dict.fromkeys(depths, 0)
        for region in self.trace.solve(self.memory, self.clock_mhz, depths).regions:
            for stream in region.streams:
                if stream.name in fullest:
                    fullest[stream.name] = max(fullest[stream.name], stream.max_occupancy)
        return fullest

    def pace(self, depths: Depths) -> _Pace | None:
        """None for a deadlock."""
        options = solver_options(self.memory, self.clock_mhz, frames=self.trace.frames)
        single, several = (
            self.trace.region_pace(number, self.trace.regions[number].depths(depths), options)
            for number in self.regions
        )
        return None if single is None or several is None else _Pace(single[0], *several)


def _two_runs(trace: Trace) -> tuple[int, int]:
    """The traced regions of one frame and of several."""
    regions = [number for number, region in enumerate(trace.regions) if not region.top]
    if len(regions) != 2:
        raise MismatchError("the number of traced runs of the pipeline that FIFOs are sized from", len(regions), 2)
    return regions[0], regions[1]
