"""Execution of a streaming design by its simulation library alone, in memory of this process, without pynq."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from host.contract.libraries import StreamingLibrary
from host.contract.manifest import of_style
from host.contract.parts import Manifest
from host.contract.streaming import StreamingManifest
from host.contract.tensors import Integers, Pixels
from host.contract.uploads import read_streaming
from host.streaming.layout import pack_packet, unpack_packet


@dataclass(frozen=True, eq=False)
class ExecutedFrame:
    """The input and the output packet of one frame in flight, uint8 ``(1, bytes)`` each."""

    sent: npt.NDArray[np.uint8]
    received: npt.NDArray[np.uint8]


class StreamingExecution:
    """The backend (``host.backend.Backend``) that executes a streaming design's simulation library, one call per
    frame."""

    at_once = 1
    label = "executed by the simulation library: not the design's speed"

    def __init__(self, folder: Path, manifest: Manifest, library: Path, count: int) -> None:
        described = of_style(StreamingManifest, manifest)
        self._manifest, self._library = described, StreamingLibrary(library, described)
        self._images = read_streaming(folder, described)
        sizes = (described.packet_in.bytes, described.packet_out.bytes)
        self.batches = tuple(ExecutedFrame(*(np.zeros((1, size), np.uint8) for size in sizes)) for _ in range(count))

    def load(self, batch: ExecutedFrame, pictures: Sequence[Pixels]) -> None:
        """Write one picture into the frame's input packet."""
        (pixels,) = pictures
        pack_packet(self._manifest, pixels, batch.sent[0])

    def execute(self, batch: ExecutedFrame, wait: str) -> None:
        """Execute one frame: compute its output packet from its input packet."""
        batch.received[:] = self._library.run(self._images, batch.sent)

    def collect(self, batch: ExecutedFrame, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Return copies of the feature maps in the frame's output packet, as a batch of one frame."""
        return (unpack_packet(self._manifest, batch.received[0]),)

    def verify(self, batch: ExecutedFrame, pictures: Sequence[Pixels]) -> None:
        """Do nothing: the packet is memory of this process, so it cannot differ."""

    def discard_loaded(self) -> None:
        """Do nothing: a frame ends with its call."""

    def close(self) -> None:
        """Do nothing: Python frees the memory."""
