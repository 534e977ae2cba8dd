"""The backend that executes frames with a design's accelerator on a loaded overlay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boards.errors import AcceleratorError, StateError
from host.backend import Driver
from host.board.overlay import LoadedOverlay
from host.contract.tensors import Integers, Pixels


class BoardBackend:
    """The backend (``host.backend.Backend``) that executes batches under pynq, on a board or on a simulated board."""

    def __init__(self, loaded: LoadedOverlay, driver: Driver) -> None:
        self.loaded, self.driver = loaded, driver
        self.at_once = driver.at_once

    def check_memory(self) -> None:
        """Raise StateError if the design has no buffers in DDR."""
        if self.driver.buffers is None:
            raise StateError(
                "the accelerator",
                "has no memory, since the last reset() failed",
                remedy="free some memory and call reset() again",
            )

    @property
    def buffers(self) -> Any:
        """The design's buffers in DDR. StateError if there are none."""
        self.check_memory()
        return self.driver.buffers

    @property
    def batches(self) -> Sequence[Any]:
        """The buffers for each batch in flight. StateError if there are none."""
        batches: Sequence[Any] = self.buffers.batches
        return batches

    @property
    def label(self) -> str:
        """A sentence for reports that says how the times were obtained."""
        return self.loaded.label

    def open(self, count: int) -> None:
        """Load the bitstream, upload weights and programs, and allocate buffers for ``count`` batches in flight.

        After an error nothing is allocated.
        """
        # The bitstream first: afterwards nothing writes into the buffers that are freed next.
        self.loaded.load()
        self.driver.free()
        try:
            self.driver.open(count)
        except BaseException:
            self.driver.free()
            raise

    def close(self) -> None:
        """Stop an accelerator that may still write into DDR, then free the buffers."""
        if self.driver.buffers is not None:
            self.loaded.stop()
        self.driver.free()
        self.loaded.close()

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Write network inputs to the batch's buffer in DDR. The last input fills the rest of the batch."""
        self.driver.load(batch, pictures)

    def execute(self, batch: Any, wait: str) -> None:
        """Execute the network on one batch, and wait until it has finished."""
        self.driver.execute(batch, wait)

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Read from DDR, for each of the first ``frames`` frames, copies of the feature maps that the host reads."""
        return self.driver.collect(batch, frames)

    def verify(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Raise MismatchError or AcceleratorError if DDR no longer holds the uploaded data or the pictures of this
        batch."""
        self.buffers.verify()
        if not self.driver.holds_pictures(batch, pictures):
            raise AcceleratorError(
                "the picture in DDR is not the one that was loaded: the cache was not flushed, or something else "
                "writes there",
                remedy="do not trust the result of this frame",
            )

    def discard_loaded(self) -> None:
        """Forget batches that were loaded but not executed. Called at the end of a stream."""
        self.driver.discard_loaded()
