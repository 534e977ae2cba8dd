"""Tests of dilated and long windows of convolutions and pools, against onnxruntime and as designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import systolic
from boards.errors import DoesNotFitError, RangeError, SeveralFaultsError
from cnn.float_model import run_float
from cnn.onnx.network import network_of
from cnn.ops import Convolution
from systolic.model import Calibration
from tests.support.cases import cases
from tests.support.errors import raises, refused
from tests.support.executed import executed
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 9, 8)


def spread(sides: tuple[int, ...] = SIDES, channels: int = 4, **attributes: Any) -> Any:
    """Write a dilated convolution between two others."""
    writer, random = Writer(), np.random.default_rng(1)
    source = convolved(writer, "picture", sides[1], channels, pads=[1] * 4)
    kernel = attributes.pop("kernel", (3, 3))
    each = channels // attributes.get("group", 1)
    weights, bias = random.normal(0, 0.3, (channels, each, *kernel)), random.normal(0, 0.1, channels)
    inputs = [source, writer.constant(weights), writer.constant(bias)]
    source = writer.put("Relu", [writer.put("Conv", inputs, **attributes)])
    weights = random.normal(0, 0.3, (5, channels, 1, 1))
    return writer.model([writer.put("Conv", [source, writer.constant(weights)])], sides)


def signal(length: int, size: int, stride: int = 1, dilation: int = 1, pads: tuple[int, int] = (0, 0)) -> Any:
    """Write a long or dilated window over raw samples, a pool, and a short window after it."""
    writer, random = Writer(), np.random.default_rng(2)
    weights = random.normal(0, 0.2, (4, 1, size))
    source = writer.put(
        "Conv", ["picture", writer.constant(weights)], strides=[stride], dilations=[dilation], pads=list(pads)
    )
    source = writer.put("MaxPool", [writer.put("Relu", [source])], kernel_shape=[4], strides=[4])
    weights = random.normal(0, 0.3, (4, 4, 3))
    source = writer.put("Conv", [source, writer.constant(weights)], dilations=[dilation], pads=[2 * dilation, 0])
    return writer.model([writer.put("Relu", [source])], (1, 1, length))


def compared(model: Any, length: int) -> Any:
    network = network_of(model, "net.onnx", "net")
    samples = pixels(1, length)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": samples[None]})[0]
    np.testing.assert_allclose(run_float(network, samples[:, None])[-1][:, 0], expected[0], rtol=1e-4, atol=1e-5)
    return network


def atrous(steps: tuple[int, ...], side: int) -> Any:
    """Write parallel windows of several dilations over one map, as segmentation heads have them."""
    writer, random = Writer(), np.random.default_rng(3)
    source = convolved(writer, "picture", 3, 8, pads=[1] * 4)
    branches = []
    for step in steps:
        inputs = [source, writer.constant(random.normal(0, 0.2, (4, 8, 3, 3)))]
        branches.append(writer.put("Relu", [writer.put("Conv", inputs, dilations=[step] * 2, pads=[step] * 4)]))
    weights = random.normal(0, 0.3, (5, 4 * len(steps), 1, 1))
    joined = writer.put("Concat", branches, axis=1)
    return writer.model([writer.put("Conv", [joined, writer.constant(weights)])], (1, 3, side, side))


def temporal(steps: tuple[int, ...], length: int) -> Any:
    """Write causal windows of growing dilation over a signal, with a residual add around each."""
    writer, random = Writer(), np.random.default_rng(4)
    weights = random.normal(0, 0.4, (8, 1, 1))
    source = writer.put("Relu", [writer.put("Conv", ["picture", writer.constant(weights)])])
    for step in steps:
        weights = random.normal(0, 0.2, (8, 8, 3))
        inputs = [source, writer.constant(weights)]
        seen = writer.put("Relu", [writer.put("Conv", inputs, dilations=[step], pads=[2 * step, 0])])
        source = writer.put("Add", [source, seen])
    return writer.model([source], (1, 1, length))


FORMS: list[dict[str, Any]] = [
    {"dilations": [2, 2], "pads": [2] * 4},
    {"dilations": [3, 3], "pads": [3] * 4},
    {"dilations": [6, 6], "pads": [6] * 4},
    {"dilations": [2, 3]},
    {"dilations": [2, 2], "pads": [2] * 4, "group": 4},
    {"dilations": [2, 2], "pads": [2] * 4, "strides": [2, 2]},
    {"dilations": [2, 2], "pads": [1, 2, 3, 0], "strides": [1, 2]},
    {"dilations": [4, 1], "pads": [8, 0, 0, 0], "kernel": (3, 1)},
]
ATROUS: list[dict[str, Any]] = [{"dilations": [step] * 2, "pads": [step] * 4} for step in (12, 24, 36, 100)]


@cases("attributes", FORMS + ATROUS, ids=str)
def test_dilated_convolution_equals_onnxruntime(attributes: dict[str, Any]) -> None:
    check_against_runtime(spread(**attributes), pixels(*SIDES[1:]))


def test_window_rows_and_columns_that_see_only_padding_are_removed() -> None:
    """Use a dilation of 8 on a map of 9 rows and 8 columns: the outer window rows see one row each, the outer columns
    none."""
    network = network_of(spread(dilations=[8, 8], pads=[8] * 4), "net.onnx", "net")
    op = network.nodes[2].op
    assert isinstance(op, Convolution)
    assert (op.weights.shape[2:], op.dilation, op.window) == ((3, 1), (8, 1), (17, 1))
    assert (op.padding.top, op.padding.left, op.padding.bottom, op.padding.right) == (8, 0, 8, 0)


@cases("dilation", [1, 64, 512])
def test_dilated_convolution_of_a_signal_equals_onnxruntime(dilation: int) -> None:
    """Pad only before the first sample, as causal convolutions do."""
    compared(signal(3000, 2, 1, dilation, (dilation, 0)), 3000)


def test_temporal_network_equals_onnxruntime() -> None:
    compared(temporal((1, 4, 32, 128), 600), 600)


def test_parallel_windows_of_five_dilations_equal_onnxruntime() -> None:
    check_against_runtime(atrous((6, 12, 18, 24, 36), 40), pixels(3, 40, 40))


@cases("size, stride", [(80, 4), (96, 1), (400, 160), (1024, 512)])
def test_long_window_of_raw_sound_equals_onnxruntime(size: int, stride: int) -> None:
    compared(signal(16_000, size, stride), 16_000)


@cases("kind", ["MaxPool", "AveragePool", "ReduceMax", "ReduceMean"])
def test_long_pool_equals_onnxruntime(kind: str) -> None:
    writer = Writer()
    source = convolved(writer, "picture", 3, 4, pads=[1] * 4)
    attributes: dict[str, Any] = (
        {"axes": [3]} if kind.startswith("Reduce") else {"kernel_shape": [2, 70], "strides": [1, 9]}
    )
    source = writer.put(kind, [source], **attributes)
    model = writer.model([writer.put("Relu", [source])], (1, 3, 4, 100))
    check_against_runtime(model, pixels(3, 4, 100))


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
@cases("attributes", FORMS[:5], ids=str)
def test_quantised_dilated_convolution_is_within_a_step_of_onnxruntime(
    attributes: dict[str, Any], form: Form, tmp_path: Path
) -> None:
    steps = steps_on_noise(quantised(spread(**attributes), tmp_path, form, SIDES))
    assert len(steps) >= 3
    assert max(steps.values()) <= 1, steps


@pytest.mark.engine
@pytest.mark.parametrize("attributes", [FORMS[1], FORMS[3], FORMS[4]], ids=str)
@pytest.mark.parametrize("style", ["streaming", "systolic"])
def test_design_with_dilated_convolution_equals_golden_model(
    attributes: dict[str, Any], style: str, tmp_path: Path
) -> None:
    onnx.save(spread((1, 3, 9, 8), 8, **attributes), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0
    assert sum(layer.values for layer in result.layers) > 500


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["hls", "rtl"])
@pytest.mark.parametrize("form", [Form(), Form(activations="QUInt8")], ids=str)
def test_engine_with_quantised_dilated_convolution_equals_golden_model(engine: str, form: Form, tmp_path: Path) -> None:
    """Use more than 36 rows, for which non-zero padding is written in phases, and a batch of two frames."""
    sides = (1, 3, 36, 7)
    network = systolic.load(quantised(spread(sides, 8, dilations=[2, 3], pads=[2, 3, 2, 3]), tmp_path, form, sides))
    pictures = np.random.default_rng(1).integers(0, 256, (2, 36, 7, 3), np.uint8)
    options: dict[str, Any] = {"array": "4x8x8", "engine": engine, "batch": 2}
    design = systolic.design(network, "zcu104", calibrate=Calibration(tuple(pictures)), **options)
    assert design.simulate(pictures[0]).mismatches == 0


HARDWARE = [("streaming", {}), ("systolic", {"engine": "hls"}), ("systolic", {"engine": "rtl"})]
SIGNALS = {
    "a second of sound": (signal(16_000, 80, 4), 4 * 995),
    "brain waves": (signal(1_280, 96, 1, 2), 4 * 273),
    "temporal": (temporal((1, 4, 32, 128), 600), 8 * 600),
    "atrous": (atrous((6, 12, 18, 24, 36), 40), 5 * 40 * 40),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize(("style", "options"), HARDWARE, ids=["pipeline", "array in C++", "array in SystemVerilog"])
def test_design_with_long_and_dilated_windows_equals_golden_model(
    name: str, style: str, options: dict[str, Any], tmp_path: Path
) -> None:
    model, values = SIGNALS[name]
    onnx.save(model, tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style, **options)
    assert result.mismatches == 0
    assert sum(layer.values for layer in result.layers) >= values


@cases(
    "attributes, fault",
    [
        (
            {"dilations": [2048, 2048], "pads": [2048] * 4, "kernel": (3, 3)},
            RangeError("rows or columns of a window", 4097, 1, 4095, where="Conv '/Conv_1'"),
        ),
        (
            {"pads": [4095] * 4, "strides": [4095, 4095]},
            RangeError("values of its padded input", 4 * 8193**2, 1, 1 << 27, where="Conv '/Conv_1'"),
        ),
    ],
)
def test_window_above_the_limits_is_refused(attributes: dict[str, Any], fault: RangeError) -> None:
    with refused(fault):
        network_of(spread((1, 3, 2049, 20), **attributes), "net.onnx", "net")


def test_small_file_that_would_need_much_memory_is_refused() -> None:
    """Use a dilation of 63: a window of three has 127 rows and columns, thousands of times the weights of the file."""
    writer, channels = Writer(), 4000
    source = convolved(writer, "picture", 3, channels, pads=[1] * 4)
    attributes: dict[str, Any] = {"dilations": [63, 63], "pads": [63] * 4, "kernel_shape": [3, 3]}
    source = writer.put("AveragePool", [source], **attributes, count_include_pad=1)
    with raises(SeveralFaultsError) as caught:
        network_of(writer.model([source], (1, 3, 80, 80)), "net.onnx", "net")
    (fault,) = caught.value.errors
    assert isinstance(fault, DoesNotFitError)
    assert (fault.need, fault.where) == (4 * 127**2 * channels, "AveragePool '/AveragePool_1'")


def test_wide_dilation_stores_no_zeros(tmp_path: Path) -> None:
    """Check the shape of the weights. With zeros, the windows of 25×25 would have 2,048 × 256 × 625 weights."""
    writer = Writer()
    source = convolved(writer, "picture", 3, 2048, pads=[1] * 4)
    weights = writer.constant(np.broadcast_to(np.float32(0.01), (256, 2048, 3, 3)))
    source = writer.put("Conv", [source, weights], dilations=[12, 12], pads=[12] * 4)
    op = network_of(writer.model([source], (1, 3, 33, 33)), "net.onnx", "net").nodes[2].op
    assert isinstance(op, Convolution)
    assert (op.weights.shape, op.dilation, op.window) == ((256, 2048, 3, 3), (12, 12), (25, 25))
