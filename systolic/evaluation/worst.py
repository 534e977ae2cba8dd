"""Pictures where floats and integers differ most, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from host.vision.channels import load_frame, to_draw_on
from host.vision.detection import Detection, Score
from host.vision.drawing import draw, save_picture
from host.vision.picture import Pixels
from systolic.evaluation.agreement import agreement
from systolic.evaluation.frames import Frame
from systolic.evaluation.layouts.labelled import LabelledPicture
from systolic.evaluation.report import Evaluation

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
