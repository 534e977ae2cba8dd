"""What a head is: how the host reads the last maps of a network. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import LONGEST_FAULT, HostError, cut, listed, shown

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
            raise HostError(f"a head is of kind {listed(map(repr, KINDS))}, not {shown(self.kind)}")
        if self.coords != 4:
            raise HostError(f"a head has 4 coordinates a box, not {self.coords}")
        if self.classes < 1:
            raise HostError(f"a head has at least one class, not {self.classes}")
        if self.classes > MOST_CLASSES:
            raise HostError(f"a head has at most {MOST_CLASSES:,} classes, not {shown(self.classes)}")
        if not 0 < self.scale_xy <= MOST_SCALE:
            raise HostError(f"scale_xy of a head is above 0 and at most {MOST_SCALE:g}, not {self.scale_xy}")
        if not 1 <= self.bins <= MOST_BINS:
            raise HostError(f"bins of a head are 1…{MOST_BINS}, not {self.bins}")
        if self.kind in CHOICES and not 1 <= self.k <= self.classes:
            raise HostError(f"a head of kind {self.kind} chooses 1…{self.classes} of its classes, not {shown(self.k)}")
        if self.kind in CHOICES and self.bias:
            raise HostError(f"a head of kind {self.kind} has no bias, not {shown(self.bias)}")
        self._check_lists()

    def _check_lists(self) -> None:
        anchored = self.kind in (*ANCHORED, "ssd")
        if anchored and not (self.anchors and all(0 < w < 1e6 and 0 < h < 1e6 for w, h in self.anchors)):
            raise HostError(f"the anchors of a head are pairs of positive numbers, not {shown(self.anchors)}")
        if self.anchors and not anchored:
            raise HostError(f"a head of kind {self.kind} has no anchors, not {shown(self.anchors)}")
        if self.bias and (len(self.bias) != self.channels or not all(abs(b) <= MOST_BIAS for b in self.bias)):
            raise HostError(f"the bias of a head is {self.channels} finite numbers or none, not {shown(self.bias)}")

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
                int(values.get("bins", 1)),
                int(values.get("k", 0)),
            )
        except KeyError as error:
            raise HostError(f"the description of a head lacks {error}") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise HostError(f"the description of a head is not usable: {cut(error, LONGEST_FAULT)}") from error

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
    """[channels, height, width] with the head's bias, finite; HostError where the output does not fit."""
    if output.ndim != 3 or output.shape[0] != head.channels:
        anchors = f"{len(head.anchors)} anchors and " * bool(head.anchors)
        raise HostError(
            f"a {head.kind} head of {anchors}{head.classes} classes reads "
            f"[{head.channels}, height, width], not {list(output.shape)}"
        )
    if not np.isfinite(output).all():
        raise HostError(f"the output for the {head.kind} head holds values that are not finite")
    return output + np.array(head.bias)[:, None, None] if head.bias else output


def sigmoid(x: npt.NDArray[np.floating[Any]]) -> DoubleArray:
    """1 / (1 + e^−x)."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x.astype(np.float64), -60, 60))), np.float64)


def softmax(x: DoubleArray, axis: int = 1) -> DoubleArray:
    """e^x as shares of their sum along ``axis``."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True), np.float64)
