"""The description of a head: how the host decodes the outputs of a network. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, MismatchError, MissingValueError, RangeError, ShapeError

T = TypeVar("T")

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]

ANCHORED = ("cells", "region", "yolo", "gaussian-yolo", "scaled-yolo", "one-object")
"""Heads with several boxes per cell, each with its objectness."""

SEGMENTATION = "segmentation"

CLASSES, LABELS, VALUED, VALUES = "classes", "labels", "labels-and-values", "values"
PROBABILITIES, PROBABLE = "probabilities", "labels-and-probabilities"
CHOICES = (CLASSES, LABELS, VALUED, VALUES, PROBABILITIES, PROBABLE)
"""Heads that choose the k most probable classes. They differ in the output that the host reads:

- classes: the values of all classes; the host chooses.
- labels: labels that the accelerator chose.
- labels-and-values: such labels, followed by their values.
- values: values without their labels, so the classes are unknown.
- probabilities: the probabilities of all classes; the accelerator computes the softmax.
- labels-and-probabilities: labels that the accelerator chose, followed by their probabilities.
"""

KINDS = (*ANCHORED, "anchor-free", "ssd", SEGMENTATION, *CHOICES)
MAX_SCALE = 10.0
MAX_BINS = 64
MAX_BIAS = 3e38
"""Maximum bias, as float32. Its square is finite in float64."""

MAX_CLASSES = 1 << 16
"""Maximum number of classes: the pixels of a segmentation are uint16."""

THRESHOLD = 0.24
"""Default confidence threshold: darknet's default for YOLOv2."""


