"""One frame's results, and what they took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from host import arguments
from host.vision.detection import Detection, Score
from host.vision.drawing import draw, save_picture
from host.vision.picture import Pixels
from host.vision.placement import Placement

_NAMED = 5
"""Detections that a result names where it is printed."""

STAGES = ("resize", "load", "accelerate", "decode")
"""resize: file → pixels at input size. load: → DDR. accelerate: the accelerator. decode: DDR → boxes."""


@dataclass(frozen=True)
class Span:
    """Begin and end of one stage of one frame, in seconds of ``time.perf_counter``."""

    stage: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class Timing:
    """What each stage of a frame took, in load and accelerate with all of its batch. ``seconds["accelerate"]`` is from
    the start to its end being answers."""

    spans: tuple[Span, ...]

    @property
    def seconds(self) -> dict[str, float]:
        return {span.stage: span.seconds for span in self.spans}

    @property
    def latency(self) -> float:
        """From the begin of the first stage to the end of the last."""
        return self.spans[-1].end - self.spans[0].begin

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {1e3 * seconds:.2f} ms" for name, seconds in self.seconds.items())
        return f"{1e3 * self.latency:.2f} ms: {parts}"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """picture uint8 [height, width, 3]; detections in its pixels, clipped to its edges.

    outputs: the integers [channels, height, width] of every map that the host reads, heads first to last. scores: of a
    classifier, the most probable classes.
    """

    picture: Pixels
    placement: Placement
    outputs: tuple[npt.NDArray[np.signedinteger[Any]], ...]
    detections: tuple[Detection, ...]
    timing: Timing
    labels: tuple[str, ...] = ()
    index: int = 0
    scores: tuple[Score, ...] = ()

    def __repr__(self) -> str:
        height, width = self.picture.shape[:2]
        answers: tuple[Detection | Score, ...] = (*self.detections, *self.scores)
        labels = ", ".join(f"{each.label} {each.probability:.0%}" for each in answers[:_NAMED])
        more_of_them = f" and {len(answers) - _NAMED} more" if len(answers) > _NAMED else ""
        return f"Result(frame {self.index}, {width} × {height}: {labels or 'nothing'}{more_of_them})"

    def draw(self) -> Image.Image:
        """The picture with its boxes, or its classes; a notebook shows it."""
        return Image.fromarray(draw(self.picture, self.detections, self.labels, self.scores))

    def save(self, path: Path | str) -> None:
        """By the file's ending; HostError where it cannot be written."""
        save_picture(self.draw(), arguments.path("the file", path))
