"""Slaves on the simulated board's control bus: plain registers, and the interrupt controller."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Protocol


class Slave(Protocol):
    """The interface of a simulated peripheral with registers on the PS's control bus."""

    def read(self, offset: int) -> int: ...

    def write(self, offset: int, value: int) -> None: ...

    def stop(self) -> None:
        """Stop the peripheral's work, because a bitstream is loaded."""

    def reaches(self, address: int, size: int) -> bool:
        """Return whether the peripheral may be accessing this range of DDR."""


class Registers:
    """A register file without any function: it returns the values that were written."""

    def __init__(self, values: Mapping[int, int] | None = None) -> None:
        self.values = defaultdict(int, values or {})

    def read(self, offset: int) -> int:
        return self.values[offset]

    def write(self, offset: int, value: int) -> None:
        self.values[offset] = value

    def stop(self) -> None:
        """Do nothing: the registers do no work of their own."""

    def reaches(self, address: int, size: int) -> bool:
        """Return False: the registers have no port to memory."""
        return False


class InterruptController(Registers):
    """Model of axi_intc (PG099) in level mode, and of the UIO device by which Linux reports its interrupts."""

    ISR, IPR, IER, IAR, SIE, CIE, MER = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x1C

    def __init__(self) -> None:
        super().__init__()
        self._events: list[tuple[Any, asyncio.AbstractEventLoop]] = []
        self._lines = 0
        self._lock = threading.RLock()

    def line(self, number: int, level: bool) -> None:
        with self._lock:
            self._lines = self._lines & ~(1 << number) | int(level) << number
            self.values[self.ISR] |= self._lines
            self._fire()

    def read(self, offset: int) -> int:
        with self._lock:
            return self.values[self.ISR] & self.values[self.IER] if offset == self.IPR else self.values[offset]

    def write(self, offset: int, value: int) -> None:
        with self._lock:
            if offset == self.SIE:
                self.values[self.IER] |= value
            elif offset == self.CIE:
                self.values[self.IER] &= ~value
            elif offset == self.IAR:
                # A line that is still high is latched again. This is the second, spurious interrupt seen on boards.
                self.values[self.ISR] = self.values[self.ISR] & ~value | self._lines
            else:
                self.values[offset] = value
            self._fire()

    def add_event(self, event: Any, _number: int) -> None:
        """Set the asyncio event at the next interrupt, as ``pynq.uio.UioController.add_event`` does."""
        with self._lock:
            self._events.append((event, asyncio.get_running_loop()))
            self._fire()

    def _fire(self) -> None:
        if self.values[self.ISR] & self.values[self.IER] and self.values[self.MER] & 3 == 3:
            waiting, self._events = self._events, []
            for event, loop in waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)
