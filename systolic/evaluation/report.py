"""The result of an evaluation as JSON, text, and drawings of the images on which float and integers differ most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from cnn.ops import QConvolution, QDense
from host.vision.channels import load_frame, to_draw_on
from host.vision.detection import Detection, Score
from host.vision.drawing import draw, save_picture
from host.vision.picture import Pixels
from systolic.evaluation.fidelity import rounded as ratio_rounded
from systolic.evaluation.fidelity import warning_of, weight_bits
from systolic.evaluation.frames import Frame, ImageResult, Subject
from systolic.evaluation.layouts.labelled import LabelledPicture, LabelledSet
from systolic.evaluation.quality import (
    Quality,
    agreement,
    agreement_values,
    classification_quality,
    detection_quality,
    rounded,
)
from systolic.report.tables import Cell, printable, table

HURTS = 0.02
"""The loss of a metric (0 to 1) from float to integers up to which there is no warning."""

TITLES = {
    "map50": "mAP@0.5",
    "map50_95": "mAP@0.5:0.95",
    "precision": "precision",
    "recall": "recall",
    "mean_iou": "mean IoU",
    "top1": "top-1",
    "top5": "top-5",
}
"""The titles of the metrics in the text, which gives them in per cent."""


@dataclass(frozen=True)
class Executed:
    """The boxes or classes of the executed design on the first images, and its mismatches with the golden model.

    Attributes:
        answers: The detections or classes of each image.
        mismatches: The number of output integers that differ from the golden model.
        label: The accelerator or simulation that ran, in words.
    """

    answers: tuple[ImageResult, ...]
    mismatches: int
    label: str


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of ``systolic evaluate``: the results of each image, from which all metrics are computed.

    Attributes:
        subject: The network in both forms.
        labelled: The labelled images, with boxes in pixels.
        frames: The results of each image.
        threshold: The confidence threshold of the boxes that precision, recall and agreement count.
        ratios_db: The SQNR in dB by the name of each output.
        executed: The result of the executed design, if there was one.
    """

    subject: Subject
    labelled: LabelledSet
    frames: tuple[Frame, ...]
    threshold: float
    ratios_db: dict[str, float]
    executed: Executed | None

    @cached_property
    def floats(self) -> Quality | None:
        """The metrics of the float network. None without labels."""
        return self._quality([frame.floats for frame in self.frames])

    @cached_property
    def integers(self) -> Quality | None:
        """The metrics of the golden model. None without labels."""
        return self._quality([frame.integers for frame in self.frames])

    @property
    def bits(self) -> dict[str, int]:
        """The number of weight bits of each layer, by the layer's name."""
        nodes = self.subject.quantised.nodes
        return {node.name: node.op.weight_type.bits for node in nodes if isinstance(node.op, (QConvolution, QDense))}

    @cached_property
    def agreement(self) -> dict[str, Any]:
        """The number of boxes or classes in which the golden model and the float network agree, as JSON."""
        floats, integers = ([getattr(frame, form) for frame in self.frames] for form in ("floats", "integers"))
        return agreement_values(floats, integers, self.threshold)

    def _quality(self, answers: Sequence[ImageResult]) -> Quality | None:
        if not self.labelled.is_labelled:
            return None
        pictures: Sequence[LabelledPicture] = self.labelled.pictures[: len(answers)]
        if self.subject.is_classifier:
            return classification_quality(answers, pictures, self.subject.classes)
        return detection_quality(answers, pictures, self.threshold, self.subject.sees_one_object)

    def values(self) -> dict[str, Any]:
        """Return the JSON object of ``systolic evaluate``."""
        bits = self.bits
        values: dict[str, Any] = {
            "network": self.subject.network.name,
            "layout": self.labelled.layout,
            "pictures": len(self.frames),
            "labelled": self.labelled.is_labelled,
            "bits": weight_bits(self.subject.quantised),
            "bits_by_layer": bits,
            "float": _quality_values(self.floats),
            "integer": _quality_values(self.integers),
            "agreement": self.agreement,
            "head_sqnr_db": {name: ratio_rounded(ratio) for name, ratio in self.ratios_db.items()},
            "threshold": self.threshold,
            "notes": list(self.labelled.notes),
        }
        if self.executed is not None:
            values["executed"] = self._executed_values(self.executed)
        return values

    def _executed_values(self, executed: Executed) -> dict[str, Any]:
        golden = [frame.integers for frame in self.frames[: len(executed.answers)]]
        return {
            "label": executed.label,
            "pictures": len(executed.answers),
            "mismatches": executed.mismatches,
            "agreement": agreement_values(golden, executed.answers, self.threshold),
            "quality": _quality_values(self._quality(executed.answers)),
        }

    @property
    def warnings(self) -> list[str]:
        """The warnings: labels left out or assumed, metrics that quantisation lowers too much, a low SQNR."""
        sentences = list(self.labelled.notes)
        lost = [f"{TITLES[name]} {loss:.2f} points" for name, loss in self.losses.items() if loss > 100 * HURTS]
        if lost:
            sentences.append(f"the integers lose {', '.join(lost)} of the float network; {self.subject.tried.advice}")
        if self.labelled.is_labelled or self.subject.tried.trained:
            # Labels measure errors directly, and a trained network has no float network that it approximates.
            return sentences
        ratios = {name: ratio_rounded(ratio) for name, ratio in self.ratios_db.items()}
        return [*sentences, *filter(None, [warning_of(ratios, self.subject.tried)])]

    @property
    def losses(self) -> dict[str, float]:
        """{metric: percentage points by which the float network is better than the quantised one}."""
        if self.floats is None or self.integers is None:
            return {}
        ours = self.integers.metrics
        return {name: 100 * (value - ours[name]) for name, value in self.floats.metrics.items() if value == value}

    def text(self) -> str:
        """Return the metrics, the SQNR and the executed mismatches as tables and sentences for a terminal."""
        agreed = self.agreement
        ratios = ", ".join(f"{name} {ratio:.1f} dB" for name, ratio in self.ratios_db.items())
        kind = "the same class" if self.subject.is_classifier else "boxes matched"
        overlap = f", mean IoU {agreed['mean_iou']:.3f}" if agreed["mean_iou"] is not None else ""
        parts = [
            f"{self.subject.network.name}: {len(self.frames):,} pictures ({self.labelled.layout})",
            *self._tables(),
        ]
        parts.append(
            f"integers compared with floats: {agreed['matched']:,} {kind}, {agreed['missed']:,} missed, "
            f"{agreed['added']:,} added{overlap}; SQNR at the heads: {ratios}"
        )
        if self.executed is not None:
            verdict = "every bit equal" if self.executed.mismatches == 0 else "THE DESIGN IS NOT RIGHT"
            parts.append(
                f"executed on {len(self.executed.answers):,} pictures ({self.executed.label}): "
                f"{self.executed.mismatches:,} integers differ from the golden model: {verdict}"
            )
        return "\n\n".join(parts)

    def _tables(self) -> list[str]:
        if self.floats is None or self.integers is None:
            return ["no labels: floats and integers are compared with each other"]
        ours = self.integers.metrics
        rows: list[list[Cell]] = [
            [TITLES[name], 100 * value, 100 * ours[name], 100 * (ours[name] - value)]
            for name, value in self.floats.metrics.items()
            if value == value
        ]
        main = "ap50" if "map50" in ours else "top1"
        count = "truths" if "map50" in ours else "pictures"
        classes: list[list[Cell]] = [
            [printable(label), exact[count], 100 * exact[main], 100 * self.integers.by_class[label][main]]
            for label, exact in self.floats.by_class.items()
        ]
        title = "AP@0.5" if main == "ap50" else "top-1"
        return [
            table(("%", "float", "integers", "difference"), rows),
            table(("class", count, f"{title} float", f"{title} integers"), classes),
        ]


