"""The streaming style: a frame goes in through AXI DMA and comes out through it, by pynq's own driver.

pynq's ``wait`` asks for ever; here a packet has a time in which it has to be through.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import HostError
from host.board.buffers import Allocate, Memory
from host.board.overlay import LoadedOverlay
from host.contract.layout import fill_pixels
from host.contract.parts import MANIFEST, read_image
from host.contract.streaming import StreamingLayer, StreamingManifest
from host.vision.picture import Pixels

Integers = npt.NDArray[np.signedinteger[Any]]

_NAP_SECONDS = 20e-6
_STATUS = 0x04, 0x34  # MM2S_DMASR, S2MM_DMASR (PG021)
_BITS = {0x1: "halted", 0x2: "idle", 0x10: "internal error", 0x20: "slave error", 0x40: "decode error"}


class StreamChannel:
    """One ``pynq.lib.dma.DMA`` between DDR and a streaming accelerator."""

    def __init__(self, dma: Any, timeout_s: float = 5.0) -> None:
        if dma.sendchannel is None or dma.recvchannel is None:
            raise HostError("a streaming design needs a DMA that sends and receives; the .hwh has one direction only")
        self.dma, self.timeout_s = dma, timeout_s
        self._sending: Any = None
        self._sends = threading.Lock()

    def exchange(self, sent: Any, received: Any) -> int:
        """One frame: ``sent`` (flushed by pynq) through the accelerator into ``received`` (invalidated by pynq).

        Returns the bytes that came. HostError where it takes longer than the timeout, where the DMA reports an
        error, or where a buffer is larger than its length register can say; call ``reset`` after either.
        """
        self._check_size(sent, received)
        self.dma.recvchannel.transfer(received)
        self.send(sent)
        self._wait_received(received)
        self.finish(sent)
        return int(self.dma.recvchannel.transferred)

    def send(self, sent: Any) -> None:
        """Half of ``exchange``: begun when the packet before is through, and left to itself then.

        It ends only when somebody receives: a pipeline stands still while what leaves it has nowhere to go.
        """
        self._check_size(sent)
        with self._sends:
            self._finish()
            self.dma.sendchannel.transfer(sent)
            self._sending = sent

    def finish(self, sent: Any) -> None:
        """Until the DMA reads ``sent`` no more."""
        with self._sends:
            if self._sending is sent:
                self._finish()

    def receive(self, received: Any) -> None:
        """The other half, for a thread of its own: the next packet that leaves."""
        self._check_size(received)
        self.dma.recvchannel.transfer(received)
        self._wait_received(received)

    def _finish(self) -> None:
        if self._sending is not None:
            self._wait(
                self.dma.sendchannel,
                "the accelerator did not take a packet",
                "it stalls, or nobody receives what leaves it",
            )
            self._sending = None

    def _wait_received(self, received: Any) -> None:
        self._wait(
            self.dma.recvchannel,
            "the stream did not end",
            f"{received.nbytes} bytes and TLAST with the last of them are waited for, so either fewer came or the "
            "accelerator stalls",
        )

    def reset(self) -> None:
        """Soft reset of both channels (PG021, DMACR.Reset), and started again."""
        for offset, channel in zip((0x00, 0x30), (self.dma.sendchannel, self.dma.recvchannel), strict=True):
            self.dma.write(offset, 0x4)
            channel.start()
        self._sending = None

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

    def _wait(self, channel: Any, what: str, why: str) -> None:
        until = time.perf_counter() + self.timeout_s
        while not channel.idle:
            if channel.error:
                raise HostError(f"the DMA reports an error: {self.state()}; call reset()")
            said = getattr(self.dma.device, "trouble", "")
            if said:
                raise HostError(f"the accelerator stopped, the simulated board says: {said}; call reset()")
            if time.perf_counter() > until and not channel.idle:  # this process may not have been running
                raise HostError(f"{what} within {self.timeout_s:g} s: {self.state()}; {why}; call reset()")
            time.sleep(_NAP_SECONDS)
        channel.wait()

    def _status(self, offset: int) -> str:
        value = int(self.dma.read(offset))
        names = [name for bit, name in _BITS.items() if value & bit] or ["busy"]
        return f"{value:#x} ({', '.join(names)})"


class Turns:
    """Threads come one at a time and in the order of their numbers, from 0; once ``broken`` none comes any more."""

    def __init__(self, broken: Callable[[], bool]) -> None:
        self._broken, self._next = broken, 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def take(self, number: int) -> Iterator[None]:
        """HostError where something broke meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._next == number or self._broken())
            if self._broken():
                raise HostError("an earlier frame did not end; call reset()")
        yield
        with self._changed:
            self._next += 1
            self._changed.notify_all()

    def wake(self) -> None:
        """Whoever waits looks again whether something is broken."""
        with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True)
