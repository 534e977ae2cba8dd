"""The least FIFO depths that lose no throughput, found from a pipeline's cycle trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from boards.errors import MismatchError
from scheduler.hardware.fifos import IN_STEP, FifoRow, fifo_kind
from scheduler.hardware.primitives import MIN_FIFO_DEPTH
from systolic.styles.streaming.measure import unbounded
from systolic.trace.depths import Depths, DepthSearch, TracedFifos, least_depths
from systolic.trace.solver import MemoryTiming, Trace, solver_options
from systolic.trace.timing import DeadlockError

LATENCY_SLACK = 0.05
"""The latency that shallower FIFOs may add, as a share of the interval of a frame. The interval must not grow."""

SEARCH = DepthSearch(shallowest=MIN_FIFO_DEPTH, equal_cost_depth=32, solutions=120)
"""The limits of the search.

A FIFO of up to 32 words takes one LUT per bit (SRL32, UG574). The number of solutions is limited because each takes a
second for a large network.
"""

FIXED_DEPTH = 1024
"""The depth in words to compare with: a common choice for all FIFOs if their least depths are not known."""


@dataclass(frozen=True)
class PipelineFifos:
    """The FIFOs of a pipeline, and the cycles that the trace has with their depths.

    Attributes:
        depths: The depth of each FIFO in words, by the name of its stream.
        widths: The bits of a word, by the name of the stream.
        interval: Cycles between two frames in the steady state.
        latency: Cycles from the input of the first frame to its output.
        best_interval: ``interval`` with unbounded FIFOs.
        bits: The total size of the FIFOs in bits.
        fixed_bits: The total size in bits if all FIFOs had one depth: FIXED_DEPTH, or the deepest of ``depths`` if that
            is more.
        solved: The number of times that the trace was solved.
        sized: Whether the depths are the least ones from the trace, not the estimates of the folding search.
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
        """The rows of the FIFO table: name, bits, depth in words, primitive and the reason for the depth."""
        deep = "the least depth at which the trace loses no cycle" if self.sized else "estimated"
        rows = ((name, self.widths[name], depth) for name, depth in self.depths.items())
        return tuple(
            FifoRow(name, 1, bits, depth, fifo_kind(bits, depth), IN_STEP if depth <= MIN_FIFO_DEPTH else deep)
            for name, bits, depth in rows
        )


def estimated_fifos(
    trace: Trace, memory: MemoryTiming, clock_mhz: float, bits: Mapping[str, int], declared: Depths
) -> PipelineFifos:
    """Return all FIFOs with the depths that the design declares, and the traced cycles with these depths.

    Args:
        trace: The trace of one frame and of several frames.
        memory: The timing of the memory.
        clock_mhz: The clock.
        bits: The bits of a word, by the name of the stream.
        declared: The declared depths in words, by the name of the stream.

    Raises:
        DeadlockError: The pipeline deadlocks with these depths.
    """
    trace.solve(memory, clock_mhz, declared)
    frames = _TracedFrames(trace, _two_runs(trace), memory, clock_mhz, bits)
    pace, best = frames.pace(declared), frames.pace(unbounded(trace, bits))
    assert pace is not None  # a deadlock would have raised an error in trace.solve
    return replace(_fifos(bits, declared, pace, best or pace), solved=3, sized=False)


def size_fifos(trace: Trace, memory: MemoryTiming, clock_mhz: float, bits: Mapping[str, int]) -> PipelineFifos:
    """Search the least FIFO depths that lose no throughput, by solving the trace for each candidate.

    Args:
        trace: The trace of one frame and of several frames, made by ``measure.trace_design``.
        memory: The timing of the memory.
        clock_mhz: The clock.
        bits: The bits of a word of each stream inside the pipeline. Other streams, such as the DMA's, keep their depth.

    Raises:
        DeadlockError: The pipeline deadlocks with FIFOs of any depth.
    """
    frames = _TracedFrames(trace, _two_runs(trace), memory, clock_mhz, bits)
    endless = unbounded(trace, bits)
    best = frames.pace(endless)
    if best is None:
        raise DeadlockError(
            trace.regions[frames.regions[0]].label,
            ring=(),
            cure=None,
            remedy="change the folds of the blocks between fork and join: each must write its output without input "
            "from the next frame",
        )

    def keeps_pace(depths: Depths) -> bool:
        pace = frames.pace(depths)
        return (
            pace is not None
            and pace.interval <= best.interval
            and pace.all_frames <= best.all_frames + int(best.interval * LATENCY_SLACK)
        )

    fifos = TracedFifos(endless, keeps_pace, lambda name, depth: bits[name] * depth, frames.fullest)
    depths, solved = least_depths(fifos, SEARCH, trace.progress)
    return replace(_fifos(bits, depths, frames.pace(depths) or best, best), solved=solved + 1)


def _fifos(bits: Mapping[str, int], depths: Depths, pace: _Pace, best: _Pace) -> PipelineFifos:
    deepest = max(FIXED_DEPTH, *depths.values())
    return PipelineFifos(
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
    """The traced cycles of a pipeline with given FIFO depths: of one frame, of several frames, and between frames.

    Attributes:
        first_frame: Cycles of the execution of one frame.
        all_frames: Cycles of the execution of several frames in a row.
        interval: Cycles between the last two of the several frames.
    """

    first_frame: int
    all_frames: int
    interval: int


@dataclass(frozen=True, eq=False)
class _TracedFrames:
    """A trace of one frame and of several frames in a row, which can be solved for any FIFO depths.

    Attributes:
        regions: The numbers of the two regions in the trace: one frame, and several frames.
        memory: The timing of the memory.
        clock_mhz: The clock.
        bits: The bits of a word, by the name of the stream.
    """

    trace: Trace
    regions: tuple[int, int]
    memory: MemoryTiming
    clock_mhz: float
    bits: Mapping[str, int]

    def fullest(self, depths: Depths) -> dict[str, int]:
        """Return {stream: the most words that it held at once} if the FIFOs have ``depths``."""
        fullest = dict.fromkeys(depths, 0)
        for region in self.trace.solve(self.memory, self.clock_mhz, depths).regions:
            for stream in region.streams:
                if stream.name in fullest:
                    fullest[stream.name] = max(fullest[stream.name], stream.max_occupancy)
        return fullest

    def pace(self, depths: Depths) -> _Pace | None:
        """Return the traced cycles if the FIFOs have ``depths``; None for a deadlock."""
        options = solver_options(self.memory, self.clock_mhz, frames=self.trace.frames)
        single, several = (
            self.trace.region_pace(number, self.trace.regions[number].depths(depths), options)
            for number in self.regions
        )
        return None if single is None or several is None else _Pace(single[0], *several)


def _two_runs(trace: Trace) -> tuple[int, int]:
    """Return the trace's indices of the execution with one frame and of the execution with several frames."""
    regions = [number for number, region in enumerate(trace.regions) if not region.top]
    if len(regions) != 2:
        raise MismatchError("the number of traced runs of the pipeline that FIFOs are sized from", len(regions), 2)
    return regions[0], regions[1]
