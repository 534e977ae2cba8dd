"""The line on a terminal with the running step of a command, its percentage and the remaining time."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from boards.progress import ProgressStep
from systolic.cli.streams import shown_as_text

log = logging.getLogger("systolic.steps")

AFTER_SECONDS = 0.5
"""The time before a terminal shows a line, so that short work shows nothing."""

BEAT_SECONDS = 1.0
"""The time between two updates of the line, so that the seconds advance during a long step."""

FIRST_LINE_SECONDS = 2.0
"""The time before the first line if standard error is not a terminal."""

KNOWN_SECONDS, KNOWN_SHARE = 2.0, 0.05
"""The time and the share of a step's work after which its remaining time is shown."""

VARIABLE = "SYSTOLIC_PROGRESS"
"""The environment variable with the seconds between two lines if standard error is not a terminal.

Without it no progress is written there.
"""

WIDTH = 78
_CLEAR = "\r\x1b[2K"

_shown: list[StatusLine] = []
"""The status lines on the terminal: one or none."""


class StatusLine:
    """The progress line of one command on standard error. Pass its method ``report`` as a ``Progress`` function.

    It is a context manager. Inside the context a thread updates the time, because a compiler or a solver does not
    report progress.

    If standard error is a terminal, it shows one line that changes. Otherwise it shows a line after each period of
    ``VARIABLE``, if that is set. With ``-q`` it shows nothing. With ``-v`` the log has each step and its duration.
    """

    def __init__(self) -> None:
        self._stream: TextIO = sys.stderr
        self._since = self._shown = time.monotonic()
        self._step = _Running(ProgressStep(""), self._since)
        self._line = ""
        self._lock, self._done = threading.RLock(), threading.Event()
        quiet = not log.isEnabledFor(logging.WARNING)
        self._terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb" and not quiet
        self._every = 0.0 if quiet else _seconds_between()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def report(self, text: str) -> None:
        """Show ``text`` as the running step.

        The step before it has ended, unless ``text`` begins with the same word: then the same step continues.
        """
        step = text if isinstance(text, ProgressStep) else ProgressStep(text)
        with self._lock:
            now = time.monotonic()
            if not self._step.continues(step):
                self._step.log_end(now)
                self._step = _Running(step, now)
                log.debug("%s", step)
            self._step.last = step
            self._show()

    def __enter__(self) -> StatusLine:
        if self._terminal or self._every:
            self._thread.start()
        if self._terminal:
            _shown.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        with self._lock:
            self.clear()
            if self in _shown:
                _shown.remove(self)
            self._step.log_end(time.monotonic())

    def clear(self) -> None:
        """Remove the line from the terminal until the next update."""
        with self._lock:
            if self._terminal and self._line:
                self._write(_CLEAR)

    def _beat(self) -> None:
        while not self._done.wait(BEAT_SECONDS):
            with self._lock:
                if not self._done.is_set():
                    self._show()

    def _show(self) -> None:
        now = time.monotonic()
        text = shown_as_text(str(self._step.last))
        if not text:
            return
        if self._terminal:
            if now - self._since > AFTER_SECONDS:
                times = self._step.times(now)
                self._line = f"{text} …"[: WIDTH - len(times)] + times
                self._write(f"{_CLEAR}{self._line}")
        elif self._every and now - self._shown >= (self._every if self._line else min(FIRST_LINE_SECONDS, self._every)):
            self._line, self._shown = f"systolic: {text}, {now - self._since:.0f} s", now
            self._write(f"{self._line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def line_cleared() -> Iterator[None]:
    """Remove the line of progress from the terminal before other text is written there."""
    for line in _shown:
        line.clear()
    yield


class _Running:
    """A step that is running: its first and last report of progress, and the time at which it began."""

    def __init__(self, step: ProgressStep, since: float) -> None:
        self.first = self.last = step
        self.since = since

    def continues(self, step: ProgressStep) -> bool:
        """Return whether a new report belongs to this step: same first word, and not less of the work done."""
        if self.last.split(" ")[0].rstrip(",:") != step.split(" ")[0].rstrip(",:"):
            return False
        return self.last.share is None or (step.share is not None and step.share >= self.last.share)

    def times(self, now: float) -> str:
        """Return the seconds that the step has taken, and the remaining time if it is known, as text."""
        took, done, begun = now - self.since, self.last.share, self.first.share
        if took < 1:
            return ""
        text = f" {_duration(took)}"
        if self.last.limit is not None:
            return f"{text} of at most {_duration(self.last.limit)}"
        if done is None or begun is None or took < KNOWN_SECONDS or done - begun < KNOWN_SHARE or done == 1:
            return text
        return f"{text}, {_duration(took * (1 - done) / (done - begun))} left"

    def log_end(self, now: float) -> None:
        """Log how many seconds the step took."""
        if self.last:
            log.debug("%s: %.1f s", self.last.split(",")[0], now - self.since)


def _duration(seconds: float) -> str:
    """Return seconds as "7 s", "3 min 20 s" or "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _seconds_between() -> float:
    """Return the seconds in ``SYSTOLIC_PROGRESS``; 0 if it is not set or not a number."""
    try:
        return max(0.0, float(os.environ.get(VARIABLE, 0)))
    except ValueError:
        return 0.0
