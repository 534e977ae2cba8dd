"""A gate around work on memory: a thread enters before it works there, and closing waits until all have left."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from boards.errors import StateError


class Gate:
    """Counts the threads that use an accelerator (are inside the gate), and admits none after it is closed. It never
    opens again.

    Attributes:
        shut: Whether ``close`` was called. No thread can enter any more.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: list[int] = []
        self._here = threading.local()  # its ``stays`` says whether the thread counts as inside until it ends
        self.shut = False

    def check(self) -> None:
        """Raise StateError if the gate is closed."""
        if self.shut:
            raise StateError("the accelerator", "is closed", remedy="make a new one")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Return a context manager within which the calling thread counts as inside the gate.

        ``close`` waits for that. StateError if the gate is shut.
        """
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

    def stay_inside(self) -> None:
        """Count the calling thread as inside the gate until the thread ends.

        ``close`` does not wait for it; the closing thread joins it.
        """
        self._here.stays = True

    def check_outside(self) -> None:
        """Raise StateError if the calling thread is inside the gate, for instance in a signal handler.

        Otherwise it would wait for itself.
        """
        if getattr(self._here, "stays", False) or threading.get_ident() in self._inside:
            raise StateError(
                "the accelerator",
                "cannot be closed by a signal handler or a callback within the work that close() waits for",
                remedy="raise an exception there, and close where it is caught",
            )

    def close(self) -> None:
        """Admit no more threads, and wait until none is inside. StateError if the calling thread itself is inside."""
        with self._changed:
            self.check_outside()
            self.shut = True
            self._changed.wait_for(lambda: not self._inside)