class PacketSet:
    """What one frame in flight needs."""

    index: int
    sent: Any
    received: Any


class PacketBuffers(Memory):
    """External weights, and the packets of ``sets`` frames in flight."""

    names = ("weights", "sets")

    def __init__(self, manifest: StreamingManifest, folder: Path, sets: int, allocate: Allocate) -> None:
        self._manifest, self._folder, self._count = manifest, folder, sets
        super().__init__(allocate)

    def fill(self) -> None:
        """Packets are whole beats: so many come, and so many may be taken."""
        self.weights = tuple(self.upload(self._folder, one) for one in self._manifest.images)
        self.sets = tuple(
            PacketSet(
                at, self.zeros(self._manifest.packet_in.beat_bytes), self.new(self._manifest.packet_out.beat_bytes)
            )
            for at in range(self._count)
        )


class StreamingStyle:
    """Frames of a design on a loaded overlay. ``open`` after every load; ``free`` may be called twice.

    The pipeline is started once and restarts itself; a frame is a packet each way.
    """

    at_once = 2
    """Frames that are executed together: one leaves the pipeline while the next comes in."""

    def __init__(self, loaded: LoadedOverlay, manifest: StreamingManifest) -> None:
        self._loaded, self._manifest = loaded, manifest
        self.buffers: PacketBuffers | None = None
        self._channel: StreamChannel | None = None
        self.settle()

    def open(self, sets: int) -> None:
        """Uploads the external weights, tells the accelerator where they lie, and starts it."""
        loaded = self._loaded
        self._channel = StreamChannel(self._dma(), loaded.timeout_s)
        self.buffers = PacketBuffers(self._manifest, loaded.folder, sets, loaded.allocate)
        for one, image in zip(self._manifest.images, self.buffers.weights, strict=True):
            loaded.ip.put_pointer(one.port, image.device_address)
        self.settle()
        loaded.ip.run(self._manifest.frames_per_start)

    def free(self) -> None:
        buffers, self.buffers, self._channel = self.buffers, None, None
        if buffers is not None:
            buffers.free()

    # --- the stages of a frame

    def load(self, one: PacketSet, pictures: Sequence[Pixels]) -> None:
        """One picture into the packet, and next in turn; pynq flushes it when it is sent."""
        (pixels,) = pictures
        self._turn_of[one.index] = self._loads
        self._loads += 1
        pack_packet(self._manifest, pixels, np.asarray(one.sent))

    def execute(self, one: PacketSet, wait: str) -> None:
        """One frame, in and out. There is no interrupt: ``wait`` makes no difference.

        From several threads at once frames follow each other into the pipeline while others are in it, in the order
        in which they were loaded.
        """
        turn = self._turn_of[one.index]
        with self._whole() as channel:
            with self._sending.take(turn):
                channel.send(one.sent)
            with self._receiving.take(turn):
                channel.receive(one.received)
            channel.finish(one.sent)

    def settle(self) -> None:
        """After a stream: frames that were loaded and not executed have no turn any more."""
        self._loads = 0
        self._turn_of: dict[int, int] = {}
        self._sending, self._receiving = Turns(self._broken), Turns(self._broken)

    def _broken(self) -> bool:
        return bool(self._loaded.broken)

    def collect(self, one: PacketSet, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Of the one frame a copy of each map in the packet."""
        return (unpack_packet(self._manifest, np.asarray(one.received)),)

    def arrived(self, one: PacketSet, pictures: Sequence[Pixels]) -> bool:
        """Whether DDR holds this picture."""
        (pixels,) = pictures
        wanted = np.zeros(self._manifest.packet_in.beat_bytes, np.uint8)
        pack_packet(self._manifest, pixels, wanted)
        one.sent.invalidate()
        return bool(np.array_equal(np.asarray(one.sent), wanted))

    @contextlib.contextmanager
    def _whole(self) -> Iterator[StreamChannel]:
        """After an exchange that failed nobody knows where in a frame the pipeline stands."""
        self._loaded.check_whole()
        assert self._channel is not None
        try:
            yield self._channel
        except Exception as error:  # pynq raises RuntimeError for what its channels do not like
            self._loaded.broken = self._loaded.broken or str(error).partition(":")[0]
            self._sending.wake()
            self._receiving.wake()
            raise HostError(f"{error}; the accelerator: {self._loaded.ip.state()}") from error

    # --- layer by layer

    def layers(self, pixels: Pixels, wait: str, frames: int = 1) -> Iterator[tuple[StreamingLayer, Integers]]:
        """Only the layers whose maps leave, [1, channels, height, width]: the others never lie anywhere."""
        assert self.buffers is not None
        one = self.buffers.sets[0]
        self.load(one, (pixels,))
        self.execute(one, wait)
        for layer, integers in zip(self._manifest.output_layers, self.collect(one)[0], strict=True):
            yield self._manifest.layers[layer], integers[np.newaxis]

    def test_frame(self) -> tuple[Pixels, Iterator[Integers]]:
        """The design's test frame, and what the golden model says of each of ``layers``."""
        manifest, folder = self._manifest, self._loaded.folder
        if manifest.check is None:
            raise HostError(f"{folder} holds no test frame to compare with; generate the design again")
        images = (manifest.check.packet_in, manifest.check.packet_out)
        sent, expected = (np.frombuffer(read_image(folder, image), np.uint8) for image in images)
        for image, data, packet in zip(
            images, (sent, expected), (manifest.packet_in, manifest.packet_out), strict=True
        ):
            if data.size != packet.bytes:
                raise HostError(f"{image.path} holds {data.size} bytes, not {packet.bytes}; copy it again")
        to = manifest.input
        pixels = np.ascontiguousarray(sent.reshape(to.height, to.width, to.channels).transpose(2, 0, 1))
        return pixels, iter(unpack_packet(manifest, expected))

    def _dma(self) -> Any:
        overlay = self._loaded.overlay
        found = [name for name, entry in overlay.ip_dict.items() if ":axi_dma:" in entry["type"]]
        if len(found) != 1:
            raise HostError(
                f"a streaming design has one AXI DMA, the .hwh holds {len(found)}; copy .bit, .hwh and {MANIFEST} of "
                "one design"
            )
        return getattr(overlay, found[0])


def pack_packet(manifest: StreamingManifest, picture: Pixels, to: Pixels) -> None:
    """uint8 [channels, height, width] → ``to`` uint8 [bytes of whole beats]: pixel by pixel, its channels in order."""
    region = manifest.input
    shape = (region.channels, region.height, region.width)
    if picture.shape != shape or picture.dtype != np.uint8:
        raise HostError(f"the input is uint8 of shape {shape}, not {picture.dtype} of shape {picture.shape}")
    rows = to[: manifest.packet_in.bytes].reshape(region.height, region.width * region.channels)
    fill_pixels(picture, rows, region.channels)


def unpack_packet(manifest: StreamingManifest, packet: Pixels) -> tuple[Integers, ...]:
    """A packet → the integers [channels, height, width] of each output, copies."""
    found = []
    for one in manifest.outputs:
        kind = np.dtype(f"{'i' if one.signed else 'u'}{one.value_bytes}")
        values = packet[one.offset : one.offset + one.bytes].view(kind.newbyteorder("<"))
        whole = values.reshape(one.height, one.width, one.stream_channels)[:, :, : one.channels]
        found.append(np.array(whole.transpose(2, 0, 1), kind, order="C"))
    return tuple(found)
