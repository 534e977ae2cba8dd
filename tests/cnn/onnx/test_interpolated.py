"""Resize in mode linear: means of repeated pixels, at the border too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import NetworkError
from cnn.network import Multiply
from cnn.onnx.network import network_of, read_onnx
from tests.cnn.onnx.quantising import Form, quantised, steps_on_noise
from tests.cnn.onnx.test_network import check_against_runtime, convolved, pixels
from tests.cnn.onnx.writer import Writer
from tests.executed import executed

SIDES = (1, 3, 4, 5)
HALF, CORNERS = "half_pixel", "align_corners"


def resized(place: str, *size: float, sides: tuple[int, ...] = SIDES) -> Any:
    """Resize between two convolutions; size: factors, or of aligned corners height and width."""
    writer = Writer()
    source = writer.put("Relu", [convolved(writer, "picture", 3, 4, pads=[1] * 4)])
    whole = writer.constant([1, 4, *size], np.int64) if place == CORNERS else writer.constant([1, 1, *size])
    inputs = [source, "", "", whole] if place == CORNERS else [source, "", whole]
    source = writer.put("Resize", inputs, mode="linear", coordinate_transformation_mode=place)
    return writer.model([writer.put("Relu", [convolved(writer, source, 4, 5, pads=[1] * 4)])], sides)


@pytest.mark.parametrize("place", [HALF, "pytorch_half_pixel", "asymmetric"])
@pytest.mark.parametrize("factors", [(2, 2), (3, 3), (2, 3), (1, 4), (5, 1), (8, 7)])
def test_by_whole_factors(place: str, factors: tuple[int, int]) -> None:
    for sides in (SIDES, (1, 3, 1, 4), (1, 3, 2, 1)):
        check_against_runtime(resized(place, *factors, sides=sides), pixels(*sides[1:]))


@pytest.mark.parametrize("size", [(7, 9), (10, 5), (4, 13), (13, 17)])
def test_with_aligned_corners(size: tuple[int, int]) -> None:
    network = check_against_runtime(resized(CORNERS, *size), pixels(*SIDES[1:]))
    assert not any(isinstance(node.op, Multiply) for node in network.nodes)


def test_as_older_files_have_it() -> None:
    writer = Writer(9)
    source = convolved(writer, "picture", 3, 4)
    model = writer.model([writer.put("Upsample", [source, writer.constant([1, 1, 2, 3])], mode="linear")], SIDES)
    check_against_runtime(model, pixels(*SIDES[1:]))


@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_designs_are_golden(style: str, tmp_path: Path) -> None:
    onnx.save(resized(HALF, 2, 2), tmp_path / "net.onnx")
    result = executed(tmp_path / "net.onnx", style)
    assert result.mismatches == 0
    assert {"interpolate1", "factors1"} <= {layer.name for layer in result.layers}


@pytest.mark.parametrize("form", [Form(), Form(activations="QUInt8")], ids=str)
def test_what_onnxruntime_quantises_keeps_its_integers(form: Form, tmp_path: Path) -> None:
    steps = steps_on_noise(quantised(resized(CORNERS, 7, 9), tmp_path, form, SIDES))
    assert max(steps.values()) <= 1, steps
    with pytest.raises(NetworkError, match="its factor differs at the border, and a quantised file has no integers"):
        read_onnx(quantised(resized(HALF, 2, 2), tmp_path, form, SIDES))


@pytest.mark.parametrize(
    ("place", "size", "sentence"),
    [
        (HALF, (1.01, 2), "a window of at most 64 is needed, not"),
        (HALF, (64, 2), "pixels are interpolated 63 times at most, not 64"),
        ("tf_half_pixel_for_nn", (2, 2), "'tf_half_pixel_for_nn' is not interpolated"),
    ],
)
def test_what_is_not_interpolated(place: str, size: tuple[float, float], sentence: str) -> None:
    with pytest.raises(NetworkError) as caught:
        network_of(resized(place, *size), "net.onnx", "net")
    assert sentence in str(caught.value)
