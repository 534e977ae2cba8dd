"""Tests of enlarged maps: depth to space, transposed convolutions and repeated pixels, as floats and as designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import InvalidValueError, RangeError, ShapeError, SystolicError
from cnn.float_model import run_float
from cnn.onnx.network import network_of
from cnn.ops import Convolution, DepthToSpace
from tests.support.cases import cases
from tests.support.errors import raises_among, refused
from tests.support.executed import executed
from tests.support.onnx.decoder import SIDES, decoder
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer


def transposed(shape: tuple[int, ...], sides: tuple[int, ...] = SIDES, **attributes: Any) -> Any:
    """Write a ConvTranspose of the image with a bias. The weights have the shape (inputs, outputs per group,
    kernel)."""
    writer, random = Writer(), np.random.default_rng(1)
    arrays = [random.normal(0, 0.3, shape), random.normal(size=shape[1] * attributes.get("group", 1))]
    source = writer.put("ConvTranspose", ["picture", *map(writer.constant, arrays)], **attributes)
    return writer.model([writer.put("Relu", [source])], sides)


@cases(
    "kernel, strides, attributes",
    [
        ((2, 2), [2, 2], {}),
        ((3, 3), [2, 2], {"pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((3, 3), [2, 2], {}),
        ((4, 4), [2, 2], {"pads": [1, 1, 1, 1]}),
        ((4, 3), [2, 3], {"pads": [1, 0, 0, 2]}),
        ((5, 2), [3, 1], {"pads": [2, 0, 2, 1]}),
        ((2, 2), [3, 3], {}),
        ((2, 2), [3, 3], {"output_padding": [2, 1]}),
        ((1, 1), [2, 2], {}),
        ((3, 3), [1, 1], {"pads": [1, 1, 1, 1]}),
        ((3, 3), [2, 2], {"dilations": [2, 1]}),
        ((3, 3), [2, 2], {"auto_pad": "SAME_UPPER"}),
        ((3, 3), [2, 2], {"auto_pad": "SAME_LOWER"}),
        ((3, 3), [2, 2], {"output_shape": [10, 15]}),
        ((3, 3), [2, 2], {"output_shape": [9, 14], "auto_pad": "SAME_UPPER"}),
        ((3, 3), [2, 3], {"output_shape": [12, 23]}),
        ((4, 4), [4, 4], {"pads": [3, 3, 3, 3]}),
        ((7, 7), [2, 2], {"pads": [6, 6, 5, 6]}),
    ],
)
@cases("group", [1, 3])
def test_conv_transpose_equals_onnxruntime(
    kernel: tuple[int, int], strides: list[int], attributes: dict[str, Any], group: int
) -> None:
    model = transposed((3, 2, *kernel), strides=strides, group=group, **attributes)
    check_against_runtime(model, pixels(*SIDES[1:]))


def test_conv_transpose_of_a_signal_equals_onnxruntime() -> None:
    model, signal = transposed((3, 4, 4), (1, 3, 9), strides=[2], pads=[1, 1]), pixels(3, 9)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": signal[None]})[0]
    network = network_of(model, "net.onnx", "net")
    np.testing.assert_allclose(run_float(network, signal[:, None])[-1][:, 0], expected[0], atol=1e-5)


def test_conv_transpose_multiplies_no_zeros_between_pixels() -> None:
    network = network_of(transposed((3, 4, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1]), "net.onnx", "net")
    convolution, spread = network.nodes[1:3]
    assert isinstance(convolution.op, Convolution)
    assert convolution.op.weights.shape == (16, 3, 3, 3)
    assert spread.op == DepthToSpace(2, 2)
    assert str(spread.shape) == "4×10×14"


@cases("mode", ["DCR", "CRD"])
@cases("blocksize", [1, 2, 3])
def test_depth_to_space_equals_onnxruntime(mode: str, blocksize: int) -> None:
    writer = Writer()
    source = convolved(writer, "picture", 3, 2 * blocksize**2)
    model = writer.model([writer.put("DepthToSpace", [source], blocksize=blocksize, mode=mode)], SIDES)
    check_against_runtime(model, pixels(*SIDES[1:]))


@cases("factors", [(2, 3), (1, 4), (5, 1)])
def test_resize_by_two_unequal_factors_equals_onnxruntime(factors: tuple[int, int]) -> None:
    writer = Writer()
    modes: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    source = convolved(writer, "picture", 3, 4)
    model = writer.model(
        [writer.put("Resize", [source, "", writer.constant([1, 1, *factors])], mode="nearest", **modes)], SIDES
    )
    check_against_runtime(model, pixels(*SIDES[1:]))


@cases("mode", ["linear", "cubic", "nearest"])
def test_resize_of_a_single_pixel_equals_onnxruntime_in_any_mode(mode: str) -> None:
    """Resize the mean of the whole map, as feature pyramids do."""
    writer = Writer()
    source = writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])
    sizes = writer.constant([1, 4, 3, 5], np.int64)
    model = writer.model([writer.put("Resize", [source, "", "", sizes], mode=mode)], SIDES)
    check_against_runtime(model, pixels(*SIDES[1:]))


@cases("form", [Form(), Form(per_channel=True), Form(activations="QUInt8")], ids=str)
@cases("mode", ["DCR", "CRD"])
def test_quantised_decoder_is_within_a_step_of_onnxruntime(mode: str, form: Form, tmp_path: Path) -> None:
    path = quantised(decoder(mode), tmp_path, form, SIDES)
    steps = steps_on_noise(path)
    assert max(steps.values()) <= 1, steps


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
def test_design_of_a_decoder_equals_golden_model(tmp_path: Path, style: str) -> None:
    onnx.save(decoder("CRD", (0, 1, 1, 0)), tmp_path / "net.onnx")
    assert executed(tmp_path / "net.onnx", style).mismatches == 0


@cases(
    "shape, attributes, fault",
    [
        (
            (2, 4, 2, 2),
            {},
            ShapeError(
                "weights",
                (2, 4, 2, 2),
                "3 input channels in 1 groups, and no side of 0",
                where="ConvTranspose '/ConvTranspose_0'",
            ),
        ),
        (
            (3, 4, 2, 2),
            {"strides": [0, 2]},
            InvalidValueError("strides", (0, 2), "two numbers of 1 to 64", where="ConvTranspose '/ConvTranspose_0'"),
        ),
        (
            (3, 4, 2, 2),
            {"pads": [5, 9, 5, 9]},
            RangeError("a side of its output", -4, 1, 65536, where="ConvTranspose '/ConvTranspose_0'"),
        ),
        (
            (3, 4, 2),
            {},
            ShapeError(
                "weights", (3, 4, 2), "4 sides, the same number as its input", where="ConvTranspose '/ConvTranspose_0'"
            ),
        ),
        (
            (3, 4, 2, 2),
            {"dilations": [5000, 1]},
            RangeError("rows or columns of a window", 5001, 1, 4095, where="ConvTranspose '/ConvTranspose_0'"),
        ),
    ],
)
def test_wrong_conv_transpose_is_refused(
    shape: tuple[int, ...], attributes: dict[str, Any], fault: SystolicError
) -> None:
    with refused(fault):
        network_of(transposed(shape, **attributes), "net.onnx", "net")


def test_depth_to_space_of_indivisible_channels_is_refused() -> None:
    writer = Writer()
    model = writer.model([writer.put("DepthToSpace", [convolved(writer, "picture", 3, 6)], blocksize=2)], SIDES)
    with raises_among(
        InvalidValueError, what="blocksize", got=2, required="a number whose square divides the channels of 6×3×5"
    ):
        network_of(model, "net.onnx", "net")
