"""The float network: a frozen graph of nodes, each with one operation.

A network is a tuple of nodes in topological order; a node names its inputs by their index in
that tuple. Node 0 is the input picture. Shapes are channels × height × width throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cnn.dilation import covered
from cnn.named_outputs import NamedOutput

FloatArray = npt.NDArray[np.float32]

ACTIVATIONS = ("linear", "leaky", "relu", "relu6")
"""What a layer does to its own sums, as one multiplication; the rest is ``Activate``."""

LEAKY_SLOPE = 0.1
UNIT = "unit"
"""y = x cut off to 0…1. Networks that were quantised by training have it; no cfg does."""
SYMMETRIC = "symmetric"
"""y = x cut off to −1…1."""
HEADS = ("cells", "region", "yolo", "gaussian-yolo", "scaled-yolo", "one-object", "anchor-free", "ssd", "segmentation")
"""Kinds of a ``Detection``."""
MOST_SCALE = 10.0
"""Of a head's scale_xy."""
MOST_BINS = 64
"""Of an anchor-free head."""
SIGN = "sign"
"""y = −1 where x < 0, else +1."""


@dataclass(frozen=True)
class Shape:
    """Of a map: channels × height × width."""

    channels: int
    height: int
    width: int

    @property
    def values(self) -> int:
        """How many values a map of this shape has."""
        return self.channels * self.height * self.width

    def __str__(self) -> str:
        return f"{self.channels}×{self.height}×{self.width}"


@dataclass(frozen=True)
class Padding:
    """Rows and columns of padding: zeros before a convolution, and below every value before a max pool."""

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0


@dataclass(frozen=True, eq=False)
class BatchNorm:
    """y = scale · (x − mean) / sqrt(variance + epsilon) + bias, each array [filters]."""

    scale: FloatArray
    mean: FloatArray
    variance: FloatArray
    epsilon: float = 1e-6  # darknet's: see DARKNET_EPSILON in cnn.darknet.graph


@dataclass(frozen=True)
class Input:
    """The picture, RGB, 0…1 after division by 255."""


@dataclass(frozen=True)
class Stored:
    """The form in which a weights file stores the weights of a layer.

    Attributes:
        itself: the operation implies the weights, and the file has none.
        signs: the file has numbers whose signs count, and each filter uses their mean magnitude.
        places: the first row and column of each copy of the filters in a larger window; the file has one copy.
        window: rows and columns of the filters in the file, if there are ``places``.
        step: rows and columns of the larger window from one place of a copy to the next.
    """

    itself: bool = False
    signs: bool = False
    step: int = 1
    places: tuple[tuple[int, int], ...] = ()
    window: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution.

    Attributes:
        weights: [filters, channels / groups, rows, columns of places].
        bias: [filters].
        around: the value of the padding.
        dilation: rows and columns of the map from one place of the window to the next; 1 along a side of one place.
    """

    weights: FloatArray
    bias: FloatArray
    batch_norm: BatchNorm | None
    stride: int
    padding: Padding
    groups: int
    activation: str
    stored: Stored = Stored()
    around: float = 0.0
    dilation: tuple[int, int] = (1, 1)

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns of the map that the window covers, those between its places too."""
        return covered(self.weights.shape[2:], self.dilation)


@dataclass(frozen=True, eq=False)
class Dense:
    """weights [outputs, inputs]; the input is flattened channel first, as darknet does."""

    weights: FloatArray
    bias: FloatArray
    batch_norm: BatchNorm | None
    activation: str
    stored: Stored = Stored()


@dataclass(frozen=True)
class MaxPool:
    """The greatest value of each window of ``size`` rows and ``across`` columns, 0 for as many."""

    size: int
    stride: int
    padding: Padding
    across: int = 0

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.size, self.across or self.size


@dataclass(frozen=True)
class AveragePool:
    """The mean over the whole map: one value a channel."""


@dataclass(frozen=True)
class Concat:
    """All inputs one after the other along the channels (darknet ``route``)."""


@dataclass(frozen=True)
class Slice:
    """Channels ``first`` … ``first + channels − 1`` (darknet ``route`` with ``groups``)."""

    first: int
    channels: int


@dataclass(frozen=True)
class Reorg:
    """Space to depth.

    order: "darknet" as its reorg_cpu has it, or "block": output channel (row · stride + column) · channels + c is
    channel c of that row and column of each block.
    """

    stride: int
    order: str = "darknet"


@dataclass(frozen=True)
class DepthToSpace:
    """The inverse of a ``Reorg`` in the order of blocks: channel (row · columns + column) · channels + c becomes
    channel c at that row and column of a block of so many."""

    rows: int
    columns: int


PAD_MODES = ("edge", "reflect", "wrap")


@dataclass(frozen=True)
class Pad:
    """Rows and columns around a map that repeat values of it.

    Attributes:
        padding: how many.
        mode: "edge" repeats the outermost values, "reflect" mirrors the map at them, "wrap" continues with the
            opposite side.
    """

    padding: Padding
    mode: str


@dataclass(frozen=True)
class Upsample:
    """Each pixel repeated in ``stride`` rows and ``across`` columns, 0 for as many, times ``scale``."""

    stride: int
    scale: float = 1.0
    across: int = 0

    @property
    def columns(self) -> int:
        """That each pixel becomes."""
        return self.across or self.stride


