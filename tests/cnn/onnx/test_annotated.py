"""Tests of tensors that a file annotates with datatypes, as FINN does: the integers equal qonnx's or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from boards.errors import ConflictError, DamagedFileError, InvalidValueError, MismatchError, UnsupportedError
from cnn.integer_model import run_integer
from cnn.onnx.file import parsed
from cnn.onnx.inputs import Preprocessing
from cnn.onnx.network import preprocessed, read_model
from tests.support.cases import cases
from tests.support.errors import raises, raises_among
from tests.support.onnx.annotated import GRAPHS, SIDES, Typed, added, annotated, sums, whole
from tests.support.onnx.trained import few_bits, streamlined


@cases("name", GRAPHS)
def test_integers_of_annotated_tensors_equal_qonnx(name: str) -> None:
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx executes its own operators")
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    make, low, high = GRAPHS[name]
    model = make()
    read = read_model(model, "net.onnx", "net")
    assert read.quantized is not None
    full = wrapper.ModelWrapper(model).transform(InferShapes())
    last = read.quantized.nodes[-1].type
    for _ in range(3):
        values = whole(low, high, *SIDES[1:])
        values = np.where(values < 1, -1, 1) if name == "signs" else values
        pixels = (values + 1) // 2 if name == "signs" else values - low
        (theirs,) = execute_onnx(full, {"picture": values[None].astype(np.float32)}).values()
        ours = run_integer(read.quantized, pixels.astype(np.uint8))[-1]
        assert ours is not None
        floats = (ours.astype(np.int64) - last.zero_point) * last.scale
        assert floats.ravel().tolist() == theirs.ravel().tolist()
        assert len(np.unique(floats)) > 2


def test_annotated_tensor_has_the_bits_of_its_datatype() -> None:
    read = read_model(added(), "net.onnx", "net")
    assert read.quantized is not None
    nodes = read.quantized.nodes
    maps = [(node.type.datatype.bits, node.type.zero_point, node.type.scale) for node in nodes[1:]]
    assert maps == [(4, 0, 1), (2, 0, 1), (2, 0, 1), (3, -4, 1), (16, 0, 1 / 8)]


# --- annotations that contradict the values ---------------------------------------------------------------------------

WEIGHTS = np.array([-7, 0, 3, 7] * 36, np.float32).reshape(4, 4, 3, 3)


def convolved(weights: Any, following: str = "") -> Callable[[], tuple[Any, str, str]]:
    """Return a function that writes a convolution with these weights.

    Args:
        weights: the weights of the convolution.
        following: the operator after the convolution, or "" for none.

    Returns:
        A function that returns the model and the names of its weights and of its output.
    """

    def make() -> tuple[Any, str, str]:
        writer = Typed()
        kernel = writer.constant(weights)
        last = writer.conv("picture", kernel)
        last = writer.put(following, [last]) if following else last
        return writer.annotated_file(last), kernel, last

    return make


CONTRADICTED: dict[str, tuple[Callable[[], tuple[Any, str, str]], dict[str, str], str, str]] = {
    "weights beyond their bits": (convolved(WEIGHTS), {"kernel": "INT3"}, "kernel", "INT3"),
    "weights below 0": (convolved(WEIGHTS), {"kernel": "UINT4"}, "kernel", "UINT4"),
    "weights between two integers": (convolved(WEIGHTS / 2), {"kernel": "INT4"}, "kernel", "INT4"),
    "weights of 0": (convolved(np.sign(WEIGHTS)), {"kernel": "BIPOLAR"}, "kernel", "BIPOLAR"),
    "weights of 2": (convolved(2 * np.sign(WEIGHTS)), {"kernel": "TERNARY"}, "kernel", "TERNARY"),
    "weights of finer steps": (convolved(WEIGHTS / 16), {"kernel": "FIXED<6,3>"}, "kernel", "FIXED<6,3>"),
    "weights of NaN": (convolved(WEIGHTS * np.nan), {"kernel": "INT4"}, "kernel", "INT4"),
    "sums of floats": (convolved(WEIGHTS), {"kernel": "INT4", "last": "INT32"}, "last", "INT32"),
    "sums of float weights": (convolved(WEIGHTS / 3), {"picture": "UINT4", "last": "INT32"}, "last", "INT32"),
    "sums beyond their bits": (
        convolved(WEIGHTS),
        {"picture": "UINT4", "kernel": "INT4", "last": "INT11"},
        "last",
        "INT11",
    ),
    "sums below 0": (convolved(WEIGHTS), {"picture": "UINT4", "kernel": "INT4", "last": "UINT16"}, "last", "UINT16"),
    "sums of more than two values": (
        convolved(WEIGHTS),
        {"picture": "UINT4", "kernel": "INT4", "last": "BIPOLAR"},
        "last",
        "BIPOLAR",
    ),
    "a function's values": (convolved(WEIGHTS, "Sigmoid"), {"picture": "UINT4", "last": "UINT8"}, "last", "UINT8"),
}
"""Case: a function that writes the model, its annotations, and the tensor and datatype that the error names."""


@cases("name", CONTRADICTED)
def test_annotation_that_contradicts_the_values_is_refused(name: str) -> None:
    make, datatypes, tensor, datatype = CONTRADICTED[name]
    model, kernel, last = make()
    names = {"kernel": kernel, "last": last, "picture": "picture"}
    annotated(model, {names[part]: each for part, each in datatypes.items()})
    with pytest.raises(InvalidValueError) as caught:
        read_model(model, "net.onnx", "net")
    assert repr(names[tensor]) in caught.value.what
    assert datatype in (caught.value.got, caught.value.what.removesuffix(",").split()[-1])
    assert caught.value.where.startswith("net.onnx")


def test_annotation_narrower_than_the_thresholds_is_refused() -> None:
    """Use thresholds with values of UINT4. The annotation UINT4 of their output is accepted, and UINT3 is refused."""
    model = streamlined()
    name = next(node.output[0] for node in model.graph.node if node.op_type == "MultiThreshold")
    read = read_model(annotated(streamlined(), {name: "UINT4"}), "net.onnx", "net")
    assert read.quantized is not None
    with pytest.raises(InvalidValueError) as caught:
        read_model(annotated(model, {name: "UINT3"}), "net.onnx", "net")
    assert repr(name) in caught.value.what


def test_wrong_annotations_are_named() -> None:
    model, kernel, last = convolved(WEIGHTS)()
    annotated(model, {kernel: "INT4", "picture": "UINT4", last: "INT4", "of nobody": "INT99"})
    with raises(InvalidValueError, what="the datatype that the tensor 'of nobody' is annotated with", got="INT99"):
        read_model(model, "net.onnx", "net")
    model, kernel, last = convolved(WEIGHTS, "Relu")()
    annotated(model, {"picture": "UINT4", kernel: "INT4", last: "UINT4", model.graph.node[0].output[0]: "INT4"})
    with raises_among(InvalidValueError, what=f"the datatype that the tensor '{last}' is annotated with", got="UINT4"):
        read_model(model, "net.onnx", "net")


# 5000 characters, a line break and a zero byte must not break the message.
@cases("text", ["INT0", "UINT65", "int8", "INT-1", "FIXED<4,4>", "FIXED<0,-1>", "U" * 5000, "INT8\n", "\x00"])
def test_annotation_that_is_not_a_datatype_is_refused(text: str) -> None:
    model, kernel, _ = convolved(WEIGHTS)()
    with raises(InvalidValueError, what=f"the datatype that the tensor '{kernel}' is annotated with", got=text):
        read_model(annotated(model, {kernel: text}), "net.onnx", "net")


def test_annotations_of_one_tensor_that_differ_are_refused() -> None:
    model, kernel, _ = convolved(WEIGHTS)()
    read_model(annotated(annotated(model, {kernel: "INT4"}), {kernel: "INT4"}), "net.onnx", "net")
    what = f"the datatype that the tensor '{kernel}' is annotated with"
    with raises(MismatchError, what=what, got="INT5", expected="INT4"):
        read_model(annotated(model, {kernel: "INT5"}), "net.onnx", "net")


@cases("key, value", [(b"finn_\xff", b"INT8"), (b"finn_datatype", b"INT8\xff")])
def test_annotation_that_is_not_utf8_text_is_refused(key: bytes, value: bytes) -> None:
    model, kernel, _ = convolved(WEIGHTS)()
    data = annotated(model, {kernel: "INT4_"}, "finn_datatype").SerializeToString()
    data = data.replace(b"finn_datatype", key.ljust(13, b"\xff")).replace(b"INT4_", value.ljust(5, b"\xff"))
    with raises(DamagedFileError, reason="has a name that is not text in UTF-8", path="net.onnx"):
        parsed(data, "net.onnx")


@cases("key", ["SCALE_TENSOR", "ZERO_POINT_TENSOR"])
def test_scale_given_by_an_annotation_is_refused(key: str) -> None:
    model, kernel, last = convolved(WEIGHTS)()
    with raises(UnsupportedError, subject=f"the tensor '{last}'"):
        read_model(annotated(model, {last: kernel}, key), "net.onnx", "net")


# --- annotations without effect, or with a part of it -----------------------------------------------------------------


@cases("make", [few_bits, streamlined])
def test_annotations_of_floats_and_scaled_integers_have_no_effect(make: Callable[[], Any]) -> None:
    plain, model = make(), make()
    annotated(model, {name: "FLOAT32" for node in model.graph.node for name in node.input})
    annotated(model, {node.output[0]: "SCALEDINT<4>" for node in model.graph.node if node.op_type == "Quant"}, "other")
    annotated(model, {"picture": "[N, C, H, W]"}, "tensor_layout")
    ours, theirs = (read_model(each, "net.onnx", "net").quantized for each in (model, plain))
    assert ours is not None
    assert theirs is not None
    assert [node.type for node in ours.nodes] == [node.type for node in theirs.nodes]


@cases("make", [few_bits, streamlined])
def test_datatypes_inferred_by_qonnx_have_no_effect_on_its_own_operators(make: Callable[[], Any]) -> None:
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx infers the datatypes")
    from qonnx.transformation.infer_datatypes import InferDataTypes
    from qonnx.transformation.infer_shapes import InferShapes

    model = wrapper.ModelWrapper(make()).transform(InferShapes()).transform(InferDataTypes()).model
    assert len(model.graph.quantization_annotation) > 2
    ours, theirs = (read_model(each, "net.onnx", "net").quantized for each in (model, make()))
    assert ours is not None
    assert theirs is not None
    assert [node.type for node in ours.nodes] == [node.type for node in theirs.nodes]


def test_annotated_weights_with_float_sums_are_noted_and_ignored() -> None:
    model, kernel, _ = convolved(WEIGHTS)()
    read = read_model(annotated(model, {kernel: "INT4"}), "net.onnx", "net")
    assert read.quantized is None
    assert len(read.notes) == 1
    assert kernel in read.notes[0]


def test_sums_of_more_than_16_bits_are_rounded_at_the_output_and_refused_inside() -> None:
    """Use sums of 17 bits. As the network's output they are rounded, with a note. Another layer cannot read them."""
    writer = Typed()
    writer.typed("picture", "UINT8")
    last = writer.typed(writer.conv("picture", writer.weights(127 * np.sign(WEIGHTS), "INT8")), "INT32")
    read = read_model(writer.annotated_file(last), "net.onnx", "net")
    assert read.quantized is not None
    assert last in read.notes[0]
    assert read.quantized.nodes[-1].type.scale == 32
    behind = writer.typed(writer.conv(last, writer.weights(np.sign(WEIGHTS), "TERNARY")), "INT32")
    with raises(UnsupportedError, subject=f"the tensor '{last}'"):
        read_model(writer.annotated_file(behind), "net.onnx", "net")


