"""Sequences of views and Transposes that only together are something a layer does, as SkyNet writes its reorg.

The index of a value in a map is written with mixed-radix digits, from the slowest side to the fastest. A view joins
digits into a side or splits a digit into two; a Transpose reorders digits. Any sequence of views and Transposes is
therefore one view of the map by digits, one reordering of the digits and one more view:

    parts   the radix of each digit of the map
    order   the digits in the order in which the tensor has them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

MAX_PARTS = 16
"""Limit for the digits of a map. Views split digits, so their number grows."""


@dataclass(frozen=True)
class Moves:
    """A reordering of a map's values by a sequence of views and Transposes, written as a permutation of index digits.

    Attributes:
        parts: The radix of each digit of the map, the slowest first.
        order: The digits' numbers in the order in which the tensor has them.
        reason: Why the first Transpose alone cannot be a layer.
        named: That Transpose, as errors name it.
    """

    parts: tuple[int, ...]
    order: tuple[int, ...]
    reason: str
    named: str

    def split_at_view(self, sides: Sequence[int]) -> Moves | None:
        """Return the reordering with its mixed-radix index digits split at the reordered tensor's ``sides``, or None.

        None if the digits cannot be split so.
        """
        return self._aligned(sides, moved=True)

    def split_at_source(self, sides: Sequence[int]) -> Moves | None:
        """Return the reordering with its mixed-radix index digits split at the ``sides`` of the map before it,
        or None."""
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
                    if part % left or len(moves.parts) >= MAX_PARTS:
                        return None
                    moves, part = moves.divided(number, left), left
                left //= part
                place += 1
        return moves if place == len(moves.order) else None

    def divided(self, number: int, count: int) -> Moves:
        """Return the reordering with mixed-radix index digit ``number`` split in two, the slower of radix ``count``."""
        parts = (*self.parts[:number], count, self.parts[number] // count, *self.parts[number + 1 :])
        order = [[n + (n > number)] if n != number else [n, n + 1] for n in self.order]
        return replace(self, parts=parts, order=tuple(n for each in order for n in each))

    def with_one(self, number: int, place: int) -> Moves:
        """Return the reordering with an additional mixed-radix index digit of radix 1, which moves no value.

        It becomes digit ``number`` of the map and is at ``place`` in the order of the tensor.
        """
        order = [n + (n >= number) for n in self.order]
        order.insert(place, number)
        return replace(self, parts=(*self.parts[:number], 1, *self.parts[number:]), order=tuple(order))

    def transposed(self, sides: Sequence[int], order: Sequence[int]) -> Moves | None:
        """Return this reordering followed by a Transpose of its tensor, viewed with ``sides``; None if they do not
        match."""
        moves = self.split_at_view(sides)
        if moves is None:
            return None
        groups, left = [], list(moves.order)
        for side in sides:
            group: list[int] = []
            while math.prod(moves.parts[number] for number in group) < side:
                group.append(left.pop(0))
            groups.append(group)
        return replace(moves, order=tuple(number for axis in order for number in groups[axis]))

    def merged(self) -> Moves:
        """Return the reordering with the fewest index digits: those adjacent both before and after it are merged."""
        runs: list[list[int]] = []
        for number in self.order:
            if runs and runs[-1][-1] + 1 == number:
                runs[-1].append(number)
            else:
                runs.append([number])
        ranks = sorted(range(len(runs)), key=lambda run: runs[run][0])
        parts = tuple(math.prod(self.parts[number] for number in runs[run]) for run in ranks)
        return replace(self, parts=parts, order=tuple(ranks.index(run) for run in range(len(runs))))


def identity_reordering(sides: Sequence[int], reason: str, named: str) -> Moves:
    """Return the identity reordering of a map viewed with these sides, to which Transposes can be added."""
    parts = tuple(side for side in sides if side > 1)
    return Moves(parts, tuple(range(len(parts))), reason, named)
