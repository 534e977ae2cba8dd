"""Execution of a systolic design by its simulation library alone, in memory of this process, without pynq."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from host.contract.libraries import SystolicLibrary, SystolicMemory
from host.contract.manifest import of_style
from host.contract.parts import Manifest
from host.contract.systolic import SystolicManifest
from host.contract.tensors import Integers, Pixels
from host.contract.uploads import read_systolic
from host.systolic.layout import pack_batch, unpack_batch

UNWRITTEN = 0x55
"""Contents of an arena that was never written: no code may rely on zeros."""


@dataclass(frozen=True, eq=False)
class ExecutedBatch:
    """The feature maps of one batch in flight, in memory of this process.

    Attributes:
        maps: The arena of all feature maps, as DDR would hold it.
        outputs: For each layer that the host reads, its map of each frame.
    """

    maps: npt.NDArray[np.uint8]
    outputs: dict[int, tuple[Integers, ...]] = field(default_factory=dict)


class SystolicExecution:
    """The backend (``host.backend.Backend``) that executes a systolic design's simulation library, one call per
    batch."""

    at_once = 1
    label = "executed by the simulation library: not the design's speed"

    def __init__(self, folder: Path, manifest: Manifest, library: Path, count: int) -> None:
        described = of_style(SystolicManifest, manifest)
        self._manifest, self._library = described, SystolicLibrary(library, described)

        self._uploads = read_systolic(folder, described)
        self.batches = tuple(ExecutedBatch(np.full(described.maps_bytes, UNWRITTEN, np.uint8)) for _ in range(count))

    def load(self, batch: ExecutedBatch, pictures: Sequence[Pixels]) -> None:
        """Write network inputs to the batch's arena of feature maps. The last input fills the rest of the batch."""
        region = self._manifest.input
        end = region.offset + self._manifest.batch * region.bytes
        pack_batch(self._manifest, pictures, batch.maps[region.offset : end])

    def execute(self, batch: ExecutedBatch, wait: str) -> None:
        """Execute the program on one batch. Output maps are copied before a later layer may overwrite them."""
        layer_ending = {self._manifest.layers[index].last_pass: index for index in self._manifest.output_layers}

        def after_pass(number: int) -> None:
            if number in layer_ending:
                batch.outputs[layer_ending[number]] = self._maps(batch, layer_ending[number])

        uploads = self._uploads
        memory = SystolicMemory(batch.maps, uploads.weights, uploads.requantisers, uploads.program)
        self._library.run(memory, 0, self._manifest.passes, after_pass)

    def _maps(self, batch: ExecutedBatch, index: int) -> tuple[Integers, ...]:
        region = self._manifest.layers[index].output
        data = batch.maps[region.offset : region.offset + self._manifest.batch * region.bytes]
        return unpack_batch(region, self._manifest.lanes, data, self._manifest.batch)

    def collect(self, batch: ExecutedBatch, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Return, for each of the first ``frames`` frames, the feature maps that the host reads."""
        maps = [batch.outputs[index] for index in self._manifest.output_layers]
        return tuple(zip(*maps, strict=True))[:frames]

    def verify(self, batch: ExecutedBatch, pictures: Sequence[Pixels]) -> None:
        """Do nothing: the arena is memory of this process, so it cannot differ."""

    def discard_loaded(self) -> None:
        """Do nothing: a batch ends with its call."""

    def close(self) -> None:
        """Do nothing: Python frees the memory."""
