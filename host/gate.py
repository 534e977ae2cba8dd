"""What must not be cut short: whoever works on memory is let in, and who closes waits until everybody is out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from boards.errors import HostError

CLOSED = "the accelerator is closed; make a new one"
CLOSES_ITSELF = (
    "close() was called from within the work that it waits for, by a signal handler or a callback; raise an exception "
    "there, and close where it is caught"
)


class Gate:
    """Open until it is shut, for good."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: list[int] = []
        self._here = threading.local()  # ``stays``: whether the thread is inside to its end
        self.shut = False

    def check(self) -> None:
        """HostError where it is shut."""
        if self.shut:
            raise HostError(CLOSED)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """What is done in it is waited for by ``close``. HostError where it is shut."""
        thread = threading.get_ident()
        with self._changed:
            self.check()
            self._inside.append(thread)
        try:
            yield
        finally:
            with self._changed:
                self._inside.remove(thread)
                self._changed.notify_all()

    def stay(self) -> None:
        """The calling thread is inside to its end. ``close`` does not wait for it: who closes ends it and joins it."""
        self._here.stays = True

    def check_outside(self) -> None:
        """HostError to who is inside: he would wait for himself, in a signal handler for instance."""
        if getattr(self._here, "stays", False) or threading.get_ident() in self._inside:
            raise HostError(CLOSES_ITSELF)

    def close(self) -> None:
        """Nobody comes in any more, and nobody is inside when it returns. HostError to who is inside."""
        with self._changed:
            self.check_outside()
            self.shut = True
            self._changed.wait_for(lambda: not self._inside)
