"""From the float output of a YOLO head to labelled boxes in pixels of the picture, and of a classifier to its most
probable classes. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import HostError, listed, shown
from host.arguments import number
from host.vision.placement import Placement

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]

KINDS = ("region", "yolo", "scaled-yolo", "one-object")
THRESHOLD = 0.24  # of the probability; darknet's default for YOLOv2
OVERLAP = 0.45  # of intersection over union, above which the less probable box goes; darknet's default
MOST_SCALE = 10.0
_LARGEST_LOG = 16.0  # e^16 grid cells is beyond any picture, and keeps exp() finite


@dataclass(frozen=True)
class Detection:
    """One object: ``box`` is (x0, y0, x1, y1) in pixels of the picture and may reach beyond its edges."""

    label: str
    probability: float
    box: tuple[float, float, float, float]

    def clipped(self, width: int, height: int) -> Detection:
        """The same with its box cut off at the edges of a picture of ``width`` × ``height``."""
        limits = (width, height) * 2
        x0, y0, x1, y1 = (min(max(v, 0.0), float(limit)) for v, limit in zip(self.box, limits, strict=True))
        return Detection(self.label, self.probability, (x0, y0, x1, y1))


@dataclass(frozen=True)
class Head:
    """How to read one output of the network.

    kind: "region" (YOLOv2), "yolo" (YOLOv3, v4), "scaled-yolo" (Scaled-YOLOv4, YOLOv5) or "one-object" (all anchors
    averaged, one box a picture). anchors: (width, height), in grid cells for region, else in pixels of the network's
    input. softmax: whether the classes of a region head exclude each other. bias: added to each channel of the output
    first, or nothing. scale_xy: how far a centre reaches beyond its cell, 1 to its edges (YOLOv4).
    """

    kind: str
    anchors: tuple[tuple[float, float], ...]
    classes: int
    coords: int = 4
    softmax: bool = True
    bias: tuple[float, ...] = ()
    scale_xy: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise HostError(f"a head is of kind {listed(map(repr, KINDS))}, not {shown(self.kind)}")
        if self.coords != 4:
            raise HostError(f"a head has 4 coordinates a box, not {self.coords}")
        if self.classes < 1:
            raise HostError(f"a head has at least one class, not {self.classes}")
        if not 0 < self.scale_xy <= MOST_SCALE:
            raise HostError(f"scale_xy of a head is above 0 and at most {MOST_SCALE:g}, not {self.scale_xy}")
        if not self.anchors or not all(0 < w < 1e6 and 0 < h < 1e6 for w, h in self.anchors):
            raise HostError(f"the anchors of a head are pairs of positive numbers, not {shown(self.anchors)}")
        if self.bias and (len(self.bias) != self.channels or not np.isfinite(self.bias).all()):
            raise HostError(f"the bias of a head is {self.channels} finite numbers or none, not {shown(self.bias)}")

    @property
    def channels(self) -> int:
        return len(self.anchors) * (self.coords + 1 + self.classes)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Head:
        """The head described by an object of the manifest; HostError where a key is missing or wrong."""
        try:
            anchors = tuple((float(width), float(height)) for width, height in values["anchors"])
            return Head(
                str(values["kind"]),
                anchors,
                int(values["classes"]),
                int(values["coords"]),
                bool(values["softmax"]),
                tuple(float(value) for value in values.get("bias", ())),
                float(values.get("scale_xy", 1.0)),
            )
        except KeyError as error:
            raise HostError(f"the description of a head lacks {error}") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise HostError(f"the description of a head is not usable: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """What ``from_json`` reads."""
        return {
            "kind": self.kind,
            "anchors": [list(anchor) for anchor in self.anchors],
            "classes": self.classes,
            "coords": self.coords,
            "softmax": self.softmax,
            **({"bias": list(self.bias)} if self.bias else {}),
            **({"scale_xy": self.scale_xy} if self.scale_xy != 1 else {}),
        }


@dataclass(frozen=True, eq=False)
class Candidates:
    """boxes [n, 4] (x0, y0, x1, y1) as fractions of the network's input, probabilities [n, classes]."""

    boxes: DoubleArray
    probabilities: DoubleArray


