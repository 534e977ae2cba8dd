"""A design's accelerator on a loaded overlay, as a backend of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boards.errors import HostError
from host.backend import Driver
from host.board.overlay import LoadedOverlay
from host.contract.tensors import Integers, Pixels


class BoardBackend:
    """``host.backend.Backend`` under pynq, on a board or a simulated one."""

    def __init__(self, loaded: LoadedOverlay, driver: Driver) -> None:
        self.loaded, self.driver = loaded, driver
        self.at_once = driver.at_once

    @property
    def buffers(self) -> Any:
        """Everything in DDR; HostError where nothing is there."""
        if self.driver.buffers is None:
            raise HostError("the accelerator has no memory, the last reset() failed; free some and call reset() again")
        return self.driver.buffers

    @property
    def batches(self) -> Sequence[Any]:
        """One for each batch in flight; HostError where there are none."""
        batches: Sequence[Any] = self.buffers.batches
        return batches

    @property
    def label(self) -> str:
        """What kind of numbers the times are."""
        return self.loaded.label

    def open(self, count: int) -> None:
        """Bitstream and everything in DDR, for ``count`` batches in flight; HostError leaves nothing allocated."""
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
        """What was uploaded and this batch's input, as DDR holds them; HostError where they are not."""
        self.buffers.verify()
        if not self.driver.arrived(batch, pictures):
            raise HostError(
                "the picture in DDR is not the one that was loaded: the cache was not flushed or something else "
                "writes there; this frame's result is not to be trusted"
            )

    def settle(self) -> None:
        """After a stream: what was loaded and not executed is forgotten."""
        self.driver.settle()