def test_annotated_input_of_few_bits_clips_the_pixels() -> None:
    read = read_model(sums(), "net.onnx", "net")
    assert read.quantized is not None
    assert len(read.notes) == 1
    high = run_integer(read.quantized, np.full(SIDES[1:], 15, np.uint8))[-1]
    above = run_integer(read.quantized, np.full(SIDES[1:], 200, np.uint8))[-1]
    assert high is not None
    assert above is not None
    assert high.tolist() == above.tolist()


@cases("datatype", ["UINT8", "INT4", "TERNARY", "FIXED<6,1>"])
def test_annotated_input_with_a_mean_is_refused(datatype: str) -> None:
    model, _, _ = convolved(WEIGHTS)()
    data = annotated(model, {"picture": datatype}).SerializeToString()
    with raises(ConflictError, subjects=("a mean, std or order", "an input of integers")):
        preprocessed(data, "net", Preprocessing((0.5,)))


def test_annotated_input_of_fixed_point_is_quantised() -> None:
    """Use the datatype FIXED<6,1>, which holds pixels from 0 to 1 in steps of 1/32."""
    writer = Typed()
    writer.typed("picture", "FIXED<6,1>")
    last = writer.conv("picture", writer.weights(np.ones((1, 4, 1, 1)), "BIPOLAR"), kernel_shape=[1, 1], pads=[0] * 4)
    quantized = read_model(writer.annotated_file(writer.typed(last, "FIXED<8,3>")), "net.onnx", "net").quantized
    assert quantized is not None
    pixels = np.broadcast_to(np.arange(56).reshape(7, 8) * 4, SIDES[1:]).astype(np.uint8)
    ours = run_integer(quantized, pixels)[-1]
    assert ours is not None
    expected = 4 * np.minimum(np.rint(pixels[0] / 255 * 32), 31)
    assert (ours[0] * quantized.nodes[-1].type.scale * 32).tolist() == expected.tolist()
