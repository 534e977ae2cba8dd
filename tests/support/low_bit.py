"""Low-bit networks with random integers, built layer by layer, from which streaming graphs are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cnn.datatype import UINT8, DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.ops import (
    Concat,
    DepthToSpace,
    MaxPool,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QOp,
    Region,
    Reorg,
    Slice,
    TopK,
    Upsample,
    label_type,
)
from cnn.ops.softmax import SHARES, softmax_of
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Requantiser
from cnn.tables import table_of_values

NONE = Padding()


def requantiser(channels: int) -> Requantiser:
    def full(value: int) -> npt.NDArray[np.int64]:
        return np.full(channels, value, np.int64)

    return Requantiser(full(0), full(40_000), full(0), full(20))


class Layers:
    """A builder of networks. Each method appends a layer that reads the last one or ``at``.

    Example: ``Layers(3, 32, 32).conv(16, 3).pool().dense(10).network()``.
    """

    def __init__(self, channels: int, height: int, width: int, weight: str = "INT4", value: str = "UINT4") -> None:
        self.random = np.random.default_rng(0)
        self.weight_type, self.type = DataType.parse(weight), TensorType(DataType.parse(value), 1.0)
        picture = TensorType(UINT8, 1 / 255)
        self.nodes = [QNode("input", QInput(), (), Shape(channels, height, width), picture, "net:1")]

    @property
    def last(self) -> int:
        return len(self.nodes) - 1

    def add(self, kind: str, op: QOp, shape: Shape, *at: int, type: TensorType | None = None) -> Layers:
        inputs = at or (self.last,)
        name, source = f"{kind}{len(self.nodes)}", f"net:{len(self.nodes) + 1}"
        self.nodes.append(QNode(name, op, inputs, shape, type or self.type, source))
        return self

    def drawn(self, *shape: int) -> npt.NDArray[np.int8]:
        top, step = self.weight_type.high, 2 if self.weight_type.bits == 1 else 1
        count = 2 * top // step + 1
        return (self.random.integers(0, count, shape) * step - top).astype(np.int8)

    def conv(
        self,
        filters: int,
        kernel: int,
        stride: int = 1,
        padding: Padding | None = None,
        depthwise: bool = False,
        *at: int,
    ) -> Layers:
        before = self.nodes[at[0] if at else -1].shape
        half = kernel // 2
        pad = Padding(half, half, half, half) if padding is None else padding
        channels, groups = (1, before.channels) if depthwise else (before.channels, 1)
        filters = before.channels if depthwise else filters
        rows = (before.height + pad.top + pad.bottom - kernel) // stride + 1
        columns = (before.width + pad.left + pad.right - kernel) // stride + 1
        weights = self.drawn(filters, channels, kernel, kernel)
        op = QConvolution(weights, self.weight_type, requantiser(filters), stride, pad, groups)
        return self.add("conv", op, Shape(filters, rows, columns), *at)

    def depthwise(self, kernel: int = 3, stride: int = 1) -> Layers:
        return self.conv(0, kernel, stride, None, True)

    def spaced(self, filters: int, kernel: int, dilation: int) -> Layers:
        """Append a dilated convolution that keeps the map's size."""
        before, half = self.nodes[-1].shape, kernel // 2 * dilation
        weights = self.drawn(filters, before.channels, kernel, kernel) | 1
        padding, steps = Padding(half, half, half, half), (dilation, dilation)
        op = QConvolution(weights, self.weight_type, requantiser(filters), 1, padding, 1, dilation=steps)
        return self.add("conv", op, replace(before, channels=filters))

    def curve(self) -> Layers:
        """Append a random table, which is piecewise linear if its input has more than 8 bits."""
        kind = self.nodes[self.last].type.datatype
        values = self.random.integers(self.type.datatype.low, self.type.datatype.high + 1, kind.high - kind.low + 1)
        table = table_of_values(values.astype(np.int64), kind)
        return self.add("curve", QActivate(table), self.nodes[self.last].shape)

    def pool(self, size: int = 2, stride: int = 2) -> Layers:
        s = self.nodes[-1].shape
        shape = Shape(s.channels, (s.height - size) // stride + 1, (s.width - size) // stride + 1)
        return self.add("pool", MaxPool(size, stride, NONE), shape)

    def average(self) -> Layers:
        channels = self.nodes[-1].shape.channels
        return self.add("average", QAveragePool(requantiser(channels)), Shape(channels, 1, 1))

    def dense(self, outputs: int) -> Layers:
        weights = self.drawn(outputs, self.nodes[-1].shape.values)
        return self.add("dense", QDense(weights, self.weight_type, requantiser(outputs)), Shape(outputs, 1, 1))

    def sum(self, *at: int) -> Layers:
        shape = self.nodes[at[0]].shape
        return self.add("add", QAdd((1,) * len(at), requantiser(shape.channels)), shape, *at)

    def product(self, *at: int) -> Layers:
        shape = self.nodes[at[0]].shape
        return self.add("multiply", QMultiply(requantiser(shape.channels)), shape, *at)

    def concat(self, *at: int) -> Layers:
        s = self.nodes[at[0]].shape
        return self.add(
            "concat", Concat(), Shape(sum(self.nodes[i].shape.channels for i in at), s.height, s.width), *at
        )

    def slice(self, first: int, channels: int, at: int) -> Layers:
        s = self.nodes[at].shape
        return self.add("slice", Slice(first, channels), Shape(channels, s.height, s.width), at)

    def reorg(self, stride: int, at: int) -> Layers:
        s = self.nodes[at].shape
        return self.add(
            "reorg", Reorg(stride), Shape(s.channels * stride**2, s.height // stride, s.width // stride), at
        )

    def spread(self, rows: int, columns: int) -> Layers:
        s = self.nodes[-1].shape
        shape = Shape(s.channels // (rows * columns), s.height * rows, s.width * columns)
        return self.add("spread", DepthToSpace(rows, columns), shape)

    def around(self, mode: str, padding: Padding) -> Layers:
        s = self.nodes[-1].shape
        high, wide = s.height + padding.top + padding.bottom, s.width + padding.left + padding.right
        return self.add("pad", Pad(padding, mode), Shape(s.channels, high, wide))

    def upsample(self, stride: int) -> Layers:
        s = self.nodes[-1].shape
        return self.add("upsample", Upsample(stride), Shape(s.channels, s.height * stride, s.width * stride))

    def choose(self, k: int, labels: bool = True, at: int | None = None) -> Layers:
        """Append a choice of the k greatest channels: their numbers, or their values."""
        index = self.last if at is None else at
        source = self.nodes[index]
        kind = label_type(source.shape.channels) if labels else source.type
        return self.add("choice", TopK(k, labels), replace(source.shape, channels=k), index, type=kind)

    def shares(self, method: str, at: int | None = None) -> Layers:
        """Append a softmax over the channels of each position."""
        index = self.last if at is None else at
        source = self.nodes[index]
        return self.add("softmax", softmax_of(method, source.type), source.shape, index, type=SHARES)

    def wide(self) -> Layers:
        """Give the last layer INT16 outputs."""
        node = self.nodes.pop()
        return self.add("head", node.op, node.shape, *node.inputs, type=TensorType(DataType(16, True), 1.0))

    def detect(self, at: int | None = None) -> Layers:
        index = self.last if at is None else at
        before = self.nodes[index]
        op = Region(((1.0, 1.0),), 1, True)
        return self.add("detect", op, before.shape, index, type=before.type)

    def network(self, name: str = "drawn") -> QuantizedNetwork:
        return QuantizedNetwork(name, tuple(self.nodes))


def ultranet() -> QuantizedNetwork:
    """Return a network with the shapes of UltraNet: 4 bits, 160×320 pixels, nine layers."""
    made = Layers(3, 160, 320)
    for filters in (16, 32, 64, 64):
        made.conv(filters, 3).pool()
    for _ in range(4):
        made.conv(64, 3)
    return made.conv(36, 1).wide().detect().network("ultranet-like")


def skipping() -> QuantizedNetwork:
    """Return a network with the shapes of UltraNet's variant with a skip: a finer map is reorganised and joined."""
    made = Layers(3, 32, 64).conv(16, 3).pool().conv(32, 3)
    fine = made.last
    made.pool().conv(32, 3)
    coarse = made.last
    made.reorg(2, fine)
    return made.concat(coarse, made.last).conv(32, 3).conv(36, 1).wide().detect().network("skipping")


def cnv() -> QuantizedNetwork:
    """Return a network with the shapes of FINN's CNV for CIFAR-10, with 2 bits."""
    made = Layers(3, 32, 32, "INT2", "UINT2")
    for filters in (64, 128):
        made.conv(filters, 3, 1, NONE).conv(filters, 3, 1, NONE).pool()
    made.conv(256, 3, 1, NONE).conv(256, 3, 1, NONE)
    return made.dense(512).dense(512).dense(10).wide().network("cnv-like")


def mobilenet(size: int = 96) -> QuantizedNetwork:
    """Return a network with the shapes of a quarter-width MobileNet, with 4 bits."""
    made = Layers(3, size, size).conv(8, 3, 2)
    for filters, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        made.depthwise(3, stride).conv(filters, 1)
    return made.average().dense(10).wide().network("mobilenet-like")
