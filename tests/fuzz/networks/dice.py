"""Random choices by the names that a generator thinks in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Choice = TypeVar("Choice")


class Dice:
    """The same throws for the same keys on every machine."""

    def __init__(self, *keys: int) -> None:
        self._random = np.random.default_rng(keys)

    def chance(self, share: float) -> bool:
        """True so often."""
        return bool(self._random.random() < share)

    def whole(self, low: int, high: int) -> int:
        """low…high, both included."""
        return int(self._random.integers(low, high + 1))

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of them; what stands there twice comes twice as often."""
        return choices[int(self._random.integers(len(choices)))]

    def seed(self) -> int:
        """For what throws dice of its own."""
        return self.whole(0, (1 << 31) - 1)
