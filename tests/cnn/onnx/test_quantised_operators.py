"""Operators on integers, each alone in a file: every integer against the formula of its page, written out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.support.cases import cases
from tests.support.onnx.quantising import steps_on_noise
from tests.support.onnx.writer import Writer

Array = np.ndarray[Any, Any]
MICROSOFT = "com.microsoft"
SIDES = (1, 3, 6, 8)
PIXEL = 1 / 255


class Integers(Writer):
    """A file that holds integers; maps have the type INT8 with one scale."""

    def grid(self, scale: Any, zero: int = 0, kind: Any = np.int8) -> list[str]:
        """Scale and zero point."""
        return [self.constant(scale), self.constant(zero, kind)]

    def pixels(self) -> list[str]:
        """The picture's integers, −128…127, with their grid."""
        grid = self.grid(PIXEL, -128)
        return [self.put("QuantizeLinear", ["picture", *grid]), *grid]

    def floats(self, integers: list[str]) -> Any:
        """The file; its output is what these integers are as floats."""
        model = self.model([self.put("DequantizeLinear", integers)], SIDES)
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
        return model

    def whole(self, low: int, high: int, *shape: int, kind: Any = np.int8) -> str:
        """Random integers in a range."""
        random = np.random.default_rng(len(self.arrays))
        return self.constant(random.integers(low, high + 1, shape), kind)

    def convolved(self, scale: float = 0.05, zero: int = -7) -> list[str]:
        """QLinearConv of the picture, and the grid of its integers."""
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
        """One more of Microsoft's operators with a grid behind its inputs: the file that ends there."""
        grid = self.grid(scale, zero)
        return self.floats([self.put(kind, [*inputs, *grid], domain=MICROSOFT, **options), *grid])


def convolution() -> Any:
    """A scale for each filter, a bias."""
    writer = Integers()
    weights = [writer.whole(-9, 9, 4, 3, 3, 3), writer.constant([0.02, 0.01, 0.03, 0.025]), writer.whole(0, 0, 4)]
    grid = writer.grid(0.05, -7)
    options: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    bias = writer.whole(-999, 999, 4, kind=np.int32)
    return writer.floats([writer.put("QLinearConv", [*writer.pixels(), *weights, *grid, bias], **options), *grid])


def matrix() -> Any:
    """QLinearMatMul of all values of a map, a scale for each column."""
    writer = Integers()
    integers, *grid = writer.convolved()
    weights = [writer.whole(-9, 9, 192, 5), writer.constant([0.02, 0.01, 0.03, 0.025, 0.04]), writer.whole(0, 0, 5)]
    target = writer.grid(0.2, 5)
    flat = writer.put("Flatten", [integers])
    return writer.floats([writer.put("QLinearMatMul", [flat, *grid, *weights, *target]), *target])


def gemm() -> Any:
    """QGemm with a transposed matrix and a bias."""
    writer = Integers()
    integers, *grid = writer.convolved()
    weights = [writer.whole(-9, 9, 5, 192), *writer.grid(0.02), writer.whole(-999, 999, 5, kind=np.int32)]
    return writer.then("QGemm", [writer.put("Flatten", [integers]), *grid, *weights], 0.2, 5, transB=1)


def added() -> Any:
    """QLinearAdd of two maps of unequal scales."""
    writer = Integers()
    return writer.then("QLinearAdd", [*writer.convolved(0.05, -7), *writer.convolved(0.04, 3)], 0.08, 2)


def joined() -> Any:
    """QLinearConcat of two maps of unequal scales."""
    writer = Integers()
    parts = [*writer.convolved(0.05, -7), *writer.convolved(0.04, 3)]
    grid = writer.grid(0.06, 1)
    return writer.floats([writer.put("QLinearConcat", [*grid, *parts], domain=MICROSOFT, axis=1), *grid])


def average() -> Any:
    """QLinearGlobalAveragePool."""
    writer = Integers()
    return writer.then("QLinearGlobalAveragePool", writer.convolved(), 0.01, 4, channels_last=0)


def pooled() -> Any:
    """QLinearAveragePool over the whole map."""
    writer = Integers()
    return writer.then("QLinearAveragePool", writer.convolved(), 0.01, 4, kernel_shape=[6, 8])


def leaky() -> Any:
    """QLinearLeakyRelu."""
    writer = Integers()
    return writer.then("QLinearLeakyRelu", writer.convolved(), 0.04, 2, alpha=0.1)


def logistic() -> Any:
    """QLinearSigmoid."""
    writer = Integers()
    return writer.then("QLinearSigmoid", writer.convolved(), 1 / 256, -128)


def gated() -> Any:
    """QLinearMul with the sigmoid of the same map: SiLU."""
    writer = Integers()
    source, grid = writer.convolved(), writer.grid(1 / 256, -128)
    gate = [writer.put("QLinearSigmoid", [*source, *grid], domain=MICROSOFT), *grid]
    return writer.then("QLinearMul", [*source, *gate], 0.04, -5)


def summed() -> Any:
    """ConvInteger, its sums brought to floats and to integers again."""
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


@cases("name", INTEGERS)
def test_every_integer_is_within_a_step_of_onnxruntime(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.onnx"
    onnx.save(INTEGERS[name](), path)
    steps = steps_on_noise(path)
    assert len(steps) >= 1
    assert max(steps.values()) <= 1, steps
