"""Tests of the forms of each operator: outputs equal onnxruntime's, or the error gives the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import (
    InvalidValueError,
    MissingValueError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.float_model import run_float
from cnn.onnx.network import network_of
from cnn.ops import Convolution, Softmax
from tests.support.cases import cases
from tests.support.errors import raises, raises_among, refused
from tests.support.onnx.networks import RANDOM, check_against_runtime, convolved, pixels
from tests.support.onnx.operators import HEIGHT, MEANT, REFUSED, WIDTH, Graph, ended, of_values, window
from tests.support.onnx.outputs import check_the_hosts, with_a_reader
from tests.support.onnx.writer import Writer


@pytest.mark.parametrize("name", MEANT)
def test_supported_form_equals_onnxruntime(name: str) -> None:
    opset, graph = MEANT[name]
    writer = Writer(opset)
    picture = pixels(3, HEIGHT, WIDTH)
    network = check_against_runtime(writer.model([graph(writer)], (1, 3, HEIGHT, WIDTH)), picture)
    for node, values in zip(network.nodes, run_float(network, picture), strict=True):
        assert values.shape == (node.shape.channels, node.shape.height, node.shape.width)


@cases("form, fault", REFUSED)
def test_unsupported_form_is_refused_with_its_reason(form: tuple[int, Graph], fault: SystolicError) -> None:
    opset, graph = form
    writer = Writer(opset)
    with refused(fault):
        network_of(writer.model([with_a_reader(writer, graph(writer))], (1, 3, HEIGHT, WIDTH)), "net.onnx", "net")


def test_unsupported_views_joins_and_softmaxes_at_the_end_run_on_the_host() -> None:
    writers = [(Writer(opset), graph) for (opset, graph), _ in REFUSED]
    models = (writer.model([graph(writer)], (1, 3, HEIGHT, WIDTH)) for writer, graph in writers)
    assert check_the_hosts(models, pixels(3, HEIGHT, WIDTH)) == 7


@cases(
    "key, value",
    [("value_float", 2.5), ("value_int", 2), ("value_floats", [2.5] * 4), ("value_ints", [1, 2, 3, 4])],
)
def test_constant_of_every_kind_equals_onnxruntime(key: str, value: Any) -> None:
    """Use float32 and int64 constants; integers are cast before the addition."""
    writer = Writer()
    writer.nodes.append(onnx.helper.make_node("Constant", [], ["number"], **{key: value}))
    number = writer.put("Cast", ["number"], to=onnx.TensorProto.FLOAT)
    shape = writer.put("Reshape", [number, writer.constant([-1, 1, 1], np.int64)])
    source = writer.put("Add", [convolved(writer, "picture", 3, 4), shape])
    check_against_runtime(writer.model([source], (1, 3, HEIGHT, WIDTH)), pixels(3, HEIGHT, WIDTH))


def test_max_pool_with_indices_is_refused() -> None:
    writer = Writer()
    first = writer.put("MaxPool", [convolved(writer, "picture", 3, 4)], outputs=2, kernel_shape=[2, 2])
    check_against_runtime(writer.model([first], (1, 3, HEIGHT, WIDTH)), pixels(3, HEIGHT, WIDTH))
    reason = "its second output, the indices of the greatest values, is not computed"
    with raises_among(UnsupportedError, reason=reason):
        network_of(writer.model([first, first + "_"], (1, 3, HEIGHT, WIDTH)), "net.onnx", "net")


@cases(
    "shape, fault",
    [
        (
            (1, 3, 8, 8, 8),
            ShapeError(
                "the input 'picture'",
                "5 sides",
                "sides batch × channels × height × width, batch × channels × length or batch × values",
                where="net.onnx",
            ),
        ),
        (
            (1, 3, 8, "width"),
            MissingValueError(
                "dimension 3 (width) of the input 'picture'",
                "the file leaves it open",
                where="net.onnx",
                remedy="give --size WIDTHxHEIGHT",
            ),
        ),
        (
            (1, 3, "height", 8),
            MissingValueError(
                "dimension 2 (height) of the input 'picture'",
                "the file leaves it open",
                where="net.onnx",
                remedy="give --size WIDTHxHEIGHT",
            ),
        ),
        (
            (1, "channels", 8, "width"),
            MissingValueError(
                "dimension 1 (channels), dimension 3 (width) of the input 'picture'",
                "the file leaves it open",
                where="net.onnx",
                remedy="export the model with the number of its channels",
            ),
        ),
        (
            (1, 3, "length"),
            MissingValueError(
                "dimension 2 (length) of the input 'picture'",
                "the file leaves it open",
                where="net.onnx",
                remedy="give --size LENGTHx1",
            ),
        ),
        (
            (1, "side", "length"),
            MissingValueError(
                "dimension 1 (channels), dimension 2 (length) of the input 'picture'",
                "the file leaves it open",
                where="net.onnx",
                remedy="give --size WIDTHxHEIGHT if it is a grey image, or export the model with the number of its "
                "channels",
            ),
        ),
        (
            (1, "values"),
            MissingValueError(
                "dimension 1 (values) of the input 'picture'",
                "the file leaves it open",
                where="net.onnx",
                remedy="give --size VALUESx1",
            ),
        ),
        ((1, 65537, 8, 8), RangeError("channels of the input 'picture'", 65537, 1, 65536, where="net.onnx")),
        ((1, 3, 8, 65537), RangeError("width of the input 'picture'", 65537, 1, 65536, where="net.onnx")),
    ],
)
def test_input_of_wrong_sides_is_refused(shape: tuple[int | str, ...], fault: SystolicError) -> None:
    writer = Writer()
    with refused(fault):
        network_of(writer.model([ended(writer, "picture")], shape), "net.onnx", "net")


@cases("batch", [0, 1, "batch"])
def test_batch_of_1_or_any_is_read(batch: int | str) -> None:
    writer = Writer()
    network = network_of(writer.model([ended(writer, "picture")], (batch, 3, 8, 8192)), "net.onnx", "net")
    assert str(network.input_shape) == "3×8×8192"


def test_opset_below_7_is_refused() -> None:
    for opset, is_read in ((6, False), (7, True)):
        writer = Writer(opset)
        model = writer.model([ended(writer, "picture")], (1, 3, 8, 8))
        if is_read:
            network_of(model, "net.onnx", "net")
        else:
            with raises(RangeError, what="the opset", got=6, low=7):
                network_of(model, "net.onnx", "net")


def test_softmax_without_axis_is_over_the_last_side() -> None:
    """Expect a refusal since opset 13: the last of four sides is the width."""
    writer = Writer(13)
    opset, graph = of_values("Softmax", opset=13)
    assert opset == writer.opset
    with raises_among(
        InvalidValueError,
        what="its axis",
        got=-1,
        required="the channels alone, for an input of shape (1, 4, 1, 1) in opset 13",
    ):
        network_of(writer.model([with_a_reader(writer, graph(writer))], (1, 3, HEIGHT, WIDTH)), "net.onnx", "net")


@cases("sides", [(1, -1), (1, -1, 1, 1), (1, -1, 2)], ids=str)
@cases("kind", ["Softmax", "LogSoftmax"])
def test_softmax_of_a_flattened_map_is_refused(kind: str, sides: tuple[int, ...]) -> None:
    """Use a map of several positions, over which this softmax would extend. A map of one position is accepted."""
    writer = Writer()
    flat = writer.put(kind, [writer.put("Reshape", ["picture", writer.constant(sides, np.int64)])], axis=1)
    values = f"{12 if len(sides) != 3 else 6} values"
    with raises_among(ShapeError, what="side 1 of its input", got=values, required="3 channels"):
        network_of(writer.model([flat], (1, 3, 2, 2)), "net.onnx", "net")
    if len(sides) != 3:
        pixel = network_of(writer.model([flat], (1, 3, 1, 1)), "net.onnx", "net")
        assert pixel.nodes[-1].op == Softmax(logarithm=kind == "LogSoftmax")


def test_weights_of_other_floats_become_float32() -> None:
    writer = Writer()
    for kind in (np.float64, np.float16):
        weights = writer.constant(window(1, 1, channels=3, filters=2), kind)
        op = network_of(writer.model([writer.put("Conv", ["picture", weights])]), "net.onnx", "net").nodes[-1].op
        assert isinstance(op, Convolution)
        assert op.weights.dtype == np.float32
        np.testing.assert_allclose(op.weights, window(1, 1, channels=3, filters=2), rtol=1e-3)


def test_signal_becomes_a_map_of_one_row() -> None:
    """Compare every operator of one side with onnxruntime, and check the shapes of the layers."""
    writer = Writer()
    kernel = writer.constant(RANDOM.normal(size=(6, 2, 3)))
    first = writer.put("Conv", ["picture", kernel], group=2, strides=[2], pads=[2, 1], dilations=[2], kernel_shape=[3])
    norm = [writer.constant(values) for values in (np.arange(6), np.ones(6), np.arange(6), np.full(6, 2))]
    first = writer.put("Relu", [writer.put("BatchNormalization", [first, *norm])])
    pooled = writer.put("MaxPool", [first], kernel_shape=[3], strides=[2], pads=[1, 1])
    mean = writer.put("AveragePool", [first], kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1)
    both = writer.put("Concat", [pooled, mean], axis=1)
    part = writer.put("Slice", [both, *(writer.constant([number], np.int64) for number in (2, 9, 1))])
    around = writer.put("Pad", [part, writer.constant([0, 0, 1, 0, 0, 2], np.int64)])
    last = writer.put("Conv", [around, writer.constant(RANDOM.normal(size=(4, 7, 2)))])
    ends = [writer.put("GlobalMaxPool", [last]), writer.put("ReduceMean", [last], axes=[2], keepdims=0)]
    model = writer.model(ends, (1, 4, 33))
    network = network_of(model, "net.onnx", "net")
    assert {node.shape.height for node in network.nodes} == {1}
    picture = RANDOM.random((4, 1, 33)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = run_float(network, picture)
    for index, wanted in zip(network.outputs, session.run(None, {"picture": picture.reshape(1, 4, 33)}), strict=True):
        np.testing.assert_allclose(outputs[index].ravel(), wanted.ravel(), rtol=1e-4, atol=1e-5)


def test_row_of_values_becomes_a_map_of_one_position() -> None:
    writer = Writer()
    matrix = writer.constant(RANDOM.normal(size=(5, 4)))
    row = writer.put("Relu", [writer.put("MatMul", ["picture", matrix])])
    model = writer.model([writer.put("Concat", [row, "picture"], axis=1)], (1, 5))
    network = network_of(model, "net.onnx", "net")
    # A concat cannot read the image itself, so that a convolution copies it.
    assert [str(node.shape) for node in network.nodes] == ["5×1×1", "4×1×1", "5×1×1", "9×1×1"]


@cases(
    "kind, attributes, fault",
    [
        (
            "Conv",
            {"strides": [1, 1]},
            InvalidValueError("strides", (1, 1), "one number, because it has one side", where="Conv '/Conv_0'"),
        ),
        (
            "Conv",
            {"pads": [1]},
            InvalidValueError("pads", (1,), "two numbers, because it has one side", where="Conv '/Conv_0'"),
        ),
        (
            "MaxPool",
            {"kernel_shape": [2, 2]},
            InvalidValueError(
                "kernel_shape", (2, 2), "one number, because it has one side", where="MaxPool '/MaxPool_0'"
            ),
        ),
    ],
)
def test_wrong_attribute_for_a_signal_is_refused(kind: str, attributes: dict[str, Any], fault: SystolicError) -> None:
    writer = Writer()
    kernel = [writer.constant(np.ones((2, 3, 3)))] if kind == "Conv" else []
    model = writer.model([writer.put(kind, ["picture", *kernel], **attributes)], (1, 3, 9))
    with refused(fault):
        network_of(model, "net.onnx", "net")
