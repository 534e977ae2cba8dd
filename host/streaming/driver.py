"""Driver of the streaming accelerator under pynq: packets through AXI DMA, with two frames in flight at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import AcceleratorError, MismatchError, SystolicError, cut
from host.board.buffers import Allocate, Buffers
from host.board.overlay import LoadedOverlay
from host.contract.manifest import of_style
from host.contract.parts import MANIFEST, Manifest
from host.contract.streaming import StreamingLayer, StreamingManifest
from host.contract.tensors import Integers, Pixels
from host.streaming.dma import StreamChannel, Turns
from host.streaming.layout import pack_packet, unpack_packet


@dataclass(frozen=True)
class StreamingBatch:
    """The two packet buffers in DDR of one frame in flight."""

    index: int
    sent: Any
    received: Any


class StreamingBuffers(Buffers):
    """The buffers of a streaming design in DDR: external weights, and the packets of ``count`` frames in flight."""

    names = ("weights", "batches")

    def __init__(self, manifest: StreamingManifest, folder: Path, count: int, allocate: Allocate) -> None:
        self._manifest, self._folder, self._count = manifest, folder, count
        super().__init__(allocate)

    def fill(self) -> None:
        """Upload the external weights, and allocate the packet buffers in whole beats, because the DMA transfers whole
        beats."""
        self.weights = tuple(self.upload(self._folder, image) for image in self._manifest.images)
        self.batches = tuple(
            StreamingBatch(
                index, self.zeros(self._manifest.packet_in.beat_bytes), self.new(self._manifest.packet_out.beat_bytes)
            )
            for index in range(self._count)
        )


MIN_TURN_SECONDS = 10.0
"""Minimum time in seconds that a frame waits for earlier frames, whose threads may start slowly."""


class StreamingDriver:
    """The driver (``host.backend.Driver``) of a streaming accelerator under pynq.

    The pipeline is started once and restarts itself; a frame is one packet each way.
    """

    at_once = 2
    """Number of frames executed at the same time: one can enter the pipeline while another is read."""

    def __init__(self, loaded: LoadedOverlay, manifest: Manifest) -> None:
        self._loaded, self._manifest = loaded, of_style(StreamingManifest, manifest)
        self.buffers: StreamingBuffers | None = None
        self._channel: StreamChannel | None = None
        self.discard_loaded()

    def open(self, count: int) -> None:
        """Upload the external weights, allocate packets for ``count`` frames in flight, and start the pipeline."""
        loaded = self._loaded
        self._channel = StreamChannel(self._dma(), loaded.timeout_s)
        self.buffers = StreamingBuffers(self._manifest, loaded.folder, count, loaded.allocate)
        for image, buffer in zip(self._manifest.images, self.buffers.weights, strict=True):
            loaded.ip.put_pointer(image.port, buffer.device_address)
        self.discard_loaded()
        loaded.ip.run(self._manifest.frames_per_start)

    def free(self) -> None:
        """Free every buffer in DDR."""
        buffers, self.buffers, self._channel = self.buffers, None, None
        if buffers is not None:
            buffers.free()

    # --- the stages of a frame

    def load(self, batch: StreamingBatch, pictures: Sequence[Pixels]) -> None:
        """Write one picture into the frame's input packet and give it the next turn. pynq flushes the packet when it is
        sent.

        A refused picture gets no turn, and a packet that was loaded but not executed keeps its turn. So no thread waits
        for a turn that never comes.
        """
        (pixels,) = pictures
        pack_packet(self._manifest, pixels, np.asarray(batch.sent))
        if batch.index not in self._turn_of:
            self._turn_of[batch.index] = self._loads
            self._loads += 1

    def execute(self, batch: StreamingBatch, wait: str) -> None:
        """Send one frame's packet through the pipeline and receive its output. There is no interrupt, so ``wait`` makes
        no difference.

        Several threads may call this at the same time. Their frames enter the pipeline in the order in which they were
        loaded.
        """
        turn = self._turn_of.pop(batch.index)
        with self._whole() as channel:
            with self._sending.turn(turn):
                channel.send(batch.sent)
            with self._receiving.turn(turn):
                channel.receive(batch.received)
            channel.finish(batch.sent)

    def discard_loaded(self) -> None:
        """Forget the turns of frames that were loaded but not executed. Called at the end of a stream."""
        self._loads = 0
        self._turn_of: dict[int, int] = {}
        limit = max(MIN_TURN_SECONDS, self.at_once * self._loaded.timeout_s)
        self._sending, self._receiving = Turns(self._broken, limit), Turns(self._broken, limit)

    def _broken(self) -> bool:
        return bool(self._loaded.broken)

    def collect(self, batch: StreamingBatch, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Return copies of the feature maps in the frame's output packet, as a batch of one frame."""
        return (unpack_packet(self._manifest, np.asarray(batch.received)),)

    def holds_pictures(self, batch: StreamingBatch, pictures: Sequence[Pixels]) -> bool:
        """Return whether the frame's input packet in DDR holds exactly this picture."""
        (pixels,) = pictures
        expected = np.zeros(self._manifest.packet_in.beat_bytes, np.uint8)
        pack_packet(self._manifest, pixels, expected)
        batch.sent.invalidate()
        return bool(np.array_equal(np.asarray(batch.sent), expected))

    @contextlib.contextmanager
    def _whole(self) -> Iterator[StreamChannel]:
        """Return a context manager around one exchange of packets, which gives the DMA's channel.

        After a failed exchange the pipeline is broken: its position in a frame is unknown.
        """
        self._loaded.check_whole()
        assert self._channel is not None
        try:
            with self._loaded.running():
                yield self._channel
        except AcceleratorError as error:
            raise replace(error, state=f"{error.state}; {self._loaded.ip.state()}".lstrip("; ")) from error
        except SystolicError:
            raise
        except Exception as error:  # pynq raises RuntimeError for misuse of its channels
            raise AcceleratorError(cut(error), self._loaded.ip.state()) from error
        finally:
            self._sending.notify()
            self._receiving.notify()

    # --- layer by layer

    def layers(self, pixels: Pixels, wait: str, frames: int = 1) -> Iterator[tuple[StreamingLayer, Integers]]:
        """Execute one picture, and yield each output layer with its map ``(1, channels, height, width)``. Other layers'
        maps are never stored."""
        assert self.buffers is not None
        batch = self.buffers.batches[0]
        self.load(batch, (pixels,))
        self.execute(batch, wait)
        for layer, integers in zip(self._manifest.output_layers, self.collect(batch)[0], strict=True):
            yield self._manifest.layers[layer], integers[np.newaxis]

    def _dma(self) -> Any:
        overlay = self._loaded.overlay
        names = [name for name, entry in overlay.ip_dict.items() if ":axi_dma:" in entry["type"]]
        if len(names) != 1:
            raise MismatchError(
                "the number of AXI DMAs in the .hwh",
                len(names),
                1,
                remedy=f"copy .bit, .hwh and {MANIFEST} of one design",
            )
        return getattr(overlay, names[0])
