"""What is going on, told on standard error: a line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TextIO

AFTER_SECONDS = 0.5
"""Shorter work shows nothing on a terminal."""

BEAT_SECONDS = 1.0
"""Between two looks at the time on a terminal, so that the seconds count on where a step is long."""

FIRST_LINE_SECONDS, LINE_SECONDS = 2.0, 10.0
"""Where there is no terminal: until the first line, and between two."""

VARIABLE = "SYSTOLIC_PROGRESS"
"""Seconds between two lines where there is no terminal; 0 for none."""

WIDTH = 78


class StatusLine:
    """``tell(text)`` says what is going on, with a percentage where it can be counted.

    A context: meanwhile a thread looks at the time, since a compiler or a solver tells nothing of itself.
    """

    def __init__(self) -> None:
        self._stream: TextIO = sys.stderr
        self._since = self._shown = time.monotonic()
        self._text = self._line = ""
        self._lock, self._done = threading.Lock(), threading.Event()
        self._terminal = self._stream.isatty()
        self._every = _seconds_between()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def tell(self, text: str) -> None:
        """text: a few words; what was told before is over."""
        with self._lock:
            self._text = text
            self._show()

    def __enter__(self) -> StatusLine:
        if self._terminal or self._every:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        with self._lock:
            if self._terminal and self._line:
                self._write("\r\x1b[2K")

    def _beat(self) -> None:
        while not self._done.wait(BEAT_SECONDS):
            with self._lock:
                if not self._done.is_set():
                    self._show()

    def _show(self) -> None:
        now = time.monotonic()
        took = now - self._since
        if not self._text:
            return
        if self._terminal:
            if took > AFTER_SECONDS:
                seconds = f" {took:.0f} s" if took >= 1 else ""
                self._line = f"{self._text} …"[: WIDTH - len(seconds)] + seconds
                self._write(f"\r\x1b[2K{self._line}")
        elif self._every and now - self._shown >= (self._every if self._line else min(FIRST_LINE_SECONDS, self._every)):
            self._line, self._shown = f"systolic: {self._text}, {took:.0f} s", now
            self._write(f"{self._line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _seconds_between() -> float:
    """Of VARIABLE; LINE_SECONDS where it is no number."""
    try:
        return max(0.0, float(os.environ.get(VARIABLE, LINE_SECONDS)))
    except ValueError:
        return LINE_SECONDS
