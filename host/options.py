"""How a design is opened: one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from boards.errors import ChoiceError, InvalidValueError
from host.arguments import number, path, whole
from host.vision.detection import OVERLAP, THRESHOLD

WAITS = ("poll", "interrupt")
MOST_SETS = 16
LONGEST_TIMEOUT_S = 1e6
LARGEST_SCALE = 1e9


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
            raise ChoiceError("wait", self.wait, WAITS)
        whole("sets (batches in flight)", self.sets, 1, MOST_SETS)
        number("threshold", self.threshold, 1, zero=True)
        number("overlap", self.overlap, 1, zero=True)
        if self.library is not None:
            path("library", self.library)
        if self.timeout_s is not None:
            number("timeout_s", self.timeout_s, LONGEST_TIMEOUT_S)
        if self.time_scale is not None and self.time_scale != "fit":
            number("time_scale, unless it is 'fit',", self.time_scale, LARGEST_SCALE)

    @staticmethod
    def checked(options: object) -> Options:
        """Return ``options``; InvalidValueError if they are not an Options object."""
        if not isinstance(options, Options):
            raise InvalidValueError("options", options, "an Options object, such as Options(threshold=0.5)")
        return options

    @property
    def scale(self) -> float | str | None:
        """``time_scale`` where it is known before a frame was executed."""
        return None if self.time_scale == "fit" else self.time_scale
