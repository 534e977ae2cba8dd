"""Average precision as COCO counts it: matches by class and overlap, precision at 101 recalls.

Source: T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", and pycocotools, with which it agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.vision.detection import Detection
from systolic.evaluation.layouts.labelled import Truth

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

OVERLAPS = np.linspace(0.5, 0.95, 10)
"""Intersections over union from which on a box is right."""

RECALLS = np.linspace(0, 1, 101)
MOST_BOXES = 100
"""Of a class on a picture; the least probable ones beyond do not count."""

_NOTHING = float("nan")


@dataclass(frozen=True)
class ClassPrecision:
    """truths: how many there are to find. precision, recall: of boxes above the threshold, at an overlap of 0.5.

    NaN where there is no truth, or for ``precision`` no box.
    """

    truths: int
    ap50: float
    ap50_95: float
    precision: float
    recall: float
    mean_iou: float


@dataclass(frozen=True)
class Precision:
    """Means over the classes that have truths; precision and recall of all boxes together; mean_iou of right ones."""

    map50: float
    map50_95: float
    precision: float
    recall: float
    mean_iou: float
    by_class: dict[str, ClassPrecision]


@dataclass(frozen=True, eq=False)
class _Matches:
    """Of one class, boxes of all pictures in order of their probability.

    right, ignored: [overlaps, boxes]. overlap: of each box with the truth that it was matched with at 0.5, else 0.
    """

    truths: int
    probabilities: Doubles
    right: Flags
    ignored: Flags
    overlap: Doubles

    def shown(self, threshold: float) -> tuple[int, int, list[float]]:
        """Of boxes above the threshold: how many are right, how many count, and the overlaps of the right ones."""
        likely = self.probabilities > threshold
        right = self.right[0] & likely
        return int(right.sum()), int(np.sum(likely & ~self.ignored[0])), self.overlap[right].tolist()


def average_precisions(
    detections: Sequence[Sequence[Detection]], truths: Sequence[Sequence[Truth]], threshold: float
) -> Precision:
    """detections, truths: a sequence a picture. threshold: the least probability that precision and recall count."""
    labels = sorted({truth.label for picture in truths for truth in picture})
    foreign = sorted({box.label for picture in detections for box in picture} - set(labels))
    matches = {label: _matches(label, detections, truths) for label in labels + foreign}
    by_class = {label: _class_precision([matches[label]], threshold) for label in labels if matches[label].truths}
    overall = _class_precision(list(matches.values()), threshold)
    return Precision(
        _mean([p.ap50 for p in by_class.values()]),
        _mean([p.ap50_95 for p in by_class.values()]),
        overall.precision,
        overall.recall,
        overall.mean_iou,
        by_class,
    )


def overlaps(boxes: Doubles, references: Doubles) -> Doubles:
    """Intersection over union [n, m] of boxes [n, 4] and references [m, 4], all x0, y0, x1, y1."""
    shared = _shared(boxes, references)
    union = _areas(boxes)[:, None] + _areas(references)[None] - shared
    return np.asarray(shared / np.where(union > 0, union, 1))


def boxes_of(boxes: Sequence[Detection] | Sequence[Truth]) -> Doubles:
    """[n, 4], also of none."""
    return np.array([box.box for box in boxes], np.float64).reshape(-1, 4)


def _shared(boxes: Doubles, references: Doubles) -> Doubles:
    corner = np.maximum(boxes[:, None, :2], references[None, :, :2])
    sides = np.minimum(boxes[:, None, 2:], references[None, :, 2:]) - corner
    return np.asarray(np.prod(np.maximum(sides, 0), axis=2))


def _areas(boxes: Doubles) -> Doubles:
    return np.asarray(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1))


def _matches(label: str, detections: Sequence[Sequence[Detection]], truths: Sequence[Sequence[Truth]]) -> _Matches:
    parts = [
        _match([box for box in boxes if box.label == label], [truth for truth in objects if truth.label == label])
        for boxes, objects in zip(detections, truths, strict=True)
    ]
    probabilities = np.concatenate([part.probabilities for part in parts]) if parts else np.empty(0)
    order = np.argsort(-probabilities, kind="stable")
    return _Matches(
        sum(part.truths for part in parts),
        probabilities[order],
        np.concatenate([part.right for part in parts], axis=1)[:, order],
        np.concatenate([part.ignored for part in parts], axis=1)[:, order],
        np.concatenate([part.overlap for part in parts])[order],
    )


def _match(boxes: Sequence[Detection], truths: Sequence[Truth]) -> _Matches:
    """Of one picture and class: greedily, the most probable box first, each to the truth that it overlaps most."""
    boxes = sorted(boxes, key=lambda box: -box.probability)[:MOST_BOXES]
    truths = sorted(truths, key=lambda truth: not truth.counts)
    shape = (len(OVERLAPS), len(boxes))
    right, ignored, overlap = np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(len(boxes))
    if boxes and truths:
        shares = _shares(boxes, truths)
        for level, share in enumerate(OVERLAPS):
            for box, truth in enumerate(_greedy(shares, truths, float(share))):
                if truth is not None:
                    right[level, box], ignored[level, box] = truths[truth].counts, not truths[truth].counts
                    overlap[box] = shares[box, truth] if level == 0 else overlap[box]
    probabilities = np.array([box.probability for box in boxes], np.float64)
    return _Matches(sum(truth.counts for truth in truths), probabilities, right, ignored, overlap)


def _shares(boxes: Sequence[Detection], truths: Sequence[Truth]) -> Doubles:
    """Intersection over union; over the box's own area where the truth is a crowd."""
    ours, theirs = boxes_of(boxes), boxes_of(truths)
    crowd = np.array([truth.crowd for truth in truths])
    areas = _areas(ours)[:, None]
    return np.where(crowd, _shared(ours, theirs) / np.where(areas > 0, areas, 1), overlaps(ours, theirs))


