"""Everything of a systolic design that lies in DDR."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host.board.buffers import Allocate, Buffers
from host.contract.systolic import SystolicManifest
from host.contract.uploads import read_systolic
from host.systolic.layout import Addresses, map_base, place_program


@dataclass(frozen=True)
class SystolicBatch:
    """What one batch in flight needs; its passes start at ``first_pass``."""

    first_pass: int
    input: Any
    results: tuple[Any, ...]


class SystolicBuffers(Buffers):
    """Weights, requantisers, program, the inner arena, and the maps of ``count`` batches in flight."""

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
    def shown_pass(self) -> int:
        """The first pass of the copy of the program with which the host sees every map of the first set."""
        return len(self.batches) * self.manifest.passes

    @property
    def addresses(self) -> tuple[Addresses, ...]:
        return tuple(
            Addresses(batch.input.device_address, tuple(result.device_address for result in batch.results))
            for batch in self.batches
        )

    @property
    def map_base(self) -> int:
        return map_base(self.inner.device_address, self.addresses)

    def _batch(self, index: int) -> SystolicBatch:
        # No buffer in a local variable: an exception that somebody keeps would keep it too.
        manifest = self.manifest
        return SystolicBatch(
            index * manifest.passes,
            self.zeros(manifest.batch * manifest.input.bytes),
            tuple(self.new(manifest.batch * manifest.layers[layer].output.bytes) for layer in manifest.output_layers),
        )
