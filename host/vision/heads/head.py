"""What a head is: how the host reads the last maps of a network. Needs numpy alone."""

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
"""Of so many boxes a cell, each with its objectness."""

SEGMENTATION = "segmentation"

CLASSES, LABELS, VALUED, VALUES = "classes", "labels", "labels-and-values", "values"
PROBABILITIES, PROBABLE = "probabilities", "labels-and-probabilities"
CHOICES = (CLASSES, LABELS, VALUED, VALUES, PROBABILITIES, PROBABLE)
"""Of the k most probable classes: the values of all, of which the host chooses; labels that the accelerator chose;
these with their values behind them; and values without their labels, of which nothing more can be told. Where the
accelerator has done the softmax: the probabilities of all, and labels with these behind them."""

KINDS = (*ANCHORED, "anchor-free", "ssd", SEGMENTATION, *CHOICES)
MOST_SCALE = 10.0
MOST_BINS = 64
MOST_BIAS = 3e38
"""As float32, whose squares are finite in float64."""

MOST_CLASSES = 1 << 16
"""The pixels of a segmentation are uint16."""

THRESHOLD = 0.24
"""Of the probability; darknet's default for YOLOv2."""


@dataclass(frozen=True)
class Head:
    """How to read one output of the network, or several of one size, one after the other along the channels.

    kind: "cells" (YOLOv1: the values of all cells in a row), "region" (YOLOv2), "yolo" (YOLOv3, v4), "gaussian-yolo"
    (each coordinate with its variance), "scaled-yolo" (Scaled-YOLOv4, YOLOv5), "one-object" (all anchors
    averaged, one box a picture), "anchor-free" (YOLOv8, v11), "ssd", "segmentation" (a class for each position), or one
    of CHOICES.
    anchors: (width, height), in grid cells for region, in shares of the picture for cells, else in pixels of the
    network's input. softmax: whether the
    classes of a region or ssd head exclude each other; an ssd head has that of no object before them then. bias: added
    to each channel of the output first, or nothing. scale_xy: how far a centre reaches beyond its cell, 1 to its edges
    (YOLOv4). bins: of an anchor-free head, places that the distance to a side is spread over; of cells, how many lie
    side by side. k: how many classes are chosen.
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
        if not 1 <= self.classes <= MOST_CLASSES:
            raise RangeError("classes of a head", self.classes, 1, MOST_CLASSES)
        if not 0 < self.scale_xy <= MOST_SCALE:
            raise RangeError("scale_xy of a head", self.scale_xy, 0, MOST_SCALE, exclusive=True)
        if not 1 <= self.bins <= MOST_BINS:
            raise RangeError("bins of a head", self.bins, 1, MOST_BINS)
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
        if self.bias and (len(self.bias) != self.channels or not all(abs(b) <= MOST_BIAS for b in self.bias)):
            raise InvalidValueError("bias of a head", self.bias, f"empty or {self.channels} finite numbers")

    @property
    def channels(self) -> int:
        """Of all outputs that it reads."""
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
        beside = self.softmax if self.kind == "ssd" else 1  # no object, or the objectness
        return len(self.anchors) * (self.coords + beside + self.classes)

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
        """What ``from_json`` reads."""
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
    """boxes [n, 4] (x0, y0, x1, y1) as fractions of the network's input, probabilities [n, classes]."""

    boxes: DoubleArray
    probabilities: DoubleArray


def checked(output: FloatArray, head: Head) -> npt.NDArray[np.floating[Any]]:
    """Return the output [channels, height, width] with the head's bias; ShapeError if it does not fit the head,
    InvalidValueError if it is not finite."""
    if output.ndim != 3 or output.shape[0] != head.channels:
        anchors = f"{len(head.anchors)} anchors and " * bool(head.anchors)
        subject = f"the output for a {head.kind} head of {anchors}{head.classes} classes"
        raise ShapeError(subject, f"shape {output.shape}", f"shape ({head.channels}, height, width)")
    wrong = output[~np.isfinite(output)]
    if wrong.size:
        raise InvalidValueError(f"each value for a {head.kind} head", float(wrong[0]), "finite")
    return output + np.array(head.bias)[:, None, None] if head.bias else output


def sigmoid(x: npt.NDArray[np.floating[Any]]) -> DoubleArray:
    """1 / (1 + e^−x)."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x.astype(np.float64), -60, 60))), np.float64)


def softmax(x: DoubleArray, axis: int = 1) -> DoubleArray:
    """e^x as shares of their sum along ``axis``."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True), np.float64)