def _greedy(shares: Doubles, truths: Sequence[Truth], share: float) -> list[int | None]:
    """By box the truth that it takes: one that counts where there is any, which is then gone; others stay."""
    gone = np.zeros(len(truths), bool)
    counted = sum(truth.counts for truth in truths)
    choices: list[int | None] = []
    for row in shares:
        choice = _best(np.where(gone, -1, row)[:counted], share, 0)
        choice = _best(row[counted:], share, counted) if choice is None else choice
        if choice is not None and choice < counted:
            gone[choice] = True
        choices.append(choice)
    return choices


def _best(row: Doubles, share: float, first: int) -> int | None:
    """The last of the greatest, as pycocotools takes it."""
    if row.size == 0 or row.max() < min(share, 1 - 1e-10):
        return None
    return first + int(row.size - 1 - np.argmax(row[::-1]))


def _class_precision(matches: Sequence[_Matches], threshold: float) -> ClassPrecision:
    """Of one class; of several, all that is not ranked."""
    truths = sum(part.truths for part in matches)
    shown = [part.shown(threshold) for part in matches]
    right, counted = sum(each[0] for each in shown), sum(each[1] for each in shown)
    shares = [share for each in shown for share in each[2]]
    levels = [_average(part, level) for part in matches for level in range(len(OVERLAPS))]
    return ClassPrecision(
        truths,
        levels[0] if levels else _NOTHING,
        _mean(levels),
        right / counted if counted else _NOTHING,
        right / truths if truths else _NOTHING,
        _mean(shares),
    )


def _average(matches: _Matches, level: int) -> float:
    """Precision at RECALLS, each the best of that recall or more."""
    if not matches.truths:
        return _NOTHING
    counted = ~matches.ignored[level]
    right = np.cumsum(matches.right[level] & counted)
    wrong = np.cumsum(~matches.right[level] & counted)
    if not right.size:
        return 0.0
    precision = right / np.maximum(right + wrong, 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(right / matches.truths, RECALLS, side="left")
    return float(np.mean(np.append(envelope, 0.0)[np.minimum(places, envelope.size)]))


def _mean(values: Sequence[float]) -> float:
    numbers = [value for value in values if not np.isnan(value)]
    return float(np.mean(numbers)) if numbers else _NOTHING
