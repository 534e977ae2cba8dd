"""Tests that halves are rounded as the file's tool does. Scales are powers of two, so that there are many halves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from cnn.integer_model import run_integer
from cnn.onnx.network import read_model, read_onnx
from tests.support.cases import cases
from tests.support.onnx.grids import Grids
from tests.support.onnx.integers import MICROSOFT, SIDES
from tests.support.onnx.quantising import differences
from tests.support.onnx.trained import DOMAIN, Trained

FORMS: dict[str, Callable[[Power], Any]] = {}


class Power(Grids):
    """Writer of integer maps with scales that are powers of two, and zero points around the middle."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.kind = (np.int8, np.uint8)[seed % 2]

    def step(self, least: int, greatest: int) -> float:
        """Return a random step from 2^−least to 2^−greatest."""
        return 2.0 ** -int(self.random.integers(least, greatest + 1))

    def power(self, least: int, greatest: int) -> list[str]:
        """Return scale and zero point with such a step."""
        middle = 0 if self.kind is np.int8 else 128
        return self.grid(self.step(least, greatest), middle + int(self.random.integers(-9, 10)), self.kind)

    def map(self) -> list[str]:
        """Return the integers of a 1×1 convolution of the pixels, with scale and zero point."""
        pixels = self.grid(1 / 255, -128 if self.kind is np.int8 else 0, self.kind)
        weights, grid = [self.whole(-40, 40, 4, 3, 1, 1), *self.grid(2**-4)], self.power(5, 6)
        integers = self.put("QuantizeLinear", ["picture", *pixels])
        return [self.put("QLinearConv", [integers, *pixels, *weights, *grid], kernel_shape=[1, 1]), *grid]

    def weights(self, channels: int, inputs: int) -> list[str]:
        """Return 3×3 weights with a scale per filter."""
        scales = self.constant(2.0 ** -self.random.integers(3, 6, channels))
        return [self.whole(-9, 9, channels, inputs, 3, 3), scales, self.constant([0] * channels, np.int8)]

    def ends(self, kind: str, inputs: list[str], *steps: int, **options: Any) -> Any:
        """Write a file that ends with one of Microsoft's operators."""
        grid = self.power(*steps)
        return self.floats([self.put(kind, [*inputs, *grid], domain=MICROSOFT, **options), *grid])

    def quantised(self, floats: str, *steps: int) -> Any:
        """Write a file that ends with a QuantizeLinear of the given floats."""
        return self.floats(self.integers_of(floats, self.power(*steps)))


def form(make: Callable[[Power], Any]) -> Callable[[Power], Any]:
    """Register the file under the name of its function."""
    FORMS[make.__name__] = make
    return make


@form
def qlinear_conv(w: Power) -> Any:
    grid, bias = w.power(1, 3), w.whole(-999, 999, 5, kind=np.int32)
    inputs = [*w.map(), *w.weights(5, 4), *grid, bias]
    return w.floats([w.put("QLinearConv", inputs, kernel_shape=[3, 3], pads=[1] * 4), *grid])


@form
def qlinear_matrix(w: Power) -> Any:
    (integers, *grid), target = w.map(), w.power(1, 3)
    inputs = [w.put("Flatten", [integers]), *grid, w.whole(-9, 9, 192, 5), *w.grid(w.step(3, 5)), *target]
    return w.floats([w.put("QLinearMatMul", inputs), *target])


@form
def qgemm(w: Power) -> Any:
    integers, *grid = w.map()
    weights = [w.whole(-9, 9, 5, 192), *w.grid(w.step(3, 5)), w.whole(-999, 999, 5, kind=np.int32)]
    return w.ends("QGemm", [w.put("Flatten", [integers]), *grid, *weights], 0, 3, transB=1)


@form
def qlinear_add(w: Power) -> Any:
    return w.ends("QLinearAdd", [*w.map(), *w.map()], 4, 5)


@form
def qlinear_mul(w: Power) -> Any:
    return w.ends("QLinearMul", [*w.map(), *w.map()], 4, 5)


