"""The search for the least FIFO depths that do not slow a traced design. Each candidate is solved from the trace.

More depth never costs time, because the processes and FIFOs are a max-plus system. So bisection finds each least depth.
Only the order in which DDR serves its ports can disturb this, and by far less than the slack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from boards.progress import Progress, ProgressStep, silent

Depths = Mapping[str, int]
"""Depths in words, by the name of a FIFO or of an array of FIFOs that share one depth."""


@dataclass(frozen=True)
class DepthSearch:
    """The limits of a search for FIFO depths.

    Attributes:
        shallowest: The least depth of any FIFO, in words.
        equal_cost_depth: The depth in words up to which all depths cost the same. FIFOs up to this depth are not
            bisected: each takes the shallowest depth if that keeps the pace, else it stays as it is.
        solutions: The number of solutions after which the search stops, with the caller's own solution of unbounded
            FIFOs. None means no limit.
        floor: The least depth of single FIFOs by name, if it is above ``shallowest``.
    """

    shallowest: int = 1
    equal_cost_depth: int = 0
    solutions: int | None = None
    floor: Depths = field(default_factory=dict)

    def least(self, name: str) -> int:
        """Return the least depth that the search tries for a FIFO, in words."""
        return max(self.shallowest, self.floor.get(name, 1))


@dataclass(frozen=True, eq=False)
class TracedFifos:
    """The FIFOs whose depths are searched, with the functions that judge a set of depths.

    Attributes:
        unbounded: Depths that are never full, by name.
        keeps_pace: Returns whether these depths lose no more cycles than allowed.
        cost: Returns the cost of a FIFO, by its name and depth. The costliest FIFOs are searched first.
        fullest: Returns the most words that each FIFO held with these depths. If it is given, depths are cut to these
            numbers before the search of each FIFO.
    """

    unbounded: Depths
    keeps_pace: Callable[[Depths], bool]
    cost: Callable[[str, int], int]
    fullest: Callable[[Depths], Depths] | None = None


def bisect(holds: Callable[[int], bool], high: int) -> int:
    """Return the least number from 1 to ``high`` for which the monotone ``holds`` is true; it is true at ``high``."""
    low = 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def least_depths(fifos: TracedFifos, search: DepthSearch, progress: Progress = silent) -> tuple[dict[str, int], int]:
    """Search the least depth of every FIFO that keeps the pace: loses no more cycles than allowed.

    First the search limits all FIFOs to one common depth, which takes few solutions. Then it bisects each FIFO below
    this depth, the costliest first.

    Returns:
        The depths in words, and the number of solutions with the caller's own solution of unbounded FIFOs.
    """
    descent = _DepthDescent(fifos, search)
    depths = descent.capped()
    costliest = sorted(depths, key=lambda name: fifos.cost(name, depths[name]), reverse=True)
    for number, name in enumerate(costliest):
        progress(ProgressStep(f"sizing FIFOs, {number} of {len(costliest)}", number, len(costliest)))
        if depths[name] > search.equal_cost_depth and not descent.is_exhausted:
            depths[name] = bisect(partial(descent.keeps_pace_with, depths, name), depths[name])
    shallow = [name for name, depth in depths.items() if search.shallowest < depth <= search.equal_cost_depth]
    return descent.with_shallowest(depths, shallow), descent.solutions


@dataclass
class _DepthDescent:
    """A running search for FIFO depths, which counts how often the trace is solved."""

    fifos: TracedFifos
    search: DepthSearch
    solutions: int = 1

    @property
    def is_exhausted(self) -> bool:
        return self.search.solutions is not None and self.solutions >= self.search.solutions

    def keeps_pace(self, depths: Depths) -> bool:
        self.solutions += 1
        return self.fifos.keeps_pace(depths)

    def keeps_pace_with(self, depths: Depths, name: str, depth: int) -> bool:
        """Return whether ``depths`` keep the pace if the FIFO ``name`` has the depth ``depth`` instead."""
        return depth >= self.search.least(name) and self.keeps_pace({**depths, name: depth})

    def capped(self) -> dict[str, int]:
        """Return the unbounded depths, cut to the least common limit that keeps the pace.

        The values tried are ``shallowest`` times powers of two. A FIFO that never needs the limit keeps its unbounded
        depth.
        """
        unbounded, shallowest = self.fifos.unbounded, self.search.shallowest

        def cut(cap: int) -> dict[str, int]:
            return {name: max(self.search.least(name), min(depth, cap)) for name, depth in unbounded.items()}

        caps = (shallowest << power for power in range(32))
        cap = next((cap for cap in caps if self.keeps_pace(cut(cap))), max(unbounded.values(), default=shallowest))
        return self._without_unused(cut(cap))

    def _without_unused(self, depths: dict[str, int]) -> dict[str, int]:
        """Return the depths cut to one word more than each FIFO held at most, if that keeps the pace."""
        if self.fifos.fullest is None:
            return depths
        self.solutions += 1
        fullest = self.fifos.fullest(depths)
        needed = {name: max(self.search.least(name), min(depth, fullest[name] + 1)) for name, depth in depths.items()}
        return needed if self.keeps_pace(needed) else depths

    def with_shallowest(self, depths: dict[str, int], names: list[str]) -> dict[str, int]:
        """Return the depths with FIFOs of ``names`` at the shallowest depth, all or some, if that keeps the pace."""
        if not names or self.is_exhausted:
            return depths
        shallower = {**depths, **dict.fromkeys(names, self.search.shallowest)}
        if self.keeps_pace(shallower):
            return shallower
        if len(names) == 1:
            return depths
        half = len(names) // 2
        return self.with_shallowest(self.with_shallowest(depths, names[:half]), names[half:])


def greatest(answers: Iterable[Depths]) -> dict[str, int]:
    """Return {FIFO: its greatest depth in all ``answers``}, because the same hardware must serve each answer."""
    depths: dict[str, int] = {}
    for answer in answers:
        for name, depth in answer.items():
            depths[name] = max(depths.get(name, 1), depth)
    return depths
