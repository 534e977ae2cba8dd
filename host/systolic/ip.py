"""The systolic engine's registers. Importing this needs pynq."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from host.board.interrupt import Line
from host.board.ip import AP_START, CTRL, GIER, IER, ISR, GeneratedIP

_LOOK_SECONDS = 0.05
"""How long an interrupt may be late before the registers are asked: none is lost for good."""
_NAP_SECONDS = 20e-6


class SystolicIP(GeneratedIP):
    """The systolic engine: a start runs passes of its program."""

    bindto = ["systolic:cnn:systolic_top:1.0"]  # noqa: RUF012 (pynq reads a list)
    scalars = ("first", "count", "current")

    def __init__(self, description: Mapping[str, Any]) -> None:
        super().__init__(description)
        self._started = (0, 0)
        self._seconds: dict[tuple[int, int], float] = {}  # seconds, by what was started
        self.missed_interrupts = 0

    @property
    def current_pass(self) -> int:
        return int(self.read(self.offset("current")))

    def start(self, first: int, count: int) -> None:
        """Passes ``first`` … ``first + count − 1``; returns at once."""
        self._started = (first, count)
        self.put(self.offset("first"), first)
        self.put(self.offset("count"), count)
        self.write(CTRL, AP_START)

    def poll(self, timeout_s: float) -> bool:
        """Whether it became idle in time. Sleeps through most of what such a start usually takes.

        The clock may have run out while this process was not running: it is looked at once more before that is said.
        """
        start = time.perf_counter()
        expected = self._seconds.get(self._started, 0.0)
        time.sleep(min(0.9 * expected, timeout_s))
        overslept = expected > 0 and self.idle
        while not self.idle:
            if (time.perf_counter() - start > timeout_s or self.hopeless) and not self.idle:
                return False
            time.sleep(_NAP_SECONDS)
        # It may have been idle for long: only a frame whose end was seen tells what one takes.
        self._seconds[self._started] = 0.5 * expected if overslept else time.perf_counter() - start
        return True

    def enable_interrupt(self) -> None:
        self.put(GIER, 1)
        self.put(IER, 1)

    async def interrupted(self, timeout_s: float) -> bool:
        """As ``poll``, by the interrupt. A bogus one is ignored, a late or lost one does not matter."""
        assert self.line is not None
        deadline = time.perf_counter() + timeout_s
        while not self.idle:
            if (time.perf_counter() > deadline or self.hopeless) and not self.idle:
                return False
            await self._one_interrupt(self.line)
        self._acknowledge(self.line)
        return True

    async def _one_interrupt(self, line: Line) -> None:
        try:
            await asyncio.wait_for(line.wait(), _LOOK_SECONDS)
        except asyncio.TimeoutError:  # Python 3.10 has a name of its own for it
            if self.idle:
                self.missed_interrupts += 1
                line.disarmed()
            return
        self._acknowledge(line)

    def _acknowledge(self, line: Line) -> None:
        """IPISR is toggled by what is written: only bits that are set may be. The controller latches a level."""
        pending = self.read(ISR)
        if pending:
            self.write(ISR, pending)
            line.acknowledge()
