"""What executes batches of frames: the accelerator under pynq, or the simulation library alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from host.contract.parts import ManifestLayer
from host.contract.tensors import Integers, Pixels


class Backend(Protocol):
    """The stages of a batch, an element of ``batches``: memory for one batch in flight.

    at_once: batches that are executed together.
    """

    at_once: int

    @property
    def batches(self) -> Sequence[Any]:
        """One for each batch in flight. StateError if the accelerator has no memory."""

    @property
    def label(self) -> str:
        """What kind of numbers the times of this backend are."""

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Network inputs uint8 [channels, height, width] into the batch; the last one fills it."""

    def execute(self, batch: Any, wait: str) -> None:
        """In and out. wait: "poll" or "interrupt", where there is a choice."""

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Of each of the first ``frames`` frames a copy of each map that the host reads."""

    def verify(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Raise MismatchError or AcceleratorError if memory lacks what was uploaded, or this batch's pictures."""

    def settle(self) -> None:
        """After a stream: what was loaded and not executed is forgotten."""

    def close(self) -> None:
        """Gives back what it holds; nobody is at work on it. It may be called twice."""


class Driver(Protocol):
    """A design's accelerator on a loaded overlay, under pynq. ``open`` after every load; ``free`` may be called twice.

    The stages of a batch are those of ``Backend``.
    """

    at_once: int
    buffers: Any

    def open(self, count: int) -> None:
        """Uploads everything, for ``count`` batches in flight, and tells the accelerator where it lies."""

    def free(self) -> None:
        """Gives every buffer back."""

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None: ...

    def execute(self, batch: Any, wait: str) -> None: ...

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]: ...

    def settle(self) -> None: ...

    def arrived(self, batch: Any, pictures: Sequence[Pixels]) -> bool:
        """Whether DDR holds these pictures."""

    def layers(self, pixels: Pixels, wait: str, frames: int = 1) -> Iterator[tuple[ManifestLayer, Integers]]:
        """Layers whose maps can be seen, [frames, channels, height, width]; the picture fills the batch."""
