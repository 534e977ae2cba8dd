"""Edges of a map, where less than a whole window is inside: what a window gives there is multiplied by a factor.

Such a factor is the product of one of its row and one of its column. A map of them is a convolution too, of a map of
ones, as its windows see the zeros around that: with ones[p] = 1 inside and 0 outside, factors f along a side are

    f[p] = f[0] + f[n - 1] - f[middle] + Σ (f[j] - f[j - 1]) · ones[p - j] + Σ (f[n - 1 - j] - f[n - j]) · ones[p + j]

over those j at the two ends at which f changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError
from cnn.datatype import DataType, TensorType
from cnn.limits import MAX_KERNEL
from cnn.maps import FloatArray, Padding
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import Layers
from cnn.onnx.quantised.mark import Mark
from cnn.ops import Convolution, Multiply

FINEST = 1 << 12
"""Parts of 1 that factors of integers are whole numbers of, at the most."""

GREATEST = 1 << 15
"""Of the sum of these whole numbers: times a 1 of 16 bits it fits the sums of a layer."""

ONE = TensorType(DataType(2, True), 1.0)
"""The type of a map of ones among maps of integers."""

NEAR = 1e-9
"""How far a float64 is from the ratio that it stands for."""

Factors = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Ends:
    """Weights of the windows along one side, and how many of them read before and behind their place."""

    weights: Factors
    before: int
    behind: int


def weighed(layers: Layers, operation: Operation, source: int, rows: Factors, columns: Factors) -> Layers:
    """The last layer's map times a factor of each row and of each column, as the operation's output. source: the node
    that the operation reads."""
    index = len(layers.nodes) - 1
    shape = layers.nodes[index].shape
    if bool((rows == 1).all() and (columns == 1).all()):
        return layers
    high, wide = _ends_of(rows), _ends_of(columns)
    kernel = np.outer(high.weights, wide.weights)
    most = max(kernel.shape)
    require(most <= MAX_KERNEL, RangeError("rows or columns of different factors at the border", most, 1, MAX_KERNEL))
    steps = _step_of(kernel) if layers.type_of(source) is not None else None
    # The place itself is always inside: its weight is the bias, which has all the digits that it needs.
    base, kernel[high.before, wide.before] = kernel[high.before, wide.before], 0
    padding = Padding(high.before, wide.before, high.behind, wide.behind)
    bare, plane = replace(operation, inputs=operation.inputs[:1]), replace(shape, channels=1)
    ones = Convolution(_full((1, shape.channels, 1, 1), 0), _full((1,), 1), None, 1, Padding(), 1, "linear")
    weights = np.broadcast_to(kernel, (shape.channels, 1, *kernel.shape)).astype(np.float32)
    factors = Convolution(weights, _full((shape.channels,), base), None, 1, padding, 1, "linear")
    layers = layers.grown(bare, "ones", ones, plane, index).grown(bare, "factors", factors, shape, index + 1)
    if steps is None:
        return layers.grown(bare, "multiply", Multiply("linear"), shape, index, index + 2)
    # Of integers sums and factors have as many bits as they need: the file tells the product's alone, not those of its
    # inputs. Ones have the fewest, so that the factors, which may be as great as these allow, are whole steps.
    layers = layers.marked(index + 1, Mark(type=ONE))
    layers = layers.marked(index + 2, Mark(scale=np.array([steps], np.float32)))
    return layers.grown(bare, "multiply", Multiply("linear"), shape, index + 2, index)


def _step_of(kernel: Factors) -> float:
    """Return the greatest common divisor of all weights; RefusedError if their integers would be too large."""
    parts = [Fraction(float(weight)).limit_denominator(FINEST) for weight in kernel.ravel()]
    denominator = lcm(*(part.denominator for part in parts))
    distance = max(abs(float(part) - weight) for part, weight in zip(parts, kernel.ravel(), strict=True))
    require(
        distance < NEAR and np.abs(kernel).sum() * denominator < GREATEST,
        "its factors at the border do not fit integers of 16 bits; export the model without quantisation, and it is "
        "quantised by calibration",
    )
    return 1 / denominator


def inside(outputs: int, stride: int, before: int, window: FloatArray, length: int) -> Factors:
    """Of each output, which share of the window's weights reads one of ``length`` places, float64."""
    places = np.arange(outputs)[:, None] * stride - before + np.arange(len(window))
    counted = np.where((places >= 0) & (places < length), window.astype(np.float64), 0).sum(axis=1)
    require(bool((counted > 0).all()), "one of its windows would be outside the map")
    return np.asarray(counted / window.sum(dtype=np.float64))


def _ends_of(factors: Factors) -> _Ends:
    middle = len(factors) // 2
    changes = np.flatnonzero(np.diff(factors))  # between p and p + 1
    before = int(max((p + 1 for p in changes if p < middle), default=0))
    behind = int(max((len(factors) - 1 - p for p in changes if p >= middle), default=0))
    rising, falling = np.diff(factors[: before + 1]), np.diff(factors[::-1][: behind + 1])
    base = factors[0] + factors[-1] - factors[middle]
    return _Ends(np.concatenate([rising[::-1], [base], falling]), before, behind)


def _full(shape: tuple[int, ...], number: float) -> FloatArray:
    return np.full(shape, number, np.float32)
