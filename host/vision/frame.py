"""The result and the stage times of one frame, and the measurements of a stream."""

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
"""Number of detections named in the printed form of a result."""

STAGES = ("resize", "load", "accelerate", "decode")
"""The stages of a frame.

resize: picture file to pixels at the input's size. load: pixels to DDR. accelerate: the accelerator's start to its end.
decode: maps in DDR to boxes.
"""


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
    """The time that each stage of a frame took. The stages load and accelerate take all frames of a batch together."""

    spans: tuple[StageSpan, ...]

    @property
    def seconds(self) -> dict[str, float]:
        return {span.stage: span.seconds for span in self.spans}

    @property
    def latency(self) -> float:
        """Seconds from the begin of the first stage to the end of the last."""
        return self.spans[-1].end - self.spans[0].begin

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {1e3 * seconds:.2f} ms" for name, seconds in self.seconds.items())
        return f"{1e3 * self.latency:.2f} ms: {parts}"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of the network on one frame: detections, classes or tensors, with the picture and the stage times.

    Attributes:
        picture: uint8 ``(height, width, 3)``.
        placement: Position of the picture in the network's input.
        outputs: Integers ``(channels, height, width)`` of every map that the host reads, in the order of the heads.
        detections: Detections in pixels of the picture, clipped to its edges.
        timing: The time of each stage.
        labels: Class labels.
        index: Number of the frame in its stream.
        scores: The most probable classes, if the network is a classifier.
        segmentation: The class of each pixel, if the network computes one.
        tensors: The outputs of the network's file by name, in the file's shapes and with all its final operations:
            float32, or int64 for labels. If the file's format has no names: each map by its layer's name, float32
            ``(channels, height, width)``.
        headless: Whether the network has no head, so that ``tensors`` are the only result.
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
        """Return one line of labels with probabilities or shares, or of tensors with shapes.

        The line names the first ``limit`` of them, or all.
        """
        answers: list[tuple[str, float | None]] = [(box.label, box.probability) for box in self.detections]
        answers += [(score.label, score.probability) for score in self.scores]
        answers += [(part.label, part.share) for part in (self.segmentation.segments if self.segmentation else ())]
        texts = [label if share is None else f"{label} {share:.0%}" for label, share in answers]
        if self.headless:
            texts = [f"{name} {'×'.join(map(str, array.shape))}" for name, array in self.tensors.items()]
        more_of_them = f" and {len(texts) - limit} more" if limit is not None and len(texts) > limit else ""
        return ", ".join(texts[:limit]) + more_of_them

    def draw(self) -> Image.Image:
        """Return the picture with its boxes and classes drawn in, or pixels in their classes' colours. A notebook
        displays it."""
        return Image.fromarray(draw(self.picture, self.detections, self.labels, self.scores, self.segmentation))

    def save(self, path: Path | str) -> None:
        """Save the drawing in the format of the file's suffix, or the tensors as .npz.

        FileAccessError if that fails.
        """
        path = arguments.path("the file", path)
        if path.suffix == ARRAYS:
            save_arrays(self.tensors, path)
        else:
            save_picture(self.draw(), path)


@dataclass(frozen=True)
class Measured:
    """The throughput, latency and stage times of a stream. All times are seconds of wall time on this machine.

    Attributes:
        frames: Number of frames.
        seconds: Time from the end of the first frame, or of its batch, to the end of the last.
        busy: Mean time per frame in each stage. It is divided by the number of frames in the stage at a time, and
            frames of a batch share their common time.
        latency: Mean time from the begin of a frame's first stage to the end of its last.
        label: How the times were obtained.
        first: Number of frames in the first batch.
    """

    frames: int
    seconds: float
    busy: dict[str, float]
    latency: float
    label: str = ""
    first: int = 1

    @property
    def throughput(self) -> float:
        """Frames per second in the steady state.

        They are counted from the end of the first frame or batch. The throughput of a single frame or batch is 0.
        """
        return (self.frames - self.first) / self.seconds if self.frames > self.first and self.seconds else 0.0

    @property
    def bound_by(self) -> str:
        """The name of the bottleneck: the stage that the other stages wait for."""
        return max(self.busy, key=lambda name: self.busy[name])

    @property
    def overlap(self) -> float:
        """The stream's throughput relative to the bottleneck stage alone; 1 if all other stages are hidden by it."""
        return self.throughput * self.busy[self.bound_by]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in self.busy.items())
        return (
            f"{self.frames} frames, {self.throughput:.1f} frames/s, latency {1e3 * self.latency:.1f} ms; "
            f"ms per frame: {parts}; bound by {self.bound_by} ({self.overlap:.0%} of it alone)"
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
            f"{escape(self.label)}</p>"
            "<table><tr><th>stage</th><th>ms per frame</th><th>frames/s alone</th><th></th></tr>"
            f"{rows}</table>"
        )


def measure(spans: Sequence[tuple[StageSpan, ...]], workers: dict[str, int], label: str = "") -> Measured:
    """Return throughput, latency and stage times of a stream, from the time spans of its frames.

    Args:
        spans: Begin and end of the stages of each frame, in order.
        workers: Number of frames at a time in each stage that has several.
        label: How the times were obtained.
    """
    if not spans:
        raise StateError("the stream", "has no frame to measure yet", remedy="read all its results first")
    # Frames of a batch share one span, which counts once.
    busy = {
        stage.stage: sum(span.seconds for span in {frame[i] for frame in spans})
        / len(spans)
        / workers.get(stage.stage, 1)
        for i, stage in enumerate(spans[0])
    }
    latency = sum(frame[-1].end - frame[0].begin for frame in spans) / len(spans)
    first = sum(not set(spans[0]).isdisjoint(frame) for frame in spans)
    return Measured(len(spans), spans[-1][-1].end - spans[first - 1][-1].end, busy, latency, label, first)
