"""The interface that executes batches of frames: the accelerator under pynq, or the simulation library alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from host.contract.parts import ManifestLayer
from host.contract.tensors import Integers, Pixels


class Backend(Protocol):
    """The interface through which a host executes batches of frames: on the accelerator, or with the simulation
    library.

    A batch here is an element of ``batches``: the memory of one batch in flight.

    Attributes:
        at_once: Number of batches that may be executed at the same time.
    """

    at_once: int

    @property
    def batches(self) -> Sequence[Any]:
        """The buffers for each batch in flight. StateError if the accelerator has no memory."""

    @property
    def label(self) -> str:
        """A sentence for reports that says how this backend's times were obtained: measured, or on a simulated
        board."""

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Write network inputs, uint8 ``(channels, height, width)``, into the batch's buffers. The last input fills the
        rest of the batch."""

    def execute(self, batch: Any, wait: str) -> None:
        """Execute the network on the batch, and wait until it has finished.

        Args:
            wait: "poll" or "interrupt". Backends without an interrupt ignore it.
        """

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Return, for each of the first ``frames`` frames, copies of the output feature maps, in the order of the
        manifest's output layers."""

    def verify(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Raise MismatchError or AcceleratorError if DDR no longer holds the uploaded data or the pictures of this
        batch."""

    def discard_loaded(self) -> None:
        """Forget batches that were loaded but not executed. Called at the end of a stream."""

    def close(self) -> None:
        """Free all resources. Nobody may be using the backend; a second call does nothing."""


class Driver(Protocol):
    """The interface of a style's driver, which runs a design's accelerator under pynq on a loaded overlay.

    Call ``open`` after every load of the bitstream. ``free`` may be called twice. The steps of a batch are the same as
    in ``Backend``.

    Attributes:
        at_once: Number of batches that may be executed at the same time.
        buffers: The buffers in DDR, or None before ``open`` and after ``free``.
    """

    at_once: int
    buffers: Any

    def open(self, count: int) -> None:
        """Upload weights and programs, allocate buffers for ``count`` batches in flight, and write their addresses to
        the accelerator."""

    def free(self) -> None:
        """Free every buffer in DDR."""

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None: ...

    def execute(self, batch: Any, wait: str) -> None: ...

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]: ...

    def discard_loaded(self) -> None: ...

    def holds_pictures(self, batch: Any, pictures: Sequence[Pixels]) -> bool:
        """Return whether DDR holds exactly these pictures in the batch's input buffer."""

    def layers(self, pixels: Pixels, wait: str, frames: int = 1) -> Iterator[tuple[ManifestLayer, Integers]]:
        """Execute a picture layer by layer; yield each layer whose output can be read, with the output ``(frames,
        channels, height, width)``.

        The picture fills the whole batch.
        """
