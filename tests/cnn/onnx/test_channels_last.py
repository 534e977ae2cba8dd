"""Tests of networks with channels last, as TensorFlow's exporters write them: floats, integers and designs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.onnx.file import open_model
from cnn.onnx.network import network_of, read_model
from cnn.onnx.operators import INSTEAD, UNKNOWN
from cnn.ops import Convolution
from systolic.cli.main import main
from tests.support.cases import cases
from tests.support.command_line import call
from tests.support.errors import raises_among, refused
from tests.support.executed import executed
from tests.support.onnx.channels_last import SIDES, check, turned
from tests.support.onnx.networks import convolved
from tests.support.onnx.outputs import with_a_reader
from tests.support.onnx.quantising import Form, quantised, steps_on_noise
from tests.support.onnx.writer import LAST, Writer

RANDOM = np.random.default_rng(7)


def model_of(body: Callable[[Writer, str], str], opset: int = 17, sides: tuple[int, ...] = SIDES) -> Any:
    """Write a convolution of a channels-last image, and the operators of ``body``, which read its channels-last
    output."""
    writer = Writer(opset)
    source = writer.put("Relu", [convolved(writer, turned(writer, "picture"), 3, 4, pads=[1] * 4)])
    model = writer.model([body(writer, turned(writer, source, LAST))], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def by(kind: str, *constants: Any, **attributes: Any) -> Callable[[Writer, str], str]:
    """Return a function that writes one operator with these constants and attributes."""

    def body(writer: Writer, source: str) -> str:
        arrays = [writer.constant(array, np.asarray(array).dtype) for array in constants]
        return writer.put(kind, [source, *arrays], **attributes)

    return body


def _numbers(*sides: int) -> Any:
    return RANDOM.normal(0, 0.5, sides).astype(np.float32)


def _split(writer: Writer, source: str) -> str:
    first = writer.put("Split", [source, writer.constant([1, 3], np.int64)], outputs=2, axis=-1)
    return writer.put("Concat", [first + "_", first, source], axis=3)


def _squeezed(writer: Writer, source: str) -> str:
    """Write squeeze and excitation as Keras exports it."""
    mean = writer.put("ReduceMean", [source], axes=[1, 2], keepdims=0)
    gate = writer.put("Sigmoid", [writer.put("MatMul", [mean, writer.constant(_numbers(4, 4))])])
    gate = writer.put("Reshape", [gate, writer.constant([1, 1, 1, 4], np.int64)])
    return writer.put("Mul", [source, gate])


def _classified(writer: Writer, source: str) -> str:
    """Write Flatten and Dense, whose weight rows are in channels-last order."""
    flat = writer.put("Reshape", [source, writer.constant([1, -1], np.int64)])
    return writer.put(
        "Add", [writer.put("MatMul", [flat, writer.constant(_numbers(384, 5))]), writer.constant(_numbers(5))]
    )


def _gemm(turn: int) -> Callable[[Writer, str], str]:
    def body(writer: Writer, source: str) -> str:
        flat = writer.put("Relu", [writer.put("Flatten", [source])])
        arrays = [writer.constant(_numbers(*((5, 384) if turn else (384, 5)))), writer.constant(_numbers(5))]
        return writer.put("Gemm", [flat, *arrays], transB=turn)

    return body


def _dense(writer: Writer, source: str) -> str:
    """Write Dense for every position, twice, with a bias."""
    last = writer.put(
        "Add", [writer.put("MatMul", [source, writer.constant(_numbers(4, 6))]), writer.constant(_numbers(6))]
    )
    return writer.put("MatMul", [writer.put("Relu", [last]), writer.constant(_numbers(6, 2))])


def _tokens(writer: Writer, source: str) -> str:
    """Write positions as rows of a matrix, and a matrix product for each."""
    row = writer.put("Reshape", [source, writer.constant([1, 96, 4], np.int64)])
    last = writer.put("Relu", [writer.put("MatMul", [row, writer.constant(_numbers(4, 6))])])
    return writer.put("Reshape", [last, writer.constant([1, 8, 12, 6], np.int64)])


def _joined(writer: Writer, source: str) -> str:
    return writer.put("Add", [writer.put("Sigmoid", [source]), source])


BODIES: dict[str, Callable[[Writer, str], str]] = {
    "Relu": by("Relu"),
    "Clip": by("Clip", np.float32(-0.1), np.float32(0.6)),
    "Add of channels": by("Add", _numbers(4)),
    "Mul of channels": by("Mul", _numbers(1, 1, 4)),
    "Sub of one": by("Sub", np.float32(0.3)),
    "PRelu": by("PRelu", np.abs(_numbers(1, 1, 4)) % 1),
    "two maps": _joined,
    "Pad": by("Pad", np.array([0, 1, 2, 0, 0, 2, 1, 0])),
    "Pad with a number": by("Pad", np.array([0, 1, 2, 0, 0, 2, 1, 0]), np.float32(-0.5)),
    "Slice": by("Slice", np.array([1]), np.array([3]), np.array([3])),
    "Gather": by("Gather", np.array([2, 0, -1]), axis=3),
    "Split and Concat": _split,
    "ReduceMean": by("ReduceMean", axes=[1, 2], keepdims=1),
    "ReduceMean without them": by("ReduceMean", axes=[2, 1], keepdims=0),
    "Resize": by("Resize", np.zeros(0, np.float32), np.array([1, 2, 3, 1], np.float32), mode="nearest"),
    "Resize down": by("Resize", np.zeros(0, np.float32), np.array([1, 0.5, 0.5, 1], np.float32), mode="linear"),
    "Softmax": by("Softmax", axis=-1),
    "Softmax without an axis": by("Softmax"),
    "LogSoftmax": by("LogSoftmax", axis=3),
    "squeezed": _squeezed,
    "classified": _classified,
    "Gemm": _gemm(0),
    "Gemm, turned": _gemm(1),
    "dense": _dense,
    "tokens": _tokens,
    "Squeeze": lambda w, s: w.put("Squeeze", [w.put("ReduceMean", [s], axes=[1, 2]), w.constant([1], np.int64)]),
    "Identity": by("Identity"),
}


@cases("name", BODIES)
def test_operator_with_channels_last_equals_onnxruntime(name: str) -> None:
    read = check(model_of(BODIES[name]))
    assert "picture" in read.last


@cases("name", ["Relu", "Pad", "two maps", "dense", "tokens", "Split and Concat", "squeezed", "Resize"])
def test_convolution_after_a_channels_last_operator_equals_onnxruntime(name: str) -> None:
    """Check also that a Pad is merged into the convolution."""
    filters = {"dense": 2, "tokens": 6, "Split and Concat": 8}.get(name, 4)

    def body(writer: Writer, source: str) -> str:
        return turned(writer, convolved(writer, turned(writer, BODIES[name](writer, source)), filters, 5), LAST)

    read = check(model_of(body))
    if name == "Pad":
        assert [type(node.op) for node in read.network.nodes[1:]] == [Convolution, Convolution]


def test_image_centred_and_padded_before_its_transpose_equals_onnxruntime() -> None:
    writer = Writer()
    source = writer.put(
        "Div", [writer.put("Sub", ["picture", writer.constant([0.4, 0.5, 0.6])]), writer.constant([0.2])]
    )
    source = writer.put("Pad", [source, writer.constant([0, 0, 0, 0, 0, 1, 1, 0], np.int64)])
    model = writer.model([convolved(writer, turned(writer, source), 3, 4, strides=[2, 2])], SIDES)
    check(model)


def test_signal_and_matrix_with_channels_last_equal_onnxruntime() -> None:
    writer, sides = Writer(), (1, 10, 3)
    kernel = writer.constant(_numbers(4, 3, 3))
    source = writer.put("Conv", [writer.put("Transpose", ["picture"], perm=[0, 2, 1]), kernel], pads=[1, 1])
    source = writer.put("MatMul", [writer.put("Transpose", [source], perm=[0, 2, 1]), writer.constant(_numbers(4, 5))])
    model = writer.model([source], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    check(model, sides)


@cases("kind, axis", [("ArgMax", 3), ("ArgMax", -1), ("LogSoftmax", 3), ("TopK", None)])
def test_selection_as_only_operator_is_over_the_last_side(kind: str, axis: int | None) -> None:
    """Check also TopK's default axis, which is the last."""
    writer = Writer()
    inputs = ["picture", writer.constant([2], np.int64)] if kind == "TopK" else ["picture"]
    last = writer.put(kind, inputs, outputs=1 + (kind == "TopK"), **({} if axis is None else {"axis": axis}))
    model = writer.model([last], (1, 4, 5, 3))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    if kind == "ArgMax":
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    assert "picture" in check(model, (1, 4, 5, 3)).last


