"""The streaming accelerator of the simulated board.

After one start it turns each input packet into an output packet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from host.contract.libraries import StoppedError, StreamingLibrary
from host.contract.manifest import of_style
from host.contract.parts import Manifest
from host.contract.streaming import StreamingManifest
from host.simulated.ddr import BusError
from host.simulated.fabric import FabricBoard, pointer
from host.simulated.registers import Registers

_CTRL = 0x00
_START, _DONE, _IDLE, _READY, _RESTART = 1, 2, 4, 8, 0x80


class StreamingModel(Registers):
    """Model of the pipeline's registers (ap_ctrl_hs). One start lasts for the number of frames in a register;
    AUTO_RESTART repeats it."""

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
        """Return whether the pipeline is started and not stalled, so that it accepts a frame."""
        return self._left > 0 and not self.stalled

    def named(self) -> dict[str, int]:
        """Return the value of every register by its name."""
        return {name: self.values[offset] for name, offset in self.offsets.items()}

    def frame_done(self) -> None:
        """Count a finished frame. After the last frame of a start the pipeline becomes idle, or starts again."""
        self._left -= 1
        if self._left == 0 and self.values[_CTRL] & _RESTART:
            self._begin()
        elif self._left == 0:
            self.values[_CTRL] = _DONE | _IDLE | _READY

    def _begin(self) -> None:
        self.starts += 1
        self._left = self.named()["frames"]


class StreamingFabric:
    """The simulated accelerator (``host.simulated.fabric.SimulatedFabric``) of a streaming design, executed by its
    simulation library.

    DamagedFileError if it cannot be loaded.
    """

    def __init__(self, board: FabricBoard, manifest: Manifest, library: Path) -> None:
        self._board, self._manifest = board, of_style(StreamingManifest, manifest)
        self._library = StreamingLibrary(library, self._manifest)
        self._model: StreamingModel | None = None
        self._frames = 0

    def slave(self, offsets: Mapping[str, int], irq: Callable[[bool], None]) -> StreamingModel:
        """Return a new model of the pipeline's registers, as after loading a bitstream. The pipeline has no
        interrupt."""
        self._model = StreamingModel(offsets)
        return self._model

    def stream(self, packet: bytes) -> bytes | None:
        """Return the output packet for an input packet, or None if the pipeline stalls, for instance before a start."""
        model = self._model
        if model is None or not model.running:
            return None
        begin, frame, registers = time.perf_counter(), self._frames, model.named()
        self._frames += 1
        try:
            self._board.corrupt(registers, frame)
        except Exception as error:  # this is the DMA's thread, so no caller would see the exception
            self._board.stop_reason, model.stalled = f"{type(error).__name__}: {error}", True
            return None
        if self._board.faults.pop_due("hang", frame):
            model.stalled = True
            return None
        sent, self._board.stop_reason = self._run(registers, packet)
        model.stalled = bool(self._board.stop_reason)
        if model.stalled or not self._board.wait_board_time(model.stopped, range(1), begin):
            return None
        model.frame_done()
        return sent

    def _run(self, registers: Mapping[str, int], packet: bytes) -> tuple[bytes, str]:
        """Execute one input packet. Return the output packet in whole beats, and the reason if execution stopped, else
        ""."""
        packet_in, packet_out = self._manifest.packet_in, self._manifest.packet_out
        if len(packet) not in (packet_in.bytes, packet_in.beat_bytes):
            return b"", f"a packet has {len(packet)} bytes, but a frame has {packet_in.bytes}"
        frame = np.frombuffer(packet, np.uint8)[: packet_in.bytes]
        try:
            images = [
                self._board.memory.to_buffer_end(pointer(registers, image.port)) for image in self._manifest.images
            ]
            (sent,) = self._library.run(images, frame[np.newaxis])
        except BusError as error:
            return b"", str(error)
        except StoppedError as error:
            return b"", error.sentence
        except Exception as error:  # no caller would see this exception either
            return b"", f"{type(error).__name__}: {error}"
        return sent.tobytes().ljust(packet_out.beat_bytes, b"\0"), ""
