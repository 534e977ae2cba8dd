"""Tests of average pooling: windows that cover padding or the end of the map divide by the right count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import SeveralFaultsError, UnsupportedError
from cnn.float_model import run_float
from cnn.onnx.network import network_of, read_onnx
from cnn.ops import Multiply
from tests.support.cases import cases
from tests.support.errors import faults_of, raises
from tests.support.executed import executed
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 7, 9)


def averaged(sides: tuple[int, ...] = SIDES, **attributes: Any) -> Any:
    """Write an average pool between two convolutions, with ReLUs."""
    writer = Writer(19)
    source = writer.put("Relu", [convolved(writer, "picture", 3, 4, pads=[1, 1, 1, 1])])
    source = writer.put("AveragePool", [source], **attributes)
    return writer.model([writer.put("Relu", [convolved(writer, source, 4, 5, pads=[1, 1, 1, 1])])], sides)


@cases("counted", [0, 1])
@cases("up", [0, 1])
@cases(
    "attributes",
    [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [2, 4], "pads": [0, 3, 1, 1], "strides": [3, 3]},
        {"kernel_shape": [5, 1], "pads": [4, 0, 3, 0]},
        {"kernel_shape": [5, 7], "pads": [4, 6, 4, 6]},
        {"kernel_shape": [3, 2], "pads": [2, 1, 2, 1], "dilations": [2, 3]},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"kernel_shape": [4, 4], "auto_pad": "SAME_LOWER"},
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ],
)
def test_average_pool_equals_onnxruntime(attributes: dict[str, Any], counted: int, up: int) -> None:
    for sides in (SIDES, (1, 3, 3, 10)):
        model = averaged(sides, **attributes, count_include_pad=counted, ceil_mode=up)
        check_against_runtime(model, pixels(*sides[1:]))


def test_average_pool_has_factors_only_if_its_divisor_varies() -> None:
    nodes = network_of(averaged(kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1), "net.onnx", "net").nodes
    assert not any(isinstance(node.op, Multiply) for node in nodes)
    nodes = network_of(averaged(kernel_shape=[3, 3], pads=[1] * 4), "net.onnx", "net").nodes
    assert [node.name for node in nodes[2:6]] == ["average1", "ones1", "factors1", "multiply1"]


def test_average_pool_of_a_signal_equals_onnxruntime() -> None:
    writer = Writer()
    model = writer.model([writer.put("AveragePool", ["picture"], kernel_shape=[4], pads=[2, 1])], (1, 3, 9))
    signal = pixels(3, 9)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": signal[None]})[0]
    network = network_of(model, "net.onnx", "net")
    np.testing.assert_allclose(run_float(network, signal[:, None])[-1][:, 0], expected[0], atol=1e-5)


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_design_with_average_pool_equals_golden_model(style: str, tmp_path: Path) -> None:
    onnx.save(averaged(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0
    assert "factors1" in {layer.name for layer in result.layers}


@cases("form", [Form(), Form(activations="QUInt8"), Form(format="QOperator")], ids=str)
@cases(
    "attributes",
    [
        {"strides": [2, 2]},
        {"pads": [1, 0, 2, 1], "count_include_pad": 1},
        {"pads": [1, 1, 1, 1], "strides": [1, 2], "count_include_pad": 1},
        {"pads": [1, 1, 1, 1]},
        {"pads": [1, 0, 2, 1], "strides": [2, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"ceil_mode": 1, "strides": [2, 2]},
    ],
    ids=str,
)
def test_quantised_average_pool_is_within_a_step_of_onnxruntime(
    attributes: dict[str, Any], form: Form, tmp_path: Path
) -> None:
    path = quantised(averaged(kernel_shape=[3, 3], **attributes), tmp_path, form, SIDES)
    steps = steps_on_noise(path)
    assert len(steps) > 2
    assert max(steps.values()) <= 1, steps


def test_quantised_average_pool_with_too_many_divisors_is_refused(tmp_path: Path) -> None:
    path = quantised(averaged(kernel_shape=[7, 7], pads=[6, 6, 6, 6]), tmp_path, Form(), SIDES)
    with raises(SeveralFaultsError) as caught:
        read_onnx(path)
    (error,) = faults_of(caught.value, UnsupportedError)
    assert error.subject == "AveragePool '/AveragePool_2'"
    assert "16-bit" in error.reason


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_design_with_quantised_average_pool_equals_golden_model(style: str, tmp_path: Path) -> None:
    path = quantised(averaged(kernel_shape=[3, 3], pads=[1, 1, 1, 1]), tmp_path, Form(), SIDES)
    result = executed(path, style)
    assert result.mismatches == 0
    assert {"factors1", "multiply1"} <= {layer.name for layer in result.layers}
