"""Tests of tokens, of shape (batch, positions, classes): softmax, selections and means against onnxruntime and as
designs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import systolic
from boards.errors import InvalidValueError, ShapeError, SystolicError, UnsupportedError
from cnn.onnx.network import network_of
from cnn.ops import AveragePool, Softmax, TopK
from systolic.model import Calibration
from tests.fuzz.graphs.run import difference
from tests.support.cases import cases
from tests.support.errors import raises_among, refused
from tests.support.onnx.channels_last import check, turned
from tests.support.onnx.outputs import with_a_reader
from tests.support.onnx.writer import LAST, Writer

TOKENS, MAP = (1, 6, 5), (1, 4, 6, 3)
RANDOM = np.random.default_rng(11)
Body = Callable[[Writer], list[str]]


def _numbers(*sides: int) -> Any:
    return RANDOM.normal(0, 0.5, sides).astype(np.float32)


def _rows(writer: Writer) -> str:
    """Write a matrix product that gives seven classes per token of the input."""
    return writer.put("MatMul", ["picture", writer.constant(_numbers(5, 7))])


def _map(writer: Writer) -> str:
    """Write a convolution with an output of 4×2×4, channels first."""
    kernel = writer.constant(_numbers(4, 3, 3, 3))
    return writer.put("Relu", [writer.put("Conv", [turned(writer, "picture"), kernel])])


def _row_of_map(writer: Writer) -> str:
    """Write the positions as one side, as flatten(2) does."""
    return writer.put("Reshape", [_map(writer), writer.constant([1, 4, 8], np.int64)])


def _tokens_of_map(writer: Writer) -> str:
    """Write the positions as tokens, as flatten(2).transpose(1, 2) does."""
    return writer.put("Transpose", [_row_of_map(writer)], perm=[0, 2, 1])


def _chosen(writer: Writer, source: str, axis: int, *places: int) -> list[str]:
    values = writer.put("TopK", [source, writer.constant([2], np.int64)], outputs=2, axis=axis)
    return [(values, f"{values}_")[place] for place in places]


def _swapped(kind: str) -> Body:
    """Return a function that writes a softmax over the channels as PyTorch does before opset 13: between two
    Transposes."""

    def body(writer: Writer) -> list[str]:
        swapped = writer.put("Transpose", [_map(writer)], perm=[0, 3, 2, 1])
        return [writer.put("Transpose", [writer.put(kind, [swapped], axis=3)], perm=[0, 3, 2, 1])]

    return body


def _mean(axes: list[int], keepdims: int) -> Body:
    def body(writer: Writer) -> list[str]:
        mean = writer.put("ReduceMean", [_tokens_of_map(writer)], axes=axes, keepdims=keepdims)
        return [mean if keepdims else writer.put("Gemm", [mean, writer.constant(_numbers(4, 3))])]

    return body


BODIES: dict[str, tuple[tuple[int, ...], int, Body]] = {
    "softmax": (TOKENS, 17, lambda w: [w.put("Softmax", [_rows(w)], axis=-1)]),
    "softmax of opset 11": (TOKENS, 11, lambda w: [w.put("Softmax", [_rows(w)], axis=2)]),
    "log softmax of opset 11": (TOKENS, 11, lambda w: [w.put("LogSoftmax", [_rows(w)], axis=-1)]),
    "softmax of a picture, opset 11": (MAP, 11, lambda w: [w.put("Softmax", [turned(w, _map(w), LAST)], axis=3)]),
    "softmax of a map's": (MAP, 17, lambda w: [w.put("Softmax", [_tokens_of_map(w)], axis=2)]),
    "softmax of a row": (MAP, 17, lambda w: [w.put("Softmax", [_row_of_map(w)], axis=1)]),
    "ArgMax": (TOKENS, 17, lambda w: [w.put("ArgMax", [_rows(w)], axis=-1, keepdims=0)]),
    "ArgMax of a map's": (MAP, 17, lambda w: [w.put("ArgMax", [_tokens_of_map(w)], axis=2, keepdims=0)]),
    "ArgMax of a row": (MAP, 17, lambda w: [w.put("ArgMax", [_row_of_map(w)], axis=-2)]),
    "TopK": (TOKENS, 17, lambda w: _chosen(w, _rows(w), -1, 0, 1)),
    "TopK of a map's": (MAP, 17, lambda w: _chosen(w, _tokens_of_map(w), 2, 0, 1)),
    "TopK of a row": (MAP, 17, lambda w: _chosen(w, _row_of_map(w), 1, 1)),
    "PyTorch's softmax of opset 11": (MAP, 11, _swapped("Softmax")),
    "PyTorch's log softmax of opset 9": (MAP, 9, _swapped("LogSoftmax")),
    "mean": (MAP, 17, _mean([1], 0)),
    "mean that keeps its side": (MAP, 17, _mean([1], 1)),
    "mean of everything": (MAP, 17, _mean([1, 2], 1)),
}


def _model(name: str) -> Any:
    sides, opset, body = BODIES[name]
    writer = Writer(opset)
    model = writer.model(body(writer), sides)
    for output in model.graph.output:
        output.type.Clear()
    return model


@cases("name", BODIES)
def test_operator_on_tokens_equals_onnxruntime(name: str) -> None:
    network = check(_model(name), BODIES[name][0]).network
    kinds = {type(node.op) for node in network.nodes}
    wanted = Softmax if "softmax" in name else AveragePool if "mean" in name else TopK
    assert wanted in kinds


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
@pytest.mark.parametrize("name", ["softmax", "softmax of a map's", "ArgMax of a map's", "TopK of a map's", "mean"])
def test_design_with_tokens_equals_golden_model(name: str, style: str, tmp_path: Path) -> None:
    """Check also that a pipeline has blocks for softmax and selection, which work per position."""
    onnx.save(_model(name), tmp_path / "net.onnx")
    network = systolic.load(tmp_path / "net.onnx")
    shape, random = network.network.input_shape, np.random.default_rng(1)
    pictures = tuple(random.integers(0, 256, (shape.height, shape.width, shape.channels), np.uint8) for _ in range(3))
    options: dict[str, Any] = {"search": "greedy"} if style == "streaming" else {"array": "4x8x8"}
    if style == "streaming" and name.startswith("softmax"):
        options["softmax"] = "stable"
    design = systolic.design(network, "zcu104", style, calibrate=Calibration(pictures), **options)
    assert design.simulate(pictures[-1]).mismatches == 0
    block = {"softmax": "softmax.h", "TopK": "label_select.h", "ArgMax": "label_select.h"}.get(name.split()[0])
    if style == "streaming" and block:
        assert f"src/{block}" in design.files.files


def _whole(kind: str, opset: int, sides: tuple[int, ...], axis: int) -> Body:
    def body(writer: Writer) -> list[str]:
        return [writer.put(kind, [writer.put("Reshape", [_map(writer), writer.constant(sides, np.int64)])], axis=axis)]

    return body


@cases(
    "body, opset, fault",
    [
        (
            _whole("Softmax", 11, (1, 4, 2, 4), 1),
            11,
            InvalidValueError(
                "its axis",
                1,
                "the channels alone, for an input of shape (1, 4, 2, 4) in opset 11",
                where="Softmax '/Softmax_4'",
            ),
        ),
        (
            _whole("Softmax", 11, (1, 4, 2, 4), 3),
            11,
            InvalidValueError(
                "its axis",
                3,
                "the channels alone, for an input of shape (1, 4, 2, 4) in opset 11",
                where="Softmax '/Softmax_4'",
            ),
        ),
        (
            _whole("Softmax", 17, (1, 4, 2, 4), 4),
            17,
            InvalidValueError(
                "its axis",
                4,
                "the channels alone, for an input of shape (1, 4, 2, 4) in opset 17",
                where="Softmax '/Softmax_4'",
            ),
        ),
        (
            _whole("Softmax", 11, (1, 4, 2, 4), 9),
            11,
            InvalidValueError(
                "its axis",
                9,
                "the channels alone, for an input of shape (1, 4, 2, 4) in opset 11",
                where="Softmax '/Softmax_4'",
            ),
        ),
        (
            _whole("Softmax", 11, (1, 4, 2, 4), -9),
            11,
            InvalidValueError(
                "its axis",
                -9,
                "the channels alone, for an input of shape (1, 4, 2, 4) in opset 11",
                where="Softmax '/Softmax_4'",
            ),
        ),
        (
            _whole("ArgMax", 17, (1, 2, 16), 1),
            17,
            ShapeError("side 1 of its input", "2 values", "4 channels", where="ArgMax '/ArgMax_4'"),
        ),
        (
            _whole("ArgMax", 17, (1, 32), 1),
            17,
            ShapeError("side 1 of its input", "32 values", "4 channels", where="ArgMax '/ArgMax_4'"),
        ),
        (
            lambda w: [w.put("Softmax", [turned(w, _map(w), LAST)], axis=1)],
            11,
            InvalidValueError(
                "its axis",
                1,
                "the channels alone, for an input of shape (1, 2, 4, 4) in opset 11",
                where="Softmax '/Softmax_4'",
            ),
        ),
        (
            lambda w: [w.put("ReduceMean", [w.put("Reshape", [_map(w), w.constant([1, 8, 4], np.int64)])], axes=[1])],
            17,
            ShapeError("its input", (1, 8, 4), (1, 4, 2, 4), where="ReduceMean '/ReduceMean_4'"),
        ),
    ],
)
def test_operator_that_is_not_per_token_is_refused(body: Body, opset: int, fault: SystolicError) -> None:
    writer = Writer(opset)
    with refused(fault):
        network_of(writer.model([with_a_reader(writer, name) for name in body(writer)], MAP), "net.onnx", "net")


def test_softmax_over_a_part_of_a_position_is_not_over_its_channels() -> None:
    """Use 6 values of one position, viewed as 2 × 3, and a softmax over pairs of them."""
    writer = Writer()
    view = writer.put("Reshape", ["picture", writer.constant([1, 2, 3], np.int64)])
    model = writer.model([writer.put("Softmax", [view], axis=1)], (1, 6, 1, 1))
    del model.graph.output[0].type.tensor_type.shape.dim[3:]
    assert difference(model, np.random.default_rng(1).random((1, 6, 1, 1), np.float32)) < 1e-6
    assert str(network_of(model, "net.onnx", "net").nodes[-1].shape) == "2×1×3"


@cases("order", [(0, 2, 3, 1), (0, 3, 2, 1)])
def test_transpose_that_is_not_undone_is_refused(order: tuple[int, ...]) -> None:
    """Check also a Transpose that another operator reads."""
    writer = Writer()
    swapped = writer.put("Transpose", [_map(writer)], perm=[0, 3, 2, 1])
    back = writer.put("Transpose", [writer.put("Softmax", [swapped], axis=3)], perm=order)
    outputs = [back, swapped] if order == (0, 3, 2, 1) else [back]
    model = writer.model(outputs, MAP)
    for output in model.graph.output:
        output.type.Clear()
    check(model, MAP)
    reason = "perm (0, 3, 2, 1) of (1, 4, 2, 4) reorders values in a way that no layer does"
    with refused(UnsupportedError("Transpose '/Transpose_3'", reason)):
        network_of(writer.model([with_a_reader(writer, name) for name in outputs], MAP), "net.onnx", "net")


def test_transpose_with_a_wrong_perm_is_refused() -> None:
    writer = Writer()
    swapped = writer.put("Transpose", [_map(writer)], perm=[0.0, 3.0, 2.0, 1.0])
    back = writer.put("Transpose", [writer.put("Softmax", [swapped], axis=3)], perm=["a", "b", "c", "d"])
    with raises_among(InvalidValueError, what="the attribute perm", required="a list of whole numbers"):
        network_of(writer.model([back], MAP), "net.onnx", "net")
