"""Tests of network outputs that layers of the network read too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import systolic
from cnn.integer_model import run_integer
from cnn.onnx.network import read_model, read_onnx
from cnn.onnx.quantised.export import to_onnx
from cnn.ops import Output
from cnn.quantisation.fidelity import heads
from cnn.quantized import QuantizedNetwork
from systolic.model import Calibration
from tests.support.cases import cases
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.outputs import runtime_outputs
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 9, 9)


def pyramid(*inside: str) -> Any:
    """Write maps that are pooled, added and joined, some of which are also network outputs."""
    writer, names = Writer(), {}
    names["first"] = writer.put("Relu", [convolved(writer, "picture", 3, 4, pads=[1] * 4)])
    names["second"] = writer.put("Relu", [convolved(writer, names["first"], 4, 4, pads=[1] * 4)])
    names["pooled"] = writer.put("MaxPool", [names["second"]], kernel_shape=[2, 2], strides=[2, 2])
    names["sum"] = writer.put("Add", [names["first"], names["second"]])
    joined = writer.put("Concat", [names["sum"], names["second"]], axis=1)
    names["last"] = convolved(writer, joined, 8, 5)
    return writer.model([names[key] for key in ("pooled", "last", *inside)], SIDES)


@cases("inside", [("first",), ("second",), ("sum", "second"), ("first", "second", "sum")])
def test_inner_outputs_equal_onnxruntime(inside: tuple[str, ...]) -> None:
    network = check_against_runtime(pyramid(*inside), pixels(*SIDES[1:]))
    assert sum(isinstance(node.op, Output) for node in network.nodes) == len(inside)


def test_tensor_of_two_names_is_one_output() -> None:
    writer = Writer()
    first = writer.put("Relu", [convolved(writer, "picture", 3, 4)])
    again = writer.put("Identity", [first])
    model = writer.model([again, first, writer.put("Sigmoid", [first])], SIDES)
    read = read_model(model, "net.onnx", "net")
    assert read.tensors[again] == read.tensors[first] == 1
    assert [type(node.op).__name__ for node in read.network.nodes[2:]] == ["Activate", "Output"]


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
@pytest.mark.parametrize("inside", [("first", "second", "sum"), ("second",)])
def test_accelerator_gives_inner_outputs(style: str, inside: tuple[str, ...], tmp_path: Path) -> None:
    onnx.save(pyramid(*inside), tmp_path / "net.onnx")
    random = np.random.default_rng(1)
    pictures = tuple(random.integers(0, 256, (9, 9, 3), np.uint8) for _ in range(3))
    options: dict[str, Any] = {"search": "greedy"} if style == "streaming" else {}
    network = systolic.load(tmp_path / "net.onnx")
    found = systolic.design(network, "zcu104", style, calibrate=Calibration(pictures), **options).run(pictures[-1])
    assert found.simulation.mismatches == 0
    pixels_in = pictures[-1].transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    expected = runtime_outputs(onnx.load(tmp_path / "net.onnx"), pixels_in)
    assert list(found.result.tensors) == list(expected)
    for name, values in expected.items():
        most = 0.1 * np.abs(values).max()
        np.testing.assert_allclose(found.result.tensors[name], values, rtol=0, atol=most, err_msg=name)


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
def test_quantised_inner_outputs_are_within_a_step_of_onnxruntime(form: Form, tmp_path: Path) -> None:
    steps = steps_on_noise(quantised(pyramid("first", "second"), tmp_path, form, SIDES))
    assert max(steps.values()) <= 1, steps


def test_inner_outputs_survive_export(tmp_path: Path) -> None:
    writer = Writer()
    first = writer.put("Relu", [convolved(writer, "picture", 3, 4)])
    model = writer.model([writer.put("Relu", [convolved(writer, first, 4, 5)]), first], SIDES)
    path = quantised(model, tmp_path, Form(symmetric=True), SIDES)
    network = read_onnx(path).quantized
    assert network is not None
    again = read_model(onnx.load_from_string(to_onnx(network)), "again.onnx", "again").quantized
    assert again is not None
    assert sum(isinstance(node.op, Output) for node in again.nodes) == 1
    picture = np.random.default_rng(2).integers(0, 256, SIDES[1:], np.uint8)
    ours, theirs = (heads_of(each, picture) for each in (network, again))
    for first, second in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(first, second)


def heads_of(network: QuantizedNetwork, picture: Any) -> list[Any]:
    integers = run_integer(network, picture)
    return [integers[index] for index in heads(network)]
