"""Packets through AXI DMA with pynq's own driver. pynq's ``wait`` has no timeout; here every packet has one."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from boards.errors import AcceleratorError, RangeError, StateError, UnsupportedError

_NAP_SECONDS = 20e-6
_STATUS = 0x04, 0x34  # MM2S_DMASR, S2MM_DMASR (PG021)
_BITS = {0x1: "halted", 0x2: "idle", 0x10: "internal error", 0x20: "slave error", 0x40: "decode error"}


class StreamChannel:
    """The packet transfers of one AXI DMA (``pynq.lib.dma.DMA``) between DDR and a streaming accelerator."""

    def __init__(self, dma: Any, timeout_s: float = 5.0) -> None:
        if dma.sendchannel is None or dma.recvchannel is None:
            raise UnsupportedError("an AXI DMA of one direction", "a streaming design sends and receives")
        self.dma, self.timeout_s = dma, timeout_s
        self._sending: Any = None
        self._sends = threading.Lock()

    def exchange(self, sent: Any, received: Any) -> int:
        """Send one input packet through the accelerator, receive the output packet, and return the number of bytes
        received.

        pynq flushes ``sent`` and invalidates ``received``. Call ``reset`` after an error.

        Raises:
            AcceleratorError: The timeout has passed, or the DMA reports an error.
            RangeError: A buffer is larger than the DMA's length register allows.
        """
        self._check_size(sent, received)
        self.dma.recvchannel.transfer(received)
        self.send(sent)
        self._wait_received(received)
        self.finish(sent)
        return int(self.dma.recvchannel.transferred)

    def send(self, sent: Any) -> None:
        """Begin to send a packet, once the previous one has been read, and return without waiting for its end.

        The transfer ends only if the output is received: a pipeline stalls while its output is blocked.
        """
        self._check_size(sent)
        with self._sends:
            self._finish()
            self.dma.sendchannel.transfer(sent)
            self._sending = sent

    def finish(self, sent: Any) -> None:
        """Wait until the DMA has read the packet ``sent``."""
        with self._sends:
            if self._sending is sent:
                self._finish()

    def receive(self, received: Any) -> None:
        """Receive the next output packet. To overlap with sending, call it in another thread."""
        self._check_size(received)
        self.dma.recvchannel.transfer(received)
        self._wait_received(received)

    def _finish(self) -> None:
        if self._sending is not None:
            self._wait(
                self.dma.sendchannel,
                "the accelerator did not take a packet",
                "it stalls, or its output is not received",
            )
            self._sending = None

    def _wait_received(self, received: Any) -> None:
        self._wait(
            self.dma.recvchannel,
            "the stream did not end",
            f"{received.nbytes} bytes with TLAST on the last are expected, so either fewer came or the accelerator "
            "stalls",
        )

    def reset(self) -> None:
        """Reset both channels of the DMA (PG021, DMACR.Reset) and start them again."""
        for offset, channel in zip((0x00, 0x30), (self.dma.sendchannel, self.dma.recvchannel), strict=True):
            self.dma.write(offset, 0x4)
            channel.start()
        self._sending = None

    def state(self) -> str:
        """Return the DMA's status registers as text for error messages."""
        return ", ".join(
            f"{name} {self._status(offset)}" for name, offset in zip(("MM2S", "S2MM"), _STATUS, strict=True)
        )

    def _check_size(self, *buffers: Any) -> None:
        largest = int(self.dma.buffer_max_size)
        for buffer in buffers:
            if not 0 < buffer.nbytes <= largest:
                raise RangeError(
                    "the number of bytes of a packet",
                    buffer.nbytes,
                    1,
                    largest,  # by the width of the length register
                    remedy="build the DMA with c_sg_length_width = 26",
                )

    def _wait(self, channel: Any, failure: str, why: str) -> None:
        deadline = time.perf_counter() + self.timeout_s
        while not channel.idle:
            if channel.error:
                raise AcceleratorError("the DMA reports an error", self.state(), remedy="call reset()")
            stop_reason = getattr(self.dma.device, "stop_reason", "")
            if stop_reason:
                reason = f"the accelerator stopped; the simulated board says: {stop_reason}"
                raise AcceleratorError(reason, remedy="call reset()")
            if time.perf_counter() > deadline and not channel.idle:  # this process may not have been running
                raise AcceleratorError(
                    f"{failure} within {self.timeout_s:g} s: {why}", self.state(), remedy="call reset()"
                )
            time.sleep(_NAP_SECONDS)
        channel.wait()

    def _status(self, offset: int) -> str:
        value = int(self.dma.read(offset))
        names = [name for bit, name in _BITS.items() if value & bit] or ["busy"]
        return f"{value:#x} ({', '.join(names)})"


class Turns:
    """Lets threads enter a section one at a time, in the order of their turn numbers, which count from 0.

    Args:
        broken: Returns whether the accelerator is broken. Then no thread enters any more.
        seconds: Longest time that a thread waits for its turn.
    """

    def __init__(self, broken: Callable[[], bool], seconds: float) -> None:
        self._broken, self._seconds, self._next = broken, seconds, 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def turn(self, number: int) -> Iterator[None]:
        """Return a context manager that waits for turn ``number``, and ends the turn when it is left.

        StateError if the accelerator broke meanwhile, or the turn does not come in time.
        """
        with self._changed:
            came = self._changed.wait_for(lambda: self._next == number or self._broken(), self._seconds)
            if not came or self._broken():
                raise StateError("an earlier frame", "did not end", remedy="call reset()")
        yield
        with self._changed:
            self._next += 1
            self._changed.notify_all()

    def notify(self) -> None:
        """Make all waiting threads check again whether the accelerator is broken."""
        with self._changed:
            self._changed.notify_all()
