"""How far behind what comes a block's words leave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lag:
    """Frames that came less frames that left, when a word leaves: at least, at most."""

    low: float
    up: float

    def __add__(self, further: Lag) -> Lag:
        return Lag(self.low + further.low, min(1.0, self.up + further.up))


NONE = Lag(0.0, 0.0)
