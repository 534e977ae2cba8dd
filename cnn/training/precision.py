"""Mean average precision as PASCAL VOC counts it since 2010: the whole area under the curve.

Source: Everingham et al., "The PASCAL Visual Object Classes Challenge: A Retrospective", IJCV 2015, 2.2.

``truths`` of one picture: [n, 5] float, rows of class, x0, y0, x1, y1.
``detections`` of one picture: [n, 6] float, rows of class, probability, x0, y0, x1, y1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import NetworkError

Floats = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]
RunNetwork = Callable[[npt.NDArray[np.uint8]], Floats]


@dataclass(frozen=True)
class Precision:
    """``mean`` over the classes that the truths have; ``by_class`` is NaN where they have none."""

    mean: float
    by_class: tuple[float, ...]


def evaluate(
    run_network: RunNetwork,
    pictures: Iterable[npt.NDArray[np.uint8]],
    truths: Sequence[Floats],
    classes: int,
    threshold: float = 0.5,
) -> Precision:
    """mAP of ``run_network`` (picture uint8 [height, width, 3] → detections) over ``pictures``.

    Raises NetworkError as ``mean_average_precision`` does.
    """
    return mean_average_precision([run_network(picture) for picture in pictures], truths, classes, threshold)


def mean_average_precision(
    detections: Sequence[Floats], truths: Sequence[Floats], classes: int, threshold: float = 0.5
) -> Precision:
    """mAP where a detection is right if it overlaps an unclaimed truth of its class by IoU ≥ threshold.

    Raises NetworkError where the two sequences differ in length or a row has the wrong number of values.
    """
    _check(detections, truths)
    by_class = tuple(_class_precision(detections, truths, c, threshold) for c in range(classes))
    counted = [p for p in by_class if not np.isnan(p)]
    return Precision(float(np.mean(counted)) if counted else float("nan"), by_class)


def wholly_right(
    detections: Sequence[Floats], truths: Sequence[Floats], probability: float = 0.5, threshold: float = 0.5
) -> float:
    """Share of pictures in which every object is found once and nothing else is, above ``probability``.

    This is what a person sees who looks at the pictures. mAP hides false boxes that rank below nearly all true ones,
    however probable the network calls them. NaN without pictures. Raises NetworkError as ``mean_average_precision``.
    """
    _check(detections, truths)
    pairs = zip(detections, truths, strict=True)
    right = [_picture_right(d[d[:, 1] > probability], t, threshold) for d, t in pairs]
    return float(np.mean(right)) if right else float("nan")


def _picture_right(detections: Floats, truths: Floats, threshold: float) -> bool:
    if len(detections) != len(truths):
        return False
    labels = np.unique(detections[:, 0])
    return all(_claim(_of_class(detections, c), _of_class(truths, c), threshold).all() for c in labels)


def _of_class(rows: Floats, label: float) -> Floats:
    """The rows of one class, without their first column."""
    return rows[rows[:, 0] == label, 1:]


def iou(box: Floats, boxes: Floats) -> Floats:
    """Intersection over union [n] of ``box`` [4] with each of ``boxes`` [n, 4], as x0, y0, x1, y1."""
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    common = np.prod(np.maximum(sides, 0), axis=1)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.asarray(common / np.maximum(areas - common, 1e-12))


def average_precision(right: Flags, truths: int) -> float:
    """Area under precision over recall.

    ``right``: for each detection, most probable first, whether it is a true positive.
    ``truths``: how many there are to find; NaN where none.
    """
    if truths == 0:
        return float("nan")
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(right) + 1)
    recall = hits / truths
    envelope = np.maximum.accumulate(precision[::-1])[::-1]  # the best precision at this recall or more
    return float(np.sum(np.diff(recall, prepend=0.0) * envelope))


def _check(detections: Sequence[Floats], truths: Sequence[Floats]) -> None:
    if len(detections) != len(truths):
        raise NetworkError(
            f"Average precision needs detections and truths of the same pictures, "
            f"got {len(detections)} and {len(truths)} pictures; "
            f"pass one array a picture, empty where nothing is."
        )
    for name, arrays, columns in (("detections", detections, 6), ("truths", truths, 5)):
        for i, array in enumerate(arrays):
            if array.ndim != 2 or array.shape[1] != columns:
                raise NetworkError(
                    f"Average precision needs {name} as rows of {columns} values, got shape {array.shape} "
                    f"for picture {i}; reshape it to (-1, {columns})."
                )


def _class_precision(detections: Sequence[Floats], truths: Sequence[Floats], label: int, threshold: float) -> float:
    true_boxes = [_of_class(rows, label) for rows in truths]
    ranked = [_of_class(rows, label) for rows in detections]
    right = [_claim(d, t, threshold) for d, t in zip(ranked, true_boxes, strict=True)]
    probability = np.concatenate([np.sort(d[:, 0])[::-1] for d in ranked]) if ranked else np.empty(0)
    order = np.argsort(-probability, kind="stable")
    flags = np.concatenate(right)[order] if right else np.empty(0, bool)
    return average_precision(flags, sum(len(boxes) for boxes in true_boxes))


def _claim(detections: Floats, truths: Floats, threshold: float) -> Flags:
    """Which detections of one picture and class are right [n], most probable first.

    A detection claims the truth that it overlaps most, and is right where it overlaps that by ``threshold`` and no
    detection before it claimed it. detections [n, 5]: probability and box; truths [m, 4].
    """
    right = np.zeros(len(detections), bool)
    free = np.ones(len(truths), bool)
    for i, row in enumerate(detections[np.argsort(-detections[:, 0], kind="stable")] if len(truths) else ()):
        overlaps = iou(row[1:], truths)
        best = int(np.argmax(overlaps))
        right[i] = overlaps[best] >= threshold and free[best]
        free[best] &= not right[i]
    return right
