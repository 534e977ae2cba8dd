"""Operators on integers, each one in its own file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.support.onnx.writer import Writer

MICROSOFT = "com.microsoft"
"""The domain of the operators that onnxruntime adds to ONNX."""
SIDES = (1, 3, 6, 8)
"""The input of these files has these sides."""
PIXEL = 1 / 255
"""Pixels of 8 bits have this step where floats are 0 to 1."""


class Integers(Writer):
    """A writer of files with integers. Maps are INT8 with one scale."""

    def grid(self, scale: Any, zero: int = 0, kind: Any = np.int8) -> list[str]:
        """Return a scale and a zero point."""
        return [self.constant(scale), self.constant(zero, kind)]

    def pixels(self) -> list[str]:
        """Return the picture's integers, −128…127, with their grid."""
        grid = self.grid(PIXEL, -128)
        return [self.put("QuantizeLinear", ["picture", *grid]), *grid]

    def floats(self, integers: list[str]) -> Any:
        """Return the model whose output is the float value of these integers."""
        model = self.model([self.put("DequantizeLinear", integers)], SIDES)
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
        return model

    def whole(self, low: int, high: int, *shape: int, kind: Any = np.int8) -> str:
        """Return an initialiser of random integers in a range."""
        random = np.random.default_rng(len(self.arrays))
        return self.constant(random.integers(low, high + 1, shape), kind)

    def convolved(self, scale: float = 0.05, zero: int = -7) -> list[str]:
        """Append a QLinearConv of the picture, and return its integers with their grid."""
        grid = self.grid(scale, zero)
        weights = [self.whole(-9, 9, 4, 3, 3, 3), *self.grid(0.02)]
        options: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        return [
            self.put(
                "QLinearConv", [*self.pixels(), *weights, *grid, self.whole(-999, 999, 4, kind=np.int32)], **options
            ),
            *grid,
        ]

    def then(self, kind: str, inputs: list[str], scale: float, zero: int = 0, **options: Any) -> Any:
        """Append one of Microsoft's operators with a grid after its inputs, and return the model with this output."""
        grid = self.grid(scale, zero)
        return self.floats([self.put(kind, [*inputs, *grid], domain=MICROSOFT, **options), *grid])


def convolution() -> Any:
    """Return a file of a QLinearConv with a scale for each filter and a bias."""
    writer = Integers()
    weights = [writer.whole(-9, 9, 4, 3, 3, 3), writer.constant([0.02, 0.01, 0.03, 0.025]), writer.whole(0, 0, 4)]
    grid = writer.grid(0.05, -7)
    options: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    bias = writer.whole(-999, 999, 4, kind=np.int32)
    return writer.floats([writer.put("QLinearConv", [*writer.pixels(), *weights, *grid, bias], **options), *grid])


def matrix() -> Any:
    """Return a file of a QLinearMatMul of all values of a map, with a scale for each column."""
    writer = Integers()
    integers, *grid = writer.convolved()
    weights = [writer.whole(-9, 9, 192, 5), writer.constant([0.02, 0.01, 0.03, 0.025, 0.04]), writer.whole(0, 0, 5)]
    target = writer.grid(0.2, 5)
    flat = writer.put("Flatten", [integers])
    return writer.floats([writer.put("QLinearMatMul", [flat, *grid, *weights, *target]), *target])


def gemm() -> Any:
    """Return a file of a QGemm with a transposed matrix and a bias."""
    writer = Integers()
    integers, *grid = writer.convolved()
    weights = [writer.whole(-9, 9, 5, 192), *writer.grid(0.02), writer.whole(-999, 999, 5, kind=np.int32)]
    return writer.then("QGemm", [writer.put("Flatten", [integers]), *grid, *weights], 0.2, 5, transB=1)


def added() -> Any:
    """Return a file of a QLinearAdd of two maps of unequal scales."""
    writer = Integers()
    return writer.then("QLinearAdd", [*writer.convolved(0.05, -7), *writer.convolved(0.04, 3)], 0.08, 2)


def joined() -> Any:
    """Return a file of a QLinearConcat of two maps of unequal scales."""
    writer = Integers()
    parts = [*writer.convolved(0.05, -7), *writer.convolved(0.04, 3)]
    grid = writer.grid(0.06, 1)
    return writer.floats([writer.put("QLinearConcat", [*grid, *parts], domain=MICROSOFT, axis=1), *grid])


def average() -> Any:
    """Return a file of a QLinearGlobalAveragePool."""
    writer = Integers()
    return writer.then("QLinearGlobalAveragePool", writer.convolved(), 0.01, 4, channels_last=0)


def pooled() -> Any:
    """Return a file of a QLinearAveragePool over the whole map."""
    writer = Integers()
    return writer.then("QLinearAveragePool", writer.convolved(), 0.01, 4, kernel_shape=[6, 8])


def leaky() -> Any:
    """Return a file of a QLinearLeakyRelu."""
    writer = Integers()
    return writer.then("QLinearLeakyRelu", writer.convolved(), 0.04, 2, alpha=0.1)


def logistic() -> Any:
    """Return a file of a QLinearSigmoid."""
    writer = Integers()
    return writer.then("QLinearSigmoid", writer.convolved(), 1 / 256, -128)


def gated() -> Any:
    """Return a file of a QLinearMul of a map with its own sigmoid, which is SiLU."""
    writer = Integers()
    source, grid = writer.convolved(), writer.grid(1 / 256, -128)
    gate = [writer.put("QLinearSigmoid", [*source, *grid], domain=MICROSOFT), *grid]
    return writer.then("QLinearMul", [*source, *gate], 0.04, -5)


def summed() -> Any:
    """Return a model of a ConvInteger whose sums are converted to floats and to integers again."""
    writer = Integers()
    integers, _, zero = writer.pixels()
    sums = writer.put("ConvInteger", [integers, writer.whole(-9, 9, 4, 3, 1, 1), zero], kernel_shape=[1, 1])
    floats = writer.put("Mul", [writer.put("Cast", [sums], to=onnx.TensorProto.FLOAT), writer.constant(0.01 * PIXEL)])
    grid = writer.grid(0.002, 3)
    return writer.floats([writer.put("QuantizeLinear", [floats, *grid]), *grid])


INTEGERS: dict[str, Callable[[], Any]] = {
    make.__name__: make
    for make in (convolution, matrix, gemm, added, joined, average, pooled, leaky, logistic, gated, summed)
}
"""Each of these functions returns a file of one operator; the keys are their names."""
