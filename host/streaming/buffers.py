"""Everything of a streaming design that lies in DDR."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host.board.buffers import Allocate, Buffers
from host.contract.streaming import StreamingManifest


@dataclass(frozen=True)
class StreamingBatch:
    """What one frame in flight needs."""

    index: int
    sent: Any
    received: Any


class StreamingBuffers(Buffers):
    """External weights, and the packets of ``count`` frames in flight."""

    names = ("weights", "batches")

    def __init__(self, manifest: StreamingManifest, folder: Path, count: int, allocate: Allocate) -> None:
        self._manifest, self._folder, self._count = manifest, folder, count
        super().__init__(allocate)

    def fill(self) -> None:
        """Packets are whole beats: so many come, and so many may be taken."""
        self.weights = tuple(self.upload(self._folder, image) for image in self._manifest.images)
        self.batches = tuple(
            StreamingBatch(
                index, self.zeros(self._manifest.packet_in.beat_bytes), self.new(self._manifest.packet_out.beat_bytes)
            )
            for index in range(self._count)
        )