def _quality_values(quality: Quality | None) -> dict[str, Any] | None:
    if quality is None:
        return None
    by_class = {label: {key: rounded(value) for key, value in each.items()} for label, each in quality.by_class.items()}
    return {**{name: rounded(value) for name, value in quality.metrics.items()}, "by_class": by_class}


ROWS = 4
"""The number of images that are drawn."""

WIDTH = 480
"""The width in pixels of each of the two or three drawings of an image."""

_GAP, _HEAD = 6, 24


def save_worst(evaluation: Evaluation, path: Path) -> None:
    """Draw the ``ROWS`` images on which the float and the quantised network differ most, one per row, into one file.

    The columns are the labels, if there are any, the float network and the integers.

    Raises:
        SystolicError: An error of ``save_picture``.
    """
    order = sorted(range(len(evaluation.frames)), key=lambda place: _difference(evaluation, place), reverse=True)
    titles = ("labels", "float", "integers") if evaluation.labelled.is_labelled else ("float", "integers")
    rows = [_row(evaluation, place) for place in order[:ROWS]]
    sheet = np.concatenate([_head(titles), *rows])
    save_picture(Image.fromarray(sheet), path)


def _head(titles: Sequence[str]) -> Pixels:
    """Return the top of the drawing as pixels: the titles of its columns."""
    image = Image.new("RGB", (len(titles) * (WIDTH + _GAP), _HEAD), "white")
    for column, title in enumerate(titles):
        ImageDraw.Draw(image).text((column * (WIDTH + _GAP) + _GAP, _GAP), title, fill="black")
    return np.array(image)


