"""How far a long step is: every function that takes long tells it to a ``Progress``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias


class ProgressStep(str):
    """What is going on, in a few words, and how much of it is done.

    The text ends in the percentage, if there is one, rounded down: 100% is the end. There is one only if the parts of
    the step take about equally long, and their number is known.

    Attributes:
        share: The part that is done, from 0 to 1; None if it is not known.
        limit: The most seconds that the step may take; None if it has no limit.
    """

    share: float | None
    limit: float | None

    def __new__(
        cls, text: str, done: float | None = None, total: float = 1, *, limit: float | None = None
    ) -> ProgressStep:
        if done is None or total <= 0:
            share, words = None, text
        else:
            share, words = min(1.0, done / total), f"{text}, {min(100, int(100 * done / total))}%"
        step = super().__new__(cls, words)
        step.share, step.limit = share, limit
        return step


Progress: TypeAlias = Callable[[str], None]
"""A function that is told each step: a ``ProgressStep``, or a text if nothing can be counted."""


def silent(_: str) -> None:
    """Tell nobody."""
