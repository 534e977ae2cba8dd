"""Tests of hostile files, with numbers, names and places that no exporter writes."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from boards.errors import (
    DamagedFileError,
    DoesNotFitError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    RangeError,
    SeveralFaultsError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.onnx.file import MAX_FILE_BYTES
from cnn.onnx.network import read_onnx
from cnn.onnx.operators import UNKNOWN
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, refused
from tests.support.onnx.writer import Writer

SIZE = 16
Graph: TypeAlias = Callable[[Writer, str], str]


def _convolved(writer: Writer, **attributes: Any) -> str:
    return writer.put("Conv", ["picture", writer.constant(np.ones((4, 3, 3, 3)))], **attributes)


def _read(tmp_path: Path, model: Any, name: str = "net.onnx") -> Any:
    (tmp_path / name).write_bytes(model.SerializeToString())
    return read_onnx(tmp_path / name).network


@contextmanager
def _short(*expected: SystolicError) -> Iterator[None]:
    """Expect these errors, and a short message."""
    with pytest.raises(SystolicError) as caught:
        yield
    assert len(str(caught.value)) < 3000
    with refused(*expected):
        raise caught.value


def _resized(*factors: float) -> Graph:
    return lambda w, source: w.put("Resize", [source, "", w.constant([1, 1, *factors])], mode="nearest")


def _sized(side: int) -> Graph:
    sides = [1, 4, side, side]
    return lambda w, source: w.put("Resize", [source, "", "", w.constant(sides, np.int64)], mode="nearest")


def _with(kind: str, *values: Any, **attributes: Any) -> Graph:
    """Return a function that writes the operator on the convolution's output and constants."""
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
    """Write a convolution of 4 MB of weights, which are multiplied again and again."""
    source = writer.put("Conv", ["picture", writer.constant(np.ones((4096, 3, 9, 9)))])
    for _ in range(100):
        source = writer.put("Mul", [source, writer.constant(1.0)])
    return source


def _padded_after_the_pad(axes: list[int]) -> Graph:
    def graph(writer: Writer, source: str) -> str:
        pads = writer.constant([5, 1, 5, 1], np.int64)
        return writer.put("Pad", [source, pads, "", writer.constant(axes, np.int64)])

    return graph


TEXT = TensorProto(name="text", data_type=TensorProto.STRING, dims=[1], string_data=[b"1"])
FINITE = "some numbers of its layer would not be finite"


def _too_large(values: int) -> SystolicError:
    return RangeError("the number of values of its output", values, 1, 67_108_864, where="Resize '/Resize_1'")


def _norm(*shape: int) -> SystolicError:
    return ShapeError("scale", shape, (4,), where="BatchNormalization '/BatchNormalization_1'")


OUTSIDE = UnsupportedError("AveragePool '/AveragePool_1'", "one of its windows would be outside the map")
NAN, INFINITE = float("nan"), float("inf")


