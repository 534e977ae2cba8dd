"""The interface that executes batches of frames: the accelerator under pynq, or the simulation library alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from host.contract.parts import ManifestLayer
from host.contract.tensors import Integers, Pixels


class Backend(Protocol):
    """The steps that take one batch of frames through the accelerator.

    A batch here is an element of ``batches``: the memory of one batch in flight.

    Attributes:
        at_once: Number of batches that may be executed at the same time.
    """

    at_once: int

    @property
    def batches(self) -> Sequence[Any]:
        """The memory of each batch in flight. StateError if the accelerator has no memory."""

    @property
    def label(self) -> str:
        """A sentence that says how the times of this backend were obtained: measured, or on a simulated board."""

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Write network inputs, uint8 ``(channels, height, width)``, into the batch. The last input fills the rest."""

    def execute(self, batch: Any, wait: str) -> None:
        """Execute the batch and wait for its end.

        Args:
            wait: "poll" or "interrupt". Backends without an interrupt ignore it.
        """

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Return, for each of the first ``frames`` frames, a copy of each map that the host reads."""

    def verify(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Raise MismatchError or AcceleratorError if memory lacks the uploaded data or this batch's pictures."""

    def settle(self) -> None:
        """Forget batches that were loaded but not executed. Called at the end of a stream."""

    def close(self) -> None:
        """Free all resources. Nobody may be using the backend; a second call does nothing."""


class Driver(Protocol):
    """Drives a design's accelerator on a loaded overlay, under pynq.

    Call ``open`` after every load of the bitstream. ``free`` may be called twice. The steps of a batch are the same as
    in ``Backend``.

    Attributes:
        at_once: Number of batches that may be executed at the same time.
        buffers: The buffers in DDR, or None before ``open`` and after ``free``.
    """

    at_once: int
    buffers: Any

    def open(self, count: int) -> None:
        """Upload everything for ``count`` batches in flight, and write the buffers' addresses to the accelerator."""

    def free(self) -> None:
        """Free every buffer."""

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None: ...

    def execute(self, batch: Any, wait: str) -> None: ...

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]: ...

    def settle(self) -> None: ...

    def arrived(self, batch: Any, pictures: Sequence[Pixels]) -> bool:
        """Return whether DDR holds these pictures in the batch's input."""

    def layers(self, pixels: Pixels, wait: str, frames: int = 1) -> Iterator[tuple[ManifestLayer, Integers]]:
        """Yield each layer whose map can be read, with its map ``(frames, channels, height, width)``.

        The picture fills the whole batch.
        """