@cases("axis", [2, None])
def test_argmax_over_another_side_than_the_channels_is_refused(axis: int | None) -> None:
    """Check also ArgMax without an axis, which is over the batch."""
    writer = Writer()
    model = writer.model([writer.put("ArgMax", ["picture"], **({} if axis is None else {"axis": axis}))], (1, 4, 5, 3))
    with raises_among(InvalidValueError, what="its axis", got=axis or 0, where="ArgMax '/ArgMax_0'"):
        network_of(model, "net.onnx", "net")


@cases("sides", [(1, 6, 3), (1, 4, 5, 3)])
def test_matmul_as_only_operator_reads_the_last_side(sides: tuple[int, ...]) -> None:
    writer = Writer()
    model = writer.model([writer.put("MatMul", ["picture", writer.constant(_numbers(3, 7))])], sides)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    read = check(model, sides)
    op = read.network.nodes[1].op
    assert isinstance(op, Convolution)
    assert op.weights.shape == (7, 3, 1, 1)


def test_open_sides_are_those_before_the_channels(tmp_path: Path) -> None:
    model = model_of(BODIES["Relu"], sides=("n", "h", "w", 3))  # type: ignore[arg-type]
    onnx.save(model, tmp_path / "net.onnx")
    read = read_model(open_model(tmp_path / "net.onnx", (12, 8)), "net.onnx", "net")
    assert str(read.network.input_shape) == "3×8×12"


