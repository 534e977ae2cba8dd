"""Quantised networks with random integers, built layer by layer, for tests of the scheduler and the engine.

Integers are drawn and not calibrated, so that a network costs milliseconds. Shifts keep most results from saturating.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cnn.datatype import UINT8, DataType, TensorType
from cnn.maps import IntArray, Padding, Shape
from cnn.ops import (
    Concat,
    DepthToSpace,
    MaxPool,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    Reorg,
    Slice,
    Upsample,
)
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import MultiplyShift, Requantiser
from cnn.tables import table_of_values


class Builder:
    """A builder of networks. Each method appends a layer that reads the last one, or the one chosen by ``at``.

    Example: ``Builder(3, 32, 32).conv(16, 3).pool().conv(8, 1).network()``.
    """

    def __init__(self, channels: int, height: int, width: int, seed: int = 0, bits: int = 8) -> None:
        self.random = np.random.default_rng(seed)
        self.type = TensorType(DataType(bits, True), 1.0)
        self.weight_type = DataType(bits, True)
        shape = Shape(channels, height, width)
        self.nodes = [QNode("input", QInput(), (), shape, TensorType(UINT8, 1 / 255), "test:1")]

        self.source = -1

    @property
    def last(self) -> int:
        """Return the index of the last node."""
        return len(self.nodes) - 1

    @property
    def shape(self) -> Shape:
        return self.nodes[self.source].shape

    def conv(
        self,
        filters: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        padding: Padding | None = None,
        depthwise: bool = False,
        wide: bool = False,
        groups: int = 1,
    ) -> Builder:
        """Append a convolution. With ``wide``, its output is INT16, which only the last layer may have."""
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        pad = padding or Padding(height // 2, width // 2, height // 2, width // 2)
        before = self.shape
        channels, groups = (1, before.channels) if depthwise else (before.channels // groups, groups)
        filters = before.channels if depthwise else filters
        weights = self._weights((filters, channels, height, width))
        rows = (before.height + pad.top + pad.bottom - height) // stride + 1
        columns = (before.width + pad.left + pad.right - width) // stride + 1
        op = QConvolution(weights, self.weight_type, self._requantiser(weights), stride, pad, groups)
        kind = TensorType(DataType(16, True), 1.0) if wide else self.type
        return self._add(f"conv{len(self.nodes)}", op, Shape(filters, rows, columns), kind)

    def late(self, falling: bool = True) -> Builder:
        """Give the last layer requantisers that add their bias after the product.

        With ``falling``, every third multiplier is negative.
        """
        node = self.nodes[-1]
        op: Any = node.op
        early = op.requantiser
        sign = np.where(np.arange(early.channels) % 3 == 1, -1 if falling else 1, 1)
        odd = self.random.integers(-(1 << 20), 1 << 20, early.channels)
        requantiser = MultiplyShift(sign * early.multiplier, early.bias * early.multiplier + odd, early.shift)
        self.nodes[-1] = replace(node, op=replace(op, requantiser=requantiser))
        return self

    def pool(self, stride: int = 2) -> Builder:
        """Append a 2×2 max pool.

        With stride 2, an odd map is padded at its end. With stride 1, the right and the bottom are padded, as in
        darknet.
        """
        before = self.shape
        if stride == 1:
            return self._add(f"pool{len(self.nodes)}", MaxPool(2, 1, Padding(0, 0, 1, 1)), before)
        padding = Padding(0, 0, before.height % 2, before.width % 2)
        half = Shape(before.channels, (before.height + 1) // 2, (before.width + 1) // 2)
        return self._add(f"pool{len(self.nodes)}", MaxPool(2, 2, padding), half)

    def window(self, size: int, stride: int = 1, padding: Padding | None = None, across: int = 0) -> Builder:
        """Append a max pool with any window.

        Args:
            size: The rows of the window.
            stride: The stride.
            padding: The padding. By default, it keeps the map's size at stride 1.
            across: The columns of the window, or 0 for ``size``.
        """
        before, half = self.shape, size // 2
        pad = padding or Padding(half, half, size - 1 - half, size - 1 - half)
        op = MaxPool(size, stride, pad, across)
        rows = (before.height + pad.top + pad.bottom - size) // stride + 1
        columns = (before.width + pad.left + pad.right - op.window[1]) // stride + 1
        return self._add(f"pool{len(self.nodes)}", op, Shape(before.channels, rows, columns))

    def dense(self, outputs: int) -> Builder:
        weights = self._weights((outputs, self.shape.values))
        op = QDense(weights, self.weight_type, self._requantiser(weights))
        return self._add(f"dense{len(self.nodes)}", op, Shape(outputs, 1, 1))

    def average(self) -> Builder:
        ones = np.ones((self.shape.channels, self.shape.height * self.shape.width), np.int8)
        op = QAveragePool(self._requantiser(ones))
        return self._add(f"average{len(self.nodes)}", op, Shape(self.shape.channels, 1, 1))

    def curve(self, rising: bool = False) -> Builder:
        """Append a random table, exact or piecewise linear. With ``rising``, its function never falls."""
        read, out = self.nodes[self.source].type.datatype, self.type.datatype
        values = self.random.integers(out.low, out.high + 1, read.high - read.low + 1)
        table = table_of_values((np.sort(values) if rising else values).astype(np.int64), read)
        return self._add(f"curve{len(self.nodes)}", QActivate(table), self.shape, self.type)

    def to(self, bits: int, signed: bool = True) -> Builder:
        """Give the last layer's results this number of bits."""
        self.nodes[-1] = replace(self.nodes[-1], type=TensorType(DataType(bits, signed), 1.0))
        return self

    def at(self, index: int) -> Builder:
        """Let the next layer read this node instead of the last one."""
        self.source = index
        return self

    def concat(self, *inputs: int) -> Builder:
        joined = sum(self.nodes[i].shape.channels for i in inputs)
        return self._join(
            f"concat{len(self.nodes)}", Concat(), replace(self.nodes[inputs[0]].shape, channels=joined), inputs
        )

    def part(self, first: int, channels: int) -> Builder:
        """Append a slice of the channels."""
        return self._add(f"slice{len(self.nodes)}", Slice(first, channels), replace(self.shape, channels=channels))

    def reorg(self, stride: int = 2, order: str = "block") -> Builder:
        """Append space to depth."""
        before = self.shape
        shape = Shape(before.channels * stride**2, before.height // stride, before.width // stride)
        return self._add(f"reorg{len(self.nodes)}", Reorg(stride, order), shape)

    def depth(self, rows: int = 2, columns: int = 2) -> Builder:
        """Append depth to space."""
        source = self.shape
        shape = Shape(source.channels // (rows * columns), source.height * rows, source.width * columns)
        return self._add(f"depth{len(self.nodes)}", DepthToSpace(rows, columns), shape)

    def upsample(self, stride: int = 2, across: int = 0) -> Builder:
        op = Upsample(stride, across=across)
        shape = Shape(self.shape.channels, stride * self.shape.height, op.columns * self.shape.width)
        return self._add(f"upsample{len(self.nodes)}", op, shape)

    def add(self, *inputs: int, multipliers: tuple[int, ...] = (), slope: int | None = None) -> Builder:
        """Append an addition.

        Args:
            inputs: The nodes that are added.
            multipliers: A multiplier per input. By default, all are 1.
            slope: The slope for negative sums: 1 for a plain sum, 0 for a ReLU. By default, it is random per channel.
        """
        factors = multipliers or (1,) * len(inputs)
        channels = self.nodes[inputs[0]].shape.channels
        drawn = self._requantiser(np.tile(np.array(factors), (channels, 1)))
        if slope is not None:
            bias, multiplier, shift = (
                np.repeat(each[:1], channels) for each in (drawn.bias, drawn.multiplier, drawn.shift)
            )
            drawn = Requantiser(bias, multiplier, slope * multiplier, shift)
        op = QAdd(factors, drawn)
        return self._join(f"add{len(self.nodes)}", op, self.nodes[inputs[0]].shape, inputs)

    def multiply(self, first: int, second: int) -> Builder:
        channels, high = self.nodes[first].shape.channels, self.nodes[second].type.datatype.high
        op = QMultiply(self._requantiser(np.full((channels, 1), high)))
        return self._join(f"multiply{len(self.nodes)}", op, self.nodes[first].shape, (first, second))

    def _join(self, name: str, op: object, shape: Shape, inputs: tuple[int, ...]) -> Builder:
        source = f"test:{len(self.nodes) + 1}"
        self.nodes.append(QNode(name, op, inputs, shape, self.nodes[inputs[0]].type, source))  # type: ignore[arg-type]
        return self

    def network(self, name: str = "drawn") -> QuantizedNetwork:
        return QuantizedNetwork(name, tuple(self.nodes))

    def _add(self, name: str, op: object, shape: Shape, kind: TensorType | None = None) -> Builder:
        source = f"test:{len(self.nodes) + 1}"
        at = self.source % len(self.nodes)
        result = kind or (self.type if at == 0 else self.nodes[at].type)
        self.nodes.append(QNode(name, op, (at,), shape, result, source))  # type: ignore[arg-type]
        self.source = -1
        return self

    def _weights(self, shape: tuple[int, ...]) -> IntArray:
        """Return weights over the whole range of their type, unless a sum would exceed 32 bits."""
        most = max(255, self.type.datatype.high + 1)
        top = min(self.weight_type.high, int(1.9e9 / (most * np.prod(shape[1:]))))
        return self.random.integers(-top, top + 1, shape).astype(self.weight_type.carrier)

    def _requantiser(self, weights: IntArray) -> Requantiser:
        """Return a requantiser with y ≈ acc · 1.5 · 2^(15 − s).

        The shift s brings the typical sum, √fan · w · a, to about a third of the output's range.
        """
        count, high = len(weights), self.type.datatype.high
        typical = np.sqrt(weights[0].size) * max(1, int(np.abs(weights).max())) / 2 * high / 2
        shift = 15 + max(0, int(np.log2(typical / (high / 3))))
        multiplier = self.random.integers(30_000, 65_536, count)
        negative = np.where(self.random.random(count) < 0.5, multiplier // 10, multiplier)
        bias = self.random.integers(-int(typical), int(typical) + 1, count)
        return Requantiser(bias, multiplier, negative, np.full(count, shift))


def tiny_yolo(size: int = 416, seed: int = 0, bits: int = 8) -> QuantizedNetwork:
    """Return the layers of tiny-YOLOv2 VOC with its shapes and random integers."""
    build = Builder(3, size, size, seed, bits)
    for filters in (16, 32, 64, 128, 256):
        build.conv(filters, 3).pool()
    build.conv(512, 3).pool(1).conv(1024, 3).conv(1024, 3).conv(125, 1, wide=True)
    return build.network(f"tiny-yolo-{size}")


def with_zero_points(network: QuantizedNetwork, zero: int, pixel: int) -> QuantizedNetwork:
    """Return the network with zero points. The integers do not change.

    Args:
        network: The network.
        zero: The zero point of all maps, which is also their padding before a convolution.
        pixel: The zero point and the padding of the image.
    """
    picture = network.nodes[0]
    nodes = [replace(picture, type=replace(picture.type, zero_point=pixel))]
    for node in network.nodes[1:]:
        op = node.op
        if isinstance(op, QConvolution):
            op = replace(op, around=nodes[node.inputs[0]].type.zero_point)
        nodes.append(replace(node, op=op, type=replace(node.type, zero_point=zero)))
    return check_quantized(replace(network, nodes=tuple(nodes)))
