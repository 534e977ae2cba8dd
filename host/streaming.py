"""The streaming style: a frame goes in through AXI DMA and comes out through it, by pynq's own driver.

pynq's ``wait`` asks for ever; here a packet has a time in which it has to be through.
"""

from __future__ import annotations

import time
from typing import Any

from boards.errors import HostError

_NAP_SECONDS = 20e-6
_STATUS = 0x04, 0x34  # MM2S_DMASR, S2MM_DMASR (PG021)
_BITS = {0x1: "halted", 0x2: "idle", 0x10: "internal error", 0x20: "slave error", 0x40: "decode error"}


class StreamChannel:
    """One ``pynq.lib.dma.DMA`` between DDR and a streaming accelerator."""

    def __init__(self, dma: Any, timeout_s: float = 5.0) -> None:
        if dma.sendchannel is None or dma.recvchannel is None:
            raise HostError("a streaming design needs a DMA that sends and receives; the .hwh has one direction only")
        self.dma, self.timeout_s = dma, timeout_s

    def exchange(self, sent: Any, received: Any) -> int:
        """One frame: ``sent`` (flushed by pynq) through the accelerator into ``received`` (invalidated by pynq).

        Returns the bytes that came. HostError where it takes longer than the timeout, where the DMA reports an
        error, or where a buffer is larger than its length register can say; call ``reset`` after either.
        """
        self._check_size(sent, received)
        self.dma.recvchannel.transfer(received)
        self.dma.sendchannel.transfer(sent)
        until = time.perf_counter() + self.timeout_s
        for channel in (self.dma.sendchannel, self.dma.recvchannel):
            self._wait(channel, until, received.nbytes)
        return int(self.dma.recvchannel.transferred)

    def reset(self) -> None:
        """Soft reset of both channels (PG021, DMACR.Reset), and started again."""
        for offset, channel in zip((0x00, 0x30), (self.dma.sendchannel, self.dma.recvchannel), strict=True):
            self.dma.write(offset, 0x4)
            channel.start()

    def state(self) -> str:
        """The status registers, for a person."""
        return ", ".join(f"{name} {self._status(at)}" for name, at in zip(("MM2S", "S2MM"), _STATUS, strict=True))

    def _check_size(self, *buffers: Any) -> None:
        largest = int(self.dma.buffer_max_size)
        for buffer in buffers:
            if not 0 < buffer.nbytes <= largest:
                raise HostError(
                    f"a packet has 1…{largest} bytes by the width of this DMA's length register, not {buffer.nbytes}; "
                    "build it with c_sg_length_width = 26"
                )

    def _wait(self, channel: Any, until: float, expected: int) -> None:
        while not channel.idle:
            if channel.error:
                raise HostError(f"the DMA reports an error: {self.state()}; call reset()")
            if time.perf_counter() > until:
                raise HostError(
                    f"the stream did not end within {self.timeout_s:g} s: {self.state()}; {expected} bytes and TLAST "
                    "with the last of them are waited for, so either fewer came or the accelerator stalls; call reset()"
                )
            time.sleep(_NAP_SECONDS)
        channel.wait()

    def _status(self, offset: int) -> str:
        value = int(self.dma.read(offset))
        names = [name for bit, name in _BITS.items() if value & bit] or ["busy"]
        return f"{value:#x} ({', '.join(names)})"
