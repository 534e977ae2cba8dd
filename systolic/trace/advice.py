"""The advised FIFO depths of a traced design, and the one FIFO whose greater depth resolves a deadlock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from boards.errors import RangeError
from boards.progress import Progress, ProgressStep, silent
from systolic.trace.depths import Depths, DepthSearch, TracedFifos, bisect, greatest, least_depths
from systolic.trace.events import RegionFacts, SolverOptions, Traced
from systolic.trace.timing import DeadlockError

CAPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""The limits of the depth at which the curve of the advice has points, in words."""


@dataclass(frozen=True)
class Advice:
    """The advised depth of each FIFO, the same in all regions of the trace, and the cycles with these depths.

    The cycles do not include the start and stop of the regions.

    Attributes:
        depths: The advised depth in words, by the name of a stream or of an array of streams.
        declared: The declared depth in words, by the same names.
        best_cycles: The cycles with unbounded FIFOs.
        cycles: The cycles with the advised depths.
        declared_cycles: The cycles with the declared depths. None if these deadlock.
        curve: Pairs (limit, cycles) with every advised depth limited. A deadlock has None instead of cycles.
    """

    depths: Mapping[str, int]
    declared: Mapping[str, int]
    best_cycles: int
    cycles: int
    declared_cycles: int | None
    curve: tuple[tuple[int, int | None], ...]


def advise(trace: Traced, options: SolverOptions, slack: float, progress: Progress = silent) -> Advice:
    """Return the least FIFO depths that cost at most the share ``slack`` of the cycles with unbounded FIFOs.

    This holds for each region. If the declared depths cost at most ``slack`` of the cycles of all regions, a region may
    also take as long as with them. Then no FIFO is advised deeper than declared.

    Each name has one depth for all regions, because the same hardware runs all of them. The regions are searched in
    ascending order of their accesses. A search starts from the depths that earlier regions need, so that most regions
    are solved once.

    Args:
        trace: The trace.
        options: The options of the solver.
        slack: The fraction of additional cycles that is allowed.

    Raises:
        DeadlockError: A region deadlocks at all depths.
        RangeError: The slack is below 0.
    """
    if slack < 0:
        raise RangeError("the slack of FIFO advice", slack, 0)
    regions = [_Region(trace, number, options) for number in range(len(trace.regions))]
    best = [region.best() for region in regions]
    declared = [region.declared_cycles() for region in regions]
    limits = _limits(best, declared, slack)
    depths: dict[str, int] = {}
    for share, region in _by_accesses(regions):
        progress(ProgressStep("searching FIFO depths", share))
        depths |= region.least_depths(limits[region.number], depths)
    return Advice(
        depths=depths,
        declared=greatest({stream.group: stream.depth for stream in region.facts.streams} for region in regions),
        best_cycles=sum(best),
        cycles=_total(regions, depths) or 0,
        declared_cycles=_sum(declared),
        curve=_curve(regions, depths, progress),
    )


def _limits(best: Sequence[int], declared: Sequence[int | None], slack: float) -> list[int]:
    """Return the cycles that each region may take, from its cycles with unbounded and with declared depths."""
    limits = [int(cycles * (1 + slack)) for cycles in best]
    total = _sum(declared)
    if total is None or total > sum(best) * (1 + slack):
        return limits
    return [max(limit, cycles or 0) for limit, cycles in zip(limits, declared, strict=True)]


def _by_accesses(regions: Sequence[_Region]) -> Iterator[tuple[float, _Region]]:
    """Yield (share of all accesses done so far, region) for each region, the one with fewest accesses first."""
    total, done = sum(region.facts.accesses for region in regions), 0
    for region in sorted(regions, key=lambda region: region.facts.accesses):
        yield done / max(total, 1), region
        done += region.facts.accesses


