"""What can go wrong with an accelerator, to be injected into the simulated board."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from boards.errors import ChoiceError
from host.arguments import number, whole

KINDS = (
    "hang",
    "late interrupt",
    "lost interrupt",
    "double interrupt",
    "corrupt word",
    "allocation failure",
    "missing flush",
)


@dataclass(frozen=True)
class InjectedFault:
    """One thing that goes wrong once.

    at: which start (hang, interrupts, corrupt word), which ``allocate`` or which flush from now on, from 0.
    in_pass: of a hang, counted from the start's first. buffer, word: whose 32-bit word is corrupted before the
    start: weights_0 …, requantisers or program. seconds: how late an interrupt is, or comes again.
    """

    kind: str
    at: int = 0
    in_pass: int = 0
    buffer: str = "weights_0"
    word: int = 0
    seconds: float = 0.01

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ChoiceError("the kind of a fault", self.kind, KINDS)
        for name in ("at", "in_pass", "word"):
            whole(f"{name} of a fault", getattr(self, name), 0, 1 << 40)
        number("seconds of a fault", self.seconds, 3600, zero=True)


class Faults:
    """The faults that are still to come. Counts start when a fault is injected."""

    def __init__(self) -> None:
        self._waiting: list[InjectedFault] = []
        self._counts = {"allocation failure": 0, "missing flush": 0}
        self._lock = threading.Lock()

    def inject(self, *faults: InjectedFault) -> None:
        with self._lock:
            self._waiting += faults
            for fault in faults:
                if fault.kind in self._counts:
                    self._counts[fault.kind] = 0

    def take(self, kind: str, number: int) -> InjectedFault | None:
        """The fault of this kind whose time has come; it happens once."""
        with self._lock:
            due = next((fault for fault in self._waiting if (fault.kind, fault.at) == (kind, number)), None)
            if due is not None:
                self._waiting.remove(due)
            return due

    def corruptions(self, number: int) -> list[InjectedFault]:
        """The words that are spoilt before a start."""
        faults = []
        while (fault := self.take("corrupt word", number)) is not None:
            faults.append(fault)
        return faults

    def allocation(self) -> bool:
        return self._counted("allocation failure")

    def flush(self) -> bool:
        return self._counted("missing flush")

    def _counted(self, kind: str) -> bool:
        with self._lock:
            number = self._counts[kind]
            self._counts[kind] += 1
        return self.take(kind, number) is not None
