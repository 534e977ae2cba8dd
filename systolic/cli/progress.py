"""One status line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time

AFTER_SECONDS = 0.5


class StatusLine:
    """``tell(text)`` shows what is going on; short work shows nothing. A context, so that the line is cleared."""

    def __init__(self) -> None:
        self._shown = False
        self._since = time.monotonic()
        self._active = sys.stderr.isatty()

    def tell(self, text: str) -> None:
        if self._active and (self._shown or time.monotonic() - self._since > AFTER_SECONDS):
            self._write(f"{text} …"[:78])
            self._shown = True

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()
