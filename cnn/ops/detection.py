"""Heads of networks that find objects, or a class for each position; the host decodes them (host.vision)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cnn.maps import FloatArray, Shape
from cnn.ops.operation import HostOperation

MAX_SCALE = 10.0
"""The greatest scale_xy of a head."""
MAX_BINS = 64
"""The most bins of an anchor-free head."""


@dataclass(frozen=True)
class Detection(HostOperation):
    """The base class of detection and segmentation heads, which the host decodes from one or several output maps.

    Attributes:
        kind: The name of the class in files.
        anchors: (width, height) pairs in pixels of the network's input, unless a class says otherwise.
        classes: The number of classes.
        softmax: The probabilities of classes are a softmax, not sigmoids.
        coords: The number of coordinates of a box.
        bias: The host adds these to the channels before it decodes; may be empty.
        scale_xy: The range of a centre in cells; 1 ends at the edges of its cell.
        bins: The bins of each distance that an anchor-free head predicts; for ``Cells``, the rows and columns of cells.
    """

    anchors: tuple[tuple[float, float], ...]
    classes: int
    softmax: bool
    coords: int = 4
    bias: tuple[float, ...] = ()
    scale_xy: float = 1.0
    bins: int = 1

    input_counts = (1, None)
    kind: ClassVar[str]

    @property
    @abstractmethod
    def channels(self) -> int:
        """The number of channels of the head's input maps together."""

    @property
    def channels_of_a_class(self) -> int:
        """The number of input channels by which one more class would enlarge the head."""
        return len(self.anchors)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return Shape(sum(shape.channels for shape in read), read[0].height, read[0].width)

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        """Return the head's input maps unchanged, concatenated along the channels; the host decodes them."""
        return inputs[0] if len(inputs) == 1 else np.concatenate(inputs)


class AnchoredDetection(Detection):
    """A YOLO-like head: each grid cell has, per anchor, a box's coordinates, its objectness and its class values."""

    @property
    def channels(self) -> int:
        return len(self.anchors) * (self.coords + 1 + self.classes)


class Region(AnchoredDetection):
    """The detection head of YOLOv2; its anchor sizes are in grid cells."""

    kind = "region"


class Yolo(AnchoredDetection):
    """The detection head of YOLOv3 and YOLOv4; its anchor sizes are in input pixels."""

    kind = "yolo"


class ScaledYolo(AnchoredDetection):
    """The detection head of Scaled-YOLOv4 and YOLOv5, whose box sizes are the anchor times (2 · sigmoid)²."""

    kind = "scaled-yolo"


class OneObject(AnchoredDetection):
    """The single-object head of UltraNet, which averages the boxes of all anchors into one."""

    kind = "one-object"


class GaussianYolo(Detection):
    """The detection head of Gaussian YOLOv3, which also predicts a variance for each box coordinate."""

    kind = "gaussian-yolo"

    @property
    def channels(self) -> int:
        return len(self.anchors) * (2 * self.coords + 1 + self.classes)


class Cells(Detection):
    """The detection head of YOLOv1, which reads one row of values: classes, objectness and boxes of all grid cells.

    Anchors are in shares of the picture, and there are ``bins`` × ``bins`` cells.
    """

    kind = "cells"

    @property
    def channels(self) -> int:
        return self.bins**2 * (self.classes + len(self.anchors) * (self.coords + 1))

    @property
    def channels_of_a_class(self) -> int:
        return self.bins**2


class AnchorFree(Detection):
    """The anchor-free detection head of YOLOv8: distances to a box's four sides, each a distribution over ``bins``."""

    kind = "anchor-free"

    @property
    def channels(self) -> int:
        return self.coords * self.bins + self.classes

    @property
    def channels_of_a_class(self) -> int:
        return 1


class Ssd(Detection):
    """The detection head of SSD; with a softmax it has one more class, the background."""

    kind = "ssd"

    @property
    def channels(self) -> int:
        return len(self.anchors) * (self.coords + int(self.softmax) + self.classes)


class Segmentation(Detection):
    """A semantic segmentation head, which gives each position the class with the greatest channel."""

    kind = "segmentation"

    @property
    def channels(self) -> int:
        return self.classes

    @property
    def channels_of_a_class(self) -> int:
        return 1


HEADS: Mapping[str, type[Detection]] = {
    head.kind: head
    for head in (Cells, Region, Yolo, GaussianYolo, ScaledYolo, OneObject, AnchorFree, Ssd, Segmentation)
}
"""The classes of heads by their names in files."""
