"""The least FIFO depths that keep a pace: each candidate is solved again from the same trace, none is guessed.

More depth never costs time (the processes and FIFOs are a max-plus system; the order in which DDR serves its
ports is all that can disturb it, by far less than the slack), so that each least depth is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from boards.progress import Progress, ProgressStep, silent

Depths = Mapping[str, int]
"""Words by name of a FIFO, or of an array of FIFOs that share one depth."""


@dataclass(frozen=True)
class DepthSearch:
    """How far is searched.

    shallowest: no FIFO is less deep. floor: by name, where a FIFO is deeper than that anyway. alike: FIFOs of at most
    so many words cost the same at any depth, so that they are not bisected: each is as shallow as can be, or stays.
    solutions: after so many, the caller's own of unbounded FIFOs among them, what is left stays; None for no limit.
    """

    shallowest: int = 1
    alike: int = 0
    solutions: int | None = None
    floor: Depths = field(default_factory=dict)

    def least(self, name: str) -> int:
        """The least depth of a FIFO that is tried."""
        return max(self.shallowest, self.floor.get(name, 1))


@dataclass(frozen=True, eq=False)
class TracedFifos:
    """What is searched, by name.

    unbounded: depths that no FIFO ever fills. keeps_pace: whether depths lose nothing that counts. cost: of a FIFO of a
    depth; the costliest are searched first. fullest: the most words that each FIFO held, for depths; None where
    depths are not to be cut to that before each is searched.
    """

    unbounded: Depths
    keeps_pace: Callable[[Depths], bool]
    cost: Callable[[str, int], int]
    fullest: Callable[[Depths], Depths] | None = None


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


def least_depths(fifos: TracedFifos, search: DepthSearch, tell: Progress = silent) -> tuple[dict[str, int], int]:
    """(the least depth of every FIFO, solutions that it took with the caller's own of unbounded FIFOs).

    First one cap for all, which is soon found, then each FIFO below it, the costliest first.
    """
    descent = _Descent(fifos, search)
    depths = descent.capped()
    costliest = sorted(depths, key=lambda name: fifos.cost(name, depths[name]), reverse=True)
    for number, name in enumerate(costliest):
        tell(ProgressStep(f"sizing FIFOs, {number} of {len(costliest)}", number, len(costliest)))
        if depths[name] > search.alike and not descent.is_spent:
            depths[name] = bisect(partial(descent.keeps_pace_with, depths, name), depths[name])
    shallow = [name for name, depth in depths.items() if search.shallowest < depth <= search.alike]
    return descent.at_shallowest(depths, shallow), descent.solutions


@dataclass
class _Descent:
    """One search; it counts its solutions."""

    fifos: TracedFifos
    search: DepthSearch
    solutions: int = 1

    @property
    def is_spent(self) -> bool:
        return self.search.solutions is not None and self.solutions >= self.search.solutions

    def keeps_pace(self, depths: Depths) -> bool:
        self.solutions += 1
        return self.fifos.keeps_pace(depths)

    def keeps_pace_with(self, depths: Depths, name: str, depth: int) -> bool:
        """Whether ``depths`` do with another one for ``name``."""
        return depth >= self.search.least(name) and self.keeps_pace({**depths, name: depth})

    def capped(self) -> dict[str, int]:
        """All at one depth, the least power of two that keeps the pace, or at what they need unbounded."""
        unbounded, shallowest = self.fifos.unbounded, self.search.shallowest

        def cut(cap: int) -> dict[str, int]:
            return {name: max(self.search.least(name), min(depth, cap)) for name, depth in unbounded.items()}

        caps = (shallowest << power for power in range(32))
        cap = next((cap for cap in caps if self.keeps_pace(cut(cap))), max(unbounded.values(), default=shallowest))
        return self._without_unused(cut(cap))

    def _without_unused(self, depths: dict[str, int]) -> dict[str, int]:
        """Without the places that no word ever took: a FIFO as deep as its fullest moment changes no cycle."""
        if self.fifos.fullest is None:
            return depths
        self.solutions += 1
        fullest = self.fifos.fullest(depths)
        needed = {name: max(self.search.least(name), min(depth, fullest[name] + 1)) for name, depth in depths.items()}
        return needed if self.keeps_pace(needed) else depths

    def at_shallowest(self, depths: dict[str, int], names: list[str]) -> dict[str, int]:
        """Those of ``names`` that may be at the shallowest depth, all at once or in halves."""
        if not names or self.is_spent:
            return depths
        shallower = {**depths, **dict.fromkeys(names, self.search.shallowest)}
        if self.keeps_pace(shallower):
            return shallower
        if len(names) == 1:
            return depths
        half = len(names) // 2
        return self.at_shallowest(self.at_shallowest(depths, names[:half]), names[half:])


def greatest(answers: Iterable[Depths]) -> dict[str, int]:
    """By name the greatest depth of all ``answers``: one hardware serves what each of them was searched for."""
    depths: dict[str, int] = {}
    for answer in answers:
        for name, depth in answer.items():
            depths[name] = max(depths.get(name, 1), depth)
    return depths
