"""Tests of inputs of other types than float32, and of contradictory files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    InvalidValueError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.datatype import DataType, TensorType
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.network import Network
from cnn.onnx.network import network_of, read_model
from cnn.ops import Convolution
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.executed import executed
from tests.support.onnx.networks import convolved
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 6, 8)
RANDOM = np.random.default_rng(3)
TYPES = {"UINT8": np.uint8, "INT8": np.int8, "INT32": np.int32, "INT64": np.int64}


def cast(writer: Writer, source: str = "picture", to: int = TensorProto.FLOAT) -> str:
    return writer.put("Cast", [source], to=to)


def _kernel(writer: Writer) -> str:
    return writer.constant(RANDOM.normal(0, 0.3, (4, 3, 3, 3)))


def plain(writer: Writer) -> str:
    return writer.put("Conv", [cast(writer), _kernel(writer)])


def divided(writer: Writer) -> str:
    values = writer.put("Div", [cast(writer), writer.constant(255.0)])
    return writer.put("Conv", [values, _kernel(writer)], pads=[1, 1, 1, 1])


def multiplied(writer: Writer) -> str:
    values = writer.put("Mul", [cast(writer), writer.constant(np.float32(1 / 255))])
    return writer.put("Conv", [values, _kernel(writer)])


def centred(writer: Writer) -> str:
    """Write the normalisation of TensorFlow's MobileNets."""
    values = writer.put("Sub", [writer.put("Div", [cast(writer), writer.constant(127.5)]), writer.constant(1.0)])
    return writer.put("Conv", [values, _kernel(writer)])


def padded(writer: Writer) -> str:
    around = writer.put("Pad", [cast(writer), writer.constant([0, 0, 1, 2, 0, 0, 0, 1], np.int64)])
    return writer.put("Conv", [around, _kernel(writer)])


def last(writer: Writer) -> str:
    turned = writer.put(
        "Transpose", [writer.put("Mul", [cast(writer), writer.constant([1.0, 2.0, 3.0])])], perm=[0, 3, 1, 2]
    )
    return writer.put("Conv", [turned, _kernel(writer)])


def moved(writer: Writer) -> str:
    """Write a slice, a join and a pool of the integer input, before the Cast."""
    part = writer.put("Slice", ["picture", *(writer.constant([number], np.int64) for number in (1, 3, 1))])
    joined = writer.put("Concat", [writer.put("Identity", [part]), "picture"], axis=1)
    pooled = writer.put("MaxPool", [joined], kernel_shape=[2, 2])
    wider = cast(writer, cast(writer, pooled, TensorProto.INT64))
    return writer.put("Conv", [wider, writer.constant(RANDOM.normal(0, 0.3, (4, 5, 3, 3)))])


def twice(writer: Writer) -> str:
    """Write two Casts of the same input, one of them by way of float16."""
    narrow = cast(writer, cast(writer, to=TensorProto.FLOAT16))
    return writer.put("Add", [writer.put("Conv", [narrow, _kernel(writer)]), plain(writer)])


def model_of(body: Callable[[Writer], str], kind: str) -> Any:
    writer = Writer()
    sides = (1, 6, 8, 3) if body is last else SIDES
    model = writer.model([body(writer)], sides)
    model.graph.input[0].type.tensor_type.elem_type = getattr(TensorProto, kind)
    return model


def as_onnxruntime(model: Any, kind: str, is_last: bool = False) -> Network:
    """Return the network after comparing its outputs with onnxruntime on a random image of 0…255."""
    network = network_of(model, "net.onnx", "net")
    picture = RANDOM.integers(0, 256, SIDES[1:])
    integers = (picture - 128 if kind == "INT8" else picture).astype(TYPES[kind])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    fed = np.moveaxis(integers, 0, -1) if is_last else integers
    (expected,) = session.run(None, {"picture": fed[None]})
    values = run_float(network, (picture / 255).astype(np.float32))[network.outputs[0]]
    np.testing.assert_allclose(values.ravel(), expected.ravel(), rtol=0, atol=1e-4 * np.abs(expected).max())
    return network


