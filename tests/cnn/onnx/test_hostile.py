"""Files that are made to do harm: numbers, names and places that no exporter writes."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from boards.errors import NetworkError
from cnn.onnx.file import LARGEST_FILE
from cnn.onnx.network import read_onnx
from tests.cnn.onnx.writer import Writer

SIZE = 16
Graph: TypeAlias = Callable[[Writer, str], str]


def _convolved(writer: Writer, **attributes: Any) -> str:
    return writer.put("Conv", ["picture", writer.constant(np.ones((4, 3, 3, 3)))], **attributes)


def _read(tmp_path: Path, model: Any, name: str = "net.onnx") -> Any:
    (tmp_path / name).write_bytes(model.SerializeToString())
    return read_onnx(tmp_path / name).network


def _sentence(tmp_path: Path, model: Any) -> str:
    with pytest.raises(NetworkError) as caught:
        _read(tmp_path, model)
    assert len(str(caught.value)) < 3000
    return str(caught.value)


def _resized(*factors: float) -> Graph:
    return lambda w, source: w.put("Resize", [source, "", w.constant([1, 1, *factors])], mode="nearest")


def _sized(side: int) -> Graph:
    sides = [1, 4, side, side]
    return lambda w, source: w.put("Resize", [source, "", "", w.constant(sides, np.int64)], mode="nearest")


def _with(kind: str, *values: Any, **attributes: Any) -> Graph:
    """The operator of the convolution and constants."""
    return lambda w, source: w.put(kind, [source, *(w.constant(value) for value in values)], **attributes)


def _normed(*sides: Any) -> Graph:
    return _with("BatchNormalization", *(np.ones(shape) for shape in sides))


def _flat(*values: Any, **attributes: Any) -> Graph:
    return lambda w, source: w.put(
        "Gemm", [w.put("Flatten", [source]), *(w.constant(value) for value in values)], **attributes
    )


def _times(tensor: TensorProto) -> Graph:
    def graph(writer: Writer, source: str) -> str:
        writer.arrays.append(tensor)
        return writer.put("Mul", [source, tensor.name])

    return graph


def _overflowing(writer: Writer, source: str) -> str:
    for _ in range(3):
        source = writer.put("Mul", [source, writer.constant(3e38)])
    return source


def _gathered(writer: Writer, source: str) -> str:
    rows = [writer.constant(np.ones((1, 60_000))), writer.constant(np.zeros(5_000), np.int64)]
    return writer.put("Add", [source, writer.put("Gather", rows, axis=0)])


def _negated(writer: Writer, source: str) -> str:
    value = writer.constant(np.ones(60_000))
    for _ in range(1_000):
        value = writer.put("Neg", [value])
    return writer.put("Add", [source, value])


def _cast(to: int) -> Graph:
    return lambda w, source: w.put("Add", [source, w.put("Cast", [w.constant([1.0])], to=to)])


def _scaled_often(writer: Writer, source: str) -> str:
    """One convolution of 4 MB whose weights are multiplied again and again."""
    source = writer.put("Conv", ["picture", writer.constant(np.ones((4096, 3, 9, 9)))])
    for _ in range(100):
        source = writer.put("Mul", [source, writer.constant(1.0)])
    return source


def _behind_the_pad(axes: list[int]) -> Graph:
    def graph(writer: Writer, source: str) -> str:
        pads = writer.constant([5, 1, 5, 1], np.int64)
        return writer.put("Pad", [source, pads, "", writer.constant(axes, np.int64)])

    return graph


TEXT = TensorProto(name="text", data_type=TensorProto.STRING, dims=[1], string_data=[b"1"])
ROOM = "there are at most 511 layers, of 1…65,536 channels and 1…67,108,864 values: "
FINITE = "the numbers of its layer would not all be finite"
NORM = "scale, bias, mean and variance must be 4 numbers each, one for each channel"
OUTSIDE = "one of its windows lies outside the map"
NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (_resized(2.0**40, 2.0**40), f"{ROOM}4×15393162788864×15393162788864"),
        (_resized(INFINITE, INFINITE), "height and width become 1 or more"),
        (_sized(14 << 50), f"{ROOM}4×15762598695796736×15762598695796736"),
        (_with("Split", axis=1, num_outputs=1 << 62), "num_outputs must be 1…4, not 4,611,686,018,427,387,904"),
        (_with("Split", axis=1, num_outputs=5), "num_outputs must be 1…4, not 5"),
        (_gathered, "it would work out 300,000,000 values, and at most 65,536 are"),
        (_negated, "it would work out 240,000 bytes, where 59,888 are left for such a file"),
        (_scaled_often, "it would work out 3,981,312 bytes, where "),
        (_cast(TensorProto.STRING), "numbers alone are worked out"),
        (_cast(99), "it casts to a type that is none: 99"),
        (_with("Clip", np.zeros(0), 6.0), "input 1 must be one number, not 0"),
        (_with("Clip", INFINITE, INFINITE), "values are cut off at a range, not at inf…inf"),
        (_times(TEXT), "input 1 must hold numbers, not object"),
        (_times(numpy_helper.from_array(np.array([1j], np.complex64), "complex")), "must hold numbers, not complex64"),
        (_normed(3, 4, 4, 4), NORM),
        (_normed(1, 4, 4, 1), NORM),
        (_normed((4, 1), 4, 4, 4), NORM),
        (_overflowing, f"Mul '/Mul_2': {FINITE}"),
        (_with("Div", 1e-45), FINITE),
        (_flat(np.ones((4 * 14 * 14, 5)), alpha=NAN), FINITE),
        (_flat(np.ones((4 * 14 * 14, 0))), f"{ROOM}0×1×1"),
        (_with("LeakyRelu", alpha=NAN), FINITE),
        (_with("Elu", alpha=INFINITE), FINITE),
        (_with("PRelu", [NAN]), FINITE),
        (_with("AveragePool"), "a pool has a window, not ()"),
        (_with("AveragePool", kernel_shape=[1, 1], pads=[1, 1, 1, 1]), OUTSIDE),
        (_with("MaxPool", kernel_shape=[2, 2], strides=[1 << 62] * 2), "a stride is at most 8,192, not 4,611,686,018"),
        (_behind_the_pad([2, 2]), "each axis is padded once, not (2, 2)"),
    ],
)
def test_a_number_that_no_exporter_writes_is_refused(graph: Graph, sentence: str, tmp_path: Path) -> None:
    writer = Writer(18)
    model = writer.model([graph(writer, _convolved(writer))], (1, 3, SIZE, SIZE))
    assert sentence in _sentence(tmp_path, model)


def test_padding_with_nothing_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    pads = [writer.constant([0, 0, 1, 1, 0, 0, 1, 1], np.int64), writer.constant(np.zeros(0))]
    model = writer.model([writer.put("Pad", ["picture", *pads])], (1, 3, SIZE, SIZE))
    assert "Pad '/Pad_0': input 2 must be one number, not 0" in _sentence(tmp_path, model)


def test_a_parameter_of_a_function_is_no_number(tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([_convolved(writer)], (1, 3, SIZE, SIZE))
    model.graph.node[0].attribute.add(name="pads", ref_attr_name="theirs", type=7)
    assert "its attribute pads must be a list of whole numbers, not None" in _sentence(tmp_path, model)


def test_shorter_floats_are_numbers(tmp_path: Path) -> None:
    writer = Writer(19)
    tensor = helper.make_tensor("short", TensorProto.BFLOAT16, [1], [0.5])
    network = _read(tmp_path, writer.model([_times(tensor)(writer, _convolved(writer))], (1, 3, SIZE, SIZE)))
    assert (network.nodes[1].op.weights == 0.5).all()


def test_a_file_is_not_read_where_it_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 2)
    with pytest.raises(NetworkError, match=r"net.onnx must have at most 1,140,850,688 bytes, not 1,140,850,690"):
        read_onnx(path)


# --- names -------------------------------------------------------------------------------------------------------

LONG = "x" * 1_000_000


def test_names_are_short_and_on_one_line_wherever_they_go(tmp_path: Path) -> None:
    """A layer's source is kept in the design, which refuses texts that are long or cannot be printed."""
    writer = Writer()
    source = _convolved(writer)
    model = writer.model([source], (1, 3, SIZE, SIZE))
    model.graph.input[0].name = model.graph.node[0].input[0] = LONG
    model.graph.node[0].name = "*/\n#error\n<script>" + LONG
    network = _read(tmp_path, model, "a\tb\n<b>.onnx")
    assert all(node.source.isprintable() and len(node.source) < 250 for node in network.nodes)
    assert network.nodes[1].source.startswith("a?b?<b>.onnx: Conv '*/\\n#error")


