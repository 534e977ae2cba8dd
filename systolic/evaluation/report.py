"""What an evaluation says: as JSON, as text, and as pictures where floats and integers differ most."""

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
from systolic.evaluation.frames import Frame, Seen, Subject
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
"""Of a metric, from 0 to 1: what integers may lose of it without a warning."""

TITLES = {
    "map50": "mAP@0.5",
    "map50_95": "mAP@0.5:0.95",
    "precision": "precision",
    "recall": "recall",
    "mean_iou": "mean IoU",
    "top1": "top-1",
    "top5": "top-5",
}
"""Metrics as they are told, in per cent."""


@dataclass(frozen=True)
class Executed:
    """By the design on the first pictures. mismatches: integers that differ from the golden model. label: what ran."""

    answers: tuple[Seen, ...]
    mismatches: int
    label: str


@dataclass(frozen=True, eq=False)
class Evaluation:
    """labelled: boxes in pixels. threshold: least probability of boxes that are shown. ratios_db: SQNR by output."""

    subject: Subject
    labelled: LabelledSet
    frames: tuple[Frame, ...]
    threshold: float
    ratios_db: dict[str, float]
    executed: Executed | None

    @cached_property
    def floats(self) -> Quality | None:
        """Of the float network. None without labels."""
        return self._quality([frame.floats for frame in self.frames])

    @cached_property
    def integers(self) -> Quality | None:
        """Of the golden model. None without labels."""
        return self._quality([frame.integers for frame in self.frames])

    @property
    def bits(self) -> dict[str, int]:
        """Of weights, by layer."""
        nodes = self.subject.quantised.nodes
        return {node.name: node.op.weight_type.bits for node in nodes if isinstance(node.op, (QConvolution, QDense))}

    @cached_property
    def agreement(self) -> dict[str, Any]:
        """Of integers with floats."""
        floats, integers = ([getattr(frame, form) for frame in self.frames] for form in ("floats", "integers"))
        return agreement_values(floats, integers, self.threshold)

    def _quality(self, answers: Sequence[Seen]) -> Quality | None:
        if not self.labelled.is_labelled:
            return None
        pictures: Sequence[LabelledPicture] = self.labelled.pictures[: len(answers)]
        if self.subject.is_classifier:
            return classification_quality(answers, pictures, self.subject.classes)
        return detection_quality(answers, pictures, self.threshold, self.subject.sees_one_object)

    def values(self) -> dict[str, Any]:
        """{network, layout, pictures, labelled, bits, float, integer, agreement, head_sqnr_db, notes, executed}."""
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
        """Sentences: what was left out, and where integers hurt."""
        sentences = list(self.labelled.notes)
        lost = [f"{TITLES[name]} {loss:.2f} points" for name, loss in self.losses.items() if loss > 100 * HURTS]
        if lost:
            sentences.append(f"the integers lose {', '.join(lost)} of the float network; {self.subject.tried.advice}")
        if self.labelled.is_labelled or self.subject.tried.trained:
            return sentences  # the labels say whether boxes and classes are wrong; integers of training are what counts
        ratios = {name: ratio_rounded(ratio) for name, ratio in self.ratios_db.items()}
        return [*sentences, *filter(None, [warning_of(ratios, self.subject.tried)])]

    @property
    def losses(self) -> dict[str, float]:
        """By metric that can be told, points of a hundred that the floats have more than the integers."""
        if self.floats is None or self.integers is None:
            return {}
        ours = self.integers.metrics
        return {name: 100 * (value - ours[name]) for name, value in self.floats.metrics.items() if value == value}

    def text(self) -> str:
        """Tables for a terminal."""
        agreed = self.agreement
        ratios = ", ".join(f"{name} {ratio:.1f} dB" for name, ratio in self.ratios_db.items())
        kind = "the same class" if self.subject.is_classifier else "boxes matched"
        overlap = f", mean IoU {agreed['mean_iou']:.3f}" if agreed["mean_iou"] is not None else ""
        parts = [
            f"{self.subject.network.name}: {len(self.frames):,} pictures ({self.labelled.layout})",
            *self._tables(),
        ]
        parts.append(
            f"integers beside floats: {agreed['matched']:,} {kind}, {agreed['missed']:,} missed, {agreed['added']:,} "
            f"added{overlap}; SQNR at the heads: {ratios}"
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
"""Pictures that are drawn."""

WIDTH = 480
"""Pixels of each of the two or three drawings of a picture."""

_GAP, _HEAD = 6, 24


def save_worst(evaluation: Evaluation, path: Path) -> None:
    """Draw the labels if there are any, the floats and the integers, one row per picture. Raises the errors of
    ``save_picture``."""
    order = sorted(range(len(evaluation.frames)), key=lambda place: _difference(evaluation, place), reverse=True)
    titles = ("labels", "float", "integers") if evaluation.labelled.is_labelled else ("float", "integers")
    rows = [_row(evaluation, place) for place in order[:ROWS]]
    sheet = np.concatenate([_head(titles), *rows])
    save_picture(Image.fromarray(sheet), path)


def _head(titles: Sequence[str]) -> Pixels:
    """What the columns are, written above them."""
    image = Image.new("RGB", (len(titles) * (WIDTH + _GAP), _HEAD), "white")
    for column, title in enumerate(titles):
        ImageDraw.Draw(image).text((column * (WIDTH + _GAP) + _GAP, _GAP), title, fill="black")
    return np.array(image)


def _difference(evaluation: Evaluation, place: int) -> tuple[float, float]:
    """The greater, the worse: boxes that one of them alone has, then how far the others are apart."""
    frame = evaluation.frames[place]
    if frame.floats.scores:
        exact, approximate = frame.floats.scores[0], frame.integers.scores[0]
        likely = [score.probability or 0.0 for score in (exact, approximate)]
        return float(exact.index != approximate.index), abs(likely[0] - likely[1])
    agreed = agreement(*(form.above(evaluation.threshold) for form in (frame.floats, frame.integers)))
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
    """What is drawn into each."""
    columns: list[tuple[Sequence[Detection], Sequence[Score]]] = []
    if evaluation.labelled.is_labelled:
        truths = [Detection(truth.label, 1.0, truth.box) for truth in picture.truths or ()]
        columns.append((truths, [Score(picture.category, 1.0, 0)] if picture.category is not None else []))
    return columns + [(form.above(evaluation.threshold), form.scores[:1]) for form in (frame.floats, frame.integers)]


def _scaled(box: Detection, factor: float) -> Detection:
    x0, y0, x1, y1 = (edge * factor for edge in box.box)
    return Detection(box.label, box.probability, (x0, y0, x1, y1))
