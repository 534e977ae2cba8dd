"""AXI DMA of the simulated board, in the direct register mode of PG021."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from host.simulated.ddr import BusError

Stream = Callable[[bytes], bytes | None]
"""A streaming accelerator: takes an input packet and returns its output packet, or None if there is none."""

_MM2S, _S2MM = 0x00, 0x30
_CONTROL, _STATUS, _LOW, _HIGH, _LENGTH = 0x00, 0x04, 0x18, 0x1C, 0x28
_RUN, _RESET = 0x1, 0x4
_HALTED, _IDLE, _DECODE_ERROR, _DONE, _ERROR = 0x1, 0x2, 0x40, 0x1000, 0x4000


class DmaModel:
    """Model of an AXI DMA: it sends each packet through the accelerator (``stream``) into the next buffer of the
    receive channel.

    The accelerator takes a packet only while there is a buffer for its output. An output packet longer than the buffer
    is an internal error, as a missing TLAST is on a board.
    """

    def __init__(self, ddr: Callable[[int, int], npt.NDArray[np.uint8]], stream: Stream) -> None:
        self._ddr, self._stream = ddr, stream
        self.values: dict[int, int] = defaultdict(int)
        self._changed = threading.Condition()
        self._packet: bytes | None = None
        self._room: npt.NDArray[np.uint8] | None = None
        self._room_at = 0
        self._stopped = False
        self._resets = 0
        for base in (_MM2S, _S2MM):
            self._reset(base)
        self._mover = threading.Thread(target=self._move, daemon=True)
        self._mover.start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            for base in (_MM2S, _S2MM):
                self._reset(base)
            self._changed.notify_all()
        self._mover.join()

    def reaches(self, address: int, size: int) -> bool:
        """Return whether the DMA is about to write an output packet to this range of DDR."""
        with self._changed:
            return (
                self._room is not None and self._room_at < address + size and address < self._room_at + self._room.size
            )

    def read(self, offset: int) -> int:
        return self.values[offset]

    def write(self, offset: int, value: int) -> None:
        base, register = (_S2MM, offset - _S2MM) if offset >= _S2MM else (_MM2S, offset)
        with self._changed:
            if register == _STATUS:
                self.values[offset] &= ~(value & 0x7000)  # write 1 to clear
            elif register == _CONTROL:
                self._control(base, value)
            else:
                self.values[offset] = value
                if register == _LENGTH:
                    self._begin(base, value)

    def _reset(self, base: int) -> None:
        self.values[base + _CONTROL], self.values[base + _STATUS] = 0, _HALTED
        self._resets += 1
        if base == _MM2S:
            self._packet = None
        else:
            self._room = None

    def _control(self, base: int, value: int) -> None:
        if value & _RESET:
            self._reset(base)
            return
        self.values[base + _CONTROL] = value
        running = bool(value & _RUN)
        self.values[base + _STATUS] = self.values[base + _STATUS] & ~(_HALTED | _IDLE) if running else _HALTED

    def _begin(self, base: int, length: int) -> None:
        status: Any = base + _STATUS
        self.values[status] &= ~_IDLE
        address = self.values[base + _LOW] | self.values[base + _HIGH] << 32
        try:
            memory = self._ddr(address, length)
        except BusError:
            self.values[status] |= _DECODE_ERROR | _ERROR | _HALTED
            return
        if base == _S2MM:
            self._room, self._room_at = memory, address
        else:
            self._packet = bytes(memory)
        self._changed.notify_all()

    def _move(self) -> None:
        """Pass packets through the accelerator until the model is stopped, in a separate thread, so that register
        writes do not wait."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or (self._packet is not None and self._room is not None))
                if self._stopped:
                    return
                packet, resets = self._packet, self._resets
                assert packet is not None
            out = self._stream(packet)
            with self._changed:
                if resets == self._resets:
                    self._through(out)

    def _through(self, out: bytes | None) -> None:
        self._packet = None
        self.values[_MM2S + _STATUS] |= _IDLE | _DONE
        if out is None or self._room is None:
            return
        count = min(len(out), self._room.size)
        self._room[:count] = np.frombuffer(out, np.uint8)[:count]
        self.values[_S2MM + _LENGTH] = count
        self.values[_S2MM + _STATUS] |= _IDLE | _DONE if len(out) <= self._room.size else 0x10 | _ERROR | _HALTED
        self._room = None
