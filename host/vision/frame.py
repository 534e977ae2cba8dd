"""What one frame gave and took, and what the frames of a stream took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from boards.errors import StateError
from host import arguments
from host.vision.detection import Detection, Score
from host.vision.drawing import ARRAYS, draw, save_arrays, save_picture
from host.vision.heads.segmentation import Segmentation
from host.vision.picture import Pixels
from host.vision.placement import Placement

_NAMED = 5
"""Detections that a result names where it is printed."""

STAGES = ("resize", "load", "accelerate", "decode")
"""resize: file → pixels at input size. load: → DDR. accelerate: the accelerator. decode: DDR → boxes."""


@dataclass(frozen=True)
class StageSpan:
    """Begin and end of one stage of one frame, in seconds of ``time.perf_counter``."""

    stage: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class StageTiming:
    """What each stage of a frame took, in load and accelerate with all of its batch. ``seconds["accelerate"]`` is from
    the start to its end being answers."""

    spans: tuple[StageSpan, ...]

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
    classifier, the most probable classes. segmentation: a class for each pixel, of a network that tells one. tensors:
    the outputs of the network's file by their names, in its sides and with all that it does to them, float32 or int64
    where they are labels; of a format that names none float32 [channels, height, width] of each map by its layer's
    name. headless: whether they are all that is known of the picture.
    """

    picture: Pixels
    placement: Placement
    outputs: tuple[npt.NDArray[np.signedinteger[Any]], ...]
    detections: tuple[Detection, ...]
    timing: StageTiming
    labels: tuple[str, ...] = ()
    index: int = 0
    scores: tuple[Score, ...] = ()
    segmentation: Segmentation | None = None
    tensors: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    headless: bool = False

    def __repr__(self) -> str:
        height, width = self.picture.shape[:2]
        labels = self.summary(_NAMED)
        return f"Result(frame {self.index}, {width} × {height}: {labels or 'nothing'})"

    def summary(self, limit: int | None = None) -> str:
        """Labels with their probabilities or shares, or the names of tensors, in a line: ``limit`` of them, or all."""
        answers: list[tuple[str, float | None]] = [(box.label, box.probability) for box in self.detections]
        answers += [(score.label, score.probability) for score in self.scores]
        answers += [(part.label, part.share) for part in (self.segmentation.segments if self.segmentation else ())]
        texts = [label if share is None else f"{label} {share:.0%}" for label, share in answers]
        if self.headless:
            texts = [f"{name} {'×'.join(map(str, array.shape))}" for name, array in self.tensors.items()]
        more_of_them = f" and {len(texts) - limit} more" if limit is not None and len(texts) > limit else ""
        return ", ".join(texts[:limit]) + more_of_them

    def draw(self) -> Image.Image:
        """The picture with its boxes, its classes, or its pixels in the colours of theirs; a notebook shows it."""
        return Image.fromarray(draw(self.picture, self.detections, self.labels, self.scores, self.segmentation))

    def save(self, path: Path | str) -> None:
        """Save the drawing in the format of the file's ending, or the tensors as .npz; else FileAccessError."""
        path = arguments.path("the file", path)
        if path.suffix == ARRAYS:
            save_arrays(self.tensors, path)
        else:
            save_picture(self.draw(), path)


@dataclass(frozen=True)
class Measured:
    """What the frames of a stream took. All seconds are wall time on this machine.

    busy: mean seconds of a frame in each stage; for a stage of n workers, divided by n, since n frames are in it, and
    what frames take together is shared. first: frames of the first batch.
    """

    frames: int
    seconds: float
    busy: dict[str, float]
    latency: float
    label: str = ""
    first: int = 1

    @property
    def throughput(self) -> float:
        """Frames a second in the steady state: from the first frame's end, or its batch's, to the last's; 0 of one."""
        return (self.frames - self.first) / self.seconds if self.frames > self.first and self.seconds else 0.0

    @property
    def bound_by(self) -> str:
        """The stage that the others wait for."""
        return max(self.busy, key=lambda name: self.busy[name])

    @property
    def overlap(self) -> float:
        """Throughput over what the slowest stage alone would give; 1 where all else hides behind it."""
        return self.throughput * self.busy[self.bound_by]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in self.busy.items())
        return (
            f"{self.frames} frames, {self.throughput:.1f} frames/s, latency {1e3 * self.latency:.1f} ms; "
            f"ms a frame: {parts}; bound by {self.bound_by} ({self.overlap:.0%} of it alone)"
            + (f"; {self.label}" if self.label else "")
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{1e3 * seconds:.2f}</td><td>{1 / seconds if seconds else 0:.1f}</td>"
            f"<td>{'← bounds the frame rate' if name == self.bound_by else ''}</td></tr>"
            for name, seconds in self.busy.items()
        )
        return (
            f"<p><b>{self.throughput:.1f} frames/s</b>, latency {1e3 * self.latency:.1f} ms, {self.frames} frames. "
            f"{escape(self.label)}</p><table><tr><th>stage</th><th>ms a frame</th><th>frames/s alone</th><th></th></tr>"
            f"{rows}</table>"
        )


def measure(spans: Sequence[tuple[StageSpan, ...]], workers: dict[str, int], label: str = "") -> Measured:
    """spans: of each frame in order. workers: of each stage that has more than one."""
    if not spans:
        raise StateError("the stream", "has no frame to measure yet", remedy="take all its frames first")
    # Frames of a batch have a span in common.
    busy = {
        stage.stage: sum(span.seconds for span in {frame[i] for frame in spans})
        / len(spans)
        / workers.get(stage.stage, 1)
        for i, stage in enumerate(spans[0])
    }
    latency = sum(frame[-1].end - frame[0].begin for frame in spans) / len(spans)
    first = sum(not set(spans[0]).isdisjoint(frame) for frame in spans)
    return Measured(len(spans), spans[-1][-1].end - spans[first - 1][-1].end, busy, latency, label, first)