@form
def qlinear_average_of_windows(w: Power) -> Any:
    return w.ends("QLinearAveragePool", w.map(), 5, 8, kernel_shape=[2, 2], strides=[2, 2])


@form
def qlinear_average_with_padding(w: Power) -> Any:
    options = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1] * 4, "count_include_pad": 1}
    return w.ends("QLinearAveragePool", w.map(), 5, 8, **options)


@form
def qlinear_average_of_one_window(w: Power) -> Any:
    map_ = w.map()
    half = [w.put("MaxPool", map_[:1], kernel_shape=[3, 1]), *map_[1:]]  # 4 × 8 values
    return w.ends("QLinearAveragePool", half, 5, 8, kernel_shape=[4, 8])


@form
def qlinear_average_of_all(w: Power) -> Any:
    return w.ends("QLinearGlobalAveragePool", w.map(), 5, 8, channels_last=0)


@form
def conv_between(w: Power) -> Any:
    source, weights = w.floats_of(w.map()), w.put("DequantizeLinear", w.weights(5, 4), axis=0)
    return w.quantised(w.put("Conv", [source, weights], kernel_shape=[3, 3], pads=[1] * 4), 1, 3)


@form
def conv_of_each_channel_between(w: Power) -> Any:
    source, weights = w.floats_of(w.map()), w.put("DequantizeLinear", w.weights(4, 1), axis=0)
    return w.quantised(w.put("Conv", [source, weights], kernel_shape=[3, 3], pads=[1] * 4, group=4), 1, 3)


@form
def sum_between(w: Power) -> Any:
    return w.quantised(w.put("Add", [w.floats_of(w.map()), w.floats_of(w.map())]), 4, 5)


@form
def product_between(w: Power) -> Any:
    return w.quantised(w.put("Mul", [w.floats_of(w.map()), w.floats_of(w.map())]), 4, 5)


@form
def mean_between(w: Power) -> Any:
    return w.quantised(w.put("GlobalAveragePool", [w.floats_of(w.map())]), 5, 8)


@form
def mean_of_windows_between(w: Power) -> Any:
    return w.quantised(w.put("AveragePool", [w.floats_of(w.map())], kernel_shape=[2, 2], strides=[2, 2]), 5, 8)


@form
def mean_of_what_is_inside_between(w: Power) -> Any:
    """Write windows that cover 1, 2 or 4 values at the border."""
    options: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1] * 4, "count_include_pad": 0}
    return w.quantised(w.put("AveragePool", [w.floats_of(w.map())], **options), 5, 8)


@form
def qlinear_concat(w: Power) -> Any:
    grid = w.power(4, 5)
    return w.floats([w.put("QLinearConcat", [*grid, *w.map(), *w.map()], domain=MICROSOFT, axis=1), *grid])


@form
def qlinear_leaky(w: Power) -> Any:
    return w.ends("QLinearLeakyRelu", w.map(), 3, 4, alpha=0.25)


@form
def another_step(w: Power) -> Any:
    return w.quantised(w.floats_of(w.map()), 4, 5)


@form
def concat_between(w: Power) -> Any:
    return w.quantised(w.put("Concat", [w.floats_of(w.map()), w.floats_of(w.map())], axis=1), 4, 5)


@form
def leaky_between(w: Power) -> Any:
    return w.quantised(w.put("LeakyRelu", [w.floats_of(w.map())], alpha=0.25), 4, 5)