def _network(writer: Writer, source: str) -> str:
    """Write a network with most of the operators above."""
    last = _squeezed(writer, _joined(writer, source))
    last = writer.put("Relu", [convolved(writer, turned(writer, _dense(writer, last)), 2, 4, strides=[2, 2])])
    flat = writer.put("Flatten", [turned(writer, last, LAST)])
    return writer.put("MatMul", [flat, writer.constant(_numbers(60, 5))])


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
def test_design_with_channels_last_equals_golden_model(style: str, tmp_path: Path) -> None:
    onnx.save(model_of(_network), tmp_path / "net.onnx")
    assert executed(tmp_path / "net.onnx", style).mismatches == 0


FORMS = [Form(), Form(per_channel=True), Form(activations="QUInt8"), Form("QOperator"), Form("QOperator", True)]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_quantised_network_with_channels_last_is_within_a_step_of_onnxruntime(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(4)  # this seed gives an offset that is far from integer steps of its map
    monkeypatch.setattr("tests.cnn.onnx.test_channels_last.RANDOM", random)

    def body(writer: Writer, source: str) -> str:
        last = writer.put("Relu", [convolved(writer, turned(writer, _dense(writer, source)), 2, 4)])
        flat = writer.put("Flatten", [turned(writer, last, LAST)])
        return writer.put("MatMul", [flat, writer.constant(_numbers(240, 5))])

    path = quantised(model_of(body), tmp_path, form, SIDES)
    steps = steps_on_noise(path)
    assert len(steps) >= 6
    assert max(steps.values()) <= 1, steps


@cases(
    "body, fault",
    [
        (
            by("GlobalAveragePool"),
            UnsupportedError(
                "GlobalAveragePool '/GlobalAveragePool_4'",
                "its input has the channels last; a Transpose must move them to the front first",
            ),
        ),
        (
            by("Conv", _numbers(2, 8, 1, 1)),
            UnsupportedError(
                "Conv '/Conv_4'", "its input has the channels last; a Transpose must move them to the front first"
            ),
        ),
        (
            by("Transpose", perm=(0, 2, 1, 3)),
            ChoiceError(
                "perm of a map with its channels last",
                (0, 2, 1, 3),
                ((0, 3, 1, 2), (0, 1, 2, 3)),
                where="Transpose '/Transpose_4'",
            ),
        ),
        (
            by("Reshape", np.array([1, 4, 96])),
            ShapeError(
                "its output",
                (1, 4, 96),
                "the channels of (1, 8, 12, 4) last, or all values in one row",
                where="Reshape '/Reshape_4'",
            ),
        ),
        (
            by("Reshape", np.array([2, 192])),
            ShapeError(
                "its output",
                (2, 192),
                "a batch of 1 in front and the same number of values as (1, 8, 12, 4)",
                where="Reshape '/Reshape_4'",
            ),
        ),
        (
            by("Add", _numbers(12, 4)),
            ShapeError(
                "its constant",
                (12, 4),
                "one value, or one for each channel, the last side of (1, 8, 12, 4)",
                where="Add '/Add_4'",
            ),
        ),
        (
            by("Add", _numbers(1, 1, 1, 1, 4)),
            ShapeError(
                "its constant",
                (1, 1, 1, 1, 4),
                "one value, or one for each channel, the last side of (1, 8, 12, 4)",
                where="Add '/Add_4'",
            ),
        ),
        (
            by("MatMul", _numbers(3, 5)),
            ShapeError(
                "the matrix",
                (3, 5),
                "a row for each channel, the last side of (1, 8, 12, 4), and at least one column",
                where="MatMul '/MatMul_4'",
            ),
        ),
        (by("MatMul", _numbers(2, 4, 5)), ShapeError("the matrix", (2, 4, 5), "two sides", where="MatMul '/MatMul_4'")),
        (
            by("Softmax", axis=1),
            InvalidValueError(
                "its axis",
                1,
                "the channels alone, for an input of shape (1, 8, 12, 4) in opset 17",
                where="Softmax '/Softmax_4'",
            ),
        ),
        (by("Concat", axis=9), RangeError("an axis", 9, -4, 3, where="Concat '/Concat_4'")),
        (
            by("ArgMax"),
            InvalidValueError("its axis", 0, "1, the channels of (1, 4, 8, 12)", where="ArgMax '/ArgMax_4'"),
        ),
        (by("Pad", np.array([0, 1, 1])), ShapeError("pads", "3 numbers", "8 numbers", where="Pad '/Pad_4'")),
        (
            by("Pad", np.array([0, 0, 0, 1, 0, 0, 0, 0])),
            UnsupportedError("Pad '/Pad_4'", "only rows and columns are padded, not batch or channels"),
        ),
        (
            lambda w, s: w.put("Add", [w.put("Flatten", [s]), w.constant(_numbers(384))]),
            UnsupportedError("Add '/Add_5'", "its input is a map that was flattened with its channels last"),
        ),
        (
            lambda w, s: w.put("MatMul", [w.put("Flatten", [s]), w.constant(_numbers(383, 2))]),
            MismatchError("the number of rows of the matrix", 383, 384, where="MatMul '/MatMul_5'"),
        ),
        (
            lambda w, s: w.put("Add", [s, turned(w, s)]),
            UnsupportedError("Add '/Add_5'", "the channels are last in one of its maps, and first in another"),
        ),
    ],
)
def test_operator_unsupported_with_channels_last_is_refused(body: Any, fault: SystolicError) -> None:
    with refused(fault):
        network_of(model_of(lambda w, s: with_a_reader(w, body(w, s))), "net.onnx", "net")


SQUARE = (1, 3, 3, 3)
"""An input shape with equal sides, from which the position of the channels cannot be inferred."""


def squares(writer: Writer, *sides: int) -> str:
    return writer.put("Mul", ["picture", writer.constant(_numbers(*sides))])


def pointwise(writer: Writer, source: str) -> str:
    return writer.put("Conv", [source, writer.constant(_numbers(4, 3, 1, 1))])


GUESS = "a constant has one number for each index of its last side, and no operator shows another order"

READ: dict[str, tuple[Callable[[Writer], str], bool, str]] = {
    "numbers of the last side": (lambda w: squares(w, 3), True, GUESS),
    "numbers of the last side, in a node": (
        lambda w: w.put("Mul", ["picture", w.put("Constant", [], value=onnx.numpy_helper.from_array(_numbers(3)))]),
        True,
        GUESS,
    ),
    "numbers of side 1": (lambda w: squares(w, 3, 1, 1), False, ""),
    "numbers of side 1, and a convolution": (lambda w: pointwise(w, squares(w, 3, 1, 1)), False, ""),
    "numbers of the last side, and a Transpose": (lambda w: pointwise(w, turned(w, squares(w, 3))), True, ""),
    "numbers of the last side, and a matrix": (
        lambda w: w.put("MatMul", [squares(w, 3), w.constant(_numbers(3, 2))]),
        True,
        "",
    ),
    "one number": (lambda w: squares(w, 1), False, ""),
}
"""Case: the operators after a square input, whether its channels are last, and the note about it."""


@cases("name", READ)
def test_square_input_is_read_as_onnxruntime_reads_it(name: str) -> None:
    body, last, guess = READ[name]
    writer = Writer()
    model = writer.model([body(writer)], SQUARE)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    read = check(model, SQUARE)
    assert ("picture" in read.last) == last
    told = (f"net.onnx: the input 'picture', 3×3×3, is read with its channels last, since {GUESS}",)
    assert read.notes == (told if guess else ())


@cases(
    "body, fault",
    [
        (
            lambda w: pointwise(w, squares(w, 3)),
            ShapeError(
                "its constant", (3,), "one value, or one for each channel of (1, 3, 3, 3)", where="Mul '/Mul_0'"
            ),
        ),
        (
            lambda w: pointwise(w, squares(w, 1, 1, 3)),
            ShapeError(
                "its constant", (1, 1, 3), "one value, or one for each channel of (1, 3, 3, 3)", where="Mul '/Mul_0'"
            ),
        ),
        (
            lambda w: pointwise(w, turned(w, squares(w, 3, 1, 1))),
            ShapeError(
                "its constant",
                (3, 1, 1),
                "one value, or one for each channel, the last side of (1, 3, 3, 3)",
                where="Mul '/Mul_0'",
            ),
        ),
        (
            lambda w: w.put("Add", [squares(w, 3), w.constant(_numbers(3, 1, 1))]),
            ShapeError(
                "its constant",
                (3, 1, 1),
                "one value, or one for each channel, the last side of (1, 3, 3, 3)",
                where="Add '/Add_1'",
            ),
        ),
        (
            lambda w: pointwise(w, w.put("MatMul", ["picture", w.constant(_numbers(3, 3))])),
            UnsupportedError(
                "Conv '/Conv_1'", "its input has the channels last; a Transpose must move them to the front first"
            ),
        ),
    ],
)
def test_constant_per_column_is_refused(body: Callable[[Writer], str], fault: SystolicError) -> None:
    """Check that equal sides do not make a constant per column pass for one per channel."""
    writer = Writer()
    with refused(fault):
        network_of(writer.model([body(writer)], SQUARE), "net.onnx", "net")


@pytest.mark.engine
def test_guessed_channels_last_is_noted_by_generate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = Writer()
    model = writer.model([writer.put("Relu", [squares(writer, 3)])], (1, 6, 4, 3))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "net.onnx")
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (6, 4, 3), np.uint8)).save(tmp_path / "a.png")
    options = [
        "--style",
        "streaming",
        "--folding",
        "greedy",
        "--estimated-fifos",
        "--calibrate",
        str(tmp_path / "a.png"),
    ]
    assert main(["generate", str(tmp_path / "net.onnx"), *options, "-o", str(tmp_path / "design")]) == 0
    assert f"the input 'picture', 6×4×3, is read with its channels last, since {GUESS}" in capsys.readouterr().err