@cases("kind", TYPES)
@cases("body", [plain, divided, multiplied, centred, padded, last, twice], ids=lambda body: body.__name__)
def test_cast_integer_input_is_read_as_pixels(body: Callable[[Writer], str], kind: str) -> None:
    """Expect pixels of 0…255, or 128 less for INT8. A division by 255 after the Cast adds no layer."""
    network = as_onnxruntime(model_of(body, kind), kind, body is last)
    if body in (divided, multiplied) and kind != "INT8":
        assert [type(node.op) for node in network.nodes[1:]] == [Convolution]


@cases("kind", ["UINT8", "INT8"])
def test_integer_input_may_be_moved_before_its_cast(kind: str) -> None:
    as_onnxruntime(model_of(moved, kind), kind)


@pytest.mark.engine
@pytest.mark.parametrize("style", ["streaming", "systolic"])
def test_design_with_cast_integers_equals_golden_model(style: str, tmp_path: Path) -> None:
    onnx.save(model_of(centred, "UINT8"), tmp_path / "net.onnx")
    assert executed(tmp_path / "net.onnx", style).mismatches == 0


@cases("kind", ["FLOAT16", "DOUBLE", "BFLOAT16"])
def test_input_of_other_floats_has_pixels_of_0_to_1(kind: str) -> None:
    network = network_of(model_of(plain, kind), "net.onnx", "net")
    assert [type(node.op) for node in network.nodes[1:]] == [Convolution]


def test_labels_may_be_cast_to_other_integers() -> None:
    writer = Writer()
    labels = writer.put("ArgMax", [convolved(writer, "picture", 3, 4)], axis=1)
    model = writer.model([writer.put("Cast", [labels], to=TensorProto.INT32)])
    network_of(model, "net.onnx", "net")


def _pooled(writer: Writer) -> str:
    return writer.put("MaxPool", [plain(writer)], kernel_shape=[2, 2])


def _named_twice(writer: Writer) -> str:
    last = plain(writer)
    writer.put("Relu", [last])
    writer.nodes[-1].output[0] = last
    return last


def _padded_integers(writer: Writer) -> str:
    around = writer.put("Pad", ["picture", writer.constant([0, 0, 1, 2, 0, 0, 0, 1], np.int64)])
    return writer.put("Conv", [cast(writer, around), _kernel(writer)])


COMPUTES = "it computes with the integers of the input; a Cast or DequantizeLinear must be before it"