@form
def repeated_between(w: Power) -> Any:
    options: dict[str, Any] = {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    return w.quantised(w.put("Resize", [w.floats_of(w.map()), "", w.constant([1, 1, 2, 2])], **options), 4, 5)


@form
def pool_between(w: Power) -> Any:
    return w.quantised(w.put("MaxPool", [w.floats_of(w.map())], kernel_shape=[2, 2], strides=[2, 2]), 4, 5)


@pytest.mark.parametrize("name", FORMS)
def test_halves_are_rounded_as_by_onnxruntime(name: str, tmp_path: Path) -> None:
    """Check signed and unsigned integers, zero points of both parities, and scales per filter."""
    path = tmp_path / "net.onnx"
    for seed in range(8):
        writer = Power(seed)
        onnx.save(FORMS[name](writer), path)
        read = read_onnx(path)
        assert read.quantized is not None
        steps = differences(path, read, writer.random.integers(0, 256, SIDES[1:], np.uint8))
        assert set(steps.values()) == {0}, seed
        assert not read.notes


PIXELS = np.tile(np.arange(256, dtype=np.uint8), 3).reshape(3, 16, 16)


# --- by qonnx -------------------------------------------------------------------------------------------------------


def test_zero_point_is_added_before_rounding() -> None:
    """Expect qonnx's rounding: 2.5 steps and a zero point of 1 give 4, where QuantizeLinear gives 3."""
    quant = pytest.importorskip("qonnx.custom_op.general.quant").quant
    writer = Trained()
    first = writer.quant("picture", 8, 2**-8, signed=0)
    last = writer.put("LeakyRelu", [writer.quant(first, 8, 2**-7, 3)], alpha=0.25)
    model = writer.model([writer.quant(last, 6, 2**-6, 1)], (1, 3, 16, 16))
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    read = read_model(model, "net.onnx", "net")
    assert read.quantized is not None
    ours = run_integer(read.quantized, PIXELS)[-1]
    assert ours is not None
    floats = np.clip(np.rint(PIXELS / np.float32(255) * 256), 0, 255).astype(np.float32) / 256
    for step, zero, bits in ((2**-7, 3, 8), (2**-6, 1, 6)):
        floats = np.where(floats < 0, 0.25 * floats, floats) if bits == 6 else floats
        floats = quant(floats, *(np.float32(number) for number in (step, zero, bits)), 1, 0, "ROUND")
    assert np.array_equal(ours.astype(int) - read.quantized.nodes[-1].type.zero_point, floats * 64)


def write_filters(bits: int, signed: bool, zero: int, factor: float, unit: float) -> tuple[Any, Any, float]:
    """Write a QONNX file of three 1×1 filters.

    Returns:
        The model, the filters' sums for each pixel, and the step of the quantiser.
    """
    writer, whole = Trained(), np.random.default_rng(bits).integers(-6, 7, (3, 1, 1, 1)) * 2 + 1
    scales = (factor * np.array([1, 2, 0.5])).astype(np.float32).reshape(3, 1, 1, 1)
    step = unit * 2.0 ** (max(1, 10 - bits) - 8)
    pixels = writer.quant("picture", 8, 2**-8, signed=0)
    kernel = writer.quant(writer.constant(whole * scales), 5, scales)
    sums = writer.put("Conv", [pixels, kernel], kernel_shape=[1, 1], group=3)
    model = writer.model([writer.quant(sums, bits, step, zero, signed=int(signed))], (1, 3, 16, 16))
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    maps = np.clip(np.rint(PIXELS / np.float32(255) * 256), 0, 255).astype(np.float32) / 256
    return model, maps * (whole * scales).astype(np.float32).reshape(3, 1, 1), step


@cases("factor, unit", [(1.0, 1.0), (0.75, 0.75), (0.75, 1.0), (0.625, 1.0), (1.0, 0.75)])
@cases("signed", [True, False])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 8, 12, 15])
def test_halves_are_rounded_as_by_qonnx(bits: int, signed: bool, factor: float, unit: float) -> None:
    """Check every pixel for 2 to 15 bits, signed and unsigned, with a scale per filter.

    Scales that are not powers of two are exact products in float32, so that halves are exact halves.
    """
    quant = pytest.importorskip("qonnx.custom_op.general.quant").quant
    for zero in (0, 1) if bits < 9 else (1,):
        model, floats, step = write_filters(bits, signed, zero, factor, unit)
        read = read_model(model, "net.onnx", "net")
        assert read.quantized is not None
        assert not read.notes
        ours = run_integer(read.quantized, PIXELS)[-1]
        assert ours is not None
        numbers = [np.float32(number) for number in (step, zero, bits)]
        theirs = np.rint(quant(floats, *numbers, int(signed), 0, "ROUND") / numbers[0])
        assert np.array_equal(ours.astype(int) - read.quantized.nodes[-1].type.zero_point, theirs), zero
