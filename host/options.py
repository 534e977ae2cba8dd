"""The options with which a design is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from boards.errors import ChoiceError, InvalidValueError
from host.arguments import number, path, whole_number
from host.vision.detection import IOU_THRESHOLD, THRESHOLD

WAITS = ("poll", "interrupt")
MAX_SETS = 16
MAX_TIMEOUT_S = 1e6
MAX_SCALE = 1e9


@dataclass(frozen=True)
class Options:
    """The options for executing and decoding frames with a design. Every field has a default.

    Attributes:
        library: The simulation library, if it is not in the design's ``build`` folder. If it is given, no board is
            used.
        wait: How to wait for the accelerator to finish a batch: "poll" (2 register writes per batch) or "interrupt"
            (4).
        timeout_s: Seconds that one start, of one batch, may take. None: per frame of the batch 5 s on a board, and 300
            s on a simulated board.
        sets: Number of batches in flight in ``stream``.
        time_scale: Factor by which a simulated board is slower than the design. "fit" derives it from the time
            that a start takes to execute on this machine. None executes at full speed.
        threshold: Confidence threshold of detections.
        overlap: IoU threshold of non-maximum suppression.
    """

    library: Path | str | None = None
    wait: str = "poll"
    timeout_s: float | None = None
    sets: int = 2
    time_scale: float | str | None = None
    threshold: float = THRESHOLD
    overlap: float = IOU_THRESHOLD

    def __post_init__(self) -> None:
        if self.wait not in WAITS:
            raise ChoiceError("wait", self.wait, WAITS)
        whole_number("sets (batches in flight)", self.sets, 1, MAX_SETS)
        number("threshold", self.threshold, 1, zero=True)
        number("overlap", self.overlap, 1, zero=True)
        if self.library is not None:
            path("library", self.library)
        if self.timeout_s is not None:
            number("timeout_s", self.timeout_s, MAX_TIMEOUT_S)
        if self.time_scale is not None and self.time_scale != "fit":
            number("time_scale, unless it is 'fit',", self.time_scale, MAX_SCALE)

    @staticmethod
    def checked(options: object) -> Options:
        """Return ``options``. InvalidValueError if it is not an Options object."""
        if not isinstance(options, Options):
            raise InvalidValueError("options", options, "an Options object, such as Options(threshold=0.5)")
        return options

    @property
    def scale(self) -> float | str | None:
        """The factor by which a simulated board is slower than the design; None if it is unset or must be measured
        first ("fit")."""
        return None if self.time_scale == "fit" else self.time_scale
