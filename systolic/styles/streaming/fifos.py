"""FIFO depths from the cycle trace: the least that lose no throughput, each candidate solved again, none guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from boards.errors import SimulationError
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from systolic.styles.streaming.measure import FRAMES
from systolic.trace.depths import bisect
from systolic.trace.solver import Memory, SolverOptions, Trace, solver_options

LATENCY_SLACK = 0.05
"""Of a frame's interval: what the depths may add to the latency; they may add nothing to the interval."""

MOST_SOLVED = 120
"""Solutions after which what is left stays as deep as it was ever full: those of a large network take a second each."""

SHIFT_REGISTER = 32
"""Depth up to which a FIFO takes one LUT a bit (SRL32, UG574): there it is 2 where that loses nothing, and otherwise as
deep as it was ever full."""

FIXED_DEPTH = 1024
"""What users of other flows take where they have no time to find the least."""


@dataclass(frozen=True)
class Fifos:
    """depths, widths: by stream, in words and in bits. interval, latency: cycles with them.

    best_interval: with unbounded FIFOs. bits: what they hold; fixed_bits: with every FIFO FIXED_DEPTH deep, as deep as
    the deepest need if that is more.
    """

    depths: Mapping[str, int]
    widths: Mapping[str, int]
    interval: int
    latency: int
    best_interval: int
    bits: int
    fixed_bits: int
    solved: int


def size_fifos(trace: Trace, memory: Memory, clock_mhz: float, bits: Mapping[str, int]) -> Fifos:
    """Least depths for the trace of one frame and of FRAMES (systolic.streaming.measure.trace_pipeline).

    bits: of a word of each stream inside of the pipeline; others, the DMA's, stay as they are. First one depth for
    all, which is soon found, then each stream below it, the widest first. SimulationError where no depth frees a
    deadlock.
    """
    search = _Search.of(trace, memory, clock_mhz, bits)
    most = search.unbounded()
    best = search.times(most)
    if best is None:
        raise SimulationError(
            "the pipeline deadlocks even with unbounded FIFOs: a join waits for what its own branch still holds; "
            "fold the blocks between fork and join so that each gives a word without waiting for the next frame"
        )

    def enough(depths: Mapping[str, int]) -> bool:
        found = search.times(depths)
        slack = int((best[1] - best[0]) / (FRAMES - 1) * LATENCY_SLACK)
        return found is not None and found[1] - found[0] <= best[1] - best[0] and found[1] <= best[1] + slack

    depths = _least(search, most, enough, bits)
    first, last = search.times(depths) or best
    deep = max(FIXED_DEPTH, *depths.values())
    return Fifos(
        depths=depths,
        widths=dict(bits),
        interval=-(-(last - first) // (FRAMES - 1)),
        latency=first,
        best_interval=-(-(best[1] - best[0]) // (FRAMES - 1)),
        bits=sum(bits[name] * depth for name, depth in depths.items()),
        fixed_bits=sum(width * deep for width in bits.values()),
        solved=search.count[0],
    )


def _least(
    search: _Search,
    most: Mapping[str, int],
    enough: Callable[[Mapping[str, int]], bool],
    bits: Mapping[str, int],
) -> dict[str, int]:
    def capped(cap: int) -> dict[str, int]:
        return {name: max(LEAST_FIFO_DEPTH, min(depth, cap)) for name, depth in most.items()}

    cap = next((2**i for i in range(1, 32) if enough(capped(2**i))), max(most.values(), default=LEAST_FIFO_DEPTH))
    depths = _emptied(search, capped(cap), enough)

    def fits(name: str, depth: int) -> bool:
        return depth >= LEAST_FIFO_DEPTH and enough({**depths, name: depth})

    deep = [name for name, depth in depths.items() if depth > SHIFT_REGISTER]
    for name in sorted(deep, key=lambda one: bits[one] * depths[one], reverse=True):
        if search.count[0] < MOST_SOLVED:
            depths[name] = bisect(partial(fits, name), depths[name])
    shallow = [name for name, depth in depths.items() if LEAST_FIFO_DEPTH < depth <= SHIFT_REGISTER]
    return _shallower(depths, shallow, enough, search)


def _shallower(
    depths: dict[str, int], names: list[str], enough: Callable[[Mapping[str, int]], bool], search: _Search
) -> dict[str, int]:
    """Those of ``names`` at LEAST_FIFO_DEPTH that may be, all at once or in halves."""
    if not names or search.count[0] >= MOST_SOLVED:
        return depths
    tried = {**depths, **dict.fromkeys(names, LEAST_FIFO_DEPTH)}
    if enough(tried):
        return tried
    if len(names) == 1:
        return depths
    half = len(names) // 2
    return _shallower(_shallower(depths, names[:half], enough, search), names[half:], enough, search)


def _emptied(search: _Search, depths: Mapping[str, int], enough: Callable[[Mapping[str, int]], bool]) -> dict[str, int]:
    """Without the places that no word ever took: a FIFO as deep as its fullest moment changes no cycle."""
    full = search.fullest(depths)
    least = {name: max(LEAST_FIFO_DEPTH, min(depth, full[name] + 1)) for name, depth in depths.items()}
    return least if enough(least) else dict(depths)


@dataclass(frozen=True, eq=False)
class _Search:
    """The two traced regions: one frame, and FRAMES. count: of solutions so far."""

    trace: Trace
    regions: tuple[int, int]
    memory: Memory
    clock_mhz: float
    bits: Mapping[str, int]
    count: list[int]

    @staticmethod
    def of(trace: Trace, memory: Memory, clock_mhz: float, bits: Mapping[str, int]) -> _Search:
        found = [number for number, region in enumerate(trace.regions) if not region.top]
        if len(found) != 2:
            raise SimulationError(f"FIFOs are sized from two traced runs of the pipeline, not {len(found)}")
        return _Search(trace, (found[0], found[1]), memory, clock_mhz, bits, [0])

    def unbounded(self) -> dict[str, int]:
        streams = self.trace.regions[self.regions[1]].streams
        return {s.name: max(LEAST_FIFO_DEPTH, s.elements) for s in streams if s.name in self.bits}

    @property
    def options(self) -> SolverOptions:
        return solver_options(self.memory, self.clock_mhz)

    def fullest(self, depths: Mapping[str, int]) -> dict[str, int]:
        """The most words that each stream held at once."""
        self.count[0] += 1
        held = dict.fromkeys(depths, 0)
        for region in self.trace.solve(self.memory, self.clock_mhz, depths).regions:
            for stream in region.streams:
                if stream.name in held:
                    held[stream.name] = max(held[stream.name], stream.max_occupancy)
        return held

    def times(self, depths: Mapping[str, int]) -> tuple[int, int] | None:
        """Cycles of one frame and of FRAMES; None for a deadlock."""
        self.count[0] += 1
        options, found = self.options, []
        for number in self.regions:
            given = self.trace.regions[number].depths(depths)
            cycles = self.trace.region_cycles(number, given, options)
            if cycles is None:
                return None
            found.append(cycles)
        return found[0], found[1]
