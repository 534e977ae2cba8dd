"""How right boxes or classes are by labels, and how alike those of floats and integers are without labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from host.vision.detection import TOP, Detection
from systolic.evaluation.frames import Seen
from systolic.evaluation.layouts.labelled import LabelledPicture
from systolic.evaluation.precision import Precision, average_precisions, boxes_of, overlaps

SAME = 0.5
"""Intersection over union from which on two boxes of a class are of the same object."""


@dataclass(frozen=True)
class Agreement:
    """matched: boxes of both. missed: of the floats alone. added: of the integers alone. mean_iou: of the matched."""

    matched: int
    missed: int
    added: int
    mean_iou: float

    @property
    def differing(self) -> int:
        """Boxes that one of them alone has."""
        return self.missed + self.added


def agreement(reference: Sequence[Detection], candidates: Sequence[Detection]) -> Agreement:
    """Boxes of one picture, matched greedily by class, the pair that overlaps most first."""
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


def together(agreements: Iterable[Agreement]) -> Agreement:
    """Of all pictures."""
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
    """Of one form of a network."""

    @property
    def metrics(self) -> Metrics:
        """By name, each the better the greater, 0…1; NaN where nothing can be said."""

    @property
    def by_class(self) -> dict[str, dict[str, Any]]:
        """The same of each class, and how much there is of it."""


@dataclass(frozen=True)
class DetectionQuality:
    """mean_iou: of a network that sees one object the overlap of its box, 0 where there is none; of others that of the
    right boxes."""

    precision: Precision
    mean_iou: float

    @property
    def metrics(self) -> Metrics:
        """Means over the classes; precision and recall of all boxes together."""
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
        """truths, ap50, ap50_95, precision, recall, mean_iou."""
        return {label: asdict(each) for label, each in self.precision.by_class.items()}


@dataclass(frozen=True)
class ClassificationQuality:
    """top1, top5: the share of pictures whose class is the most probable one, or among the five most probable; top5 is
    NaN where there are no more than five classes, of which it would count every one."""

    top1: float
    top5: float
    by_class: dict[str, dict[str, Any]]

    @property
    def metrics(self) -> Metrics:
        """Both shares."""
        return {"top1": self.top1, "top5": self.top5}


def detection_quality(
    answers: Sequence[Seen], pictures: Sequence[LabelledPicture], threshold: float, one_object: bool
) -> DetectionQuality:
    """pictures: in pixels. threshold: least probability that precision and recall count."""
    truths = [picture.truths or () for picture in pictures]
    precision = average_precisions([each.detections for each in answers], truths, threshold)
    shares = [_one_object(each, picture) for each, picture in zip(answers, pictures, strict=True) if picture.truths]
    return DetectionQuality(precision, _mean(shares) if one_object else precision.mean_iou)


def _one_object(answers: Seen, picture: LabelledPicture) -> float:
    """The contest's: the most probable box with the first object, whatever its class."""
    if not answers.detections:
        return 0.0
    return float(overlaps(boxes_of(answers.detections[:1]), boxes_of((picture.truths or ())[:1]))[0, 0])


def classification_quality(
    answers: Sequence[Seen], pictures: Sequence[LabelledPicture], classes: int
) -> ClassificationQuality:
    """Of pictures with a category each. classes: that the network tells apart."""
    top = _share if classes > TOP else lambda ranks, top: _NOTHING
    ranks = [_rank(each, picture) for each, picture in zip(answers, pictures, strict=True)]
    categories = [str(picture.category) for picture in pictures]
    by_class = {}
    for label in sorted(set(categories)):
        ours = [rank for rank, category in zip(ranks, categories, strict=True) if category == label]
        by_class[label] = {"pictures": len(ours), "top1": _share(ours, 1), "top5": top(ours, TOP)}
    return ClassificationQuality(_share(ranks, 1), top(ranks, TOP), by_class)


def _rank(answers: Seen, picture: LabelledPicture) -> int:
    """From 1; beyond every one that is asked for where the class is not among those that are told, which may be few."""
    labels = [score.label for score in answers.scores]
    return labels.index(picture.category) + 1 if picture.category in labels else max(TOP, len(labels)) + 1


def _share(ranks: Sequence[int], top: int) -> float:
    return _mean([float(rank <= top) for rank in ranks])


def agreement_values(reference: Sequence[Seen], candidates: Sequence[Seen], threshold: float) -> dict[str, Any]:
    """{matched, missed, added, mean_iou} of boxes above the threshold; of classes pictures that have the same one."""
    if any(each.scores for each in reference):
        equal = sum(a.scores[0].index == b.scores[0].index for a, b in zip(reference, candidates, strict=True))
        return {"matched": equal, "missed": len(reference) - equal, "added": 0, "mean_iou": None}
    pairs = zip(reference, candidates, strict=True)
    overall = together(agreement(a.above(threshold), b.above(threshold)) for a, b in pairs)
    return {**asdict(overall), "mean_iou": rounded(overall.mean_iou)}


def rounded(value: Any) -> Any:
    """Six digits of a number, None of what is none."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


_NOTHING = float("nan")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else _NOTHING
