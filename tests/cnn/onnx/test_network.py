"""Tests that ONNX files become the intended networks, or that the error names every unsupported operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn import zoo
from cnn.darknet.files import read_darknet
from cnn.float_model import run_float
from cnn.network import Network
from cnn.onnx.file import parsed
from cnn.onnx.network import network_of, read_onnx
from cnn.onnx.operators import UNKNOWN
from cnn.ops import Activate, Detection
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, refused
from tests.support.onnx.networks import (
    CURVED,
    GRAPHS,
    JOINS,
    check_against_runtime,
    convolved,
    gated,
    mish,
    pixels,
    scaled,
)
from tests.support.onnx.writer import Writer, written


def saved(model: Any, folder: Path) -> Path:
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


def test_exported_detector_is_read_node_by_node(tmp_path: Path) -> None:
    network = zoo.load("shapes")
    back = read_onnx(saved(written(network), tmp_path)).network
    picture = pixels(*_sides(network))
    heads = sum(isinstance(node.op, Detection) for node in network.nodes)
    assert [node.shape for node in back.nodes] == [node.shape for node in network.nodes[: len(network.nodes) - heads]]
    for mine, theirs in zip(run_float(network, picture), run_float(back, picture), strict=False):
        np.testing.assert_array_equal(mine, theirs)


def test_joins_and_a_classifier_equal_onnxruntime(tmp_path: Path) -> None:
    cfg = tmp_path / "joins.cfg"
    cfg.write_text(JOINS)
    network = read_darknet(cfg, None, weight_source=zoo.seeded(4))
    picture = pixels(3, 16, 16)
    back = check_against_runtime(written(network), picture)
    np.testing.assert_allclose(run_float(back, picture)[-1], run_float(network, picture)[-1], atol=1e-5)


def _sides(network: Network) -> tuple[int, int, int]:
    shape = network.input_shape
    return shape.channels, shape.height, shape.width


@cases("graph", GRAPHS)
def test_exported_graph_equals_onnxruntime(graph: Callable[[Writer], str]) -> None:
    writer = Writer(20 if graph in CURVED else 17)
    check_against_runtime(writer.model([graph(writer)], (1, 3, 14, 18)), pixels(3, 14, 18))


@cases("graph, kind", [(gated("Sigmoid"), "silu"), (mish, "mish")])
def test_function_written_out_becomes_one_layer(graph: Callable[[Writer], str], kind: str) -> None:
    writer = Writer()
    network = network_of(writer.model([graph(writer)], (1, 3, 14, 18)), "net.onnx", "net")
    assert [node.name for node in network.nodes if node.op == Activate(kind)] == [f"{kind}1"]


def test_scale_and_offset_after_a_convolution_add_no_layer() -> None:
    writer = Writer()
    network = check_against_runtime(writer.model([scaled(writer)], (1, 3, 14, 18)), pixels(3, 14, 18))
    assert len(network.nodes) == 2


def test_operators_of_opset_9_equal_onnxruntime() -> None:
    writer = Writer(9)
    source = writer.put("Pad", ["picture"], pads=[0, 0, 1, 1, 0, 0, 1, 1])
    source = writer.put("Clip", [convolved(writer, source, 3, 4)], min=0.0, max=6.0)
    source = writer.put("Upsample", [source, writer.constant([1, 1, 2, 2])], mode="nearest")
    source = writer.put("Slice", [source], axes=[1], starts=[1], ends=[3])
    source = writer.put("Squeeze", [writer.put("GlobalAveragePool", [source])], axes=[2, 3])
    check_against_runtime(writer.model([source], (1, 3, 9, 9)), pixels(3, 9, 9))


def test_unsupported_operators_are_reported_with_a_remedy(tmp_path: Path) -> None:
    writer = Writer()
    first = writer.put("Relu", [convolved(writer, "picture", 3, 4)])
    slopes = writer.constant(np.full((4, 1, 3), 1.5))
    second = writer.put("PRelu", [convolved(writer, first, 4, 4), slopes])
    last = writer.put("Sin", [writer.put("Relu", [convolved(writer, second, 4, 4)])])
    with raises(
        SeveralFaultsError,
        where="net.onnx",
        subject="2 of 7 operators cannot become layers",
        remedy="cut the network after 3 operators that can be mapped, and compute the rest on the host: --cut conv2",
    ) as caught:
        read_onnx(saved(writer.model([last]), tmp_path))
    required = "one value, or one for each channel of (1, 4, 28, 28)"
    assert list(map(repr, caught.value.errors)) == [
        repr(ShapeError("its constant", (4, 1, 3), required, where="PRelu '/PRelu_3'")),
        repr(UnsupportedError("Sin '/Sin_6'", UNKNOWN)),
    ]
    network = read_onnx(tmp_path / "net.onnx", cuts=("conv2",)).network
    assert [node.name for node in network.nodes] == ["input", "conv1", "conv2"]
    choices = ["conv0", "conv2", "conv4", "prelu3", "relu1", "relu5", "sin6"]
    cut = "a tensor to cut the network at"
    with refused(ChoiceError(cut, "conv9", choices, where="net.onnx")):
        read_onnx(tmp_path / "net.onnx", cuts=("conv9",))
    with refused(*(ChoiceError(cut, name, choices, where="net.onnx") for name in ("conv9", "a"))):
        read_onnx(tmp_path / "net.onnx", cuts=("conv9", "conv0", "a"))


def test_operators_refused_for_one_reason_are_listed_once(tmp_path: Path) -> None:
    writer, source = Writer(), "picture"
    for _ in range(3):
        source = writer.put("Sin", [convolved(writer, source, 3, 3)])
    with raises(SeveralFaultsError, subject="3 of 6 operators cannot become layers") as caught:
        read_onnx(saved(writer.model([source]), tmp_path))
    names = [f"Sin '/Sin_{place}'" for place in (1, 3, 5)]
    assert [error.subject for error in faults_of(caught.value, UnsupportedError, reason=UNKNOWN)] == names
    assert str(caught.value).count("Sin '") == 1


def test_open_sides_without_a_size_are_refused(tmp_path: Path) -> None:
    writer = Writer()
    path = saved(writer.model([convolved(writer, "picture", 3, 4)], ("batch", 3, "height", "width")), tmp_path)
    with raises(
        MissingValueError, what="dimension 2 (height), dimension 3 (width) of the input 'picture'", where="net.onnx"
    ):
        read_onnx(path)
    read = read_onnx(path, (20, 12))
    network, data = read.network, read.data
    assert (network.input_shape.width, network.input_shape.height) == (20, 12)
    assert network_of(parsed(data, "net.onnx"), "net.onnx", "net").nodes[-1].shape == network.nodes[-1].shape


def test_external_data_outside_the_folder_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([convolved(writer, "picture", 3, 4)])
    expected = network_of(model, "net.onnx", "net")
    place = tmp_path / "folder"
    place.mkdir()
    onnx.save(model, place / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    read = read_onnx(place / "net.onnx")
    network, data = read.network, read.data
    picture = pixels(3, 32, 32)
    np.testing.assert_array_equal(run_float(network, picture)[-1], run_float(expected, picture)[-1])
    assert network_of(parsed(data, "net.onnx"), "net.onnx", "net").nodes[-1].shape == expected.nodes[-1].shape
    (tmp_path / "net.data").write_bytes((place / "net.data").read_bytes())
    (place / "net.data").unlink()
    for location in ("../net.data", str(tmp_path / "net.data")):
        moved = onnx.load(place / "net.onnx", load_external_data=False)
        moved.graph.initializer[0].external_data[0].value = location
        (place / "net.onnx").write_bytes(moved.SerializeToString())
        with raises(InvalidValueError, what="the location", required="a path inside the folder of the model"):
            read_onnx(place / "net.onnx")
    (place / "net.data").symlink_to(tmp_path / "net.data")
    moved.graph.initializer[0].external_data[0].value = "net.data"
    (place / "net.onnx").write_bytes(moved.SerializeToString())
    with raises(InvalidValueError, what="the location", got="net.data"):
        read_onnx(place / "net.onnx")


def _claimed(model: Any) -> None:
    model.graph.initializer[0].dims[:] = [1 << 20, 1 << 20]


def _short(model: Any) -> None:
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]


def _newer(model: Any) -> None:
    model.opset_import[0].version = 999


def _two_inputs(model: Any) -> None:
    model.graph.input.append(onnx.helper.make_tensor_value_info("other", onnx.TensorProto.FLOAT, [1, 3, 4, 4]))


def _infinite(model: Any) -> None:
    model.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(np.full(4, np.inf, np.float32), "constant1"))


def _many_operations(model: Any) -> None:
    model.graph.node.extend([model.graph.node[0]] * (1 << 13))


def _many_edges(model: Any) -> None:
    model.graph.node[0].output.extend([""] * (1 << 16))


def _many_initialisers(model: Any) -> None:
    model.graph.initializer.extend([onnx.TensorProto(name="other")] * (1 << 16))


def _large(model: Any) -> None:
    for side in model.graph.input[0].type.tensor_type.shape.dim[2:4]:
        side.dim_value = 1 << 40


@cases(
    "damage, fault",
    [
        (
            _claimed,
            ShapeError(
                "the tensor",
                (1048576, 1048576),
                "at most 268,435,456 values and no negative side",
                where="net.onnx: the tensor 'constant0'",
            ),
        ),
        (_short, MismatchError("the length in bytes", "428", "432", where="net.onnx: the tensor 'constant0'")),
        (
            _newer,
            RangeError(
                "the opset",
                999,
                7,
                onnx.defs.onnx_opset_version(),
                where="net.onnx",
                remedy="convert the file with onnx.version_converter",
            ),
        ),
        (
            _two_inputs,
            InvalidValueError(
                "the inputs of the network", ["picture", "other"], "one tensor, the image", where="net.onnx"
            ),
        ),
        (_infinite, UnsupportedError("Conv '/Conv_0'", "some of its numbers are not finite")),
        (_many_operations, RangeError("the number of operations", 8193, high=8192, where="net.onnx")),
        (
            _many_edges,
            RangeError("the number of inputs and outputs of operations", 65540, high=65536, where="net.onnx"),
        ),
        (_many_initialisers, RangeError("the number of initialisers", 65538, high=65536, where="net.onnx")),
        (_large, RangeError("height of the input 'picture'", 1099511627776, 1, 65536, where="net.onnx")),
    ],
)
def test_hostile_file_is_refused(damage: Callable[[Any], None], fault: SystolicError, tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([convolved(writer, "picture", 3, 4)])
    damage(model)
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    with refused(fault):
        read_onnx(path)


@cases("data", [b"", b"\x00\x01\x02", b"[net]\nwidth=3\n" * 10])
def test_file_that_is_not_onnx_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    with raises(DamagedFileError, path="net.onnx"):
        read_onnx(path)
