"""The streaming accelerator of the simulated board: started once, then a packet in, a packet out."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from host.contract.libraries import StoppedError, StreamingLibrary
from host.contract.streaming import StreamingManifest
from host.simulated.ddr import BusError, Ddr
from host.simulated.execution import pointer
from host.simulated.registers import Registers

_CTRL = 0x00
_START, _DONE, _IDLE, _READY, _RESTART = 1, 2, 4, 8, 0x80


class StreamingModel(Registers):
    """ap_ctrl_hs: a start is for as many frames as the register says; with AUTO_RESTART another one follows."""

    def __init__(self, offsets: Mapping[str, int]) -> None:
        super().__init__({_CTRL: _IDLE})
        self.offsets = dict(offsets)
        self.stopped = threading.Event()
        self.starts = self._left = 0
        self.stalled = False

    def read(self, offset: int) -> int:
        value = self.values[offset]
        if offset == _CTRL:
            self.values[offset] &= ~(_DONE | _READY)
        return value

    def write(self, offset: int, value: int) -> None:
        if offset != _CTRL:
            self.values[offset] = value
        elif value & _START and self.values[_CTRL] & _IDLE:
            self.values[_CTRL] = value & (_START | _RESTART)
            self._begin()
        else:
            self.values[_CTRL] = self.values[_CTRL] & ~_RESTART | value & _RESTART

    def stop(self) -> None:
        self.stopped.set()

    @property
    def running(self) -> bool:
        """Whether it takes a frame."""
        return self._left > 0 and not self.stalled

    def named(self) -> dict[str, int]:
        """The registers by name."""
        return {name: self.values[offset] for name, offset in self.offsets.items()}

    def frame_done(self) -> None:
        """After the last frame of a start it is idle, or starts again."""
        self._left -= 1
        if self._left == 0 and self.values[_CTRL] & _RESTART:
            self._begin()
        elif self._left == 0:
            self.values[_CTRL] = _DONE | _IDLE | _READY

    def _begin(self) -> None:
        self.starts += 1
        self._left = self.named()["frames"]


class PacketExecution:
    """A streaming design's simulation library, over a board's DDR. SimulationError where it cannot be loaded."""

    def __init__(self, library: Path, manifest: StreamingManifest, ddr: Ddr) -> None:
        self._library = StreamingLibrary(library, manifest)
        self._manifest, self._ddr = manifest, ddr

    def run(self, registers: Mapping[str, int], packet: bytes) -> tuple[bytes, str]:
        """The generated code on one frame: the packet that leaves, in whole beats; or what stopped it."""
        packet_in, packet_out = self._manifest.packet_in, self._manifest.packet_out
        if len(packet) not in (packet_in.bytes, packet_in.beat_bytes):
            return b"", f"a packet of {len(packet)} bytes came, a frame has {packet_in.bytes}"
        frame = np.frombuffer(packet, np.uint8)[: packet_in.bytes]
        try:
            images = [self._ddr.rest(pointer(registers, image.port)) for image in self._manifest.images]
            (sent,) = self._library.run(images, frame[np.newaxis])
        except BusError as error:
            return b"", str(error)
        except StoppedError as error:
            return b"", error.sentence
        return sent.tobytes().ljust(packet_out.beat_bytes, b"\0"), ""
