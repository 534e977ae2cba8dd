"""How a design is opened: one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from boards.errors import HostError
from host.vision.detection import OVERLAP, THRESHOLD

WAITS = ("poll", "interrupt")
MOST_SETS = 16


@dataclass(frozen=True)
class Options:
    """How frames are executed and decoded; every field has a default.

    library: the simulation library, if it is not in the folder's build/; with it no board is looked for. wait: "poll"
    (2 register writes a start) or "interrupt" (4). timeout_s: for a start, which takes a batch of frames, one where
    the design says nothing else. sets: batches in flight of ``stream``. time_scale: a simulated board takes the
    design's own time times this, "fit" for as much as execution here needs; None for as fast as it executes.
    threshold, overlap: of ``host.vision.detection.detect``.
    """

    library: Path | str | None = None
    wait: str = "poll"
    timeout_s: float | None = None
    sets: int = 2
    time_scale: float | str | None = None
    threshold: float = THRESHOLD
    overlap: float = OVERLAP

    def __post_init__(self) -> None:
        if self.wait not in WAITS:
            raise HostError(f"wait is 'poll' or 'interrupt', not {self.wait!r}")
        if not 1 <= self.sets <= MOST_SETS:
            raise HostError(f"sets is 1…{MOST_SETS} batches in flight, not {self.sets}")

    @property
    def scale(self) -> float | str | None:
        """``time_scale`` where it is known before a frame was executed."""
        return None if self.time_scale == "fit" else self.time_scale
