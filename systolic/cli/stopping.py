"""A command that is told to end clears up as after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """By the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise Stopped, unless whoever started the process has them ignored (nohup)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ending = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ending:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, _: object) -> None:
    raise Stopped(number)