def detect(
    outputs: Sequence[FloatArray],
    heads: Sequence[Head],
    placement: Placement,
    labels: Sequence[str],
    threshold: float = THRESHOLD,
    overlap: float = OVERLAP,
) -> tuple[Detection, ...]:
    """The objects that all heads together see, the most probable first.

    outputs: for each head float32 [channels, height, width] as the last convolution leaves it. Every class of
    a box whose probability (objectness × class) exceeds ``threshold`` counts, as in darknet; of boxes of a
    class that overlap more than ``overlap`` the most probable stays. HostError where an output does not fit.
    """
    number("threshold", threshold, 1, zero=True)
    number("overlap", overlap, 1, zero=True)
    if len(outputs) != len(heads):
        raise HostError(f"each output needs its head: there are {len(outputs)} outputs and {len(heads)} heads")
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
        detections += _of_class(label, boxes[likely], probabilities[likely], placement, overlap)
    return tuple(sorted(detections, key=lambda detection: -detection.probability))


def label_of(labels: Sequence[str], index: int) -> str:
    """The name of a class, its number where it has none."""
    return labels[index] if index < len(labels) else f"class {index}"


def decode(output: FloatArray, head: Head, placement: Placement, threshold: float = THRESHOLD) -> Candidates:
    """``decode_region``, ``decode_yolo`` or ``decode_one_object``, as the head says."""
    if head.kind == "region":
        return decode_region(output, head, threshold)
    if head.kind == "one-object":
        return decode_one_object(output, head, placement.input_height, placement.input_width)
    return decode_yolo(output, head, placement.input_height, placement.input_width, threshold)


def decode_region(output: FloatArray, head: Head, threshold: float = THRESHOLD) -> Candidates:
    """Boxes of a YOLOv2 head whose objectness exceeds ``threshold``.

    x = (column + σ(t_x)) / columns, w = anchor · e^(t_w) / columns, likewise y and h; classes by softmax, or
    by σ where the head has none (YOLO9000, arXiv:1612.08242, section 2; darknet's ``get_region_detections``).
    """
    values, columns, rows, anchors = _likely_cells(output, head, threshold)
    height, width = output.shape[1:]
    classes = _softmax(values[:, 5:]) if head.softmax else _sigmoid(values[:, 5:])
    centres = _centres(values, columns, rows, head) / (width, height)
    return _candidates(values, centres, anchors / (width, height) * _exponential(values), classes)


def decode_yolo(
    output: FloatArray, head: Head, input_height: int, input_width: int, threshold: float = THRESHOLD
) -> Candidates:
    """Boxes of a YOLOv3, v4 or v5 head whose objectness exceeds ``threshold``; anchors are pixels of the input.

    As ``decode_region``, but classes are independent (arXiv:1804.02767, darknet's ``get_yolo_detections``), and
    scale_xy stretches the cell in which a centre may lie: s · σ(t_x) − (s − 1) / 2 (arXiv:2004.10934, section 3.4). A
    scaled-yolo head has sizes of anchor · (2σ(t_w))² (arXiv:2011.08036, darknet's ``new_coords``).
    """
    values, columns, rows, anchors = _likely_cells(output, head, threshold)
    height, width = output.shape[1:]
    factor = (2 * _sigmoid(values[:, 2:4])) ** 2 if head.kind == "scaled-yolo" else _exponential(values)
    sizes = anchors / (input_width, input_height) * factor
    centres = _centres(values, columns, rows, head) / (width, height)
    return _candidates(values, centres, sizes, _sigmoid(values[:, 5:]))


def decode_one_object(output: FloatArray, head: Head, input_height: int, input_width: int) -> Candidates:
    """The one box of the cell whose objectness is greatest, averaged over the anchors (UltraNet, DAC-SDC 2020).

    x = (column + mean σ(t_x)) / columns, w = mean anchor · e^(t_w) / input width, likewise y and h. The probability
    is the mean σ(t_o), times the mean σ of the class where there is more than one. The cell is chosen by the mean t_o.
    """
    values = _checked(output, head).astype(np.float64)
    height, width = values.shape[2:]
    row, column = divmod(int(np.argmax(values[:, 4].mean(axis=0))), width)
    cell = values[:, :, row, column]
    x, y = _sigmoid(cell[:, :2]).mean(axis=0)
    centre = np.array([(column + x) / width, (row + y) / height])
    sizes = np.array(head.anchors) * np.exp(np.minimum(cell[:, 2:4], _LARGEST_LOG))
    half = sizes.mean(axis=0) / (input_width, input_height) / 2
    classes = _sigmoid(cell[:, 5:]).mean(axis=0) if head.classes > 1 else np.ones(1)
    probability = _sigmoid(cell[:, 4]).mean() * classes
    return Candidates(np.concatenate([centre - half, centre + half])[None], np.asarray(probability)[None])


