"""Tests of the requantisers of quantised files, which are fitted to all sums that a layer can reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from cnn.datatype import DataType
from cnn.integer_model import run_integer
from cnn.maps import Shape
from cnn.network import Node
from cnn.onnx.network import read_model, read_onnx
from cnn.onnx.quantised.fitted import FileRequantiser, Fit, Reach, fitted
from cnn.ops import Input
from cnn.quantized_check import check_quantized
from cnn.requantise import EVEN, MultiplyShift, requantise
from tests.support.cases import cases
from tests.support.onnx.grids import Grids
from tests.support.onnx.integers import SIDES
from tests.support.onnx.quantising import Form, differences, quantised
from tests.support.onnx.trained import DOMAIN, Trained
from tests.support.onnx.writer import Writer

Array = np.ndarray[Any, Any]
NODE = Node("conv1", Input(), (), Shape(3, 1, 1), "net.onnx")
EVERY_PIXEL = np.resize(np.arange(256), SIDES[1:]).astype(np.uint8)


def steps_off(model: Any, folder: Path) -> dict[str, int]:
    """Return the greatest difference in steps per layer, for images that contain each pixel value."""
    path = folder / "net.onnx"
    onnx.save(model, path)
    read = read_onnx(path)
    shifted = [np.roll(EVERY_PIXEL, 41 * turn) for turn in range(3)]
    found = [differences(path, read, picture) for picture in shifted]
    return {name: max(each[name] for each in found) for name in found[0]}


# --- whole files ------------------------------------------------------------------------------------------------------


@cases("scale, zero", [(0.003906, 0), (0.0035, 3), (0.0041, 0), (0.02, 17), (0.0005, 0), (1 / 256, 0), (1 / 255, 5)])
def test_pixels_of_any_scale_keep_the_integers_of_the_file(scale: float, zero: int, tmp_path: Path) -> None:
    writer = Grids()
    integers = writer.integers_of("picture", writer.grid(scale, zero, np.uint8))
    last = writer.conv(writer.floats_of(integers))
    model = writer.floats(writer.integers_of(last, writer.grid(0.0313, -7)))
    found = steps_off(model, tmp_path)
    assert set(found.values()) == {0}


def test_pixel_scale_close_to_1_255_is_exact(tmp_path: Path) -> None:
    """Use the scale 0.003922: every pixel keeps its own integer, and the next layer's sums are greater by 1.0001."""
    writer = Grids()
    integers = writer.integers_of("picture", writer.grid(0.003922, 0, np.uint8))
    weights = writer.floats_of([writer.constant(np.full((4, 3, 1, 1), 127), np.int8), *writer.grid(0.02)])
    model = writer.floats(
        writer.integers_of(writer.conv(writer.floats_of(integers), weights), writer.grid(0.0307, -128))
    )
    assert set(steps_off(model, tmp_path).values()) == {0}


@cases("bits, ratio", [(2, 0.37), (3, 0.613), (4, 0.0573)])
def test_unsigned_maps_of_few_bits_keep_the_integers_of_the_file(bits: int, ratio: float) -> None:
    """Check few bits, for which the zero point is half of the range and one sum is a large part of a step."""
    writer = Trained()
    last, before = writer.quant("picture", 8, 1 / 255, signed=0), 1 / 255
    for number in range(2):
        step = 1.5 / ((1 << bits) - 1)
        whole = np.random.default_rng(number).integers(-1, 2, (3, 3, 1, 1))
        scale = np.float32(ratio * step / before)
        kernel = writer.quant(writer.constant(whole * scale), 2, scale, narrow=1)
        last = writer.put("Relu", [writer.put("Conv", [last, kernel], kernel_shape=[1, 1])])
        last, before = writer.quant(last, bits, step, signed=0), step
    network = read_model(writer.file(last), "net.onnx", "net")
    assert network.quantized is not None
    source, node = network.quantized.nodes[1:]
    op: Any = node.op
    rows, datatype = op.weights.reshape(3, 3).astype(int), source.type.datatype
    values = np.stack(np.meshgrid(*[np.arange(datatype.low, datatype.high + 1)] * 3)).reshape(3, -1)
    ours = requantise(rows @ values, op.requantiser, node.type.datatype).astype(int) - node.type.zero_point
    floats = ratio * (rows @ (values - source.type.zero_point))
    assert ours.tolist() == np.clip(np.rint(floats), 0, (1 << bits) - 1).tolist()


def dead_filter() -> Any:
    """Write a QONNX file with a filter of zeros, followed by a batch norm with a tiny variance and a bias of 0.3."""
    writer = Trained()
    pixels = writer.quant("picture", 8, 1 / 255, signed=0)
    kernel = writer.quant(writer.constant([[[[16]]], [[[0]]]]), 2, 16, narrow=1)
    norm = [writer.constant(values) for values in ((1, 1), (0, 0.3), (0, 0), (1, 1e-6))]
    normed = writer.put("BatchNormalization", [writer.put("Conv", [pixels, kernel], kernel_shape=[1, 1]), *norm])
    return writer.model([writer.quant(writer.put("Relu", [normed]), 8, 0.01, signed=0)], (1, 1, 2, 2))


