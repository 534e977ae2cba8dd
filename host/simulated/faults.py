"""Faults of an accelerator that can be injected into the simulated board."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from boards.errors import ChoiceError
from host.arguments import number, whole_number

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
    """One fault to inject into the simulated board. It happens once.

    Attributes:
        kind: One of KINDS.
        at: Number of the start (hang, interrupts, corrupt word), of the ``allocate`` or of the flush that fails.
            Counted from 0, for allocations and flushes from the injection on.
        in_pass: The pass (engine instruction) in which the accelerator hangs, counted from the start's first pass.
        buffer: The buffer with the corrupted 32-bit word: weights_0 …, requantisers or program.
        word: Index of that word. It is corrupted before the start.
        seconds: Delay of a late interrupt, or time until a double interrupt is repeated.
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
            whole_number(f"{name} of a fault", getattr(self, name), 0, 1 << 40)
        number("seconds of a fault", self.seconds, 3600, zero=True)


class Faults:
    """The injected faults that have not happened yet. Allocations and flushes are counted from the last injection
    on."""

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

    def pop_due(self, kind: str, number: int) -> InjectedFault | None:
        """Remove and return the fault of this kind that is due at event ``number`` (start, allocation or flush), else
        None."""
        with self._lock:
            due = next((fault for fault in self._waiting if (fault.kind, fault.at) == (kind, number)), None)
            if due is not None:
                self._waiting.remove(due)
            return due

    def corruptions(self, number: int) -> list[InjectedFault]:
        """Remove and return the faults that corrupt words of DDR before start ``number`` of the accelerator."""
        faults = []
        while (fault := self.pop_due("corrupt word", number)) is not None:
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
        return self.pop_due(kind, number) is not None
