"""The accelerator's line at the interrupt controller, enabled once for all frames. Uses pynq's objects, not pynq."""

from __future__ import annotations

import asyncio
from typing import Any

_IAR, _SIE, _MER = 0x0C, 0x10, 0x1C  # register offsets of axi_intc (PG099)
_MASTER_AND_HARDWARE = 3


class Line:
    """The accelerator's interrupt line. It waits directly at the UIO device from which pynq's controller gets its
    events.

    ``pynq.Interrupt.wait`` enables line and controller for every wait, and disables the line at every interrupt. It
    also acknowledges while the accelerator still asserts the line, so each interrupt is seen twice. That costs 8
    register writes per frame. Here the line stays enabled, and is acknowledged after the accelerator's own status is
    cleared: 1 write per frame.
    """

    def __init__(self, registers: Any, uio: Any, number: int) -> None:
        self._registers, self._uio, self._bit = registers, uio, 1 << number
        self._event = asyncio.Event()
        self._armed = self._waiting = False

    async def wait(self) -> None:
        """Wait until the interrupt controller reports an interrupt. A pending interrupt ends the wait at once."""
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
        """Acknowledge the interrupt at the controller. Call it only after the accelerator has stopped asserting the
        line."""
        self._registers.write(_IAR, self._bit)

    def mark_disarmed(self) -> None:
        """Record that other code, such as ``pynq.Interrupt.wait``, may have disabled the line.

        The next wait enables it.
        """
        self._armed = False


def line_of(interrupt: Any) -> Line | None:
    """Return a ``Line`` for a ``pynq.Interrupt``, or None if its controller is not fed directly by a UIO device.

    Without a line the accelerator is polled. A board that is driven over the network has no controller, because pynq
    does not forward interrupts.
    """
    parent = getattr(interrupt, "parent", None)
    controller = parent() if parent is not None else None
    uio = getattr(controller, "parent", None)
    if controller is None or uio is None or hasattr(uio, "mmio"):
        return None
    return Line(controller.mmio, uio, interrupt.number)
