"""Test the named outputs of an ONNX file: each has its name and shape in the file, after all operations of the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

import systolic
from cnn.onnx.network import read_onnx
from cnn.quantisation.fidelity import heads as left
from cnn.stored.quantized_file import from_npz, to_npz
from systolic.cli.main import main
from systolic.golden import golden_outputs
from systolic.model import Calibration
from systolic.network_outputs import heads, layer_per_node
from systolic.styles.registry import open_design
from tests.support.cases import cases
from tests.support.onnx.networks import convolved, pixels
from tests.support.onnx.outputs import check_outputs, integer_outputs, runtime_outputs
from tests.support.onnx.quantising import Form, quantised
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 8, 8)

Graph = Callable[[Writer], list[str]]


def trunk(writer: Writer) -> str:
    """Add the first layers of every graph: a convolution of stride 2 and a ReLU."""
    return writer.put("Relu", [convolved(writer, "picture", 3, 6, strides=[2, 2])])


def row(writer: Writer, source: str, classes: int) -> str:
    """Add a dense layer that reads all values of a trunk's map."""
    matrix = np.random.default_rng(classes).normal(0, 0.2, (54, classes))
    return writer.put("Gemm", [writer.put("Flatten", [source]), writer.constant(matrix)])


def two_softmaxes(writer: Writer) -> list[str]:
    """Add two classifiers as outputs, with 10 and 4 classes."""
    source = trunk(writer)
    return [writer.put("Softmax", [row(writer, source, classes)], axis=1) for classes in (10, 4)]


def faces(writer: Writer) -> list[str]:
    """Add a softmax over the channels of a map and a map of boxes, as a face detector has."""
    source = trunk(writer)
    shares = writer.put("Softmax", [convolved(writer, source, 6, 2, pads=[1] * 4)], axis=1)
    return [shares, convolved(writer, source, 6, 4, pads=[1] * 4)]


def age_and_gender(writer: Writer) -> list[str]:
    """Add a number, a sigmoid and a log-softmax as outputs."""
    source = trunk(writer)
    gender = writer.put("Sigmoid", [row(writer, source, 1)])
    return [row(writer, source, 2), gender, writer.put("LogSoftmax", [row(writer, source, 5)], axis=-1)]


def two_resolutions(writer: Writer) -> list[str]:
    """Add a map as an output, and the softmax of a smaller map."""
    source = trunk(writer)
    smaller = convolved(writer, source, 6, 5, strides=[2, 2], pads=[1] * 4)
    return [convolved(writer, source, 6, 5, pads=[1] * 4), writer.put("Softmax", [smaller], axis=1)]


def inside_too(writer: Writer) -> list[str]:
    """Add as outputs the trunk, a convolution of it, and the softmax of this convolution."""
    source = trunk(writer)
    last = convolved(writer, source, 6, 5, pads=[1] * 4)
    return [writer.put("Softmax", [last], axis=1), source, last]


def one_by_two_names(writer: Writer) -> list[str]:
    """Add the trunk's map as an output with two names, and once more flattened."""
    source = trunk(writer)
    again = writer.put("Identity", [source])
    return [again, writer.put("Flatten", [source]), source]


def tokens(writer: Writer) -> list[str]:
    """Add outputs of shape (1, positions, channels), as detectors write their heads."""
    source = trunk(writer)
    turned = writer.put("Transpose", [convolved(writer, source, 6, 4, pads=[1] * 4)], perm=[0, 2, 3, 1])
    rows = writer.put("Reshape", [turned, writer.constant([1, -1, 4], np.int64)])
    shares = writer.put("Transpose", [convolved(writer, source, 6, 3, pads=[1] * 4)], perm=[0, 2, 3, 1])
    shares = writer.put("Reshape", [shares, writer.constant([1, 9, 3], np.int64)])
    return [rows, writer.put("Softmax", [shares], axis=-1)]


def labels_and_boxes(writer: Writer) -> list[str]:
    """Add labels and values of a TopK, labels of an ArgMax, and a map of boxes as outputs."""
    source = trunk(writer)
    chosen = convolved(writer, source, 6, 5, pads=[1] * 4)
    values = writer.put("TopK", [chosen, writer.constant([2], np.int64)], outputs=2, axis=1)
    greatest = writer.put("ArgMax", [convolved(writer, source, 6, 7, pads=[1] * 4)], axis=1, keepdims=0)
    return [values, f"{values}_", greatest, convolved(writer, source, 6, 4, pads=[1] * 4)]


def halves(writer: Writer) -> list[str]:
    """Add two outputs that are the halves of one layer's channels."""
    first = writer.put("Split", [convolved(writer, trunk(writer), 6, 6, pads=[1] * 4)], outputs=2, axis=1)
    return [writer.put("Softmax", [first], axis=1), f"{first}_"]


def anchors(writer: Writer) -> list[str]:
    """Add joined boxes and shares of two map sizes, with one row per anchor, as in SSDs and face detectors."""
    source = trunk(writer)
    sizes = [source, writer.put("Relu", [convolved(writer, source, 6, 6, strides=[2, 2], pads=[1] * 4)])]
    joined = []
    for values in (4, 2):
        rows = []
        for each in sizes:
            turned = writer.put("Transpose", [convolved(writer, each, 6, 2 * values, pads=[1] * 4)], perm=[0, 2, 3, 1])
            rows.append(writer.put("Reshape", [turned, writer.constant([1, -1, values], np.int64)]))
        joined.append(writer.put("Concat", rows, axis=1))
    return [joined[0], writer.put("Softmax", joined[1:], axis=-1)]


