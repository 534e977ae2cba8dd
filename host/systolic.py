"""The systolic style: maps in DDR, and a start of the accelerator a batch of frames, which may be one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import HostError
from host.board.buffers import Buffers, FrameSet
from host.board.overlay import LoadedOverlay
from host.check import check_picture, golden_maps
from host.contract.layout import pack_batch, unpack_batch
from host.contract.systolic import SystolicLayer, SystolicManifest
from host.vision.picture import Pixels

Integers = npt.NDArray[np.signedinteger[Any]]


class SystolicStyle:
    """Frames of a design on a loaded overlay. ``open`` after every load; ``free`` may be called twice."""

    at_once = 1
    """Batches that are executed at once."""

    def __init__(self, loaded: LoadedOverlay, manifest: SystolicManifest) -> None:
        self._loaded, self._manifest = loaded, manifest
        self.buffers: Buffers | None = None

    def open(self, sets: int) -> None:
        """Uploads everything and tells the accelerator where it lies."""
        self.buffers = Buffers(self._manifest, self._loaded.folder, sets, self._loaded.allocate)
        self._point(self.buffers)

    def free(self) -> None:
        buffers, self.buffers = self.buffers, None
        if buffers is not None:
            buffers.free()

    # --- the stages of a batch

    def load(self, one: FrameSet, pictures: Sequence[Pixels]) -> None:
        """Into DDR; the last one fills the batch."""
        pack_batch(self._manifest, pictures, np.asarray(one.input))
        one.input.flush()

    def execute(self, one: FrameSet, wait: str) -> None:
        """One batch, one start."""
        self.start(one.first_pass, self._manifest.passes, wait)

    def settle(self) -> None:
        """After a stream: a batch ends with its start, and nothing is left of it."""

    def collect(self, one: FrameSet, frames: int) -> tuple[tuple[Integers, ...], ...]:
        """Out of DDR: of each of the first ``frames`` frames a copy of each kept map."""
        found = []
        for layer, buffer in zip(self._manifest.output_layers, one.results, strict=True):
            buffer.invalidate()
            found.append(unpack_batch(self._manifest.layers[layer].output, self._manifest.lanes, buffer, frames))
        return tuple(zip(*found, strict=True))

    def arrived(self, one: FrameSet, pictures: Sequence[Pixels]) -> bool:
        """Whether DDR holds these pictures."""
        wanted = np.zeros(one.input.nbytes, np.uint8)
        pack_batch(self._manifest, pictures, wanted)
        one.input.invalidate()
        return bool(np.array_equal(np.asarray(one.input), wanted))

    # --- layer by layer

    def layers(self, pixels: Pixels, wait: str, frames: int) -> Iterator[tuple[SystolicLayer, Integers]]:
        """Each layer started on its own, and the maps of the first ``frames`` frames as DDR holds them, [frames,
        channels, height, width], also those that stay on chip else. The picture fills the batch."""
        assert self.buffers is not None
        one = self.buffers.sets[0]
        self.load(one, (pixels,))
        for index, layer in enumerate(self._manifest.layers):
            count = layer.last_pass - layer.first_pass + 1
            self.start(self.buffers.shown_pass + layer.first_pass, count, wait)
            yield layer, np.stack(self._maps(self.buffers, one, index, frames))

    def test_frame(self) -> tuple[Pixels, Iterator[Integers]]:
        """The design's test frame, and what the golden model says of each of ``layers``."""
        folder = self._loaded.folder
        return check_picture(self._manifest, folder), golden_maps(self._manifest, folder)

    def _maps(self, buffers: Buffers, one: FrameSet, index: int, frames: int) -> tuple[Integers, ...]:
        region, kept = self._manifest.layers[index].output, self._manifest.output_layers
        if index in kept:
            data = one.results[kept.index(index)]
        else:
            data = buffers.inner[region.offset : region.offset + frames * region.bytes]
        data.invalidate()
        return unpack_batch(region, self._manifest.lanes, data, frames)

    # --- the accelerator

    def start(self, first: int, count: int, wait: str) -> None:
        """Passes ``first`` … ``first + count − 1``, to their end; HostError where that does not come in time."""
        loaded = self._loaded
        loaded.check_whole()
        if wait == "interrupt" and loaded.has_interrupt:
            done = loaded.in_loop(self._by_interrupt(first, count))
        else:
            loaded.ip.start(first, count)
            done = loaded.ip.poll(loaded.timeout_s)
        if not done:
            self._give_up()

    async def _by_interrupt(self, first: int, count: int) -> bool:
        ip = self._loaded.ip
        ip.enable_interrupt()
        ip.start(first, count)
        return bool(await ip.interrupted(self._loaded.timeout_s))

    def _point(self, buffers: Buffers) -> None:
        ip = self._loaded.ip
        for port in range(self._manifest.array.map_ports):
            for way in ("read", "write"):
                ip.put_pointer(f"maps_{way}_{port}", buffers.map_base)
        for port, image in enumerate(buffers.weights):
            ip.put_pointer(f"weights_{port}", image.device_address)
        ip.put_pointer("requantisers", buffers.requantisers.device_address)
        ip.put_pointer("program", buffers.program.device_address)

    def _give_up(self) -> None:
        loaded = self._loaded
        current = loaded.ip.current_pass % self._manifest.passes
        layer = self._manifest.layer_of_pass(current)
        where = f"pass {current}, layer {layer.name} ({layer.source})" if layer else f"pass {current}"
        said = loaded.trouble
        what = "stopped" if said else f"did not finish within {loaded.timeout_s:g} s"
        loaded.broken = f"it {what}, at {where}"
        raise HostError(
            f"the accelerator {what}: it stands at {where}; {loaded.ip.state()}"
            + (f"; the simulated board says: {said}" if said else "")
            + "; call reset() and then check(), which runs layer by layer and compares; if the first layer hangs "
            "too, the PL clock or the AXI ports of the block design are not those of the .hwh"
        )