def test_a_sentence_has_no_name_whole(tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([writer.put("Relu", [_convolved(writer)])], (1, 3, SIZE, SIZE))
    model.graph.node[0].output[0] = model.graph.node[1].input[0] = LONG
    model.graph.node.add(op_type="Identity", input=["picture"], output=[LONG[1:]])
    model.graph.output.add(name=LONG[1:])
    assert "must be what a layer gives" in _sentence(tmp_path, model)
    model.graph.node[1].op_type = "\n".join(["Bogus"] * 1000)
    said = _sentence(tmp_path, model)
    assert "this operator is none of those that become layers" in said
    assert "\n" not in said
    assert "--cut" not in said


# --- data beside the file ----------------------------------------------------------------------------------------


def _outside(tmp_path: Path, location: str, offset: str = "0", tensors: int = 1) -> Any:
    """A file whose weights lie elsewhere; further tensors are as large as the data there and share it."""
    (tmp_path / "data").write_bytes(bytes(4 * 4 * 3 * 3 * 3))
    writer = Writer()
    model = writer.model([_convolved(writer)], (1, 3, SIZE, SIZE))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="offset", value=offset)
    for number in range(1, tensors):
        model.graph.initializer.add().CopyFrom(tensor)
        model.graph.initializer[-1].name = f"shared{number}"
    return model


