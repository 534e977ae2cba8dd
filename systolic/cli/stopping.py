"""Signals that stop a command: SIGTERM and SIGHUP clean up in the same way as Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """The exception that SIGTERM or SIGHUP raises in a command.

    Attributes:
        number: The signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the process at once while modules are imported.

    Modules are half loaded after an interrupted import, so code that handles KeyboardInterrupt could fail.
    """
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not ours or before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise Stopped, unless the parent process set them to be ignored, as nohup does."""
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