def test_filter_of_zeros_gives_its_bias() -> None:
    """Expect qonnx's values: 30 at each position of channel 1, and 0 for a black pixel in channel 0."""
    model = dead_filter()
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    read = read_model(model, "net.onnx", "net")
    assert read.quantized is not None
    last = run_integer(read.quantized, np.array([[[0, 1], [2, 255]]], np.uint8))[-1]
    assert last is not None
    assert (last.astype(int) + 128).tolist() == [[[0, 6], [13, 255]], [[30, 30], [30, 30]]]
    assert read.notes == ()


@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
def test_bias_beyond_32_bits_is_clipped_as_its_output(activations: str, tmp_path: Path) -> None:
    """Use weights of 1e-9 with biases from −4.5 to 5: a bias in units of the sums needs more than 32 bits."""
    writer, random = Writer(), np.random.default_rng(4)
    biases = [writer.constant(np.linspace(-4.5, 5, 8)), writer.constant(random.normal(0, 1, 4))]
    weights = [
        writer.constant(random.normal(0, size, shape)) for size, shape in ((1e-9, (8, 3, 3, 3)), (1, (4, 8, 1, 1)))
    ]
    first = writer.put("Relu", [writer.put("Conv", ["picture", weights[0], biases[0]], pads=[1] * 4)])
    model = writer.model([writer.put("Conv", [first, weights[1], biases[1]])], SIDES)
    path = quantised(model, tmp_path, Form(activations=activations), SIDES)
    read = read_onnx(path)
    assert read.quantized is not None
    check_quantized(read.quantized)
    assert max(differences(path, read, EVERY_PIXEL).values()) == 0


# --- the fit ----------------------------------------------------------------------------------------------------------


def drawn(random: np.random.Generator, datatype: DataType) -> tuple[FileRequantiser, Reach]:
    """Return a random requantiser of three channels, and ranges of a few thousand sums."""
    ends = random.integers(1, 3000, 3)
    ratio = np.exp2(random.uniform(-9, 2, 3))
    offset = random.uniform(-1, 1, 3) * datatype.high * random.choice([1, 1e6])
    zero = int(random.integers(datatype.low, datatype.high + 1))
    return FileRequantiser(ratio, offset, zero, datatype, 1.0), Reach(-ends, ends, ends)


def counted(rule: FileRequantiser, reach: Reach, fit: Fit) -> list[int]:
    """Count per channel the sums for which the integers differ, by evaluating every sum."""
    found = []
    for channel, (low, high) in enumerate(zip(reach.low, reach.high, strict=True)):
        sums = np.tile(np.arange(low, high + 1), (rule.channels, 1))
        wanted = np.clip(rule.values(sums), rule.datatype.low, rule.datatype.high)[channel]
        found.append(int(np.abs(requantise(sums, fit.by, rule.datatype)[channel] - wanted).sum()))
    return found


@cases("bits", [2, 4, 8])
def test_fit_counts_the_differing_sums_exactly(bits: int) -> None:
    random = np.random.default_rng(bits)
    for _ in range(12):
        rule, reach = drawn(random, DataType(bits, True))
        fit = fitted(rule, reach, "linear", NODE)
        assert fit.differing.tolist() == counted(rule, reach, fit)
        assert fit.sums.tolist() == (reach.high - reach.low + 1).tolist()


def test_fit_differs_for_few_sums() -> None:
    """Expect at most 1 differing sum in 1,000, and none for most layers with a few thousand sums."""
    random, clean = np.random.default_rng(1), 0
    for _ in range(100):
        rule, reach = drawn(random, DataType(8, True))
        fit = fitted(rule, reach, "linear", NODE)
        assert fit.differing.sum() * 1000 <= fit.sums.sum()
        clean += not fit.differing.any()
    assert clean >= 80


def test_offset_between_two_sums_is_added_to_the_product() -> None:
    """Use a sum of 3.17 steps and an offset of 1.2 steps, which is not an integer multiple."""
    ends = np.full(1, 300, np.int64)
    rule = FileRequantiser(np.array([3.17]), np.array([1.2]), 0, DataType(8, True), 1.0)
    fit = fitted(rule, Reach(-ends, ends, ends), "linear", NODE)
    assert isinstance(fit.by, MultiplyShift)
    assert not fit.differing.any()
    assert fitted(rule, Reach(-ends, ends, ends), "linear", NODE, late=False).differing.any()


def test_sampled_sums_have_both_parities() -> None:
    """Use 16-bit sums in many channels, of which only some are sampled. Every second sum is a half."""
    ends = np.full(256, 30000, np.int64)
    rule = FileRequantiser(np.full(256, 0.5), np.zeros(256), 0, DataType(16, True), 1.0)
    assert fitted(rule, Reach(-ends, ends, ends), "linear", NODE).by.halves == EVEN