@dataclass(frozen=True)
class Head:
    """The description of a detection, segmentation or classification head: how the host decodes outputs of the network.

    Attributes:
        kind: The family of heads, or one of CHOICES. "cells": YOLOv1, the values of all cells in a row. "region":
            YOLOv2. "yolo": YOLOv3 and v4. "gaussian-yolo": each coordinate has a variance. "scaled-yolo": Scaled-
            YOLOv4 and YOLOv5. "one-object": all anchors averaged, one box per picture. "anchor-free": YOLOv8 and v11.
            "ssd": SSD. "segmentation": a class for each position.
        anchors: (width, height) of each anchor: in grid cells for region, as fractions of the picture for cells, else
            in pixels of the network's input.
        classes: Number of classes.
        coords: Number of box coordinates, always 4.
        softmax: Whether the classes of a region or ssd head exclude each other. An ssd head then has a first class for
            "no object".
        bias: Added to each channel of the output first; empty for none.
        scale_xy: Factor of the range in which a centre may be. 1: its cell (YOLOv4).
        bins: For an anchor-free head the number of values that encode one distance; for cells the number of cells per
            side.
        k: Number of classes that are chosen.
    """

    kind: str
    anchors: tuple[tuple[float, float], ...]
    classes: int
    coords: int = 4
    softmax: bool = True
    bias: tuple[float, ...] = ()
    scale_xy: float = 1.0
    bins: int = 1
    k: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ChoiceError("the kind of a head", self.kind, KINDS)
        if self.coords != 4:
            raise MismatchError("coords of a head", self.coords, 4)
        if not 1 <= self.classes <= MAX_CLASSES:
            raise RangeError("classes of a head", self.classes, 1, MAX_CLASSES)
        if not 0 < self.scale_xy <= MAX_SCALE:
            raise RangeError("scale_xy of a head", self.scale_xy, 0, MAX_SCALE, exclusive=True)
        if not 1 <= self.bins <= MAX_BINS:
            raise RangeError("bins of a head", self.bins, 1, MAX_BINS)
        if self.kind in CHOICES and not 1 <= self.k <= self.classes:
            raise RangeError(f"k of a {self.kind} head", self.k, 1, self.classes)
        if self.kind in CHOICES and self.bias:
            raise InvalidValueError(f"bias of a {self.kind} head", self.bias, "empty")
        self._check_lists()

    def _check_lists(self) -> None:
        anchored = self.kind in (*ANCHORED, "ssd")
        if anchored and not (self.anchors and all(0 < w < 1e6 and 0 < h < 1e6 for w, h in self.anchors)):
            raise InvalidValueError("anchors of a head", self.anchors, "pairs of numbers above 0 and below 1,000,000")
        if self.anchors and not anchored:
            raise InvalidValueError(f"anchors of a {self.kind} head", self.anchors, "empty")
        if self.bias and (len(self.bias) != self.channels or not all(abs(b) <= MAX_BIAS for b in self.bias)):
            raise InvalidValueError("bias of a head", self.bias, f"empty or {self.channels} finite numbers")

    @property
    def channels(self) -> int:
        """Number of channels that the head reads, over all its outputs together."""
        if self.kind in (SEGMENTATION, CLASSES, PROBABILITIES):
            return self.classes
        if self.kind in CHOICES:
            return self.k * (2 if self.kind in (VALUED, PROBABLE) else 1)
        if self.kind == "anchor-free":
            return self.coords * self.bins + self.classes
        if self.kind == "cells":
            return self.bins**2 * (self.classes + len(self.anchors) * (self.coords + 1))
        if self.kind == "gaussian-yolo":
            return len(self.anchors) * (2 * self.coords + 1 + self.classes)
        extra = self.softmax if self.kind == "ssd" else 1  # no object, or the objectness
        return len(self.anchors) * (self.coords + extra + self.classes)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Head:
        """Return the head that a JSON object describes; MissingValueError or InvalidValueError for a wrong key."""
        for key in ("anchors", "kind", "classes", "coords", "softmax"):
            if key not in values:
                raise MissingValueError(f"{key!r} of a head")

        def read(key: str, convert: Callable[[Any], T], required: str, default: object = None) -> T:
            value = values.get(key, default)
            try:
                return convert(value)
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidValueError(f"{key} of a head", value, required) from error

        def floats(numbers: Iterable[Any]) -> tuple[float, ...]:
            return tuple(float(number) for number in numbers)

        def pairs(anchors: Iterable[Any]) -> tuple[tuple[float, float], ...]:
            return tuple((float(width), float(height)) for width, height in anchors)

        return Head(
            read("kind", str, "a text"),
            read("anchors", pairs, "a list of pairs of numbers"),
            read("classes", int, "a whole number"),
            read("coords", int, "a whole number"),
            read("softmax", bool, "true or false"),
            read("bias", floats, "a list of numbers", ()),
            read("scale_xy", float, "a number", 1.0),
            read("bins", int, "a whole number", 1),
            read("k", int, "a whole number", 0),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the head as the JSON object that ``from_json`` reads."""
        return {
            "kind": self.kind,
            "anchors": [list(anchor) for anchor in self.anchors],
            "classes": self.classes,
            "coords": self.coords,
            "softmax": self.softmax,
            **({"bias": list(self.bias)} if self.bias else {}),
            **({"scale_xy": self.scale_xy} if self.scale_xy != 1 else {}),
            **({"bins": self.bins} if self.bins != 1 else {}),
            **({"k": self.k} if self.k else {}),
        }


@dataclass(frozen=True, eq=False)
class Candidates:
    """Decoded boxes with their class probabilities, before non-maximum suppression.

    Attributes:
        boxes: (x0, y0, x1, y1) as fractions of the network's input, ``(n, 4)``.
        probabilities: ``(n, classes)``.
    """

    boxes: DoubleArray
    probabilities: DoubleArray


def checked(output: FloatArray, head: Head) -> npt.NDArray[np.floating[Any]]:
    """Return a head's output ``(channels, height, width)`` with the head's bias added, after checking its shape and
    values.

    ShapeError if the output does not fit the head, InvalidValueError if a value is not finite.
    """
    if output.ndim != 3 or output.shape[0] != head.channels:
        anchors = f"{len(head.anchors)} anchors and " * bool(head.anchors)
        subject = f"the output for a {head.kind} head of {anchors}{head.classes} classes"
        raise ShapeError(subject, f"shape {output.shape}", f"shape ({head.channels}, height, width)")
    wrong = output[~np.isfinite(output)]
    if wrong.size:
        raise InvalidValueError(f"each value for a {head.kind} head", float(wrong[0]), "finite")
    return output + np.array(head.bias)[:, None, None] if head.bias else output


def sigmoid(x: npt.NDArray[np.floating[Any]]) -> DoubleArray:
    """Return the logistic function 1 / (1 + e^−x) of each value."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x.astype(np.float64), -60, 60))), np.float64)


def softmax(x: DoubleArray, axis: int = 1) -> DoubleArray:
    """Return the softmax along ``axis``: e^x divided by the sum of e^x."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True), np.float64)
