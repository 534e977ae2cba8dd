"""The metrics of boxes or classes against labels, and the agreement of the float and the quantised network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from host.vision.detection import TOP, Detection
from systolic.evaluation.frames import ImageResult
from systolic.evaluation.layouts.labelled import LabelledPicture
from systolic.evaluation.precision import Precision, average_precisions, boxes_of, overlaps

SAME = 0.5
"""The IoU from which on two boxes of a class are taken as boxes of the same object."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of two lists of boxes: a reference, such as the float network's, and the candidates.

    Attributes:
        matched: The number of pairs of boxes that are the same object.
        missed: The number of boxes that only the reference has.
        added: The number of boxes that only the candidates have.
        mean_iou: The mean IoU of the matched pairs. NaN without a pair.
    """

    matched: int
    missed: int
    added: int
    mean_iou: float

    @property
    def differing(self) -> int:
        """The number of boxes that only the reference or only the candidates have."""
        return self.missed + self.added


def agreement(reference: Sequence[Detection], candidates: Sequence[Detection]) -> Agreement:
    """Return how well two lists of boxes of one image agree, matched per class, the greatest IoU first."""
    shares = overlaps(boxes_of(reference), boxes_of(candidates))
    alike = np.array([[a.label == b.label for b in candidates] for a in reference], bool).reshape(shares.shape)
    shares = np.where(alike, shares, 0.0)
    pairs: list[float] = []
    while shares.size and shares.max() >= SAME:
        row, column = np.unravel_index(int(np.argmax(shares)), shares.shape)
        pairs.append(float(shares[row, column]))
        shares[row, :] = shares[:, column] = 0.0
    mean = float(np.mean(pairs)) if pairs else float("nan")
    return Agreement(len(pairs), len(reference) - len(pairs), len(candidates) - len(pairs), mean)


def total_agreement(agreements: Iterable[Agreement]) -> Agreement:
    """Return the agreement over all images: the summed counts and the mean IoU of all pairs."""
    every = list(agreements)
    matched = sum(each.matched for each in every)
    overlap = sum(each.matched * each.mean_iou for each in every if each.matched)
    return Agreement(
        matched,
        sum(each.missed for each in every),
        sum(each.added for each in every),
        overlap / matched if matched else float("nan"),
    )


Metrics = dict[str, float]


class Quality(Protocol):
    """The accuracy of a float, quantised or executed network on labelled images."""

    @property
    def metrics(self) -> Metrics:
        """The metrics by name, each from 0 to 1 (best). NaN means that a metric is not defined."""

    @property
    def by_class(self) -> dict[str, dict[str, Any]]:
        """The metrics of each class by its label, with the number of its objects or images."""


@dataclass(frozen=True)
class DetectionQuality:
    """The accuracy of a detector on labelled images.

    Attributes:
        precision: The average precisions.
        mean_iou: The mean IoU of the right boxes. For a network with a one-object head, the mean IoU of its box with
            the labelled object, where an image without a box counts as 0.
    """

    precision: Precision
    mean_iou: float

    @property
    def metrics(self) -> Metrics:
        """{name: value}: mAP at IoU 0.5 and 0.5 to 0.95, and precision, recall and mean IoU over all boxes."""
        overall = self.precision
        return {
            "map50": overall.map50,
            "map50_95": overall.map50_95,
            "precision": overall.precision,
            "recall": overall.recall,
            "mean_iou": self.mean_iou,
        }

    @property
    def by_class(self) -> dict[str, dict[str, Any]]:
        """{label: fields of ``ClassPrecision``}."""
        return {label: asdict(each) for label, each in self.precision.by_class.items()}


@dataclass(frozen=True)
class ClassificationQuality:
    """The accuracy of a classifier on labelled images.

    Attributes:
        top1: The share of images whose labelled class is the most probable one.
        top5: The share of images whose labelled class is among the five most probable. NaN for a network with five
            classes or fewer, because every image would count.
        by_class: The number of images, top1 and top5 of each class by its label.
    """

    top1: float
    top5: float
    by_class: dict[str, dict[str, Any]]

    @property
    def metrics(self) -> Metrics:
        """{"top1": share, "top5": share} of images whose labelled class is among the best 1 or 5."""
        return {"top1": self.top1, "top5": self.top5}


def detection_quality(
    answers: Sequence[ImageResult], pictures: Sequence[LabelledPicture], threshold: float, one_object: bool
) -> DetectionQuality:
    """Return average precision, precision, recall and IoU of a detector's boxes against the labels.

    Args:
        answers: The detections of each image.
        pictures: The labelled images, with boxes in pixels.
        threshold: The confidence threshold of the boxes that precision and recall count.
        one_object: Whether the network has a one-object head.
    """
    truths = [picture.truths or () for picture in pictures]
    precision = average_precisions([each.detections for each in answers], truths, threshold)
    shares = [_one_object(each, picture) for each, picture in zip(answers, pictures, strict=True) if picture.truths]
    return DetectionQuality(precision, _mean(shares) if one_object else precision.mean_iou)


def _one_object(answers: ImageResult, picture: LabelledPicture) -> float:
    """Return the IoU of an image's first box with its first labelled object, of any class; 0 without a box.

    This is the score of the DAC System Design Contest.
    """
    if not answers.detections:
        return 0.0
    return float(overlaps(boxes_of(answers.detections[:1]), boxes_of((picture.truths or ())[:1]))[0, 0])


def classification_quality(
    answers: Sequence[ImageResult], pictures: Sequence[LabelledPicture], classes: int
) -> ClassificationQuality:
    """Return the top-1 and top-5 accuracy of a classifier, over all images and per class.

    Args:
        answers: The scores of each image.
        pictures: The labelled images, each with a category.
        classes: The number of the network's classes.
    """
    top = _share if classes > TOP else lambda ranks, top: _NOTHING
    ranks = [_rank(each, picture) for each, picture in zip(answers, pictures, strict=True)]
    categories = [str(picture.category) for picture in pictures]
    by_class = {}
    for label in sorted(set(categories)):
        ours = [rank for rank, category in zip(ranks, categories, strict=True) if category == label]
        by_class[label] = {"pictures": len(ours), "top1": _share(ours, 1), "top5": top(ours, TOP)}
    return ClassificationQuality(_share(ranks, 1), top(ranks, TOP), by_class)


def _rank(answers: ImageResult, picture: LabelledPicture) -> int:
    """Return the rank, from 1, of the labelled class among the scores.

    A class without a score has a rank beyond ``TOP``, because the host reports only the most probable classes.
    """
    labels = [score.label for score in answers.scores]
    return labels.index(picture.category) + 1 if picture.category in labels else max(TOP, len(labels)) + 1


def _share(ranks: Sequence[int], top: int) -> float:
    return _mean([float(rank <= top) for rank in ranks])


def agreement_values(
    reference: Sequence[ImageResult], candidates: Sequence[ImageResult], threshold: float
) -> dict[str, Any]:
    """Return how well two networks agree on all images as JSON: matched, missed, added, mean_iou.

    For classifiers, ``matched`` counts the images with the same most probable class, and ``missed`` the other images.
    """
    if any(each.scores for each in reference):
        equal = sum(a.scores[0].index == b.scores[0].index for a, b in zip(reference, candidates, strict=True))
        return {"matched": equal, "missed": len(reference) - equal, "added": 0, "mean_iou": None}
    pairs = zip(reference, candidates, strict=True)
    overall = total_agreement(agreement(a.above_threshold(threshold), b.above_threshold(threshold)) for a, b in pairs)
    return {**asdict(overall), "mean_iou": rounded(overall.mean_iou)}


def rounded(value: Any) -> Any:
    """Return a float rounded to six decimals, None for an infinite float or NaN, and any other value unchanged."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


_NOTHING = float("nan")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else _NOTHING
