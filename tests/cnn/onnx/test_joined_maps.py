"""Tests of maps that are added, multiplied and compared, of one shape or broadcast: floats, integers and designs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import ShapeError
from cnn.onnx.network import network_of, read_onnx
from cnn.ops import Multiply
from tests.support.cases import cases
from tests.support.errors import raises_among
from tests.support.executed import executed
from tests.support.onnx.integers import Integers
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 6, 9)
KINDS = ("Add", "Sub", "Mul", "Max", "Min")


def pointwise(writer: Writer, source: str, channels: int, filters: int) -> str:
    """Write a 1×1 convolution."""
    weights = np.random.default_rng(filters).normal(0, 0.5, (filters, channels, 1, 1))
    return writer.put("Conv", [source, writer.constant(weights)])


def gate(writer: Writer, source: str, channels: int) -> str:
    """Write a value per channel, as in squeeze and excitation."""
    squeezed = writer.put("GlobalAveragePool", [source])
    return writer.put("HardSigmoid", [pointwise(writer, squeezed, channels, channels)], alpha=1 / 6, beta=0.5)


def excited(side: Callable[[Writer, str], str], kind: str = "Mul", swapped: bool = False) -> Any:
    """Write a join of a map with the output of ``side`` for it."""
    writer = Writer()
    source = writer.put("Relu", [convolved(writer, "picture", 3, 4)])
    maps = [source, side(writer, source)]
    joined = writer.put(kind, maps[::-1] if swapped else maps)
    return writer.model([writer.put("Relu", [convolved(writer, joined, 4, 2)])], SIDES)


def channels(writer: Writer, source: str) -> str:
    return gate(writer, source, 4)


def positions(writer: Writer, source: str) -> str:
    return writer.put("Sigmoid", [pointwise(writer, source, 4, 1)])


@cases("swapped", [False, True])
@cases("side", [channels, positions])
@cases("kind", KINDS)
def test_join_with_a_broadcast_map_equals_onnxruntime(
    kind: str, side: Callable[[Writer, str], str], swapped: bool
) -> None:
    check_against_runtime(excited(side, kind, swapped), pixels(*SIDES[1:]))


def test_join_of_three_shapes_equals_onnxruntime() -> None:
    writer = Writer()
    source = convolved(writer, "picture", 3, 4)
    maps = [source, channels(writer, source), positions(writer, source)]
    check_against_runtime(writer.model([writer.put("Max", maps)], SIDES), pixels(*SIDES[1:]))


def test_join_of_maps_that_do_not_fit_is_refused() -> None:
    writer = Writer()
    pooled = writer.put("MaxPool", ["picture"], kernel_shape=[2, 2], strides=[2, 2])
    joined = writer.put("Mul", [pointwise(writer, "picture", 3, 4), pointwise(writer, pooled, 3, 4)])
    with raises_among(ShapeError, what="its maps", got="4×6×9, 4×3×4", required="one shape"):
        network_of(writer.model([joined], SIDES), "net.onnx", "net")


def joined_integers(kind: str, second: tuple[float, int], squeezed: bool = False) -> Any:
    """Write the float operator between integer maps of the file."""
    writer = Integers()
    maps: list[str] = []
    for scale, zero in ((0.05, -7), second):
        integers = writer.convolved(scale, zero)
        if squeezed and maps:
            grid = writer.grid(0.01, 4)
            pool = writer.put("QLinearGlobalAveragePool", [*integers, *grid], domain="com.microsoft", channels_last=0)
            integers = [pool, *grid]
        maps.append(writer.put("DequantizeLinear", integers))
    grid = writer.grid(0.09, 5)
    return writer.floats([writer.put("QuantizeLinear", [writer.put(kind, maps), *grid]), *grid])


@cases("squeezed", [False, True])
@cases("second", [(0.05, -7), (0.04, 3), (0.08, -128), (0.03, 0)])
@cases("kind", KINDS)
def test_join_of_integer_maps_is_within_a_step_of_onnxruntime(
    kind: str, second: tuple[float, int], squeezed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(joined_integers(kind, second, squeezed), path)
    for seed in range(3):
        steps = steps_on_noise(path, seed)
        assert max(steps.values()) <= 1, steps


FORMS = [Form(), Form(activations="QUInt8", symmetric=True), Form("QOperator", per_channel=True)]


@cases("form", FORMS, ids=str)
def test_quantised_squeeze_and_excitation_is_within_a_step_of_onnxruntime(form: Form, tmp_path: Path) -> None:
    path = quantised(excited(channels), tmp_path, form, SIDES)
    read = read_onnx(path)
    assert any(isinstance(node.op, Multiply) for node in read.network.nodes)
    assert max(steps_on_noise(path).values()) <= 1


@pytest.mark.engine
def test_design_with_squeeze_and_excitation_equals_golden_model(tmp_path: Path) -> None:
    assert executed(quantised(excited(channels), tmp_path, FORMS[0], SIDES), "streaming").mismatches == 0


# --- maps that a concat gives one type --------------------------------------------------------------------------------


def capped(writer: Writer, source: str, filters: int) -> str:
    """Write a layer that clips at 6, as MobileNet's do."""
    channels = 3 if source == "picture" else filters
    plain = pointwise(writer, source, channels, filters)
    return writer.put("Clip", [plain, writer.constant(0.0), writer.constant(6.0)])


