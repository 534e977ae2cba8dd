"""What answers on the simulated board's control bus: plain registers, the interrupt controller, the accelerator."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from host.simulated.faults import Faults


class Slave(Protocol):
    """What answers on the bus."""

    def read(self, offset: int) -> int: ...

    def write(self, offset: int, value: int) -> None: ...

    def stop(self) -> None:
        """A bitstream is loaded over it."""


class Registers:
    """A register file that only remembers."""

    def __init__(self, values: Mapping[int, int] | None = None) -> None:
        self.values = defaultdict(int, values or {})

    def read(self, offset: int) -> int:
        return self.values[offset]

    def write(self, offset: int, value: int) -> None:
        self.values[offset] = value

    def stop(self) -> None:
        """A bitstream is loaded over it."""


class InterruptController(Registers):
    """axi_intc (PG099) in level mode, and the UIO object through which Linux would pass it on."""

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
                # A line that is still high is latched again: the second, bogus interrupt that is seen on boards.
                self.values[self.ISR] = self.values[self.ISR] & ~value | self._lines
            else:
                self.values[offset] = value
            self._fire()

    def add_event(self, event: Any, _number: int) -> None:
        """What ``pynq.uio.UioController`` has."""
        with self._lock:
            self._events.append((event, asyncio.get_running_loop()))
            self._fire()

    def _fire(self) -> None:
        if self.values[self.ISR] & self.values[self.IER] and self.values[self.MER] & 3 == 3:
            waiting, self._events = self._events, []
            for event, loop in waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)


Kernel = Callable[["AcceleratorModel", Mapping[str, int]], bool]
"""Runs what the registers say; False where it hangs."""


class AcceleratorModel(Registers):
    """ap_ctrl_hs on s_axilite with its interrupt; ``run`` is called in a thread of its own on AP_START."""

    CTRL, GIER, IER, ISR = 0x00, 0x04, 0x08, 0x0C
    START, DONE, IDLE, READY = 1, 2, 4, 8

    def __init__(self, offsets: Mapping[str, int], run: Kernel, faults: Faults, irq: Callable[[bool], None]) -> None:
        super().__init__({self.CTRL: self.IDLE})
        self.offsets = dict(offsets)
        self.stopped = threading.Event()
        self.starts = 0
        self._run, self._faults, self._irq = run, faults, irq
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []

    def read(self, offset: int) -> int:
        with self._lock:
            value = self.values[offset]
            if offset == self.CTRL:
                self.values[offset] &= ~(self.DONE | self.READY)
                value |= int(self._line) << 9
            return value

    def write(self, offset: int, value: int) -> None:
        with self._lock:
            if offset == self.CTRL:
                self._control(value)
            elif offset == self.ISR:
                self.values[offset] ^= value  # toggle on write
            else:
                self.values[offset] = value
            self._irq(self._line)

    def show(self, name: str, value: int) -> None:
        """A register that the accelerator writes and the host reads."""
        with self._lock:
            self.values[self.offsets[name]] = value

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()

    @property
    def _line(self) -> bool:
        return bool(self.values[self.GIER] & 1 and self.values[self.ISR])

    def _control(self, value: int) -> None:
        if value & self.START and self.values[self.CTRL] & self.IDLE:
            self.values[self.CTRL] = self.START
            registers = {name: self.values[offset] for name, offset in self.offsets.items()}
            thread = threading.Thread(target=self._execute, args=(registers, self.starts), daemon=True)
            self.starts += 1
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            thread.start()

    def _execute(self, registers: Mapping[str, int], number: int) -> None:
        if not self._run(self, registers) or self.stopped.is_set():
            return
        lost, late, twice = (self._faults.take(f"{what} interrupt", number) for what in ("lost", "late", "double"))
        with self._lock:
            self.values[self.CTRL] = self.DONE | self.IDLE | self.READY
            if not (lost or late):
                self._raise_interrupt()
        for again in (late, twice):
            if again:
                self.stopped.wait(again.seconds)
                self._raise_interrupt()

    def _raise_interrupt(self) -> None:
        with self._lock:
            self.values[self.ISR] |= self.values[self.IER] & 3
            self._irq(self._line)
