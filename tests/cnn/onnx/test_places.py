"""Tests of the input positions of a Resize's outputs, by the documented formulas, one pixel at a time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from boards.errors import RangeError
from cnn.maps import Padding
from cnn.onnx.graph import RefusedError
from cnn.onnx.network import read_model
from cnn.onnx.resizing import ResizedSide
from cnn.ops import Convolution
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.onnx.writer import Writer


def half_pixel(x: int, length: int, factor: int) -> float:
    return (x + 0.5) / factor - 0.5


PLACES: dict[str, Callable[[int, int, int], float]] = {
    "half_pixel": half_pixel,
    "half_pixel_symmetric": half_pixel,
    "pytorch_half_pixel": lambda x, length, factor: half_pixel(x, length, factor) if length * factor > 1 else 0.0,
    "asymmetric": lambda x, length, factor: x / factor,
    "align_corners": lambda x, length, factor: x * (length - 1) / max(1, length * factor - 1),
}
ROUNDED: dict[str, Callable[[float], int]] = {
    "round_prefer_floor": lambda place: math.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: math.floor(place + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


@cases("mode", PLACES)
@cases("nearest", ROUNDED)
def test_nearest_position_equals_the_formula(mode: str, nearest: str) -> None:
    for length in (1, 2, 3, 5):
        for factor in (1, 2, 3, 4):
            places = [ROUNDED[nearest](PLACES[mode](x, length, factor)) for x in range(length * factor)]
            expected = [min(max(place, 0), length - 1) for place in places]
            side = ResizedSide(length, length * factor, factor)
            if (mode, factor, length > 1) == ("half_pixel_symmetric", 3, True) and nearest in ("floor", "ceil"):
                with raises(RefusedError):  # the position is too close to the middle between two pixels
                    side.nearest(mode, nearest)
                continue
            assert side.nearest(mode, nearest).tolist() == expected, (length, factor)


def test_single_value_is_a_map_and_missing_opset_is_refused() -> None:
    writer = Writer()
    model = writer.model([writer.put("GlobalAveragePool", ["picture"])], (1, 1, 3, 3))
    assert read_model(model, "net.onnx", "net").network.nodes[-1].shape.values == 1
    del model.opset_import[:]
    with raises(RangeError, what="the opset", got=0, remedy="convert the file with onnx.version_converter"):
        read_model(model, "net.onnx", "net")


def test_auto_pad_valid_adds_no_padding() -> None:
    writer = Writer()
    kernel = writer.constant(np.ones((2, 3, 3, 2)))
    model = writer.model([writer.put("Conv", ["picture", kernel], auto_pad="VALID")], (1, 3, 7, 7))
    node = read_model(model, "net.onnx", "net").network.nodes[-1]
    assert (node.shape.height, node.shape.width) == (5, 6)
    assert isinstance(node.op, Convolution)
    assert node.op.padding == Padding()