def beyond_6(writer: Writer, source: str, channels: int) -> str:
    return writer.put("Mul", [pointwise(writer, source, channels, 5), writer.constant(40.0)])


def skip_of_mobilenet(writer: Writer) -> str:
    """Write a decoder with a skip in a network of ReLU6: an enlarged map is joined with an earlier one."""
    first = capped(writer, "picture", 4)
    pooled = writer.put("MaxPool", [first], kernel_shape=[1, 1], strides=[1, 1])
    return writer.put("Concat", [beyond_6(writer, first, 4), pooled], axis=1)


def joined_twice(writer: Writer) -> str:
    """Write a concat of ReLU6 maps, and a concat of that with another map."""
    inner = writer.put("Concat", [capped(writer, "picture", 4), capped(writer, "picture", 2)], axis=1)
    return writer.put("Concat", [inner, beyond_6(writer, "picture", 3)], axis=1)


def with_the_picture(writer: Writer) -> str:
    """Write a concat of the image, a layer and a slice of the image."""
    part = writer.put("Slice", ["picture", *(writer.constant([i], np.int64) for i in (0, 2, 1))])
    return writer.put("Concat", ["picture", beyond_6(writer, "picture", 3), part], axis=1)


UNLIKE = {each.__name__: each for each in (skip_of_mobilenet, joined_twice, with_the_picture)}


def unlike(name: str) -> Any:
    writer = Writer()
    source = UNLIKE[name](writer)
    channels = {"skip_of_mobilenet": 9, "joined_twice": 11, "with_the_picture": 10}[name]
    return writer.model([pointwise(writer, source, channels, 3)], SIDES)


@cases("name", UNLIKE)
def test_concat_of_different_ranges_equals_onnxruntime(name: str) -> None:
    check_against_runtime(unlike(name), pixels(*SIDES[1:]))


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("skip_of_mobilenet", "streaming"),
        ("skip_of_mobilenet", "systolic"),
        ("joined_twice", "streaming"),
        ("joined_twice", "systolic"),
        ("with_the_picture", "streaming"),
    ],
)
def test_design_with_concat_of_different_ranges_equals_golden_model(name: str, style: str, tmp_path: Path) -> None:
    """Expect a layer before the concat, because calibration gives all maps of a concat one type."""
    onnx.save(unlike(name), tmp_path / "net.onnx")
    assert executed(tmp_path / "net.onnx", style).mismatches == 0


def test_concat_of_relu6_maps_needs_no_layer() -> None:
    writer = Writer()
    source = writer.put("Concat", [capped(writer, "picture", 4), capped(writer, "picture", 2)], axis=1)
    nodes = network_of(writer.model([source], SIDES), "net.onnx", "net").nodes
    assert [node.name for node in nodes] == ["input", "conv1", "conv2", "route1"]


def test_nested_concats_are_read_in_linear_time() -> None:
    """Join each concat with itself, so that 2^40 paths lead from the last to the first."""
    writer = Writer()
    source = pointwise(writer, "picture", 3, 2)
    for _ in range(40):
        joined = writer.put("Concat", [source, source], axis=1)
        source = writer.put("Slice", [joined, *(writer.constant([i], np.int64) for i in (0, 2, 1))])
    assert len(network_of(writer.model([source], SIDES), "net.onnx", "net").nodes) == 82
