"""Views and Transposes of a map of which only several together are what a layer does, as SkyNet writes its reorg.

The values of a map are counted by digits, from the side that counts slowest to that which counts fastest. A view takes
several digits as one side, or a digit apart into two; a Transpose puts them in another order. So whatever stands
between two layers is one view of the map by its digits, one order of these, and one view again:

    parts   the digits of the map, as many values as each counts
    order   of them, as the tensor has them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

MOST_PARTS = 16
"""Of a map; each view takes some apart."""


@dataclass(frozen=True)
class Moves:
    """What was done to the values of a node's map. reason: why the first Transpose of it alone is no layer, and
    ``named`` that Transpose."""

    parts: tuple[int, ...]
    order: tuple[int, ...]
    reason: str
    named: str

    def viewed(self, sides: Sequence[int]) -> Moves | None:
        """The same with its digits so that each side has whole ones; None where the sides are none of these."""
        return self._aligned(sides, moved=True)

    def of_source(self, sides: Sequence[int]) -> Moves | None:
        """As ``viewed``, of the map's own sides before anything was moved."""
        return self._aligned(sides, moved=False)

    def _aligned(self, sides: Sequence[int], moved: bool) -> Moves | None:
        moves, place = self, 0
        for side in sides:
            left = side
            while left > 1:
                if place == len(moves.order):
                    return None
                number = moves.order[place] if moved else place
                part = moves.parts[number]
                if left % part:
                    if part % left or len(moves.parts) >= MOST_PARTS:
                        return None
                    moves, part = moves.divided(number, left), left
                left //= part
                place += 1
        return moves if place == len(moves.order) else None

    def divided(self, number: int, count: int) -> Moves:
        """A digit taken apart: one that counts to so many, and behind it one for the rest."""
        parts = (*self.parts[:number], count, self.parts[number] // count, *self.parts[number + 1 :])
        order = [[n + (n > number)] if n != number else [n, n + 1] for n in self.order]
        return replace(self, parts=parts, order=tuple(n for each in order for n in each))

    def with_one(self, number: int, place: int) -> Moves:
        """With a digit of a single value before that number in the map, and at that place in the tensor."""
        order = [n + (n >= number) for n in self.order]
        order.insert(place, number)
        return replace(self, parts=(*self.parts[:number], 1, *self.parts[number:]), order=tuple(order))

    def transposed(self, sides: Sequence[int], order: Sequence[int]) -> Moves | None:
        """The digits of the sides in that order; None as in ``viewed``."""
        moves = self.viewed(sides)
        if moves is None:
            return None
        groups, left = [], list(moves.order)
        for side in sides:
            group: list[int] = []
            while math.prod(moves.parts[number] for number in group) < side:
                group.append(left.pop(0))
            groups.append(group)
        return replace(moves, order=tuple(number for axis in order for number in groups[axis]))

    def joined(self) -> Moves:
        """With digits that stand side by side before and after as one."""
        runs: list[list[int]] = []
        for number in self.order:
            if runs and runs[-1][-1] + 1 == number:
                runs[-1].append(number)
            else:
                runs.append([number])
        ranks = sorted(range(len(runs)), key=lambda run: runs[run][0])
        parts = tuple(math.prod(self.parts[number] for number in runs[run]) for run in ranks)
        return replace(self, parts=parts, order=tuple(ranks.index(run) for run in range(len(runs))))


def of_map(sides: Sequence[int], reason: str, named: str) -> Moves:
    """Of a map that nothing was done to yet, seen with these sides."""
    parts = tuple(side for side in sides if side > 1)
    return Moves(parts, tuple(range(len(parts))), reason, named)
