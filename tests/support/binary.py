"""A network with BIPOLAR and TERNARY weights and values, built layer by layer."""

from __future__ import annotations

import numpy as np

from cnn.datatype import BIPOLAR, TERNARY, UINT8, DataType, TensorType
from cnn.maps import IntArray, Padding, Shape
from cnn.ops import QConvolution, QInput
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import MultiplyShift, Requantising, Thresholds

UINT4 = DataType(4, False)


def convolution(
    weights: np.ndarray[tuple[int, ...], np.dtype[np.int8]], weight_type: DataType, by: Requantising, pad: int = 0
) -> QConvolution:
    return QConvolution(weights, weight_type, by, 1, Padding(pad, pad, pad, pad), 1)


def network(*layers: tuple[QConvolution, DataType], size: int = 9) -> QuantizedNetwork:
    nodes = [QNode("input", QInput(), (), Shape(2, size, size), TensorType(UINT8, 1 / 255), "test:1")]
    for op, out in layers:
        before, (filters, _, k, _) = nodes[-1].shape, op.weights.shape
        shape = Shape(filters, before.height + 2 * op.padding.top - k + 1, before.width + 2 * op.padding.left - k + 1)
        at = len(nodes)
        nodes.append(QNode(f"conv{at}", op, (at - 1,), shape, TensorType(out, 1.0), f"test:{at + 1}"))
    return QuantizedNetwork("few", tuple(nodes))


def few(random: np.random.Generator, datatype: DataType, *shape: int) -> IntArray:
    values = datatype.low + datatype.step * random.integers(0, datatype.levels + 1, shape)
    return np.maximum(values, -datatype.high).astype(np.int8)


def middle(random: np.random.Generator, channels: int, spread: int, datatype: DataType) -> Thresholds:
    edges = np.sort(random.integers(-spread, spread, (channels, datatype.levels)), axis=1)
    return Thresholds(edges, random.integers(0, 2, channels).astype(bool))


def binary(seed: int = 0) -> QuantizedNetwork:
    """BIPOLAR and TERNARY weights and activations, thresholds between them, negative multipliers."""
    random = np.random.default_rng(seed)
    first = convolution(few(random, BIPOLAR, 4, 2, 3, 3), BIPOLAR, middle(random, 4, 500, BIPOLAR), 1)
    second = convolution(few(random, TERNARY, 5, 4, 3, 3), TERNARY, middle(random, 5, 6, TERNARY))
    by = MultiplyShift(np.array([5, -7, 9]), np.array([3, 40, -8]), np.array([3, 3, 3]))
    third = convolution(few(random, DataType(3, True), 3, 5, 1, 1), DataType(3, True), by)
    return network((first, BIPOLAR), (second, TERNARY), (third, UINT4))
