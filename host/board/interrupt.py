"""The accelerator's line of the interrupt controller, armed once for all frames. Needs pynq's objects, not pynq."""

from __future__ import annotations

import asyncio
from typing import Any

_IAR, _SIE, _MER = 0x0C, 0x10, 0x1C  # of axi_intc, PG099
_MASTER_AND_HARDWARE = 3


class Line:
    """Between a ``pynq.Interrupt`` and the UIO device from which pynq's controller gets its events.

    ``pynq.Interrupt.wait`` enables line and controller for every wait, disables the line at every interrupt, and
    acknowledges it while the accelerator still asserts it, so that each is seen twice: 8 register writes a frame.
    Here the line stays enabled and is acknowledged after the accelerator's own status is cleared: 1 write.
    """

    def __init__(self, registers: Any, uio: Any, number: int) -> None:
        self._registers, self._uio, self._bit = registers, uio, 1 << number
        self._event = asyncio.Event()
        self._armed = self._waiting = False

    async def wait(self) -> None:
        """Until the controller has an interrupt; one that is pending already counts."""
        if not self._armed:
            self._registers.write(_SIE, self._bit)
            self._registers.write(_MER, _MASTER_AND_HARDWARE)
            self._armed = True
        if not self._waiting:
            self._event.clear()
            self._uio.add_event(self._event, 0)
            self._waiting = True
        await self._event.wait()
        self._waiting = False

    def acknowledge(self) -> None:
        """To be called when the accelerator does not assert it any more."""
        self._registers.write(_IAR, self._bit)

    def disarmed(self) -> None:
        """Somebody else may have: ``pynq.Interrupt.wait`` for instance. The next wait arms it again."""
        self._armed = False


def line_of(interrupt: Any) -> Line | None:
    """None where it has no controller that is fed by a UIO device itself; then the accelerator is polled.

    The interrupt of a board that is driven over the network has no controller at all: pynq brings none across.
    """
    parent = getattr(interrupt, "parent", None)
    controller = parent() if parent is not None else None
    uio = getattr(controller, "parent", None)
    if controller is None or uio is None or hasattr(uio, "mmio"):
        return None
    return Line(controller.mmio, uio, interrupt.number)
