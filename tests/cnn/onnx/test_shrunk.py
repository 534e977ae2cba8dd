"""Tests of Resize to fewer pixels, which takes some pixels or averages pairs of them: floats, integers and designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import ChoiceError, InvalidValueError, ShapeError, SystolicError, UnsupportedError
from cnn.onnx.network import network_of
from cnn.ops import Convolution, MaxPool, Upsample
from tests.support.cases import cases
from tests.support.errors import raises_among, refused
from tests.support.executed import executed
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 8, 12)
PLACES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric", "align_corners")
ROUNDED = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
NEAREST: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
LINEAR: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}


def resized(*factors: float, sides: tuple[int, ...] = SIDES, sizes: tuple[int, ...] = (), **attributes: Any) -> Any:
    """Write a Resize between two convolutions. ``sizes``, if given, replace the factors."""
    writer = Writer(18)
    source = convolved(writer, "picture", 3, 4, pads=[1] * 4)
    whole = [writer.constant(sizes, np.int64)] if sizes else [writer.constant(factors)]
    source = writer.put("Resize", [source, *[""] * (1 + bool(sizes)), *whole], **attributes)
    return writer.model([writer.put("Relu", [convolved(writer, source, 4, 5, pads=[1] * 4)])], sides)


@cases("place", PLACES[:3])
@cases("rounded", ROUNDED)
@cases("parts", [2, 3, 4])
def test_nearest_resize_by_a_fraction_equals_onnxruntime(place: str, rounded: str, parts: int) -> None:
    for sides in (SIDES, (1, 3, 12, 24), (1, 3, 9, 7)):
        how: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": place, "nearest_mode": rounded}
        check_against_runtime(resized(1, 1, 1 / parts, 1 / parts, sides=sides, **how), pixels(*sides[1:]))


@cases("place", PLACES[:4])
@cases("parts", [2, 3, 4, 5])
def test_linear_resize_by_a_fraction_equals_onnxruntime(place: str, parts: int) -> None:
    sides = (1, 3, 2 * parts, 3 * parts)
    how: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": place}
    check_against_runtime(resized(1, 1, 1 / parts, 1 / parts, sides=sides, **how), pixels(*sides[1:]))


def test_linear_resize_to_one_pixel_equals_onnxruntime() -> None:
    """Use an output a third of a pixel down and five sixths of a pixel across."""
    network = check_against_runtime(resized(1, 1, 0.6, 0.375, sides=(1, 3, 2, 4), **LINEAR), pixels(3, 2, 4))
    assert str(network.nodes[2].shape) == "4×1×1"


def test_smaller_resize_with_aligned_corners_equals_onnxruntime() -> None:
    for mode in ("nearest", "linear"):
        how: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
        for sides, sizes in (
            ((1, 3, 9, 13), (1, 4, 5, 7)),
            ((1, 3, 7, 10), (1, 4, 3, 4)),
            ((1, 3, 7, 10), (1, 4, 1, 4)),
        ):
            check_against_runtime(resized(sides=sides, sizes=sizes, **how), pixels(*sides[1:]))


@cases(
    "factors, attributes",
    [
        ((0.5, 0.5), {"axes": [2, 3], **NEAREST}),
        ((0.5, 0.5), {"axes": [3, 2], **LINEAR}),
        ((2, 3), {"axes": [3, 2], **NEAREST}),
        ((2,), {"axes": [3], **LINEAR}),
        ((1, 1, 0.5, 2), NEAREST),
        ((1, 1, 3, 0.25), NEAREST),
        ((1, 1, 0.6, 0.6), {"mode": "nearest"}),
    ],
)
def test_resize_with_axes_and_unequal_factors_equals_onnxruntime(
    factors: tuple[float, ...], attributes: dict[str, Any]
) -> None:
    sides = (1, 3, 2, 4) if 0.6 in factors else SIDES
    if factors == (1, 1, 0.5, 2):  # a single row is left, or there is one
        sides = (1, 3, 2, 12)
    if factors == (1, 1, 3, 0.25):
        sides = (1, 3, 1, 12)
    check_against_runtime(resized(*factors, sides=sides, **attributes), pixels(*sides[1:]))


@cases("policy", ["not_larger", "not_smaller"])
def test_resize_that_keeps_the_aspect_ratio_equals_onnxruntime(policy: str) -> None:
    model = resized(sizes=(4, 4), axes=[2, 3], keep_aspect_ratio_policy=policy, sides=(1, 3, 8, 16), **NEAREST)
    network = check_against_runtime(model, pixels(3, 8, 16))
    assert str(network.nodes[2].shape) == ("4×2×4" if policy == "not_larger" else "4×4×8")


def test_smaller_resize_becomes_a_pool_or_a_convolution() -> None:
    """Expect a pool of size 1 for the first of two pixels, and else a window of one pixel or of the averaged pixels."""
    kinds: list[Any] = []
    for attributes in (
        NEAREST,
        {**NEAREST, "nearest_mode": "ceil", "coordinate_transformation_mode": "half_pixel"},
        LINEAR,
    ):
        kinds.append(network_of(resized(1, 1, 0.5, 0.5, **attributes), "net.onnx", "net").nodes[2].op)
    assert kinds[0] == MaxPool(1, 2, kinds[0].padding)
    assert all(isinstance(op, Convolution) and op.stride == 2 and op.weights.shape == (4, 1, 2, 2) for op in kinds[1:])
    assert kinds[1].weights[0, 0].tolist() == [[0, 0], [0, 1]]
    assert kinds[2].weights[0, 0].tolist() == [[0.25, 0.25], [0.25, 0.25]]
    both = network_of(resized(1, 1, 0.5, 2, sides=(1, 3, 2, 12), **NEAREST), "net.onnx", "net")
    assert [type(node.op) for node in both.nodes[2:4]] == [Convolution, Upsample]


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
@pytest.mark.parametrize(
    "attributes",
    [NEAREST, {**NEAREST, "nearest_mode": "ceil", "coordinate_transformation_mode": "half_pixel"}, LINEAR],
    ids=["first", "second", "mean"],
)
def test_design_with_smaller_resize_equals_golden_model(attributes: dict[str, Any], style: str, tmp_path: Path) -> None:
    onnx.save(resized(1, 1, 0.5, 0.5, **attributes), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0
    assert sum(layer.values for layer in result.layers) > 100


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
@cases("attributes", [NEAREST, {**NEAREST, "nearest_mode": "ceil"}, LINEAR], ids=str)
@cases("parts", [2, 4])
def test_quantised_smaller_resize_is_within_a_step_of_onnxruntime(
    attributes: dict[str, Any], parts: int, form: Form, tmp_path: Path
) -> None:
    model = resized(1, 1, 1 / parts, 1 / parts, **attributes)
    steps = steps_on_noise(quantised(model, tmp_path, form, SIDES))
    assert len(steps) >= 3
    assert max(steps.values()) <= 1, steps


@cases(
    "factors, attributes, fault",
    [
        (
            (1, 1, 0.5, 0.5),
            {**LINEAR, "antialias": 1},
            UnsupportedError("Resize '/Resize_1'", "antialias is not supported for a smaller output"),
        ),
        (
            (0.5, 0.5),
            {**NEAREST, "axes": [1, 3]},
            InvalidValueError(
                "scales",
                [1.0, 0.5, 1.0, 0.5],
                "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more",
                where="Resize '/Resize_1'",
            ),
        ),
        (
            (0.5, 0.5),
            {**NEAREST, "axes": [3, 3]},
            InvalidValueError("axes", (3, 3), "different axes of a map of 4 sides", where="Resize '/Resize_1'"),
        ),
        (
            (0.5, 0.5),
            {**NEAREST, "axes": [3, 9]},
            InvalidValueError("axes", (3, 9), "different axes of a map of 4 sides", where="Resize '/Resize_1'"),
        ),
        (
            (0.5,),
            {**NEAREST, "axes": [2, 3]},
            ShapeError("scales", "1 numbers", "2 numbers", where="Resize '/Resize_1'"),
        ),
        (
            (1, 1, 1.05, 1.05),
            NEAREST,
            UnsupportedError(
                "Resize '/Resize_1'",
                "onnx and onnxruntime differ for scales of 1.05 and 1.05 that keep the number of pixels; set them to 1",
            ),
        ),
        (
            (1, 1, 1e-7, 0.5),
            NEAREST,
            InvalidValueError(
                "scales",
                [1.0, 1.0, 1.0000000116860974e-07, 0.5],
                "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more",
                where="Resize '/Resize_1'",
            ),
        ),
        (
            (1, 1, 3e38, 3e38),
            NEAREST,
            InvalidValueError(
                "scales",
                3.0000000054977558e38,
                "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more",
                where="Resize '/Resize_1'",
            ),
        ),
        (
            (1, 1, 0.5, 0.5),
            {**LINEAR, "coordinate_transformation_mode": "tf_crop_and_resize"},
            ChoiceError(
                "coordinate_transformation_mode",
                "tf_crop_and_resize",
                ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"),
                where="Resize '/Resize_1'",
            ),
        ),
    ],
)
def test_unsupported_resize_is_refused(
    factors: tuple[float, ...], attributes: dict[str, Any], fault: SystolicError
) -> None:
    with refused(fault):
        network_of(resized(*factors, **attributes), "net.onnx", "net")


def test_resize_with_wrong_sizes_or_policy_is_refused() -> None:
    for sizes, policy in (((1, 4, 4), "stretch"), ((1, 4, 0, 4), "stretch"), ((1, 4, 4, 4), "closest")):
        what = "sizes" if policy == "stretch" else "keep_aspect_ratio_policy"
        with raises_among(InvalidValueError if policy == "stretch" else ChoiceError, what=what):
            network_of(resized(sizes=sizes, keep_aspect_ratio_policy=policy, **NEAREST), "net.onnx", "net")
