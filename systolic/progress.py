"""How far a step is whose end is known by its time limit alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str], None]
"""Told what is going on, a few words at a time."""

BEAT_SECONDS = 1.0


@contextmanager
def told_of_limit(tell: Progress, text: str, seconds: float | None) -> Iterator[None]:
    """Meanwhile ``tell`` hears ``text`` and the share of ``seconds`` that is over, the most that the step may take."""
    ended, start = threading.Event(), time.monotonic()
    tell(text)

    def beat() -> None:
        while seconds is not None and not ended.wait(BEAT_SECONDS):
            share = min(1.0, (time.monotonic() - start) / seconds)
            tell(f"{text}, {share:.0%} of at most {seconds:g} s")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
