"""Whether the integers see what the floats see, whatever is on the pictures: needs no labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from host.vision.detection import Detection
from systolic.evaluation.precision import boxes_of, overlaps

SAME = 0.5
"""Intersection over union from which on two boxes of a class are of the same object."""


@dataclass(frozen=True)
class Agreement:
    """matched: boxes of both. missed: of the floats alone. added: of the integers alone. mean_iou: of the matched."""

    matched: int
    missed: int
    added: int
    mean_iou: float

    @property
    def differing(self) -> int:
        """Boxes that one of them alone has."""
        return self.missed + self.added


def agreement(reference: Sequence[Detection], candidates: Sequence[Detection]) -> Agreement:
    """Boxes of one picture, matched greedily by class, the pair that overlaps most first."""
    shares = overlaps(boxes_of(reference), boxes_of(candidates))
    alike = np.array([[a.label == b.label for b in candidates] for a in reference], bool).reshape(shares.shape)
    shares = np.where(alike, shares, 0.0)
    pairs: list[float] = []
    while shares.size and shares.max() >= SAME:
        row, column = np.unravel_index(int(np.argmax(shares)), shares.shape)
        pairs.append(float(shares[row, column]))
        shares[row, :] = shares[:, column] = 0.0
    mean = float(np.mean(pairs)) if pairs else float("nan")
    return Agreement(len(pairs), len(reference) - len(pairs), len(candidates) - len(pairs), mean)


def together(agreements: Iterable[Agreement]) -> Agreement:
    """Of all pictures."""
    every = list(agreements)
    matched = sum(each.matched for each in every)
    overlap = sum(each.matched * each.mean_iou for each in every if each.matched)
    return Agreement(
        matched,
        sum(each.missed for each in every),
        sum(each.added for each in every),
        overlap / matched if matched else float("nan"),
    )
