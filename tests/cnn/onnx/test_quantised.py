"""Tests of ONNX files with integers: every tensor against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from cnn.integer_model import run_integer
from cnn.onnx.network import read_onnx
from cnn.ops import Softmax
from tests.fuzz.graphs.run import difference
from tests.support.cases import cases
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.residual import SHAPE, convolved, residual
from tests.support.onnx.writer import Writer

Array = np.ndarray[Any, Any]


FORMS = (
    Form(),
    Form(symmetric=True),
    Form(per_channel=True),
    Form(activations="QUInt8"),
    Form(activations="QUInt8", weights="QUInt8"),
    Form("QOperator"),
    Form("QOperator", per_channel=True, activations="QUInt8"),
)


@cases("form", FORMS, ids=str)
def test_tensor_is_within_a_step_of_onnxruntime(form: Form, tmp_path: Path) -> None:
    path = quantised(residual(), tmp_path, form, SHAPE)
    steps = steps_on_noise(path)
    assert len(steps) >= 12
    assert max(steps.values()) <= 1, steps


@cases("form", [Form(), Form(per_channel=True), Form("QOperator", True)], ids=str)
def test_unequal_strides_keep_the_scales_of_the_weights(form: Form, tmp_path: Path) -> None:
    """Use one scale for all channels and one per channel, with integer convolutions."""
    writer, random = Writer(), np.random.default_rng(8)
    last = writer.put("Relu", [convolved(writer, "picture", (4, 3, 3))])
    for groups, strides in ((1, [2, 1]), (4, [1, 2])):
        weights = random.normal(0, 0.3, (4, 4 // groups, 3, 3)) * [[[[1]]], [[[3]]], [[[9]]], [[[2]]]]
        last = writer.put("Conv", [last, writer.constant(weights)], strides=strides, pads=[1] * 4, group=groups)
    path = quantised(writer.model([last], SHAPE), tmp_path, form, SHAPE)
    steps = steps_on_noise(path)
    assert len(steps) >= 3
    assert max(steps.values()) <= 1, steps


def test_tensor_clipped_inside_a_layer_is_not_its_output(tmp_path: Path) -> None:
    writer = Writer()
    writer.put("Relu", [convolved(writer, "picture", (8, 3, 3))])
    read = read_onnx(quantised(writer.model(["relu1"], SHAPE), tmp_path, Form("QOperator", symmetric=True), SHAPE))
    assert [node.name for node in read.network.nodes] == [
        "input",
        "conv1",
        "conv2",
    ]  # conv1 converts the pixels to 128 steps
    assert {name for name, index in read.tensors.items() if index == 2} == {"relu1"}


@cases("kind, zero, folded", [(np.int8, 0, True), (np.uint8, 0, True), (np.int8, -128, True), (np.int8, -5, False)])
def test_relu_between_two_quantisers_merges_only_if_0_is_an_end(
    kind: type[np.generic], zero: int, folded: bool, tmp_path: Path
) -> None:
    writer = Writer()
    grid = [writer.constant(1 / 32), writer.constant(zero, kind)]
    pixels = [writer.constant(1 / 255), writer.constant(0, np.uint8)]

    def stepped(source: str, numbers: Sequence[str]) -> str:
        return writer.put("DequantizeLinear", [writer.put("QuantizeLinear", [source, *numbers]), *numbers])

    weights = np.random.default_rng(2).integers(-90, 90, (4, 3, 3, 3))
    kernel = writer.put("DequantizeLinear", [writer.constant(weights, np.int8), writer.constant(1 / 128)])
    last = stepped(writer.put("Conv", [stepped("picture", pixels), kernel]), grid)
    last = stepped(writer.put("Relu", [last]), grid)
    path = tmp_path / "net.onnx"
    onnx.save(writer.model([last], SHAPE), path)
    read = read_onnx(path)
    assert [node.name for node in read.network.nodes] == ["input", "conv1", *(() if folded else ("cut1",))]
    steps = steps_on_noise(path)
    assert max(steps.values()) <= 1, steps


def classifier() -> Any:
    """Write a classifier whose softmax output is also quantised, as onnxruntime does."""
    writer = Writer()
    first = writer.put("Relu", [convolved(writer, "picture", (8, 3, 3), 2)])
    row = writer.put("Flatten", [writer.put("GlobalAveragePool", [first])])
    matrix = writer.constant(np.random.default_rng(9).normal(0, 0.9, (8, 5)))
    return writer.model([writer.put("Softmax", [writer.put("Gemm", [row, matrix])], axis=1)], SHAPE)


@cases("form", FORMS, ids=str)
def test_softmax_runs_on_the_host_and_is_within_a_step(form: Form, tmp_path: Path) -> None:
    path = quantised(classifier(), tmp_path, form, SHAPE)
    kinds = [node.op_type for node in onnx.load(path).graph.node]
    assert kinds[-1] == "DequantizeLinear", kinds
    read = read_onnx(path)
    assert read.quantized is not None
    assert isinstance(read.network.nodes[-1].op, Softmax)
    pixels = np.random.default_rng(2).integers(0, 256, SHAPE[1:], np.uint8)
    integers = run_integer(read.quantized, pixels)[-2]
    assert integers is not None
    type_ = read.quantized.nodes[-2].type
    logits = (integers.ravel().astype(np.float64) - type_.zero_point) * type_.scale
    shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (told,) = session.run(None, {"picture": (pixels[None] / 255).astype(np.float32)})
    # The difference is a step of a share, and the effect of a step of the greatest logit on it.
    assert np.abs(told.ravel() - shares).max() < 1 / 256 + type_.scale / 4


def test_scalar_constants_may_be_on_either_side() -> None:
    """Use a DequantizeLinear of a scalar, for which numpy returns a number instead of an array."""
    writer = Writer()
    scale, zero = writer.constant(0.01), writer.constant(3, np.uint8)
    number = writer.put("DequantizeLinear", [writer.constant(103, np.uint8), scale, zero])
    rounded = writer.put("QuantizeLinear", [writer.constant(0.25), scale, zero])
    other = writer.put("DequantizeLinear", [rounded, scale, zero])
    first = writer.put("Mul", [number, writer.put("Relu", ["picture"])])
    model = writer.model([writer.put("Add", [first, other])], SHAPE)
    assert difference(model, np.random.default_rng(3).random(SHAPE, np.float32)) < 1e-5


@cases("form", [Form(), Form(per_channel=True), Form("QOperator")], ids=str)
def test_batch_norm_alone_has_its_own_weights(form: Form, tmp_path: Path) -> None:
    """Put it after a function, so that no convolution absorbs it. Its gain is not a multiple of its scale."""
    writer, random = Writer(), np.random.default_rng(8)
    gate = writer.put("Sigmoid", [convolved(writer, "picture", (8, 3, 3))])
    norm = [writer.constant(random.uniform(0.5, 1.5, 8)) for _ in range(4)]
    last = convolved(writer, writer.put("BatchNormalization", [gate, *norm]), (4, 8, 1))
    steps = steps_on_noise(quantised(writer.model([last], SHAPE), tmp_path, form, SHAPE))
    assert max(steps.values()) <= 1, steps


@cases("form", [Form(), Form("QOperator"), Form("QOperator", activations="QUInt8")], ids=str)
def test_quantised_resize_is_interpolated(form: Form, tmp_path: Path) -> None:
    """Allow two steps in QOperator format, in which the Resize averages integers and rounds them down."""
    writer = Writer()
    source = writer.put("Relu", [convolved(writer, "picture", (8, 3, 3))])
    scales = writer.constant([1, 1, 2, 2])
    modes: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    last = writer.put("Resize", [source, "", scales], **modes)
    path = quantised(writer.model([last], SHAPE), tmp_path, form, SHAPE)
    resized = [node for node in onnx.load(path).graph.node if node.op_type == "Resize"]
    assert resized[0].input[0].endswith("quantized") == (form.format == "QOperator")
    steps = steps_on_noise(path)
    assert max(steps.values()) <= 1 + (form.format == "QOperator"), steps
