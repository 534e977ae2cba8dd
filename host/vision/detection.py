"""Decoding of head outputs into labelled boxes, and of classifier outputs into classes. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import MismatchError
from host.arguments import number
from host.vision.heads.boxes import (
    decode_anchor_free,
    decode_cells,
    decode_one_object,
    decode_region,
    decode_ssd,
    decode_yolo,
)
from host.vision.heads.head import THRESHOLD as THRESHOLD
from host.vision.heads.head import Candidates, DoubleArray, FloatArray, Head
from host.vision.placement import Placement

IOU_THRESHOLD = 0.45  # IoU threshold of non-maximum suppression: darknet's default


@dataclass(frozen=True)
class Detection:
    """One detected object: its class, its confidence and its box in the picture.

    Attributes:
        label: Name of its class.
        probability: Confidence, objectness × class probability.
        box: (x0, y0, x1, y1) in pixels of the picture. It may reach beyond the picture's edges.
    """

    label: str
    probability: float
    box: tuple[float, float, float, float]

    def clipped(self, width: int, height: int) -> Detection:
        """Return the detection with its box clipped to a picture of ``width`` × ``height`` pixels."""
        limits = (width, height) * 2
        x0, y0, x1, y1 = (min(max(v, 0.0), float(limit)) for v, limit in zip(self.box, limits, strict=True))
        return Detection(self.label, self.probability, (x0, y0, x1, y1))


def detect(
    outputs: Sequence[FloatArray],
    heads: Sequence[Head],
    placement: Placement,
    labels: Sequence[str],
    threshold: float = THRESHOLD,
    iou_threshold: float = IOU_THRESHOLD,
) -> tuple[Detection, ...]:
    """Return the objects that all heads of a network together detect in a picture, the most probable first.

    As in darknet, a box counts once for every class whose probability (objectness × class) exceeds ``threshold``.

    Args:
        outputs: For each head float32 ``(channels, height, width)``, the output of the last convolution.
        heads: The heads.
        placement: Position of the picture in the network's input.
        labels: Class labels.
        threshold: Confidence threshold.
        iou_threshold: IoU threshold of the non-maximum suppression within each class.

    Raises:
        MismatchError, ShapeError: An output does not fit its head.
    """
    number("threshold", threshold, 1, zero=True)
    number("iou_threshold", iou_threshold, 1, zero=True)
    if len(outputs) != len(heads):
        raise MismatchError("the number of outputs, each of which needs its head,", len(outputs), len(heads))
    candidates = [decode(output, head, placement, threshold) for output, head in zip(outputs, heads, strict=True)]
    detections: list[Detection] = []
    for index in range(max((head.classes for head in heads), default=0)):
        having_class = [
            head_candidates for head_candidates, head in zip(candidates, heads, strict=True) if index < head.classes
        ]
        boxes = np.concatenate([head_candidates.boxes for head_candidates in having_class])
        probabilities = np.concatenate([head_candidates.probabilities[:, index] for head_candidates in having_class])
        label = label_of(labels, index)
        likely = probabilities > threshold
        detections += _of_class(label, boxes[likely], probabilities[likely], placement, iou_threshold)
    return tuple(sorted(detections, key=lambda detection: -detection.probability))


def clipped(detections: Sequence[Detection], width: int, height: int) -> tuple[Detection, ...]:
    """Return all detections with their boxes clipped to the picture. For thousands this is much faster than
    ``Detection.clipped``."""
    corners = np.array([detection.box for detection in detections]).reshape(-1, 4)
    boxes = np.clip(corners, 0.0, (width, height) * 2).tolist()
    return tuple(
        Detection(detection.label, detection.probability, (x0, y0, x1, y1))
        for detection, (x0, y0, x1, y1) in zip(detections, boxes, strict=True)
    )


def label_of(labels: Sequence[str], index: int) -> str:
    """Return the name of a class, or its number if it has no name."""
    return labels[index] if index < len(labels) else f"class {index}"


def decode(output: FloatArray, head: Head, placement: Placement, threshold: float = THRESHOLD) -> Candidates:
    """Return the candidate boxes that a head's output, float32 ``(channels, height, width)``, encodes. ShapeError if it
    does not fit the head."""
    size = placement.input_height, placement.input_width
    if head.kind == "region":
        return decode_region(output, head, threshold)
    if head.kind == "anchor-free":
        return decode_anchor_free(output, head, threshold)
    if head.kind == "cells":
        return decode_cells(output, head, threshold)
    if head.kind == "ssd":
        return decode_ssd(output, head, *size, threshold)
    if head.kind == "one-object":
        return decode_one_object(output, head, *size)
    return decode_yolo(output, head, *size, threshold)


TOGETHER = 64
"""Number of boxes compared with all others at a time. With one at a time numpy's overhead per call would dominate."""