def digits(writer: Writer) -> list[str]:
    """Add the softmax over rows and the softmax over columns of one dense layer, as for the five digits of a number."""
    rows = writer.put("Reshape", [row(writer, trunk(writer), 20), writer.constant([1, 5, 4], np.int64)])
    shares = writer.put("Softmax", [rows], axis=2)
    return [shares, writer.put("Softmax", [rows], axis=1)]


GRAPHS: dict[str, Graph] = {
    graph.__name__: graph
    for graph in (
        *(two_softmaxes, faces, age_and_gender, two_resolutions, inside_too, one_by_two_names, tokens),
        *(labels_and_boxes, halves, anchors, digits),
    )
}
ALONE = ("inside_too", "one_by_two_names")
"""The graphs whose outputs are all computed from one map, or from the layer before it."""


def model_of(graph: Graph) -> Any:
    """Return the ONNX model of a graph, without the types of its outputs."""
    writer = Writer()
    model = writer.model(graph(writer), SIDES)
    for output in model.graph.output:
        output.type.Clear()  # onnxruntime infers whether an output holds labels
    return model


@cases("name", GRAPHS)
def test_named_outputs_match_onnxruntime(name: str) -> None:
    check_outputs(model_of(GRAPHS[name]), pixels(*SIDES[1:]))


@cases("name", [name for name in GRAPHS if name not in ALONE])
def test_heads_of_network_with_other_outputs_are_empty(name: str) -> None:
    network: Any = check_outputs(model_of(GRAPHS[name]), pixels(*SIDES[1:])).network
    assert heads(network, layer_per_node(network)) == ()


def test_named_outputs_keep_unusual_names() -> None:
    """Use a name that exporters write, and one with path separators, quotes, comment marks and format characters."""
    writer = Writer()
    sources = two_softmaxes(writer)
    names = ["StatefulPartitionedCall:0", '/../"*/ %s\\\n\u202e{{ x }}.npy']
    for source, name in zip(sources, names, strict=True):
        writer.nodes[[node.output[0] for node in writer.nodes].index(source)].output[0] = name
    check_outputs(writer.model(names, SIDES), pixels(*SIDES[1:]))


@cases("form", [Form(), Form(activations="QUInt8", per_channel=True)], ids=str)
@cases("name", ["faces", "two_softmaxes", "tokens"])
def test_named_outputs_of_quantised_file_match_onnxruntime(name: str, form: Form, tmp_path: Path) -> None:
    """Allow one step of the last layers. The softmax in floats after them does not increase a difference."""
    path = quantised(model_of(GRAPHS[name]), tmp_path, form, SIDES)
    network = read_onnx(path).quantized
    assert network is not None
    picture = np.random.default_rng(2).integers(0, 256, SIDES[1:], np.uint8)
    ours = integer_outputs(network, picture)
    theirs = runtime_outputs(onnx.load(path), picture.astype(np.float32) / np.float32(255))
    step = max(network.nodes[index].type.scale for index in left(network))
    assert list(ours) == list(theirs)
    for key, expected in theirs.items():
        assert ours[key].shape == expected.shape
        np.testing.assert_allclose(ours[key], expected, rtol=0, atol=1.001 * step)


def test_npz_keeps_named_outputs(tmp_path: Path) -> None:
    network = read_onnx(quantised(model_of(faces), tmp_path, Form(), SIDES)).quantized
    assert network is not None
    assert network.named_outputs
    assert from_npz(to_npz(network)).named_outputs == network.named_outputs


def in_style(path: Path, style: str, folder: Path) -> Path:
    """Write the design of an ONNX file in the given style, without a long search, and return its folder."""
    network = systolic.load(path)
    shape, random = network.known.input_shape, np.random.default_rng(1)
    pictures = tuple(random.integers(0, 256, (shape.height, shape.width, shape.channels), np.uint8) for _ in range(3))
    options: dict[str, Any] = {"search": "greedy"} if style == "streaming" else {}
    systolic.design(network, "zcu104", style, calibrate=Calibration(pictures), **options).write(folder)
    return folder


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "style"),
    [
        *(("two_softmaxes", "systolic"), ("two_softmaxes", "streaming"), ("faces", "systolic"), ("faces", "streaming")),
        *(("tokens", "streaming"), ("labels_and_boxes", "systolic"), ("anchors", "systolic"), ("digits", "streaming")),
    ],
)
def test_run_gives_named_outputs_as_npz_json_and_golden(
    name: str, style: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Expect the same values in the .npz file, in JSON and from the golden program, near the outputs of onnxruntime."""
    model, random = model_of(GRAPHS[name]), np.random.default_rng(4)
    onnx.save(model, tmp_path / "net.onnx")
    folder = in_style(tmp_path / "net.onnx", style, tmp_path / "design")
    pixels_in = random.integers(0, 256, SIDES[1:], np.uint8)
    Image.fromarray(pixels_in.transpose(1, 2, 0)).save(tmp_path / "picture.png")
    command = ["run", str(folder), str(tmp_path / "picture.png"), "-o", str(tmp_path / "x.npz"), "--json", "-"]
    capsys.readouterr()
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    expected = runtime_outputs(model, pixels_in.astype(np.float32) / np.float32(255))
    golden = golden_outputs(folder / "golden", open_design(folder).network, pixels_in)
    assert [entry["name"] for entry in told["tensors"]] == list(golden) == list(expected)
    with np.load(tmp_path / "x.npz") as arrays:
        assert arrays.files == list(expected)
        for entry in told["tensors"]:
            array, wanted = arrays[entry["name"]], expected[entry["name"]]
            assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(entry["values"], array.ravel(), rtol=1e-6)
            np.testing.assert_allclose(golden[entry["name"]], array, rtol=1e-6)
            if array.dtype == np.float32:
                np.testing.assert_allclose(array, wanted, rtol=0, atol=0.1 * float(np.abs(wanted).max()))
            else:
                assert (array == wanted).mean() > 0.8