def suppress(boxes: DoubleArray, probabilities: DoubleArray, overlap: float = OVERLAP) -> npt.NDArray[np.intp]:
    """Indices of the boxes [n, 4] that stay, the most probable first: greedy non-maximum suppression.

    A box goes where its intersection over union with a more probable one that stays exceeds ``overlap``.
    """
    remaining = np.argsort(-probabilities, kind="stable")
    indices: list[np.intp] = []
    while remaining.size:
        best, remaining = remaining[0], remaining[1:]
        indices.append(best)
        remaining = remaining[_intersection_over_union(boxes[best], boxes[remaining]) <= overlap]
    return np.array(indices, np.intp)


def _of_class(
    label: str, boxes: DoubleArray, probabilities: DoubleArray, placement: Placement, overlap: float
) -> list[Detection]:
    indices = suppress(boxes, probabilities, overlap)
    pixels = placement.to_picture(boxes[indices]).tolist()
    return [
        Detection(label, probability, (x0, y0, x1, y1))
        for probability, (x0, y0, x1, y1) in zip(probabilities[indices].tolist(), pixels, strict=True)
    ]


def _likely_cells(
    output: FloatArray, head: Head, threshold: float
) -> tuple[DoubleArray, DoubleArray, DoubleArray, DoubleArray]:
    """Values [n, 5 + classes], column [n], row [n] and anchor [n, 2] of the boxes with enough objectness.

    A class probability is at most 1, so the objectness alone rules out nearly every cell before anything
    is exponentiated.
    """
    values = _checked(output, head)
    anchor, row, column = np.nonzero(_sigmoid(values[:, 4]) > threshold)
    picked = values[anchor, :, row, column].astype(np.float64)
    anchors = np.array(head.anchors, np.float64)[anchor]
    return picked, column.astype(np.float64), row.astype(np.float64), anchors


def _checked(output: FloatArray, head: Head) -> npt.NDArray[np.floating[Any]]:
    """[anchors, 5 + classes, height, width] with the head's bias, finite; HostError where the output does not fit."""
    if output.ndim != 3 or output.shape[0] != head.channels:
        raise HostError(
            f"a {head.kind} head of {len(head.anchors)} anchors and {head.classes} classes reads "
            f"[{head.channels}, height, width], not {list(output.shape)}"
        )
    if not np.isfinite(output).all():
        raise HostError(f"the output for the {head.kind} head holds values that are not finite")
    biased = output + np.array(head.bias)[:, None, None] if head.bias else output
    return biased.reshape(len(head.anchors), 5 + head.classes, *output.shape[1:])


def _centres(values: DoubleArray, columns: DoubleArray, rows: DoubleArray, head: Head) -> DoubleArray:
    """[n, 2] in cells."""
    within = head.scale_xy * _sigmoid(values[:, :2]) - (head.scale_xy - 1) / 2
    return np.asarray(np.stack([columns, rows], 1) + within)


def _exponential(values: DoubleArray) -> DoubleArray:
    """e^(t_w), e^(t_h): [n, 2]."""
    return np.asarray(np.exp(np.minimum(values[:, 2:4], _LARGEST_LOG)))


def _candidates(values: DoubleArray, centres: DoubleArray, sizes: DoubleArray, classes: DoubleArray) -> Candidates:
    """centres, sizes [n, 2]: as fractions of the input."""
    half = sizes / 2
    return Candidates(np.concatenate([centres - half, centres + half], 1), _sigmoid(values[:, 4:5]) * classes)


def _intersection_over_union(box: DoubleArray, boxes: DoubleArray) -> DoubleArray:
    corner = np.maximum(box[:2], boxes[:, :2])
    shared = np.prod(np.maximum(np.minimum(box[2:], boxes[:, 2:]) - corner, 0), axis=1)
    together = np.prod(box[2:] - box[:2]) + np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) - shared
    # Two boxes without an area (their size underflowed) do not overlap.
    return np.asarray(shared / np.where(together > 0, together, 1), np.float64)


def _sigmoid(x: npt.NDArray[np.floating[Any]]) -> DoubleArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(x.astype(np.float64), -60, 60))), np.float64)


def _softmax(x: DoubleArray) -> DoubleArray:
    powers = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float64)


# --- classifiers

TOP = 5
"""Classes that are told of a picture."""


@dataclass(frozen=True)
class Score:
    """A class, and how probable it is, 0…1. index: of the class."""

    label: str
    probability: float
    index: int


def classify(output: FloatArray, labels: Sequence[str], top: int = TOP) -> tuple[Score, ...]:
    """The most probable classes, that one first: a softmax over the values of the last layer, float32 of any shape.

    Of classes that are as probable the first one comes first.
    """
    values = output.ravel().astype(np.float64)
    powers = np.exp(values - values.max())
    shares = powers / powers.sum()
    order = np.argsort(-shares, kind="stable")[:top]
    return tuple(Score(label_of(labels, int(index)), float(shares[index]), int(index)) for index in order)