@pytest.mark.parametrize(
    ("location", "offset", "sentence"),
    [
        ("data", "²", "the data of 'constant0' are 432 bytes from '²' on, but 'data' ends before"),
        ("data", "1", "the data of 'constant0' are 432 bytes from '1' on, but 'data' ends before"),
        ("a\0b", "0", "the data of 'constant0' cannot be read from 'a\\x00b': embedded null byte"),
        ("x/../../data", "0", "the data of 'constant0' must lie beside the file, not in 'x/../../data'"),
        ("{folder}/data", "0", "the data of 'constant0' must lie beside the file, not in "),
        ("../{name}/data", "0", "the data of 'constant0' must lie beside the file, not in "),
        ("circle", "0", "the data of 'constant0' "),
        ("pipe", "0", "the data of 'constant0' must lie in a file, and 'pipe' is none"),
        ("", "0", "the data of 'constant0' must lie in a file, and '.' is none"),
        ("a" * 5000, "0", "the data of 'constant0' "),
    ],
)
def test_data_lie_in_a_file_beside(location: str, offset: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    location = location.format(folder=tmp_path, name=tmp_path.name)
    assert sentence in _sentence(tmp_path, _outside(tmp_path, location, offset))


@pytest.mark.parametrize(("length", "is_read"), [("432", True), ("431", False), ("-1", False), ("0432", False)])
def test_data_have_the_length_that_their_sides_say(length: str, is_read: bool, tmp_path: Path) -> None:
    model = _outside(tmp_path, "data")
    model.graph.initializer[0].external_data.add(key="length", value=length)
    if is_read:
        assert len(_read(tmp_path, model).nodes) == 2
    else:
        said = f"the data of 'constant0' are 432 bytes by its sides, and '{length}' by its length"
        assert said in _sentence(tmp_path, model)


def test_data_beside_a_file_have_the_type_of_numbers(tmp_path: Path) -> None:
    model = _outside(tmp_path, "data")
    model.graph.initializer[0].data_type = 77
    assert "the data of 'constant0' have a type that is no number's: 77" in _sentence(tmp_path, model)


def test_data_that_many_tensors_share_are_not_read_for_each(tmp_path: Path) -> None:
    assert len(_read(tmp_path, _outside(tmp_path, "data", tensors=100)).nodes) == 2
    (tmp_path / "large").write_bytes(bytes(1 << 22))
    model = _outside(tmp_path, "large", tensors=100)
    for tensor in model.graph.initializer[1:]:
        tensor.dims[:] = [1 << 20]
    tracemalloc.start()
    try:
        said = _sentence(tmp_path, model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "net.onnx: its tensors must have at most 71,303,168 bytes of the data beside it, not 415,236,528" in said
    assert peak < 1 << 22
