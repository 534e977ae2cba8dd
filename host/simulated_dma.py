"""AXI DMA of the simulated board: direct register mode of PG021."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Stream = Callable[[bytes], bytes | None]
"""A streaming accelerator: a packet in, a packet out; None where none comes."""

_MM2S, _S2MM = 0x00, 0x30
_CONTROL, _STATUS, _LOW, _HIGH, _LENGTH = 0x00, 0x04, 0x18, 0x1C, 0x28
_RUN, _RESET = 0x1, 0x4
_HALTED, _IDLE, _DECODE_ERROR, _DONE, _ERROR = 0x1, 0x2, 0x40, 0x1000, 0x4000


class DmaModel:
    """Packets of the first channel go through ``stream`` into the buffers of the second, in order.

    A packet that is longer than the buffer is an internal error, as a TLAST that does not come is.
    """

    def __init__(self, ddr: Callable[[int, int], npt.NDArray[np.uint8]], stream: Stream) -> None:
        self._ddr, self._stream = ddr, stream
        self.values: dict[int, int] = defaultdict(int)
        self._lock = threading.RLock()
        self._packets: deque[bytes] = deque()
        self._room: npt.NDArray[np.uint8] | None = None
        self.stop()

    def stop(self) -> None:
        for base in (_MM2S, _S2MM):
            self._reset(base)

    def read(self, offset: int) -> int:
        return self.values[offset]

    def write(self, offset: int, value: int) -> None:
        base, register = (_S2MM, offset - _S2MM) if offset >= _S2MM else (_MM2S, offset)
        with self._lock:
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
        if base == _MM2S:
            self._packets.clear()
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
        try:
            memory = self._ddr(self.values[base + _LOW] | self.values[base + _HIGH] << 32, length)
        except MemoryError:
            self.values[status] |= _DECODE_ERROR | _ERROR | _HALTED
            return
        if base == _S2MM:
            self._room = memory
        else:
            self._packets.append(bytes(memory))
            self.values[status] |= _IDLE | _DONE
        self._move()

    def _move(self) -> None:
        while self._packets and self._room is not None:
            out = self._stream(self._packets.popleft())
            if out is None:
                return
            taken = min(len(out), self._room.size)
            self._room[:taken] = np.frombuffer(out, np.uint8)[:taken]
            self.values[_S2MM + _LENGTH] = taken
            short = _IDLE | _DONE if len(out) <= self._room.size else 0x10 | _ERROR | _HALTED
            self.values[_S2MM + _STATUS] |= short
            self._room = None
