"""Tests of Slice and Gather on rows and columns: crops and steps, as floats, integers and designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import UnsupportedError
from cnn.onnx.network import network_of
from cnn.ops import Convolution, MaxPool
from tests.fuzz.graphs.run import difference
from tests.support.cases import cases
from tests.support.errors import raises_among
from tests.support.executed import executed
from tests.support.onnx.channels_last import check, turned
from tests.support.onnx.networks import check_against_runtime, convolved, pixels
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 8, 12)
END = (1 << 63) - 1


def put(writer: Writer, source: str, *cuts: tuple[int, int, int, int]) -> str:
    """Write a Slice.

    Args:
        cuts: axis, start, end and step of each sliced side.
    """
    axes, starts, ends, steps = zip(*cuts, strict=True)
    return writer.put("Slice", [source, *(writer.constant(row, np.int64) for row in (starts, ends, axes, steps))])


def sliced(*cuts: tuple[int, int, int, int], sides: tuple[int, ...] = SIDES) -> Any:
    writer = Writer()
    source = put(writer, convolved(writer, "picture", 3, 4, pads=[1] * 4), *cuts)
    model = writer.model([writer.put("Sigmoid", [source])], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def focus(direct: bool) -> Any:
    """Write the first layers of YOLOv5 and YOLOX, which take every second pixel of the image at four offsets.

    Args:
        direct: whether one Slice takes both sides, or each side has its own.
    """
    writer, parts = Writer(), []
    for column in (0, 1):
        for row in (0, 1):
            cuts = ((2, row, END, 2), (3, column, END, 2))
            if direct:
                parts.append(put(writer, "picture", *cuts))
            else:
                parts.append(put(writer, put(writer, "picture", cuts[0]), cuts[1]))
    source = writer.put("Concat", parts, axis=1)
    weights = writer.constant(np.random.default_rng(3).normal(0, 0.3, (5, 12, 3, 3)))
    return writer.model([writer.put("Relu", [writer.put("Conv", [source, weights], pads=[1] * 4)])], SIDES)


@cases(
    "cuts",
    [
        ((2, 1, 7, 1), (3, 2, -2, 1)),
        ((2, 1, END, 1),),
        ((3, 0, 5, 1),),
        ((3, -3, END, 1), (2, 0, 3, 1), (1, 1, 3, 1)),
        ((2, 0, END, 2), (3, 0, END, 2)),
        ((2, 1, 6, 2), (3, 4, END, 2)),
        ((3, 1, END, 3), (1, -1, END, 1), (2, 2, 6, 3)),
        ((2, 3, 4, 1), (3, 1, END, 4)),
        ((2, 7, END, 5), (3, 11, END, 1)),
        ((1, -1, -END, -1),),
        ((1, 2, 0, -1), (2, 0, END, 2), (3, 0, END, 2)),
        ((1, 1, END, 2), (3, 1, 5, 1)),
    ],
)
def test_slice_of_rows_and_columns_equals_onnxruntime(cuts: Any) -> None:
    check_against_runtime(sliced(*cuts), pixels(*SIDES[1:]))


def picked(index: Any, axis: int, sides: tuple[int, ...]) -> Any:
    writer = Writer()
    weights = writer.constant(np.random.default_rng(4).normal(0, 0.3, (5, sides[1], *(3,) * (len(sides) - 2))))
    numbers = writer.constant(index, np.int64)
    source = writer.put("Gather", [writer.put("Conv", ["picture", weights]), numbers], axis=axis)
    model = writer.model([writer.put("Sigmoid", [source])], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@cases(
    "index, axis, sides",
    [
        (-1, 2, (1, 3, 13)),
        (0, -1, (1, 3, 13)),
        ([2, 4, 6], 2, (1, 3, 13)),
        (2, 1, (1, 3, 13)),
        (1, 2, SIDES),
        (-2, 3, SIDES),
        ([-1], 3, SIDES),
        ([1, 4], 2, SIDES),
        (4, 1, SIDES),
        ([4, 0], 1, SIDES),
    ],
)
def test_gather_of_positions_equals_onnxruntime(index: Any, axis: int, sides: tuple[int, ...]) -> None:
    """Use the last sample of a signal, a row, a column and a channel. An index that is not a list removes the side."""
    model = picked(index, axis, sides)
    assert difference(model, np.random.default_rng(5).random(sides, np.float32)) < 1e-5


def test_classifier_of_the_last_sample_equals_onnxruntime() -> None:
    """Write x[:, :, -1] and a matrix product, the end of many causal networks."""
    writer, sides = Writer(), (1, 3, 13)
    causal = writer.put("Conv", ["picture", writer.constant(np.random.default_rng(4).normal(0, 0.3, (5, 3, 3)))])
    last = writer.put("Gather", [causal, writer.constant(-1, np.int64)], axis=2)
    matrix = writer.constant(np.random.default_rng(6).normal(0, 0.3, (5, 4)))
    model = writer.model([writer.put("Gemm", [last, matrix])], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert difference(model, np.random.default_rng(5).random(sides, np.float32)) < 1e-5


@cases("index, axis, fits", [(0, 1, False), ([0], 1, True), (1, 3, True), ([1, 0], 3, True)])
def test_gather_with_channels_last_equals_onnxruntime_or_is_refused(index: Any, axis: int, fits: bool) -> None:
    writer, sides = Writer(), (1, 8, 12, 3)
    inner = writer.put("Transpose", [convolved(writer, turned(writer, "picture"), 3, 4)], perm=[0, 2, 3, 1])
    tensor = writer.put("Gather", [inner, writer.constant(index, np.int64)], axis=axis)
    model = writer.model([writer.put("Sigmoid", [tensor])], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    if fits:
        assert difference(model, np.random.default_rng(5).random(sides, np.float32)) < 1e-5
    else:
        with raises_among(
            UnsupportedError,
            reason="one row or column of a map with its channels last is gathered only by a list of one index",
        ):
            network_of(model, "net.onnx", "net")


def test_consecutive_slices_equal_onnxruntime() -> None:
    """Use a slice of channels between a step of the rows and a step of the columns, which can only be taken
    together."""
    writer = Writer()
    source = put(writer, convolved(writer, "picture", 3, 4), (2, 1, END, 2))
    source = put(writer, put(writer, source, (1, 1, 3, 1)), (3, 0, END, 2), (2, 1, 3, 1))
    model = writer.model([writer.put("Tanh", [source])], (1, 3, 11, 12))
    network = check_against_runtime(model, pixels(3, 11, 12))
    assert str(network.nodes[-1].shape) == "2×2×5"


def test_slice_of_a_signal_equals_onnxruntime() -> None:
    writer, sides = Writer(), (1, 3, 13)
    source = put(writer, writer.put("Relu", ["picture"]), (2, 1, END, 3))
    model = writer.model([writer.put("Sigmoid", [source])], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    check(model, sides)


def test_slice_with_channels_last_equals_onnxruntime() -> None:
    writer, sides = Writer(), (1, 8, 12, 3)
    source = put(writer, put(writer, "picture", (1, 0, END, 2)), (2, 1, END, 2))
    model = writer.model([convolved(writer, turned(writer, source), 3, 4)], sides)
    check(model, sides)


@cases("direct", [True, False])
def test_focus_layer_equals_onnxruntime(direct: bool) -> None:
    network = check_against_runtime(focus(direct), pixels(*SIDES[1:]))
    kinds = [node.op for node in network.nodes[1:5]]
    assert all(isinstance(op, Convolution) and op.stride == 2 for op in kinds)  # no pool reads the image


def test_slice_of_the_first_of_every_two_becomes_a_pool() -> None:
    network = check_against_runtime(sliced((2, 0, END, 2), (3, 0, END, 2)), pixels(*SIDES[1:]))
    assert isinstance(network.nodes[2].op, MaxPool)


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
def test_design_with_slices_equals_golden_model(style: str, tmp_path: Path) -> None:
    onnx.save(focus(False), tmp_path / "net.onnx")
    assert executed(tmp_path / "net.onnx", style).mismatches == 0


@cases("form", [Form(), Form(activations="QUInt8")], ids=str)
def test_quantised_slice_is_within_a_step_of_onnxruntime(form: Form, tmp_path: Path) -> None:
    for model in (focus(False), sliced((2, 1, 6, 2), (3, 4, END, 2)), sliced((1, 3, 0, -1)), picked(3, 2, SIDES)):
        steps = steps_on_noise(quantised(model, tmp_path, form, SIDES))
        assert max(steps.values()) <= 1, steps