def test_guessed_channels_last_is_noted_once_per_command(tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([writer.put("Relu", [squares(writer, 3)])], (1, 6, 4, 3))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "net.onnx")
    told = f"systolic: net.onnx: the input 'picture', 6×4×3, is read with its channels last, since {GUESS}"
    for command in (
        ("schedule", "--array", "2x4x4"),
        ("compare", "--array", "2x4x4", "--bits", 4, "--bits", 8),
        ("fold", "--folding", "greedy"),
    ):
        name, *options = command
        assert call(name, tmp_path / "net.onnx", *options).error.count(told) == 1, name


def test_unsupported_operator_with_channels_last_error_proposes_no_transpose() -> None:
    """Use ConvNeXt's LayerNormalization and an unknown operator, for which a Transpose would not help."""
    writer = Writer()
    source = writer.put("Transpose", [convolved(writer, "picture", 3, 4)], perm=[0, 2, 3, 1])
    norm = writer.put("LayerNormalization", [source, writer.constant(np.ones(4))])
    model = writer.model([norm, writer.put("Sin", [source])], (1, 3, 8, 8))
    with refused(
        UnsupportedError("LayerNormalization '/LayerNormalization_2'", INSTEAD["LayerNormalization"]),
        UnsupportedError("Sin '/Sin_3'", UNKNOWN),
    ):
        network_of(model, "net.onnx", "net")