@cases(
    "graph, fault",
    [
        (_resized(2.0**40, 2.0**40), _too_large(947797842577869272969641984)),
        (
            _resized(INFINITE, INFINITE),
            InvalidValueError(
                "scales",
                [1.0, 1.0, INFINITE, INFINITE],
                "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more",
                where="Resize '/Resize_1'",
            ),
        ),
        (_sized(14 << 50), _too_large(993838070578931850773415313014784)),
        (
            _with("Split", axis=1, num_outputs=1 << 62),
            RangeError("num_outputs", 4611686018427387904, 1, 4, where="Split '/Split_1'"),
        ),
        (_with("Split", axis=1, num_outputs=5), RangeError("num_outputs", 5, 1, 4, where="Split '/Split_1'")),
        (
            _gathered,
            RangeError(
                "the number of values that it computes from constants",
                300000000,
                high=65536,
                where="Gather '/Gather_1'",
            ),
        ),
        (
            _negated,
            DoesNotFitError(
                "the result that it computes from constants",
                "bytes of the limit for a file of this size",
                240000,
                59888,
                where="Neg '/Neg_565'",
            ),
        ),
        (
            _scaled_often,
            DoesNotFitError(
                "the result that it computes from constants",
                "bytes of the limit for a file of this size",
                3981312,
                2838592,
                where="Mul '/Mul_40'",
            ),
        ),
        (_cast(TensorProto.STRING), UnsupportedError("Cast '/Cast_1'", "only numeric constants are computed")),
        (_cast(99), InvalidValueError("the attribute to", 99, "the number of an ONNX type", where="Cast '/Cast_1'")),
        (_with("Clip", np.zeros(0), 6.0), ShapeError("input 1", "0 values", "one value", where="Clip '/Clip_1'")),
        (
            _with("Clip", INFINITE, INFINITE),
            InvalidValueError(
                "min and max",
                (INFINITE, INFINITE),
                "the ends of a range, with min not above max",
                where="Clip '/Clip_1'",
            ),
        ),
        (_times(TEXT), ShapeError("input 1", "object", "numbers", where="Mul '/Mul_1'")),
        (
            _times(numpy_helper.from_array(np.array([1j], np.complex64), "complex")),
            ShapeError("input 1", "complex64", "numbers", where="Mul '/Mul_1'"),
        ),
        (_normed(3, 4, 4, 4), _norm(3)),
        (_normed(1, 4, 4, 1), _norm(1)),
        (_normed((4, 1), 4, 4, 4), _norm(4, 1)),
        (_overflowing, UnsupportedError("Mul '/Mul_2'", FINITE)),
        (_with("Div", 1e-45), UnsupportedError("Div '/Div_1'", FINITE)),
        (_flat(np.ones((4 * 14 * 14, 5)), alpha=NAN), UnsupportedError("Gemm '/Gemm_2'", FINITE)),
        (_flat(np.ones((4 * 14 * 14, 0))), RangeError("channels of its output", 0, 1, 65536, where="Gemm '/Gemm_2'")),
        (_with("LeakyRelu", alpha=NAN), UnsupportedError("LeakyRelu '/LeakyRelu_1'", FINITE)),
        (_with("Elu", alpha=INFINITE), UnsupportedError("Elu '/Elu_1'", FINITE)),
        (_with("PRelu", [NAN]), UnsupportedError("PRelu '/PRelu_1'", FINITE)),
        (
            _with("AveragePool"),
            InvalidValueError("kernel_shape", (), "two numbers of 1 or more", where="AveragePool '/AveragePool_1'"),
        ),
        (_with("AveragePool", kernel_shape=[1, 1], pads=[1, 1, 1, 1]), OUTSIDE),
        (
            _with("MaxPool", kernel_shape=[2, 2], strides=[1 << 62] * 2),
            RangeError("a stride", 4611686018427387904, 1, 65536, where="MaxPool '/MaxPool_1'"),
        ),
        (
            _padded_after_the_pad([2, 2]),
            InvalidValueError("axes", (2, 2), "different from each other", where="Pad '/Pad_1'"),
        ),
    ],
)
def test_number_that_no_exporter_writes_is_refused(graph: Graph, fault: SystolicError, tmp_path: Path) -> None:
    writer = Writer(18)
    model = writer.model([graph(writer, _convolved(writer))], (1, 3, SIZE, SIZE))
    with _short(fault):
        _read(tmp_path, model)


def test_pad_with_an_empty_value_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    pads = [writer.constant([0, 0, 1, 1, 0, 0, 1, 1], np.int64), writer.constant(np.zeros(0))]
    model = writer.model([writer.put("Pad", ["picture", *pads])], (1, 3, SIZE, SIZE))
    with _short(ShapeError("input 2", "0 values", "one value", where="Pad '/Pad_0'")):
        _read(tmp_path, model)


def test_attribute_that_refers_to_a_function_parameter_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([_convolved(writer)], (1, 3, SIZE, SIZE))
    model.graph.node[0].attribute.add(name="pads", ref_attr_name="theirs", type=7)
    with _short(InvalidValueError("the attribute pads", None, "a list of whole numbers", where="Conv '/Conv_0'")):
        _read(tmp_path, model)


def test_bfloat16_constant_is_read(tmp_path: Path) -> None:
    writer = Writer(19)
    tensor = helper.make_tensor("short", TensorProto.BFLOAT16, [1], [0.5])
    network = _read(tmp_path, writer.model([_times(tensor)(writer, _convolved(writer))], (1, 3, SIZE, SIZE)))
    assert (network.nodes[1].op.weights == 0.5).all()


def test_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 2)
    with raises(RangeError, what="the file's size in bytes", got=1_140_850_690, high=1_140_850_688, where=str(path)):
        read_onnx(path)


# --- names ------------------------------------------------------------------------------------------------------------

LONG = "x" * 1_000_000


def test_names_are_shortened_to_one_printable_line(tmp_path: Path) -> None:
    """Check the sources of layers, which a design stores; it refuses long texts and texts that cannot be printed."""
    writer = Writer()
    source = _convolved(writer)
    model = writer.model([source], (1, 3, SIZE, SIZE))
    model.graph.input[0].name = model.graph.node[0].input[0] = LONG
    model.graph.node[0].name = "*/\n#error\n<script>" + LONG
    network = _read(tmp_path, model, "a\tb\n<b>.onnx")
    assert all(node.source.isprintable() and len(node.source) < 250 for node in network.nodes)
    assert network.nodes[1].source.startswith("a?b?<b>.onnx: Conv '*/\\n#error")


