"""A gate around work on memory: a thread enters before it works there, and closing waits until all have left."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from boards.errors import StateError


class Gate:
    """Open until it is shut, which is for good.

    Attributes:
        shut: Whether ``close`` was called: nobody enters any more.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: list[int] = []
        self._here = threading.local()  # ``stays``: whether the thread is inside to its end
        self.shut = False

    def check(self) -> None:
        """Raise StateError if it is shut."""
        if self.shut:
            raise StateError("the accelerator", "is closed", remedy="make a new one")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Enter, and leave at the end of the block, which ``close`` waits for. StateError if it is shut."""
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
        """Let the calling thread be inside to its end. ``close`` does not wait for it: who closes joins it."""
        self._here.stays = True

    def check_outside(self) -> None:
        """Raise StateError if the calling thread is inside, as in a signal handler: it would wait for itself."""
        if getattr(self._here, "stays", False) or threading.get_ident() in self._inside:
            raise StateError(
                "the accelerator",
                "cannot be closed by a signal handler or a callback within the work that close() waits for",
                remedy="raise an exception there, and close where it is caught",
            )

    def close(self) -> None:
        """Let nobody in any more, and wait until nobody is inside. StateError if the calling thread is inside."""
        with self._changed:
            self.check_outside()
            self.shut = True
            self._changed.wait_for(lambda: not self._inside)
