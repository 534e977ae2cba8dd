"""Register driver of the systolic engine. Importing this needs pynq."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from host.board.interrupt import Line
from host.board.ip import AP_START, CTRL, GIER, IER, ISR, GeneratedIP

_LOOK_SECONDS = 0.05
"""Seconds after which a missing interrupt is checked against the registers, so that a lost interrupt does no harm."""
_NAP_SECONDS = 20e-6


class SystolicIP(GeneratedIP):
    """The pynq driver of the systolic engine's registers. One start runs a range of passes (instructions) of the
    program in DDR."""

    bindto = ["systolic:cnn:systolic_top:1.0"]  # noqa: RUF012 (pynq reads a list)
    scalars = ("first", "count", "current")

    def __init__(self, description: Mapping[str, Any]) -> None:
        super().__init__(description)
        self._started = (0, 0)
        self._seconds: dict[tuple[int, int], float] = {}  # duration of a start, by its first pass and count
        self.missed_interrupts = 0

    @property
    def current_pass(self) -> int:
        return int(self.read(self.offset("current")))

    def start(self, first: int, count: int) -> None:
        """Start instructions (passes) ``first`` … ``first + count − 1`` of the program in DDR, and return at once."""
        self._started = (first, count)
        self.put(self.offset("first"), first)
        self.put(self.offset("count"), count)
        self.write(CTRL, AP_START)

    def poll(self, timeout_s: float) -> bool:
        """Read the registers until the engine is idle; return whether that happened within ``timeout_s``.

        Most of the time that such a start usually takes is slept through. This process may have been suspended
        when the time ran out, so the engine is checked once more before failure.
        """
        start = time.perf_counter()
        expected = self._seconds.get(self._started, 0.0)
        time.sleep(min(0.9 * expected, timeout_s))
        overslept = expected > 0 and self.idle
        while not self.idle:
            if (time.perf_counter() - start > timeout_s or self.cannot_finish) and not self.idle:
                return False
            time.sleep(_NAP_SECONDS)
        # After oversleeping the end may be long past: only a start whose end was observed gives its duration.
        self._seconds[self._started] = 0.5 * expected if overslept else time.perf_counter() - start
        return True

    def enable_interrupt(self) -> None:
        self.put(GIER, 1)
        self.put(IER, 1)

    async def interrupted(self, timeout_s: float) -> bool:
        """Wait for the engine's interrupt until the engine is idle; return whether that happened within ``timeout_s``.

        Spurious interrupts are ignored; late or lost ones do no harm.
        """
        assert self.line is not None
        deadline = time.perf_counter() + timeout_s
        while not self.idle:
            if (time.perf_counter() > deadline or self.cannot_finish) and not self.idle:
                return False
            await self._one_interrupt(self.line)
        self._acknowledge(self.line)
        return True

    async def _one_interrupt(self, line: Line) -> None:
        try:
            await asyncio.wait_for(line.wait(), _LOOK_SECONDS)
        except asyncio.TimeoutError:  # Python 3.10 does not yet use the built-in TimeoutError
            if self.idle:
                self.missed_interrupts += 1
                line.mark_disarmed()
            return
        self._acknowledge(line)

    def _acknowledge(self, line: Line) -> None:
        """Clear the interrupt status, then acknowledge the line, since the controller latches a level.

        A write toggles IPISR, so only bits that are set may be written.
        """
        pending = self.read(ISR)
        if pending:
            self.write(ISR, pending)
            line.acknowledge()
