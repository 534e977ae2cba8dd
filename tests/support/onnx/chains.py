"""Quantised networks that are written by hand, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cnn.datatype import UINT8, DataType, TensorType
from cnn.maps import IntArray, Padding, Shape
from cnn.ops import QConvolution, QInput, QOp
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Requantising

PIXELS = TensorType(UINT8, 1 / 255)
"""The type of pixels: unsigned 8-bit integers, which represent 0 to 1."""
NO_PADDING = Padding()
"""A convolution has no padding unless a test gives it one."""


def chain(*nodes: tuple[QOp, Sequence[int], TensorType]) -> QuantizedNetwork:
    """Return a network of consecutive layers, with an input of 3×4×4 pixels."""
    listed = [QNode("input", QInput(), (), Shape(3, 4, 4), PIXELS, "net:1")]
    for index, (op, shape, type_) in enumerate(nodes):
        listed.append(QNode(f"layer{index}", op, (index,), Shape(*shape), type_, f"net:{index + 2}"))
    return QuantizedNetwork("net", tuple(listed))


def weights(*shape: int, seed: int = 1) -> IntArray:
    """Return random weights of −7…7, the same for each shape and seed."""
    return np.random.default_rng(seed).integers(-7, 8, shape).astype(np.int64)


def full(*values: int) -> IntArray:
    """Return these numbers as an array of 64 bits."""
    return np.array(values, np.int64)


def convolved(
    by: Requantising, kernel: IntArray, pads: Padding = NO_PADDING, stride: int = 1, around: int = 0
) -> QConvolution:
    """Return a convolution whose weights have 4 bits."""
    return QConvolution(kernel.astype(np.int8), DataType(4, True), by, stride, pads, 1, around)
