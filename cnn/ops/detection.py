"""Heads of networks that find objects, or a class for each position; the host decodes them (host.vision)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cnn.maps import FloatArray, Shape
from cnn.ops.operation import HostOperation

MOST_SCALE = 10.0
"""The greatest scale_xy of a head."""
MOST_BINS = 64
"""The most bins of an anchor-free head."""


@dataclass(frozen=True)
class Detection(HostOperation):
    """A head. It reads one map, or several of one height and width along the channels.

    Attributes:
        kind: The name of the class in files.
        anchors: (width, height) pairs in pixels of the network's input, unless a class says otherwise.
        classes: The number of classes.
        softmax: The probabilities of classes are a softmax, not sigmoids.
        coords: The number of coordinates of a box.
        bias: The host adds these to the channels before it decodes; may be empty.
        scale_xy: The range of a centre in cells; 1 ends at the edges of its cell.
        bins: The number of places that an anchor-free head spreads the distance to a side over.
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
        """The channels of all maps that it reads."""

    @property
    def channels_of_a_class(self) -> int:
        """The channels that one class more adds."""
        return len(self.anchors)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return Shape(sum(shape.channels for shape in read), read[0].height, read[0].width)

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        """Return the maps as they are."""
        return inputs[0] if len(inputs) == 1 else np.concatenate(inputs)


class AnchoredDetection(Detection):
    """A head with a box of each anchor in each cell: coordinates, the objectness, and a value of each class."""

    @property
    def channels(self) -> int:
        return len(self.anchors) * (self.coords + 1 + self.classes)


class Region(AnchoredDetection):
    """YOLOv2's head; anchors are in grid cells."""

    kind = "region"


class Yolo(AnchoredDetection):
    """The head of YOLOv3 and YOLOv4."""

    kind = "yolo"


class ScaledYolo(AnchoredDetection):
    """The head of Scaled-YOLOv4 and YOLOv5, whose sizes are squares of sigmoids."""

    kind = "scaled-yolo"


class OneObject(AnchoredDetection):
    """UltraNet's head, which averages the boxes of all anchors to one."""

    kind = "one-object"


class GaussianYolo(Detection):
    """Gaussian YOLOv3's head, in which each coordinate has a variance."""

    kind = "gaussian-yolo"

    @property
    def channels(self) -> int:
        return len(self.anchors) * (2 * self.coords + 1 + self.classes)


class Cells(Detection):
    """YOLOv1's head: the values of all cells in a row.

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
    """YOLOv8's head."""

    kind = "anchor-free"

    @property
    def channels(self) -> int:
        return self.coords * self.bins + self.classes

    @property
    def channels_of_a_class(self) -> int:
        return 1


class Ssd(Detection):
    """SSD's head; with a softmax one class more is the background."""

    kind = "ssd"

    @property
    def channels(self) -> int:
        return len(self.anchors) * (self.coords + int(self.softmax) + self.classes)


class Segmentation(Detection):
    """A class for each position."""

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