def _difference(evaluation: Evaluation, place: int) -> tuple[float, float]:
    """Return the sort key of an image: the more the float and the quantised network differ on it, the greater.

    For boxes, the key is the number of boxes that only one of the two has, then 1 − mean IoU of the matched boxes. For
    classes, the key is whether the classes differ, then the difference of their probabilities.
    """
    frame = evaluation.frames[place]
    if frame.floats.scores:
        exact, approximate = frame.floats.scores[0], frame.integers.scores[0]
        likely = [score.probability or 0.0 for score in (exact, approximate)]
        return float(exact.index != approximate.index), abs(likely[0] - likely[1])
    agreed = agreement(*(form.above_threshold(evaluation.threshold) for form in (frame.floats, frame.integers)))
    return float(agreed.differing), 1 - agreed.mean_iou if agreed.matched else 0.0


def _row(evaluation: Evaluation, place: int) -> Pixels:
    frame, picture = evaluation.frames[place], evaluation.labelled.pictures[place]
    pixels = to_draw_on(load_frame(picture.path))
    image = Image.fromarray(pixels).resize((WIDTH, max(1, round(pixels.shape[0] * WIDTH / pixels.shape[1]))))
    labels = evaluation.subject.network.labels
    panels = [
        draw(np.asarray(image), [_scaled(box, WIDTH / pixels.shape[1]) for box in boxes], labels, scores)
        for boxes, scores in _columns(frame, picture, evaluation)
    ]
    return np.concatenate([np.pad(panel, ((0, _GAP), (0, _GAP), (0, 0)), constant_values=255) for panel in panels], 1)


def _columns(
    frame: Frame, picture: LabelledPicture, evaluation: Evaluation
) -> list[tuple[Sequence[Detection], Sequence[Score]]]:
    """Return the boxes and scores of each of an image's drawings.

    The panels are, from left to right: the labels if the set has labels, the float network, the quantised network.
    """
    columns: list[tuple[Sequence[Detection], Sequence[Score]]] = []
    if evaluation.labelled.is_labelled:
        truths = [Detection(truth.label, 1.0, truth.box) for truth in picture.truths or ()]
        columns.append((truths, [Score(picture.category, 1.0, 0)] if picture.category is not None else []))
    return columns + [
        (form.above_threshold(evaluation.threshold), form.scores[:1]) for form in (frame.floats, frame.integers)
    ]


def _scaled(box: Detection, factor: float) -> Detection:
    x0, y0, x1, y1 = (edge * factor for edge in box.box)
    return Detection(box.label, box.probability, (x0, y0, x1, y1))