def test_error_shortens_names(tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([writer.put("Relu", [_convolved(writer)])], (1, 3, SIZE, SIZE))
    model.graph.node[0].output[0] = model.graph.node[1].input[0] = LONG
    model.graph.node.add(op_type="Identity", input=["picture"], output=[LONG[1:]])
    model.graph.output.add(name=LONG[1:])
    with raises(InvalidValueError, what="an output", got=LONG[1:]) as caught:
        _read(tmp_path, model)
    assert len(str(caught.value)) < 300
    model.graph.node[1].op_type = "\n".join(["Bogus"] * 1000)
    with raises(SeveralFaultsError, remedy="") as several:
        _read(tmp_path, model)
    assert faults_of(several.value, UnsupportedError, reason=UNKNOWN)
    assert "\n" not in str(several.value)
    assert len(str(several.value)) < 3000


# --- data files next to the model -------------------------------------------------------------------------------------


PLACE = "net.onnx: the data of 'constant0'"


def _outside(tmp_path: Path, location: str, offset: str = "0", tensors: int = 1) -> Any:
    """Write a model whose weights are in a data file. Further tensors share the data and have the same size."""
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


@cases(
    "location, offset, fault",
    [
        ("data", "²", DamagedFileError("data", "ends before the 432 bytes from offset '²' on", where=PLACE)),
        ("data", "1", DamagedFileError("data", "ends before the 432 bytes from offset '1' on", where=PLACE)),
        ("a\0b", "0", FileAccessError("a\u0000b", "cannot be read: embedded null byte", "data file", where=PLACE)),
        (
            "x/../../data",
            "0",
            InvalidValueError("the location", "x/../../data", "a path inside the folder of the model", where=PLACE),
        ),
        ("pipe", "0", FileAccessError("pipe", "does not exist or is not a regular file", "data file", where=PLACE)),
        ("", "0", FileAccessError(".", "does not exist or is not a regular file", "data file", where=PLACE)),
    ],
)
def test_external_data_at_a_wrong_place_is_refused(
    location: str, offset: str, fault: SystolicError, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with _short(fault):
        _read(tmp_path, _outside(tmp_path, location, offset))


def test_external_data_in_another_folder_is_refused(tmp_path: Path) -> None:
    for location in (f"{tmp_path}/data", f"../{tmp_path.name}/data"):
        inside = "a path inside the folder of the model"
        with _short(InvalidValueError("the location", location, inside, where=PLACE)):
            _read(tmp_path, _outside(tmp_path, location))


def test_external_data_with_an_unresolvable_path_is_refused(tmp_path: Path) -> None:
    """Expect the operating system's reason in the error."""
    (tmp_path / "circle").symlink_to("circle")
    for location in ("circle", "a" * 5000):
        with raises(FileAccessError, path=location, what="data file", where=PLACE) as caught:
            _read(tmp_path, _outside(tmp_path, location))
        assert len(str(caught.value)) < 3000


@cases("length, is_read", [("432", True), ("431", False), ("-1", False), ("0432", False)])
def test_external_data_of_wrong_length_is_refused(length: str, is_read: bool, tmp_path: Path) -> None:
    model = _outside(tmp_path, "data")
    model.graph.initializer[0].external_data.add(key="length", value=length)
    if is_read:
        assert len(_read(tmp_path, model).nodes) == 2
    else:
        with _short(MismatchError("the length in bytes", length, "432", where=PLACE)):
            _read(tmp_path, model)


def test_external_data_of_an_unknown_type_is_refused(tmp_path: Path) -> None:
    model = _outside(tmp_path, "data")
    model.graph.initializer[0].data_type = 77
    with _short(InvalidValueError("the element type", 77, "a numeric type", where=PLACE)):
        _read(tmp_path, model)


def test_external_data_shared_by_many_tensors_is_not_read_for_each(tmp_path: Path) -> None:
    assert len(_read(tmp_path, _outside(tmp_path, "data", tensors=100)).nodes) == 2
    (tmp_path / "large").write_bytes(bytes(1 << 22))
    model = _outside(tmp_path, "large", tensors=100)
    for tensor in model.graph.initializer[1:]:
        tensor.dims[:] = [1 << 20]
    what = "the number of bytes of its tensors in data files"
    tracemalloc.start()
    try:
        with _short(RangeError(what, 415_236_528, high=71_303_168, where="net.onnx")):
            _read(tmp_path, model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 22
