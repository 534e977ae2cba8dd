"""A design's accelerator on a loaded overlay, as a backend of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boards.errors import AcceleratorError, StateError
from host.backend import Driver
from host.board.overlay import LoadedOverlay
from host.contract.tensors import Integers, Pixels


class BoardBackend:
    """``host.backend.Backend`` under pynq, on a board or a simulated one."""

    def __init__(self, loaded: LoadedOverlay, driver: Driver) -> None:
        self.loaded, self.driver = loaded, driver
        self.at_once = driver.at_once

    def check_memory(self) -> None:
        """Raise StateError if there are no buffers in DDR."""
        if self.driver.buffers is None:
            raise StateError(
                "the accelerator",
                "has no memory, since the last reset() failed",
                remedy="free some memory and call reset() again",
            )

    @property
    def buffers(self) -> Any:
        """All buffers in DDR; StateError if there are none."""
        self.check_memory()
        return self.driver.buffers

    @property
    def batches(self) -> Sequence[Any]:
        """One for each batch in flight; StateError if there are none."""
        batches: Sequence[Any] = self.buffers.batches
        return batches

    @property
    def label(self) -> str:
        """What kind of numbers the times are."""
        return self.loaded.label

    def open(self, count: int) -> None:
        """Load the bitstream, and everything for ``count`` batches in flight; an error leaves nothing allocated."""
        # The bitstream first: from here on nothing writes into the buffers that are freed next.
        self.loaded.load()
        self.driver.free()
        try:
            self.driver.open(count)
        except BaseException:
            self.driver.free()
            raise

    def close(self) -> None:
        """An accelerator that may still write is stopped first; only then is memory given back."""
        if self.driver.buffers is not None:
            self.loaded.stop()
        self.driver.free()
        self.loaded.close()

    def load(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Into DDR; the last picture fills the batch."""
        self.driver.load(batch, pictures)

    def execute(self, batch: Any, wait: str) -> None:
        """One batch, in and out."""
        self.driver.execute(batch, wait)

    def collect(self, batch: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Out of DDR: of each of the first ``frames`` frames a copy of each map that the host reads."""
        return self.driver.collect(batch, frames)

    def verify(self, batch: Any, pictures: Sequence[Pixels]) -> None:
        """Raise MismatchError or AcceleratorError if DDR lacks what was uploaded, or this batch's pictures."""
        self.buffers.verify()
        if not self.driver.arrived(batch, pictures):
            raise AcceleratorError(
                "the picture in DDR is not the one that was loaded: the cache was not flushed, or something else "
                "writes there",
                remedy="do not trust the result of this frame",
            )

    def settle(self) -> None:
        """After a stream: what was loaded and not executed is forgotten."""
        self.driver.settle()
