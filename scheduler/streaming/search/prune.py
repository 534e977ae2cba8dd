"""Removes choices that the best folding never needs, before a solver runs.

A choice is removed if another choice of its block (its rival) takes at most the same amount of every resource for all
choices of the neighbours. The comparison covers the block itself and the converters and FIFOs of its streams. Between
words K and the neighbour's words P they take B[K, P]. A rival with words K' therefore takes at most
max over P of (B[K', P] − B[K, P]) more. These bounds add up along a chain of replacements, so that choices may be
removed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """One stream of a block in the search: what each pair of word formats costs in converters and FIFOs.

    Attributes:
        words: The number of the word format of each choice of the block, [choice].
        between: The resources of converters and FIFOs, [format, neighbour's format, resource], with infinity for
            formats that are not compatible.
    """

    words: Numbers
    between: Vectors

    def extra(self) -> Vectors:
        """Return the most resources by which word format K' can cost more than format K, [K', K, resource]."""
        count = len(self.between)
        extra = np.zeros((count, count, self.between.shape[2]))
        meets: npt.NDArray[np.bool_] = np.asarray(np.isfinite(self.between).all(axis=2))
        for k in range(count):
            met = meets[k]
            if met.any():  # words K that no neighbour's words are compatible with are replaced at no cost
                extra[:, k] = (self.between[:, met] - self.between[k, met]).max(axis=1)
        return extra


def needed(usage: Vectors, area: Numbers, sides: list[Side]) -> list[int]:
    """Return the candidate folds of a block that the best folding may need, as indices; dominated ones are left out.

    Args:
        usage: The resources of the block itself, [choice, resource].
        area: The area of the block itself, [choice].
        sides: The streams of the block.
    """
    extras = [side.extra() for side in sides]
    order = np.argsort(area, kind="stable")
    staying = np.empty(len(order), np.int64)
    count = 0
    for choice in order:
        rivals = staying[:count]
        bound = usage[rivals]  # the most that a rival takes, for all choices of the neighbours
        for side, extra in zip(sides, extras, strict=True):
            bound = bound + extra[side.words[rivals], side.words[choice]]
        if not (bound <= usage[choice]).all(axis=1).any():
            staying[count] = choice
            count += 1
    return sorted(int(choice) for choice in staying[:count])
