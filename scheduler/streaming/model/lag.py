"""The lag of a block's output after its input, in frames."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lag:
    """The part of a frame that a block has read but not yet written, at the times when it writes a word. It has a
    minimum and a maximum.

    Attributes:
        low: The minimum, in frames. It is negative if words are written before the same share of the input is read.
        up: The maximum, in frames.
    """

    low: float
    up: float

    def __add__(self, further: Lag) -> Lag:
        """Return the lag of two blocks in series. It is one frame at most, because pipelines empty between frames."""
        return Lag(self.low + further.low, min(1.0, self.up + further.up))


NONE = Lag(0.0, 0.0)
