"""Leaving out what no best folding needs, before a solver sees it.

A choice is left out where another one of its block takes no more of any resource, whatever its neighbours choose: its
own resources, and the most that its words may take more than the other's in converters and FIFOs, stream by stream.
What stands between words K and the neighbour's words P takes B[K, P]; instead of K, K' takes at most the greatest
B[K', P] − B[K, P] more. Such bounds add up along a chain of replacements, so that choices may be left out one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """One stream of a block: the words of each choice there, and B[words, neighbour's words, resource] (inf: these
    cannot meet)."""

    words: Numbers
    between: Vectors

    def extra(self) -> Vectors:
        """[K', K, resource]: how much more K' may take than K."""
        count = len(self.between)
        extra = np.zeros((count, count, self.between.shape[2]))
        meets: npt.NDArray[np.bool_] = np.asarray(np.isfinite(self.between).all(axis=2))
        for k in range(count):
            met = meets[k]
            if met.any():  # where nothing meets K, anything else will do
                extra[:, k] = (self.between[:, met] - self.between[k, met]).max(axis=1)
        return extra


def needed(usage: Vectors, area: Numbers, sides: list[Side]) -> list[int]:
    """The choices that have to stay, by number. usage: of the block itself, [choice, resource]; area: [choice]."""
    extras = [side.extra() for side in sides]
    order = np.argsort(area, kind="stable")
    staying = np.empty(len(order), np.int64)
    count = 0
    for choice in order:
        rivals = staying[:count]
        bound = usage[rivals]  # what a rival takes at most, beside any neighbour
        for side, extra in zip(sides, extras, strict=True):
            bound = bound + extra[side.words[rivals], side.words[choice]]
        if not (bound <= usage[choice]).all(axis=1).any():
            staying[count] = choice
            count += 1
    return sorted(int(choice) for choice in staying[:count])
