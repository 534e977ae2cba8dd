"""Tests of ArgMax and TopK against onnxruntime: labels, values and both, per position and after a softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from boards.errors import InvalidValueError, RangeError, ShapeError, SystolicError, UnsupportedError
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.network import Network
from cnn.onnx.network import network_of, read_model
from cnn.onnx.quantised.export import to_onnx
from cnn.ops import Softmax, TopK, label_type
from cnn.quantized_check import check_quantized
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.low_bit import Layers
from tests.support.onnx.networks import convolved, pixels
from tests.support.onnx.trained import few_bits
from tests.support.onnx.writer import Writer

CLASSES = 7
SIDES = (3, 6, 8)


def values_of(writer: Writer, form: str) -> str:
    """Write the input of the selection: a "row" of values, a map of one "place", or a whole "map"."""
    source = convolved(writer, "picture", 3, CLASSES)
    if form == "map":
        return source
    pooled = writer.put("GlobalAveragePool", [source])
    return pooled if form == "place" else writer.put("Flatten", [pooled])


def as_onnxruntime(model: Any) -> Network:
    """Return the network after comparing every output with onnxruntime."""
    for output in model.graph.output:
        output.type.Clear()
    network = network_of(model, "net.onnx", "net")
    picture = pixels(*SIDES)
    outputs = run_float(network, picture)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    tensors = read_model(model, "net.onnx", "net").tensors
    for output, expected in zip(model.graph.output, session.run(None, {"picture": picture[None]}), strict=True):
        result = outputs[tensors[output.name]]
        np.testing.assert_allclose(result.ravel(), expected.ravel(), rtol=1e-4, atol=1e-5)
    return network


@cases("form", ["row", "place", "map"])
@cases("keepdims", [0, 1])
def test_argmax_equals_onnxruntime(form: str, keepdims: int) -> None:
    writer = Writer()
    name = writer.put("ArgMax", [values_of(writer, form)], axis=1, keepdims=keepdims)
    network = as_onnxruntime(writer.model([name], (1, *SIDES)))
    assert [node.op for node in network.nodes if isinstance(node.op, TopK)] == [TopK(1)]


@cases("form", ["row", "place", "map"])
@cases("given", ["values", "labels", "both"])
def test_top_k_equals_onnxruntime(form: str, given: str) -> None:
    writer = Writer()
    source = values_of(writer, form)
    axis = {"row": {}, "place": {"axis": 1}, "map": {"axis": -3}}[form]  # a row's last axis is the default
    values = writer.put("TopK", [source, writer.constant([3], np.int64)], outputs=2, **axis)
    outputs = {"values": [values], "labels": [f"{values}_"], "both": [values, f"{values}_"]}[given]
    network = as_onnxruntime(writer.model(outputs, (1, *SIDES)))
    wanted = {"values": [False], "labels": [True], "both": [False, True]}[given]
    assert [node.op for node in network.nodes if isinstance(node.op, TopK)] == [TopK(3, labels) for labels in wanted]


def test_top_k_with_k_as_an_attribute_equals_onnxruntime() -> None:
    writer = Writer(9)
    values = writer.put("TopK", [values_of(writer, "row")], outputs=2, k=2, axis=1)
    assert [node.op for node in as_onnxruntime(writer.model([f"{values}_"], (1, *SIDES))).nodes][-1] == TopK(2)


def top_k_after_softmax(*given: int) -> Network:
    writer = Writer()
    shares = writer.put("Softmax", [values_of(writer, "row")], axis=1)
    values = writer.put("TopK", [shares, writer.constant([2], np.int64)], outputs=2)
    return as_onnxruntime(writer.model([[values, f"{values}_"][place] for place in given], (1, *SIDES)))


def test_labels_after_a_softmax_are_selected_before_it() -> None:
    """Expect the softmax to be removed unless its values are an output, because it keeps the order."""
    assert Softmax not in [type(node.op) for node in top_k_after_softmax(1).nodes]
    nodes = top_k_after_softmax(0, 1).nodes
    assert [type(nodes[node.inputs[0]].op) for node in nodes if isinstance(node.op, TopK)] == [Softmax, Softmax]


@cases(
    "kind, constants, attributes, fault",
    [
        (
            "ArgMax",
            [],
            {"axis": 1, "select_last_index": 1},
            UnsupportedError("ArgMax '/ArgMax_3'", "the first of equal values is selected; set select_last_index 0"),
        ),
        (
            "ArgMax",
            [],
            {},
            InvalidValueError("its axis", 0, "1, the channels of (1, 7)", where="ArgMax '/ArgMax_3'"),
        ),
        (
            "TopK",
            [[3]],
            {"axis": 0},
            InvalidValueError("its axis", 0, "1, the channels of (1, 7)", where="TopK '/TopK_3'"),
        ),
        (
            "TopK",
            [[3]],
            {"largest": 0},
            UnsupportedError("TopK '/TopK_3'", "only the greatest values are selected; set largest 1"),
        ),
        ("TopK", [[0]], {}, RangeError("k", 0, 1, 7, where="TopK '/TopK_3'")),
        ("TopK", [[8]], {}, RangeError("k", 8, 1, 7, where="TopK '/TopK_3'")),
        ("TopK", [[1, 2]], {}, ShapeError("k", "2 values", "one value", where="TopK '/TopK_3'")),
    ],
)
def test_unsupported_selection_is_refused(
    kind: str, constants: list[Any], attributes: dict[str, int], fault: SystolicError
) -> None:
    writer = Writer()
    inputs = [values_of(writer, "row"), *(writer.constant(values, np.int64) for values in constants)]
    name = writer.put(kind, inputs, outputs=2 if kind == "TopK" else 1, **attributes)
    with refused(fault):
        network_of(writer.model([name], (1, *SIDES)), "net.onnx", "net")


def test_quantised_file_that_ends_in_top_k_has_integers() -> None:
    model = few_bits()
    sums = model.graph.output[0].name
    node = model.graph.node.add(op_type="TopK", input=[sums, "k"], output=["values", "labels"], name="choice")
    model.graph.initializer.append(_k(3))
    del model.graph.output[:]
    for name in node.output:
        model.graph.output.add(name=name)
    network = read_model(model, "net.onnx", "net").quantized
    assert network is not None
    *_, dense, values, labels = network.nodes
    assert (values.type, labels.type) == (dense.type, label_type(CLASSES))
    results = run_integer(network, np.random.default_rng(5).integers(0, 256, (3, 10, 12), np.uint8))
    order = np.argsort(-results[-3].astype(np.int64).ravel(), kind="stable")[:3]  # type: ignore[union-attr]
    np.testing.assert_array_equal(results[-1].ravel(), order)  # type: ignore[union-attr]
    np.testing.assert_array_equal(results[-2].ravel(), results[-3].ravel()[order])  # type: ignore[union-attr]


def _k(count: int) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array([count], np.int64), "k")


@cases("dialect", ["qonnx", "finn"])
def test_exported_top_k_is_read_again(dialect: str) -> None:
    layers = Layers(3, 6, 8).conv(8, 3).dense(CLASSES).wide()
    last = layers.last
    network = check_quantized(layers.choose(3, False, last).choose(3, True, last).network("net"))
    import onnx

    model = onnx.load_from_string(to_onnx(network, dialect))
    again = read_model(model, "net.onnx", "net").quantized
    assert again is not None
    assert [node.op for node in again.nodes if isinstance(node.op, TopK)] == [TopK(3, False), TopK(3)]
    picture = np.random.default_rng(5).integers(0, 256, (3, 6, 8), np.uint8)
    np.testing.assert_array_equal(run_integer(again, picture)[-1], run_integer(network, picture)[-1])
