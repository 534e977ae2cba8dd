"""FIFO depths by search: each candidate is solved again from the same trace, none is guessed.

More depth never costs time (the processes and FIFOs are a max-plus system; the order in which DDR serves its
ports is all that can disturb it, by far less than the slack), so that each least depth is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from boards.errors import SimulationError
from systolic.trace.events import RegionFacts, SolverOptions, Traced

CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Advice:
    """Least depths by name of a stream or an array of streams, for all regions together.

    best_cycles: with unbounded FIFOs; cycles: with the advised depths; declared_cycles: with the declared
    ones, None where those deadlock. All without the regions' start and stop.
    curve: (cap, cycles) with every advised depth cut to the cap; None is a deadlock.
    """

    depths: Mapping[str, int]
    declared: Mapping[str, int]
    best_cycles: int
    cycles: int
    declared_cycles: int | None
    curve: tuple[tuple[int, int | None], ...]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{name}</td><td>{self.declared[name]}</td><td>{depth}</td></tr>"
            for name, depth in self.depths.items()
        )
        points = "".join(f"<tr><td>{cap}</td><td>{_cycles_text(cycles)}</td></tr>" for cap, cycles in self.curve)
        return (
            "<table><tr><th>stream</th><th>declared</th><th>least</th></tr>"
            f"{rows}</table><table><tr><th>no deeper than</th><th>cycles</th></tr>{points}</table>"
        )


def _cycles_text(cycles: int | None) -> str:
    return "deadlock" if cycles is None else f"{cycles:,}"


def bisect(holds: Callable[[int], bool], high: int) -> int:
    """The least number in 1…high for which ``holds``, which must be monotone and true for ``high``."""
    low = 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def remedy(
    trace: Traced, number: int, depths: Sequence[int], full: Sequence[int], options: SolverOptions
) -> tuple[str, int] | None:
    """The first of the full streams that frees a deadlock, with its least depth; an array is deepened as a whole."""
    streams = trace.regions[number].streams
    for group in dict.fromkeys(streams[i].group for i in full):

        def frees(depth: int, group: str = group) -> bool:
            tried = [depth if s.group == group else given for s, given in zip(streams, depths, strict=True)]
            return trace.region_cycles(number, tried, options) is not None

        most = max(stream.elements for stream in streams if stream.group == group)
        if frees(most):
            return group, bisect(frees, most)
    return None


def _limited(options: SolverOptions, limit: int) -> SolverOptions:
    copy = type(options).from_buffer_copy(options)
    copy.limit = limit
    return copy


@dataclass(frozen=True)
class _Search:
    """Depths of one region, one a group of streams."""

    trace: Traced
    number: int
    options: SolverOptions

    @property
    def facts(self) -> RegionFacts:
        return self.trace.regions[self.number]

    def cycles(self, depths: Mapping[str, int], limit: int = 0) -> int | None:
        tried = [depths[stream.group] for stream in self.facts.streams]
        return self.trace.region_cycles(self.number, tried, _limited(self.options, limit))

    def unbounded(self) -> dict[str, int]:
        most: dict[str, int] = {}
        for stream in self.facts.streams:
            most[stream.group] = max(most.get(stream.group, 1), stream.elements)
        return most

    def best(self) -> int:
        cycles = self.cycles(self.unbounded())
        if cycles is None:
            raise SimulationError(
                f"region {self.facts.label} deadlocks even with unbounded FIFOs: "
                "a pipeline waits at its front for what is still in flight behind it"
            )
        return cycles

    def least(self, limit: int) -> dict[str, int]:
        """First one cap for all, which is soon found, then each group below it, the costliest first."""
        most = self.unbounded()

        def capped(cap: int) -> dict[str, int]:
            return {name: min(depth, cap) for name, depth in most.items()}

        def enough(depths: Mapping[str, int]) -> bool:
            return self.cycles(depths, limit) is not None

        def fits(depths: Mapping[str, int], name: str, depth: int) -> bool:
            return enough({**depths, name: depth})

        cap = next((2**i for i in range(32) if enough(capped(2**i))), max(most.values(), default=1))
        depths = capped(cap)
        for name in sorted(depths, key=self.cost, reverse=True):
            depths[name] = bisect(partial(fits, depths, name), depths[name])
        return depths

    def cost(self, group: str) -> int:
        """Bytes that one more of depth takes."""
        return sum(stream.element_bytes for stream in self.facts.streams if stream.group == group)


def _total(searches: Sequence[_Search], depths: Mapping[str, int] | None) -> int | None:
    total = 0
    for search in searches:
        declared = [stream.depth for stream in search.facts.streams]
        if depths is None:
            cycles = search.trace.region_cycles(search.number, declared, search.options)
        else:
            cycles = search.cycles(depths)
        if cycles is None:
            return None
        total += cycles
    return total


def _largest(answers: Sequence[Mapping[str, int]]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for answer in answers:
        for name, depth in answer.items():
            depths[name] = max(depths.get(name, 1), depth)
    return depths


def _curve(searches: Sequence[_Search], depths: Mapping[str, int]) -> tuple[tuple[int, int | None], ...]:
    deepest = max(depths.values(), default=1)
    caps = [cap for cap in CURVE if cap < deepest] + [deepest]
    return tuple((cap, _total(searches, {name: min(depth, cap) for name, depth in depths.items()})) for cap in caps)


def advise(trace: Traced, options: SolverOptions, slack: float) -> Advice:
    """One depth a name serves every region, for one hardware runs them all: the largest of the least depths.

    Raises SimulationError where no depths free a region, and for a slack below 0.
    """
    if slack < 0:
        raise SimulationError(f"the slack of FIFO advice must be at least 0, not {slack}")
    searches = [_Search(trace, number, options) for number in range(len(trace.regions))]
    best = [search.best() for search in searches]
    depths = _largest([search.least(int(cycles * (1 + slack))) for search, cycles in zip(searches, best, strict=True)])
    return Advice(
        depths=depths,
        declared=_largest([{s.group: s.depth for s in search.facts.streams} for search in searches]),
        best_cycles=sum(best),
        cycles=_total(searches, depths) or 0,
        declared_cycles=_total(searches, None),
        curve=_curve(searches, depths),
    )
