"""Tests of MaxPool with dilations, which is computed by pools of smaller maps: floats, integers and designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import InvalidValueError, RangeError, ShapeError, SystolicError, UnsupportedError
from cnn.float_model import run_float
from cnn.onnx.network import network_of
from cnn.ops import Convolution, DepthToSpace, MaxPool, Reorg
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.executed import executed
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 8, 12)


def pooled(sides: tuple[int, ...] = SIDES, channels: int = 4, **attributes: Any) -> Any:
    """Write a pool of values of both signs between two convolutions."""
    writer = Writer()
    source = convolved(writer, "picture", sides[1], channels, pads=[1] * 4)
    source = writer.put("MaxPool", [source], **attributes)
    weights = np.random.default_rng(1).normal(0, 0.3, (5, channels, 1, 1))
    return writer.model([writer.put("Conv", [source, writer.constant(weights)])], sides)


def of(size: int, step: int, **attributes: Any) -> dict[str, Any]:
    return {"kernel_shape": [size] * 2, "dilations": [step] * 2, **attributes}


FORMS = [
    of(3, 2, pads=[2] * 4),  # keeps the size of the map, as in segmentation networks
    of(2, 2),
    of(3, 2, strides=[2, 2], pads=[2] * 4),
    of(3, 2, strides=[4, 4], pads=[1, 2, 1, 2]),
    of(3, 2, strides=[3, 3], pads=[1, 0, 2, 1]),
    of(2, 3, pads=[1, 0, 1, 1]),
    of(3, 3, strides=[2, 2], pads=[2] * 4, ceil_mode=1),
    of(3, 3, strides=[3, 3], pads=[1, 2, 0, 1]),
    of(2, 5, pads=[0, 1, 1, 0]),
    of(1, 7),
    {"kernel_shape": [3, 2], "dilations": [2, 3]},
    {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [3, 1], "pads": [1, 2, 0, 1]},
    {"kernel_shape": [3, 1], "dilations": [2, 1], "strides": [1, 2]},
    {"kernel_shape": [2, 2], "dilations": [2, 2], "strides": [4, 2]},
    {"kernel_shape": [2, 2], "dilations": [2, 2], "strides": [7, 7]},  # no window reads some of the rows
]


@cases("attributes", FORMS, ids=str)
@cases("sides", [SIDES, (1, 3, 9, 7), (1, 3, 6, 13)], ids=str)
def test_dilated_pool_equals_onnxruntime(attributes: dict[str, Any], sides: tuple[int, ...]) -> None:
    check_against_runtime(pooled(sides, **attributes), pixels(*sides[1:]))


@cases("mode", ["SAME_UPPER", "SAME_LOWER"])
@cases("strides", [{}, {"strides": [1, 3]}, {"strides": [2, 3]}], ids=str)
def test_pool_with_automatic_padding_equals_onnxruntime(strides: dict[str, Any], mode: str) -> None:
    """Use 8 rows and 11 columns, in which the last window of a stride of 3 is complete."""
    sides = (1, 3, 8, 11)
    attributes = {"kernel_shape": [1 + ("strides" in strides), 2], "auto_pad": mode, **strides}
    check_against_runtime(pooled(sides, **attributes), pixels(*sides[1:]))


@cases("length, stride", [(16, 1), (17, 1), (17, 2), (19, 3)])
def test_dilated_pool_of_a_signal_equals_onnxruntime(length: int, stride: int) -> None:
    writer = Writer()
    attributes: dict[str, Any] = {"kernel_shape": [3], "dilations": [2], "strides": [stride], "pads": [1, 2]}
    model = writer.model([writer.put("Relu", [writer.put("MaxPool", ["picture"], **attributes)])], (1, 3, length))
    network = network_of(model, "net.onnx", "net")
    signal = pixels(3, length) - np.float32(0.5)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": signal[None]})[0]
    np.testing.assert_array_equal(run_float(network, signal[:, None])[-1][:, 0], expected[0])


def test_dilated_pool_of_whole_parts_uses_one_pool() -> None:
    """Check also that no convolution is needed to rearrange the map."""
    network = network_of(pooled(**of(3, 2, pads=[2] * 4)), "net.onnx", "net")
    kinds = [type(node.op) for node in network.nodes[1:]]
    assert kinds == [Convolution, Reorg, MaxPool, DepthToSpace, Convolution]
    assert str(network.nodes[3].shape) == "16×4×6"


def test_dilated_pool_with_equal_stride_reads_one_part() -> None:
    network = network_of(pooled(**of(2, 2, strides=[2, 2])), "net.onnx", "net")
    assert [node.op.stride for node in network.nodes if isinstance(node.op, MaxPool)] == [2, 1]
    assert len(network.nodes) == 5


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
@pytest.mark.parametrize(
    "attributes", [FORMS[0], of(3, 2, strides=[3, 3], pads=[1, 0, 2, 1]), of(2, 3, pads=[1, 0, 1, 1])], ids=str
)
def test_design_with_dilated_pool_equals_golden_model(attributes: dict[str, Any], style: str, tmp_path: Path) -> None:
    onnx.save(pooled(**attributes), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0
    assert sum(layer.values for layer in result.layers) > 500


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
@cases("attributes", FORMS[:6], ids=str)
def test_quantised_dilated_pool_is_within_a_step_of_onnxruntime(
    attributes: dict[str, Any], form: Form, tmp_path: Path
) -> None:
    steps = steps_on_noise(quantised(pooled(**attributes), tmp_path, form, SIDES))
    assert len(steps) >= 3
    assert max(steps.values()) <= 1, steps


@cases(
    "attributes, fault",
    [
        (of(3, 0), InvalidValueError("dilations", (0, 0), "two numbers of 1 or more", where="MaxPool '/MaxPool_1'")),
        (
            {"kernel_shape": [3, 3], "dilations": [2]},
            InvalidValueError("dilations", (2,), "two numbers of 1 or more", where="MaxPool '/MaxPool_1'"),
        ),
        (
            of(3, 2, auto_pad="SAME_UPPER"),
            UnsupportedError(
                "MaxPool '/MaxPool_1'",
                "onnx and onnxruntime read auto_pad of such a pool differently; give it explicit pads",
            ),
        ),
        (
            of(1, 1, strides=[3, 3], auto_pad="SAME_LOWER"),
            UnsupportedError(
                "MaxPool '/MaxPool_1'",
                "onnx and onnxruntime read auto_pad of such a pool differently; give it explicit pads",
            ),
        ),
        (
            {
                "kernel_shape": [2, 2],
                "strides": [1, 3],
                "auto_pad": "SAME_UPPER",
            },  # one column is unread
            UnsupportedError(
                "MaxPool '/MaxPool_1'",
                "onnx and onnxruntime read auto_pad of such a pool differently; give it explicit pads",
            ),
        ),
        (
            of(3, 1 << 40),
            ShapeError(
                "its padded input",
                "4×8×12 before padding",
                "at least the window's (2199023255553, 2199023255553) places",
                where="MaxPool '/MaxPool_1'",
            ),
        ),
        (of(150, 2, pads=[149] * 4), RangeError("places of a window", 22500, 1, 16384, where="MaxPool '/MaxPool_1'")),
        (
            of(2, 2, pads=[4] * 4),
            UnsupportedError(
                "MaxPool '/MaxPool_1'",
                "a part of a pool with a window of 2 and a dilation of 2 would read only padding",
            ),
        ),
        (
            of(2, 50, pads=[49] * 4),
            UnsupportedError(
                "MaxPool '/MaxPool_1'",
                "a part of a pool with a window of 2 and a dilation of 50 would read only padding",
            ),
        ),
    ],
)
def test_wrong_dilated_pool_is_refused(attributes: dict[str, Any], fault: SystolicError) -> None:
    with refused(fault):
        network_of(pooled(**attributes), "net.onnx", "net")
