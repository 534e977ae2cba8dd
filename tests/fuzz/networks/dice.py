"""Random choices for generators of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Choice = TypeVar("Choice")


class Dice:
    """A random generator that makes the same choices for the same keys on every machine."""

    def __init__(self, *keys: int) -> None:
        self._random = np.random.default_rng(keys)

    def chance(self, share: float) -> bool:
        """Return True with the probability ``share``."""
        return bool(self._random.random() < share)

    def whole(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        return int(self._random.integers(low, high + 1))

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """Return one of the choices. A choice that is listed twice is twice as likely."""
        return choices[int(self._random.integers(len(choices)))]

    def seed(self) -> int:
        """Return a seed for another random generator."""
        return self.whole(0, (1 << 31) - 1)
