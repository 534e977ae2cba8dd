"""Tests of Resize in mode linear, by averages of repeated pixels or weighted pairs, up to the border."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import ChoiceError, RangeError, SystolicError, UnsupportedError
from cnn.onnx.network import network_of
from cnn.ops import Convolution, Multiply
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.executed import executed
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 4, 5)
HALF, CORNERS = "half_pixel", "align_corners"


def resized(place: str, *size: float, sides: tuple[int, ...] = SIDES) -> Any:
    """Write a Resize between two convolutions. The size is two factors or, with aligned corners, height and width."""
    writer = Writer()
    source = writer.put("Relu", [convolved(writer, "picture", 3, 4, pads=[1] * 4)])
    whole = writer.constant([1, 4, *size], np.int64) if place == CORNERS else writer.constant([1, 1, *size])
    inputs = [source, "", "", whole] if place == CORNERS else [source, "", whole]
    source = writer.put("Resize", inputs, mode="linear", coordinate_transformation_mode=place)
    return writer.model([writer.put("Relu", [convolved(writer, source, 4, 5, pads=[1] * 4)])], sides)


@cases("place", [HALF, "pytorch_half_pixel", "asymmetric"])
@cases("factors", [(2, 2), (3, 3), (2, 3), (1, 4), (5, 1), (8, 7)])
def test_linear_resize_by_whole_factors_equals_onnxruntime(place: str, factors: tuple[int, int]) -> None:
    for sides in (SIDES, (1, 3, 1, 4), (1, 3, 2, 1)):
        check_against_runtime(resized(place, *factors, sides=sides), pixels(*sides[1:]))


@cases("size", [(7, 9), (10, 5), (4, 13), (13, 17)])
def test_linear_resize_with_aligned_corners_equals_onnxruntime(size: tuple[int, int]) -> None:
    network = check_against_runtime(resized(CORNERS, *size), pixels(*SIDES[1:]))
    assert not any(isinstance(node.op, Multiply) for node in network.nodes)


@cases("place", [HALF, "asymmetric", "pytorch_half_pixel"])
@cases("factors", [(1.5, 1.5), (1.25, 1), (1, 1.75), (4 / 3, 1.5), (2.5, 0.4), (0.3, 1.2), (1.5, 3)])
def test_linear_resize_by_ratios_equals_onnxruntime(place: str, factors: tuple[float, float]) -> None:
    for sides in ((1, 3, 8, 12), (1, 3, 5, 7), (1, 3, 1, 6), (1, 3, 4, 1)):
        if min(int(side * np.float32(factor)) for side, factor in zip(sides[2:], factors, strict=True)) > 0:
            check_against_runtime(resized(place, *factors, sides=sides), pixels(*sides[1:]))


@cases(
    "size, strides",
    [
        ((12, 12), {2: 9}),  # a ratio of 3/2
        ((10, 10), {4: 25}),  # 5/4; one side after the other would need 20 and 20
        ((12, 10), {2: 6, 4: 20}),  # 3/2 and 5/4; both at once would need 6 · 5
    ],
)
def test_resize_by_a_ratio_has_one_convolution_per_position_in_a_block(
    size: tuple[int, int], strides: dict[int, int]
) -> None:
    """Check also that no map is larger than the output."""
    network = network_of(resized(HALF, size[0] / 8, size[1] / 8, sides=(1, 3, 8, 8)), "net.onnx", "net")
    ops = [node.op for node in network.nodes if node.name.startswith("conv")]
    windows = Counter(op.stride for op in ops if isinstance(op, Convolution) and op.stride > 1)
    assert windows == strides
    assert max(node.shape.height * node.shape.width for node in network.nodes) == size[0] * size[1]


@cases(
    "place, sides, size, convolutions",
    [
        (CORNERS, (8, 6), (16, 12), 16 + 12),  # twice the size, as in PyTorch with align_corners=True
        (CORNERS, (16, 24), (32, 48), 32 + 48),
        (CORNERS, (8, 6), (16, 6), 16),  # only rows
        (HALF, (16, 16), (18, 18), 18 + 18),
    ],
)
def test_resize_with_rarely_repeating_weights_has_one_convolution_per_output(
    place: str, sides: tuple[int, int], size: tuple[int, int], convolutions: int
) -> None:
    asked = size if place == CORNERS else (size[0] / sides[0], size[1] / sides[1])
    model = resized(place, *asked, sides=(1, 3, *sides))
    network = check_against_runtime(model, pixels(3, *sides))
    assert (network.nodes[-1].shape.height, network.nodes[-1].shape.width) == size
    parts = [node for node in network.nodes if node.name.startswith("conv")]
    assert len(parts) == 2 + convolutions, "one per row and column, and two around them"


def test_upsample_of_opset_9_equals_onnxruntime() -> None:
    writer = Writer(9)
    source = convolved(writer, "picture", 3, 4)
    model = writer.model([writer.put("Upsample", [source, writer.constant([1, 1, 2, 3])], mode="linear")], SIDES)
    check_against_runtime(model, pixels(*SIDES[1:]))


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
@pytest.mark.parametrize("factor", [2, 1.5])
def test_design_with_linear_resize_equals_golden_model(factor: float, style: str, tmp_path: Path) -> None:
    onnx.save(resized(HALF, factor, factor, sides=(1, 3, 4, 6)), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0
    assert {"interpolate1" if factor == 2 else "conv10", "factors1"} <= {layer.name for layer in result.layers}


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
def test_quantised_linear_resize_with_aligned_corners_is_within_a_step_of_onnxruntime(
    form: Form, tmp_path: Path
) -> None:
    for size in ((7, 9), (5, 9), (6, 7)):  # by whole factors, and by 4/3 and 3/2
        steps = steps_on_noise(quantised(resized(CORNERS, *size), tmp_path, form, SIDES))
        assert max(steps.values()) <= 1, steps


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
@cases("factors", [(2, 2), (3, 1), (1, 4), (1.5, 1.5)])
def test_quantised_linear_resize_is_within_a_step_of_onnxruntime_at_the_border(
    factors: tuple[float, float], form: Form, tmp_path: Path
) -> None:
    steps = steps_on_noise(quantised(resized(HALF, *factors), tmp_path, form, SIDES))
    assert len(steps) > 2
    assert max(steps.values()) <= 1, steps


@cases(
    "place, size, fault",
    [
        (
            HALF,
            (33 / 8, 33 / 8),
            RangeError(
                "convolutions to resize 16×16 to 66×16 pixels",
                66,
                1,
                64,
                where="Resize '/Resize_2'",
                remedy="resize by a ratio of smaller integers",
            ),
        ),
        (
            HALF,
            (1.05, 1),
            UnsupportedError(
                "Resize '/Resize_2'",
                "onnx and onnxruntime differ for scales of 1.05 and 1 that keep the number of pixels; set them to 1",
            ),
        ),
        (HALF, (64, 2), RangeError("the factor of an interpolated side", 64, 1, 63, where="Resize '/Resize_2'")),
        (
            "tf_half_pixel_for_nn",
            (2, 2),
            ChoiceError(
                "coordinate_transformation_mode",
                "tf_half_pixel_for_nn",
                ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"),
                where="Resize '/Resize_2'",
            ),
        ),
    ],
)
def test_unsupported_linear_resize_is_refused(place: str, size: tuple[float, float], fault: SystolicError) -> None:
    with refused(fault):
        network_of(resized(place, *size, sides=(1, 3, 16, 16)), "net.onnx", "net")
