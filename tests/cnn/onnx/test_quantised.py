"""ONNX files that hold integers: every tensor against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from cnn.onnx.network import read_onnx
from tests.cnn.onnx.quantising import Form, quantised, steps_on_noise
from tests.cnn.onnx.writer import Writer

Array = np.ndarray[Any, Any]
SHAPE = (1, 3, 12, 16)


def convolved(writer: Writer, source: str, sides: Sequence[int], stride: int = 1, groups: int = 1) -> str:
    """sides: filters, channels of a group, kernel."""
    random = np.random.default_rng(len(writer.nodes))
    filters, channels, kernel = sides
    weights = random.normal(0, (2 / (channels * kernel**2)) ** 0.5, (filters, channels, kernel, kernel))
    arrays = [writer.constant(weights), writer.constant(random.normal(0, 0.1, filters))]
    pads, strides = [kernel // 2] * 4, [stride] * 2
    return writer.put("Conv", [source, *arrays], kernel_shape=[kernel] * 2, strides=strides, pads=pads, group=groups)


def residual() -> Any:
    """A classifier of two residual blocks, the second with a stride, a depthwise convolution and a concat."""
    writer = Writer()
    first = writer.put("Relu", [convolved(writer, "picture", (8, 3, 3))])
    inner = writer.put("Relu", [convolved(writer, first, (8, 8, 3))])
    last = writer.put("Relu", [writer.put("Add", [convolved(writer, inner, (8, 8, 3)), first])])
    inner = writer.put("Relu", [convolved(writer, last, (8, 1, 3), 2, 8)])
    beside = convolved(writer, last, (16, 8, 1), 2)
    last = writer.put("Add", [convolved(writer, inner, (16, 8, 3)), beside])
    gate = writer.put("Mul", [beside, writer.put("Sigmoid", [beside])])
    last = writer.put("Concat", [last, gate], axis=1)
    last = writer.put("MaxPool", [last], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    last = writer.put("Flatten", [writer.put("GlobalAveragePool", [last])])
    random = np.random.default_rng(9)
    arrays = [writer.constant(random.normal(0, 0.3, (10, 32))), writer.constant(random.normal(0, 0.1, 10))]
    return writer.model([writer.put("Gemm", [last, *arrays], transB=1)], SHAPE)


FORMS = (
    Form(),
    Form(symmetric=True),
    Form(per_channel=True),
    Form(activations="QUInt8"),
    Form(activations="QUInt8", weights="QUInt8"),
    Form("QOperator"),
    Form("QOperator", per_channel=True, activations="QUInt8"),
)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_tensor_is_within_a_step_of_onnxruntime(form: Form, tmp_path: Path) -> None:
    path = quantised(residual(), tmp_path, form, SHAPE)
    steps = steps_on_noise(path)
    assert len(steps) >= 12
    assert max(steps.values()) <= 1, steps


@pytest.mark.parametrize("form", [Form(), Form(per_channel=True), Form("QOperator", True)], ids=str)
def test_strides_that_differ_keep_the_scales_of_the_weights(form: Form, tmp_path: Path) -> None:
    """Of all channels at once, and of each by itself: convolutions of the file's integers."""
    writer, random = Writer(), np.random.default_rng(8)
    last = writer.put("Relu", [convolved(writer, "picture", (4, 3, 3))])
    for groups, strides in ((1, [2, 1]), (4, [1, 2])):
        weights = random.normal(0, 0.3, (4, 4 // groups, 3, 3)) * [[[[1]]], [[[3]]], [[[9]]], [[[2]]]]
        last = writer.put("Conv", [last, writer.constant(weights)], strides=strides, pads=[1] * 4, group=groups)
    path = quantised(writer.model([last], SHAPE), tmp_path, form, SHAPE)
    steps = steps_on_noise(path)
    assert len(steps) >= 3
    assert max(steps.values()) <= 1, steps


def test_a_tensor_that_a_layer_cuts_off_is_not_what_the_layer_gives(tmp_path: Path) -> None:
    writer = Writer()
    writer.put("Relu", [convolved(writer, "picture", (8, 3, 3))])
    read = read_onnx(quantised(writer.model(["relu1"], SHAPE), tmp_path, Form("QOperator", symmetric=True), SHAPE))
    assert [node.name for node in read.network.nodes] == ["input", "conv1", "conv2"]  # conv1 brings pixels to 128 steps
    assert {name for name, index in read.tensors.items() if index == 2} == {"relu1"}


@pytest.mark.parametrize(
    ("kind", "zero", "folded"), [(np.int8, 0, True), (np.uint8, 0, True), (np.int8, -128, True), (np.int8, -5, False)]
)
def test_a_relu_between_two_quantisations_is_a_part_of_the_layer_where_0_is_an_end(
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