def suppress(
    boxes: DoubleArray, probabilities: DoubleArray, iou_threshold: float = IOU_THRESHOLD
) -> npt.NDArray[np.intp]:
    """Return the indices of the boxes that greedy non-maximum suppression keeps, the most probable first.

    A box is dropped if its IoU with a more probable kept box exceeds ``iou_threshold``. Boxes are ``(n, 4)``.
    """
    remaining, corners = np.argsort(-probabilities, kind="stable"), np.ascontiguousarray(boxes.T, np.float64)
    indices: list[np.intp] = []
    while remaining.size:
        leading, rest = remaining[:TOGETHER], remaining[TOGETHER:]
        apart = _intersection_over_union(corners[:, leading], corners[:, remaining]) <= iou_threshold
        stays = np.ones(len(remaining), np.bool_)
        for row, index in enumerate(leading):
            if stays[row]:
                indices.append(index)
                stays &= apart[row]
        remaining = rest[stays[len(leading) :]]
    return np.array(indices, np.intp)


def _of_class(
    label: str, boxes: DoubleArray, probabilities: DoubleArray, placement: Placement, iou_threshold: float
) -> list[Detection]:
    indices = suppress(boxes, probabilities, iou_threshold)
    pixels = placement.to_picture(boxes[indices]).tolist()
    return [
        Detection(label, probability, (x0, y0, x1, y1))
        for probability, (x0, y0, x1, y1) in zip(probabilities[indices].tolist(), pixels, strict=True)
    ]


def _intersection_over_union(boxes: DoubleArray, rivals: DoubleArray) -> DoubleArray:
    """Return the IoU (intersection over union) of each box with each rival, ``(boxes, rivals)``.

    Both are corners ``(4, n)``, so that each coordinate is contiguous.
    """
    shared = np.maximum(np.minimum(boxes[2, :, None], rivals[2]) - np.maximum(boxes[0, :, None], rivals[0]), 0)
    shared *= np.maximum(np.minimum(boxes[3, :, None], rivals[3]) - np.maximum(boxes[1, :, None], rivals[1]), 0)
    union = _areas(boxes)[:, None] + _areas(rivals) - shared
    # Two boxes of no area, whose sizes underflowed, do not overlap.
    union[union <= 0] = 1
    return np.asarray(shared / union, np.float64)


def _areas(corners: DoubleArray) -> DoubleArray:
    return np.asarray((corners[2] - corners[0]) * (corners[3] - corners[1]))


# --- classifiers

TOP = 5
"""Default number of classes reported for a picture."""


@dataclass(frozen=True)
class Score:
    """A class of a whole picture, with its probability.

    Attributes:
        label: Name of the class.
        probability: 0 … 1, or None if the accelerator chose the class, since the other classes' values are then
            missing.
        index: Number of the class.
        value: The network's output for the class, if it is written in addition to the label.
    """

    label: str
    probability: float | None
    index: int
    value: float | None = None


def classify(output: FloatArray, labels: Sequence[str], top: int = TOP) -> tuple[Score, ...]:
    """Return the ``top`` most probable classes in descending order, by a softmax over a classifier's output of any
    shape.

    Among equally probable classes the lower number precedes.
    """
    values = output.ravel().astype(np.float64)
    powers = np.exp(values - values.max())
    return most_probable(powers / powers.sum(), labels, top)


def most_probable(shares: npt.NDArray[np.floating[Any]], labels: Sequence[str], top: int = TOP) -> tuple[Score, ...]:
    """Return the ``top`` classes with the greatest probabilities, in descending order. ``shares`` has one probability
    per class, in any shape."""
    shares = shares.ravel()
    order = np.argsort(-shares, kind="stable")[:top]
    return tuple(Score(label_of(labels, int(index)), float(shares[index]), int(index)) for index in order)