@dataclass(frozen=True)
class Add:
    """Element-wise sum of two inputs or more (darknet ``shortcut``)."""

    activation: str


@dataclass(frozen=True)
class Multiply:
    """Element-wise product of two maps (darknet ``sam``; behind an ``Upsample`` of one pixel ``scale_channels``)."""

    activation: str


@dataclass(frozen=True)
class Activate:
    """A function of each value by itself, by its name in ``cnn.activations.FUNCTIONS``, with its parameters."""

    function: str
    parameters: tuple[float, ...] = ()


@dataclass(frozen=True)
class Custom:
    """A layer of a package, by its name in ``cnn.extending.layers.LAYERS``, with its parameters."""

    layer: str
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True)
class Softmax:
    """Softmax over all values of the input, in ``groups`` equal parts; each: over the channels of each position by
    itself. logarithm: of the shares their logarithms."""

    groups: int = 1
    each: bool = False
    logarithm: bool = False


@dataclass(frozen=True)
class IntegerSoftmax:
    """Softmax over the channels of each position that the accelerator computes in integers, by a method of
    cnn.softmax."""

    method: str


@dataclass(frozen=True)
class TopK:
    """Of each position the ``k`` channels with the greatest values, the greatest first, of equal ones the lower number:
    their numbers, which are the labels of classes, or with labels False these values."""

    k: int
    labels: bool = True


@dataclass(frozen=True)
class Output:
    """The input as it is, which leaves although layers read it too: nothing is computed, the host reads it."""


@dataclass(frozen=True)
class Detection:
    """A head, which the host decodes; ``kind`` is "cells" (YOLOv1: the values of all cells in a row), "region"
    (YOLOv2), "yolo" (YOLOv3, v4), "gaussian-yolo" (each coordinate with its variance), "scaled-yolo" (Scaled-YOLOv4,
    YOLOv5: sizes are squares of sigmoids), "one-object" (all anchors averaged, one box), "anchor-free" (YOLOv8),
    "ssd" or "segmentation" (a class for each position). It reads one map, or several of one size along the channels.

    anchors: (width, height) pairs, in grid cells for region, in shares of the picture for cells, else in pixels of the
    network's input.
    bias: what the host adds to each channel before it decodes, or nothing. scale_xy: how far a centre reaches beyond
    its cell, 1 to its edges. bins: of an anchor-free head, places that the distance to a side is spread over; of cells,
    how many lie side by side.
    """

    kind: str
    anchors: tuple[tuple[float, float], ...]
    classes: int
    softmax: bool
    coords: int = 4
    bias: tuple[float, ...] = ()
    scale_xy: float = 1.0
    bins: int = 1

    @property
    def channels(self) -> int:
        """Of all maps that it reads."""
        if self.kind == "segmentation":
            return self.classes
        if self.kind == "anchor-free":
            return self.coords * self.bins + self.classes
        if self.kind == "cells":
            return self.bins**2 * (self.classes + len(self.anchors) * (self.coords + 1))
        if self.kind == "gaussian-yolo":
            return len(self.anchors) * (2 * self.coords + 1 + self.classes)
        beside = self.softmax if self.kind == "ssd" else 1  # no object, or the objectness
        return len(self.anchors) * (self.coords + beside + self.classes)


Op: TypeAlias = (
    Input
    | Convolution
    | Dense
    | MaxPool
    | AveragePool
    | Concat
    | Slice
    | Reorg
    | DepthToSpace
    | Pad
    | Upsample
    | Add
    | Multiply
    | Activate
    | Custom
    | Softmax
    | IntegerSoftmax
    | TopK
    | Output
    | Detection
)


@dataclass(frozen=True, eq=False)
class Node:
    """One layer. ``source`` says where it was declared ("yolo.cfg:35") for error sentences."""

    name: str
    op: Op
    inputs: tuple[int, ...]
    shape: Shape
    source: str

    @property
    def place(self) -> str:
        """The name and the source, as errors give them."""
        return f"{self.name!r} ({self.source})"


@dataclass(frozen=True, eq=False)
class Network:
    """A float network.

    Attributes:
        name: Letters, digits and underscores, beginning with a letter.
        nodes: In topological order; node 0 is the input.
        labels: Those of the classes; may be empty.
        named_outputs: The outputs of the file that it was read from; empty if the format names none.
    """

    name: str
    nodes: tuple[Node, ...]
    labels: tuple[str, ...] = ()
    named_outputs: tuple[NamedOutput, ...] = ()

    def __repr__(self) -> str:
        shape = self.input_shape
        size = f"{shape.width} × {shape.height} pixels of {shape.channels} channels"
        return f"<{self.name}: {len(self.nodes)} nodes, {size}>"

    @property
    def input_shape(self) -> Shape:
        """Of the picture."""
        return self.nodes[0].shape

    @property
    def outputs(self) -> tuple[int, ...]:
        """Indices of the nodes that no other node reads."""
        read = {i for node in self.nodes for i in node.inputs}
        return tuple(i for i in range(len(self.nodes)) if i not in read)


def is_label(value: object) -> bool:
    """Whether it can be a label: any text that UTF-8 can hold. JSON may give halves of characters, which it cannot."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def macs(node: Node) -> int:
    """Multiply-accumulates of one node (0 where it has no weights)."""
    if isinstance(node.op, Convolution):
        return int(node.op.weights.size) * node.shape.height * node.shape.width
    return int(node.op.weights.size) if isinstance(node.op, Dense) else 0