def remedy(
    trace: Traced, number: int, depths: Sequence[int], full: Sequence[int], options: SolverOptions
) -> tuple[str, int] | None:
    """Return one full FIFO and the least depth at which it alone resolves a deadlock; None if there is none.

    An array of streams is deepened as a whole.

    Args:
        trace: The trace.
        number: The index of the region that deadlocks.
        depths: The depth of each stream of the region, in words.
        full: The indices of the full streams in the deadlock.
        options: The options of the solver.

    Returns:
        The name of the stream or array and its depth in words, or None if no single depth is enough.
    """
    streams = trace.regions[number].streams
    for group in dict.fromkeys(streams[stream].group for stream in full):

        def frees(depth: int, group: str = group) -> bool:
            deepened = [
                depth if stream.group == group else declared for stream, declared in zip(streams, depths, strict=True)
            ]
            return trace.region_cycles(number, deepened, options) is not None

        deepest = max(stream.elements for stream in streams if stream.group == group)
        if frees(deepest):
            return group, bisect(frees, deepest)
    return None


@dataclass(frozen=True)
class _Region:
    """One region of a trace (an execution of a DATAFLOW region), solved for FIFO depths by array of streams."""

    trace: Traced
    number: int
    options: SolverOptions

    @property
    def facts(self) -> RegionFacts:
        return self.trace.regions[self.number]

    def cycles(self, depths: Depths, limit: int = 0) -> int | None:
        """Return the region's cycles with these depths; None for a deadlock or above ``limit`` (0: no limit)."""
        by_stream = [depths[stream.group] for stream in self.facts.streams]
        return self.trace.region_cycles(self.number, by_stream, _limited(self.options, limit))

    def declared_cycles(self) -> int | None:
        return self.trace.region_cycles(self.number, [stream.depth for stream in self.facts.streams], self.options)

    def unbounded(self) -> dict[str, int]:
        return greatest({stream.group: stream.elements} for stream in self.facts.streams)

    def best(self) -> int:
        cycles = self.cycles(self.unbounded())
        if cycles is None:
            raise DeadlockError(self.facts.label, ring=(), cure=None)
        return cycles

    def least_depths(self, limit: int, floor: Depths) -> dict[str, int]:
        """Return the least FIFO depths with at most ``limit`` cycles, each at least as in ``floor``.

        If the declared depths keep to the limit, no depth is above both the declared one and ``floor``.
        """

        def keeps_pace(depths: Depths) -> bool:
            return self.cycles(depths, limit) is not None

        start = self._declared(floor)
        if not keeps_pace(start):
            start = self.unbounded()
        fifos = TracedFifos(start, keeps_pace, lambda group, _: self._word_bytes(group))
        depths, _ = least_depths(fifos, DepthSearch(floor=floor))
        return depths

    def _declared(self, floor: Depths) -> dict[str, int]:
        """Return the declared depths, each at least as in ``floor``.

        A search that starts from them advises no FIFO deeper than declared in return for another that is shallower.
        """
        declared = greatest({stream.group: stream.depth} for stream in self.facts.streams)
        return {group: max(depth, floor.get(group, 1)) for group, depth in declared.items()}

    def _word_bytes(self, group: str) -> int:
        """Return the bytes that one more word of depth takes in all FIFOs of the array ``group``."""
        return sum(stream.element_bytes for stream in self.facts.streams if stream.group == group)


def _limited(options: SolverOptions, limit: int) -> SolverOptions:
    copy = type(options).from_buffer_copy(options)
    copy.limit = limit
    return copy


def _total(regions: Sequence[_Region], depths: Depths) -> int | None:
    """Return the cycles of all regions with ``depths``; None if one deadlocks."""
    return _sum(region.cycles(depths) for region in regions)


def _sum(cycles: Iterable[int | None]) -> int | None:
    """Return the sum of the cycles of all regions; None if one region deadlocks."""
    total = 0
    for number in cycles:
        if number is None:
            return None
        total += number
    return total


def _curve(regions: Sequence[_Region], depths: Depths, progress: Progress) -> tuple[tuple[int, int | None], ...]:
    deepest = max(depths.values(), default=1)
    caps = [cap for cap in CAPS if cap < deepest] + [deepest]
    points = []
    for number, cap in enumerate(caps):
        progress(ProgressStep(f"trying FIFOs no deeper than {cap}", number, len(caps)))
        points.append((cap, _total(regions, {name: min(depth, cap) for name, depth in depths.items()})))
    return tuple(points)