REFUSED: list[tuple[Callable[[Writer], str], str, SystolicError]] = [
    (
        lambda w: cast(w, w.put("Add", ["picture", w.constant(3, np.uint8)])),
        "UINT8",
        UnsupportedError("Add '/Add_0'", COMPUTES),
    ),
    (lambda w: cast(w, w.put("Mul", ["picture", "picture"])), "INT32", UnsupportedError("Mul '/Mul_0'", COMPUTES)),
    (lambda w: w.put("Conv", ["picture", _kernel(w)]), "UINT8", UnsupportedError("Conv '/Conv_0'", COMPUTES)),
    (_padded_integers, "INT8", UnsupportedError("Pad '/Pad_0'", COMPUTES)),
    (
        lambda w: w.put("Dropout", [plain(w), w.constant(0.5), w.constant(True, np.bool_)]),
        "FLOAT",
        UnsupportedError("Dropout '/Dropout_2'", "its training_mode is true; export the model for inference"),
    ),
    (
        plain,
        "STRING",
        ShapeError(
            "the input 'picture'", "STRING", "floats from 0 to 1 or integers of at least 8 bits", where="net.onnx"
        ),
    ),
    (
        plain,
        "BOOL",
        ShapeError(
            "the input 'picture'", "BOOL", "floats from 0 to 1 or integers of at least 8 bits", where="net.onnx"
        ),
    ),
    (
        plain,
        "COMPLEX64",
        ShapeError(
            "the input 'picture'", "COMPLEX64", "floats from 0 to 1 or integers of at least 8 bits", where="net.onnx"
        ),
    ),
    (
        lambda w: cast(w, _pooled(w), TensorProto.INT8),
        "FLOAT",
        ChoiceError(
            "the type of a Cast of floats", "INT8", ("BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16"), where="Cast '/Cast_3'"
        ),
    ),
    (
        lambda w: cast(w, _pooled(w), TensorProto.BOOL),
        "FLOAT",
        ChoiceError(
            "the type of a Cast of floats", "BOOL", ("BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16"), where="Cast '/Cast_3'"
        ),
    ),
    (
        lambda w: cast(w, _pooled(w), 99),
        "FLOAT",
        ChoiceError(
            "the type of a Cast of floats",
            "type 99",
            ("BFLOAT16", "DOUBLE", "FLOAT", "FLOAT16"),
            where="Cast '/Cast_3'",
        ),
    ),
    (
        lambda w: w.put("Conv", [cast(w), _kernel(w)], kernel_shape=[5, 5]),
        "FLOAT",
        InvalidValueError("kernel_shape", (5, 5), "(3, 3), as in its weights", where="Conv '/Conv_1'"),
    ),
    (
        lambda w: w.put("ConvTranspose", [cast(w), w.constant(np.ones((3, 2, 2, 2)))], kernel_shape=[2, 3]),
        "FLOAT",
        InvalidValueError(
            "kernel_shape", (2, 3), "(2, 2), as in its weights", where="ConvTranspose '/ConvTranspose_1'"
        ),
    ),
    (
        _named_twice,
        "FLOAT",
        DamagedFileError("net.onnx", "defines conv1, which is defined elsewhere too", "Relu '/Relu_2'"),
    ),
    (lambda w: f"{plain(w)}_", "FLOAT", DamagedFileError("net.onnx", "has outputs that no operator computes: conv1_")),
]


@cases("body, kind, fault", REFUSED)
def test_contradictory_input_is_refused(body: Callable[[Writer], str], kind: str, fault: SystolicError) -> None:
    with refused(fault):
        network_of(model_of(body, kind), "net.onnx", "net")


def test_reduce_mean_over_no_axes_keeps_the_map() -> None:
    writer = Writer(18)
    kept = writer.put("ReduceMean", [convolved(writer, "picture", 3, 4)], noop_with_empty_axes=1)
    network = network_of(writer.model([kept], SIDES), "net.onnx", "net")
    assert [type(node.op) for node in network.nodes[1:]] == [Convolution]


@cases("kind", ["UINT8", "INT8"])
def test_cast_integers_reach_thresholds_exactly(kind: str) -> None:
    """Use FINN's form with integer sums, many of which are equal to a threshold."""
    writer, random = Writer(), np.random.default_rng(1)
    weights = random.integers(-7, 8, (4, 3, 1, 1))
    sums = writer.put("Conv", [cast(writer), writer.constant(weights)])
    edges = np.sort(random.integers(-900, 900, (4, 255)), axis=1)
    options: dict[str, Any] = {"domain": "qonnx.custom_op.general", "out_dtype": "INT8", "out_bias": -128.0}
    model = writer.model([writer.put("MultiThreshold", [sums, writer.constant(edges)], **options)], SIDES)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.DataType.Value(kind)
    quantized = read_model(model, "net.onnx", "net").quantized
    assert quantized is not None
    assert quantized.nodes[1].type == TensorType(DataType(8, True), 1.0, -128 if kind == "UINT8" else 0)
    picture = random.integers(0, 256, SIDES[1:], np.uint8)
    values = picture.astype(np.int64) - (128 if kind == "INT8" else 0)
    acc = np.einsum("fc,chw->fhw", weights[:, :, 0, 0], values)
    expected = (acc[..., None] >= edges[:, None, None, :]).sum(axis=-1) - 128
    assert np.isin(acc[0], edges[0]).any(), "some sums must be equal to a threshold"
    np.testing.assert_array_equal(run_integer(quantized, picture)[-1], expected)
