"""Average precision as COCO defines it: boxes matched by class and IoU, and precision averaged over 101 recalls.

Source: T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context". The results agree with pycocotools.
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
"""The IoU thresholds. A box is right at a threshold if its IoU with an object of its class reaches the threshold."""

RECALLS = np.linspace(0, 1, 101)
MAX_BOXES = 100
"""The most boxes per class and image that count: the most probable ones."""

_NOTHING = float("nan")


@dataclass(frozen=True)
class ClassPrecision:
    """Average precision, precision, recall and IoU of one class. NaN if there is no labelled object or no box.

    Attributes:
        truths: The number of labelled objects that count.
        ap50: The average precision at an IoU of 0.5.
        ap50_95: The mean of the average precisions at all IoU thresholds.
        precision: The share of right boxes among the boxes above the confidence threshold, at an IoU of 0.5.
        recall: The share of the labelled objects that these boxes find.
        mean_iou: The mean IoU of the right boxes.
    """

    truths: int
    ap50: float
    ap50_95: float
    precision: float
    recall: float
    mean_iou: float


@dataclass(frozen=True)
class Precision:
    """Average precision, precision, recall and IoU over all classes.

    Attributes:
        map50: The mean of ``ap50`` over the classes with labelled objects.
        map50_95: The mean of ``ap50_95`` over the classes with labelled objects.
        precision: The precision over the boxes of all classes.
        recall: The recall over the objects of all classes.
        mean_iou: The mean IoU of the right boxes of all classes.
        by_class: The metrics of each class by its label.
    """

    map50: float
    map50_95: float
    precision: float
    recall: float
    mean_iou: float
    by_class: dict[str, ClassPrecision]


@dataclass(frozen=True, eq=False)
class _Matches:
    """The boxes of one class in all images, the most probable first, each matched with a labelled object or with none.

    Attributes:
        truths: The number of labelled objects that count.
        probabilities: The confidence of each box.
        right: Whether a box matches an object that counts; shape (IoU thresholds, boxes).
        ignored: Whether a box matches a difficult object or a crowd; shape (IoU thresholds, boxes).
        overlap: The IoU of each box with the object that it matches at 0.5, else 0.
    """

    truths: int
    probabilities: Doubles
    right: Flags
    ignored: Flags
    overlap: Doubles

    def shown(self, threshold: float) -> tuple[int, int, list[float]]:
        """Return, for boxes above the threshold: how many are right, how many count, and the IoU of each right box."""
        likely = self.probabilities > threshold
        right = self.right[0] & likely
        return int(right.sum()), int(np.sum(likely & ~self.ignored[0])), self.overlap[right].tolist()


def average_precisions(
    detections: Sequence[Sequence[Detection]], truths: Sequence[Sequence[Truth]], threshold: float
) -> Precision:
    """Return the average precision of each class, and precision, recall and IoU over all classes.

    Args:
        detections: The boxes of each image.
        truths: The labelled objects of each image.
        threshold: The confidence threshold of the boxes that precision and recall count.
    """
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
    """Return the IoU, shape (n, m), of n boxes with m reference boxes, each a row x0, y0, x1, y1."""
    shared = _shared(boxes, references)
    union = _areas(boxes)[:, None] + _areas(references)[None] - shared
    return np.asarray(shared / np.where(union > 0, union, 1))


def boxes_of(boxes: Sequence[Detection] | Sequence[Truth]) -> Doubles:
    """Return the boxes as an array of shape (n, 4), also for n = 0."""
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
    """Match the boxes of one image and class with labelled objects: the most probable box first, by greatest IoU."""
    boxes = sorted(boxes, key=lambda box: -box.probability)[:MAX_BOXES]
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
    """Return the IoU, shape (boxes, truths). A crowd's is the share of the box inside it, as COCO defines it."""
    ours, theirs = boxes_of(boxes), boxes_of(truths)
    crowd = np.array([truth.crowd for truth in truths])
    areas = _areas(ours)[:, None]
    return np.where(crowd, _shared(ours, theirs) / np.where(areas > 0, areas, 1), overlaps(ours, theirs))


def _greedy(shares: Doubles, truths: Sequence[Truth], share: float) -> list[int | None]:
    """Return, for each box, the index of the labelled object that it matches, or None.

    A box prefers an object that counts, and such an object matches one box only. Difficult objects and crowds can match
    several boxes. Objects that count are first in ``truths``.
    """
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
    """Return ``first`` plus the index of the row's greatest IoU, or None if it is below the IoU threshold ``share``.

    Of equal IoUs the last one is taken, because pycocotools does so.
    """
    if row.size == 0 or row.max() < min(share, 1 - 1e-10):
        return None
    return first + int(row.size - 1 - np.argmax(row[::-1]))


def _class_precision(matches: Sequence[_Matches], threshold: float) -> ClassPrecision:
    """Return AP, precision, recall and IoU of one class, or of several together, whose ``ap50`` has no meaning."""
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
    """Return the average precision at one IoU threshold: the mean of the interpolated precision over ``RECALLS``."""
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
