"""Driver of the systolic accelerator under pynq: it uploads data to DDR, and loads, starts and reads back batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import AcceleratorError
from host.board.buffers import Allocate, Buffers
from host.board.overlay import LoadedOverlay
from host.contract.manifest import of_style
from host.contract.parts import Manifest
from host.contract.systolic import SystolicLayer, SystolicManifest
from host.contract.tensors import Integers, Pixels
from host.contract.uploads import read_systolic
from host.systolic.layout import BufferAddresses, map_base, pack_batch, place_program, unpack_batch


@dataclass(frozen=True)
class SystolicBatch:
    """The input and result buffers in DDR of one batch in flight, whose copy of the program starts at instruction
    ``first_pass``."""

    first_pass: int
    input: Any
    results: tuple[Any, ...]


class SystolicBuffers(Buffers):
    """The buffers of a systolic design in DDR: weights, requantisers, program, inner feature maps, and input and
    results of ``count`` batches."""

    names = ("weights", "requantisers", "inner", "batches", "program")

    def __init__(self, manifest: SystolicManifest, folder: Path, count: int, allocate: Allocate) -> None:
        self.manifest, self._folder, self._count = manifest, folder, count
        super().__init__(allocate)

    def fill(self) -> None:
        manifest, images = self.manifest, self.manifest.images
        uploads = read_systolic(self._folder, manifest)
        weights = zip(images.weights, uploads.weights, strict=True)
        self.weights = tuple(self.put(image.path, words.tobytes()) for image, words in weights)
        self.requantisers = self.put(images.requantisers.path, uploads.requantisers.astype("<u4").tobytes())
        self.inner = self.new(manifest.maps_bytes)
        self.batches = tuple(self._batch(index) for index in range(self._count))
        placed = place_program(manifest, uploads.program, self.inner.device_address, self.addresses)
        self.program = self.put("the program", placed.astype("<u4").tobytes())

    @property
    def inspection_pass(self) -> int:
        """The number of the first instruction (pass) of the program's copy that writes every layer's output to DDR, for
        inspection."""
        return len(self.batches) * self.manifest.passes

    @property
    def addresses(self) -> tuple[BufferAddresses, ...]:
        return tuple(
            BufferAddresses(batch.input.device_address, tuple(result.device_address for result in batch.results))
            for batch in self.batches
        )

    @property
    def map_base(self) -> int:
        return map_base(self.inner.device_address, self.addresses)

    def _batch(self, index: int) -> SystolicBatch:
        # No buffer is held in a local variable: an exception's traceback would keep it alive.
        manifest = self.manifest
        return SystolicBatch(
            index * manifest.passes,
            self.zeros(manifest.batch * manifest.input.bytes),
            tuple(self.new(manifest.batch * manifest.layers[layer].output.bytes) for layer in manifest.output_layers),
        )


class SystolicDriver:
    """The driver (``host.backend.Driver``) of a systolic accelerator under pynq: one start executes the program on one
    batch."""

    at_once = 1
    """Number of batches executed at the same time."""

    def __init__(self, loaded: LoadedOverlay, manifest: Manifest) -> None:
        self._loaded, self._manifest = loaded, of_style(SystolicManifest, manifest)
        self.buffers: SystolicBuffers | None = None

    def open(self, count: int) -> None:
        """Upload weights and program, allocate buffers for ``count`` batches in flight, and write all addresses to the
        accelerator."""
        self.buffers = SystolicBuffers(self._manifest, self._loaded.folder, count, self._loaded.allocate)
        self._point(self.buffers)

    def free(self) -> None:
        """Free every buffer in DDR."""
        buffers, self.buffers = self.buffers, None
        if buffers is not None:
            buffers.free()

    # --- the stages of a batch

    def load(self, batch: SystolicBatch, pictures: Sequence[Pixels]) -> None:
        """Write network inputs to the batch's input buffer in DDR. The last input fills the rest of the batch."""
        pack_batch(self._manifest, pictures, np.asarray(batch.input))
        batch.input.flush()

    def execute(self, batch: SystolicBatch, wait: str) -> None:
        """Execute the whole program on one batch, in one start of the accelerator."""
        self.start(batch.first_pass, self._manifest.passes, wait)

    def discard_loaded(self) -> None:
        """Do nothing: a batch ends with its start of the accelerator."""

    def collect(self, batch: SystolicBatch, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Read from DDR, for each of the first ``frames`` frames, copies of the feature maps that the host reads."""
        maps = []
        for layer, buffer in zip(self._manifest.output_layers, batch.results, strict=True):
            buffer.invalidate()
            maps.append(unpack_batch(self._manifest.layers[layer].output, self._manifest.lanes, buffer, frames))
        return tuple(zip(*maps, strict=True))

    def holds_pictures(self, batch: SystolicBatch, pictures: Sequence[Pixels]) -> bool:
        """Return whether the batch's input buffer in DDR holds exactly these pictures."""
        expected = np.zeros(batch.input.nbytes, np.uint8)
        pack_batch(self._manifest, pictures, expected)
        batch.input.invalidate()
        return bool(np.array_equal(np.asarray(batch.input), expected))

    # --- layer by layer

    def layers(self, pixels: Pixels, wait: str, frames: int = 1) -> Iterator[tuple[SystolicLayer, Integers]]:
        """Execute one layer per start, and yield each layer with its output ``(frames, channels, height, width)`` from
        DDR.

        Maps that normally stay on chip are written to DDR too. The picture fills the whole batch.
        """
        assert self.buffers is not None
        batch = self.buffers.batches[0]
        self.load(batch, (pixels,))
        for index, layer in enumerate(self._manifest.layers):
            count = layer.last_pass - layer.first_pass + 1
            self.start(self.buffers.inspection_pass + layer.first_pass, count, wait)
            yield layer, np.stack(self._maps(self.buffers, batch, index, frames))

    def _maps(self, buffers: SystolicBuffers, batch: SystolicBatch, index: int, frames: int) -> tuple[Integers, ...]:
        region, outputs = self._manifest.layers[index].output, self._manifest.output_layers
        if index in outputs:
            data = batch.results[outputs.index(index)]
            data.invalidate()
        else:
            # The whole arena: on a board driven over the network pynq cannot invalidate a part of a buffer.
            buffers.inner.invalidate()
            data = buffers.inner[region.offset : region.offset + frames * region.bytes]
        return unpack_batch(region, self._manifest.lanes, data, frames)

    # --- the accelerator

    def start(self, first: int, count: int, wait: str) -> None:
        """Run instructions (passes) ``first`` … ``first + count − 1`` of the program, and wait. AcceleratorError if
        they do not end in time."""
        loaded = self._loaded
        with loaded.running():
            if wait == "interrupt" and loaded.has_interrupt:
                ended = loaded.in_loop(self._by_interrupt(first, count))
            else:
                loaded.ip.start(first, count)
                ended = loaded.ip.poll(loaded.timeout_s)
            if not ended:
                self._give_up()

    async def _by_interrupt(self, first: int, count: int) -> bool:
        ip = self._loaded.ip
        ip.enable_interrupt()
        ip.start(first, count)
        return bool(await ip.interrupted(self._loaded.timeout_s))

    def _point(self, buffers: SystolicBuffers) -> None:
        ip = self._loaded.ip
        for port in range(self._manifest.array.maps_ports):
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
        place = f"pass {current}, layer {layer.name} ({layer.source})" if layer else f"pass {current}"
        stop_reason = loaded.stop_reason
        failure = "stopped" if stop_reason else f"did not finish within {loaded.timeout_s:g} s"
        loaded.broken = f"it {failure}, in {place}"
        raise AcceleratorError(
            f"the accelerator {failure}" + (f"; the simulated board says: {stop_reason}" if stop_reason else ""),
            loaded.ip.state(),
            where=place,
            remedy="call reset() and then check(), which compares layer by layer. If the first layer hangs too, check "
            "that the .hwh describes the PL clock and the AXI ports of the block design",
        )
