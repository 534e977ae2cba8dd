"""Progress of long steps: every function that takes long reports its steps to a ``Progress``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias


class ProgressStep(str):
    """The text of a step in progress, and the share of it that is done.

    The text ends in the percentage, rounded down, so that 100% is the end. It has no percentage if the number of parts
    is not known, or if the parts do not take about the same time.

    Attributes:
        share: The part that is done, from 0 to 1; None if it is not known.
        limit: Seconds that the step may take; None if it has no limit.
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
"""A function that is called with each step: a ``ProgressStep``, or a plain text if nothing can be counted."""


def silent(_: str) -> None:
    """Do nothing with a progress step: the callback for callers that show no progress."""
