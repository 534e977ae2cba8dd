"""ONNX files become the networks that their makers meant, or say of every operator why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

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
from cnn.network import Activate, Detection, Network
from cnn.onnx.file import parsed
from cnn.onnx.network import network_of, read_onnx
from cnn.onnx.operators import UNKNOWN
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, refused
from tests.support.onnx.writer import Writer, written

RANDOM = np.random.default_rng(5)


def saved(model: Any, folder: Path) -> Path:
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


def pixels(*shape: int) -> Any:
    return np.random.default_rng(3).random(shape, np.float32)


def check_against_runtime(model: Any, picture: Any) -> Network:
    """Every output is onnxruntime's, to 1e-4 of its greatest value."""
    network = network_of(model, "net.onnx", "net")
    outputs = run_float(network, picture)
    results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": picture[None]})
    assert len(results) == len(network.outputs)
    for index, expected in zip(network.outputs, results, strict=True):
        np.testing.assert_allclose(
            outputs[index].ravel(), expected.ravel(), rtol=0, atol=1e-4 * max(1.0, np.abs(expected).max())
        )
    return network


def test_a_trained_detector_comes_back_node_by_node(tmp_path: Path) -> None:
    network = zoo.load("shapes")
    back = read_onnx(saved(written(network), tmp_path)).network
    picture = pixels(*_sides(network))
    heads = sum(isinstance(node.op, Detection) for node in network.nodes)
    assert [node.shape for node in back.nodes] == [node.shape for node in network.nodes[: len(network.nodes) - heads]]
    for mine, theirs in zip(run_float(network, picture), run_float(back, picture), strict=False):
        np.testing.assert_array_equal(mine, theirs)


JOINS = """[net]\nwidth=16\nheight=16\nchannels=3
[convolutional]\nfilters=8\nsize=3\npad=1\nstride=1\nactivation=relu\nbatch_normalize=1
[maxpool]\nsize=2\nstride=1
[convolutional]\nfilters=8\nsize=1\nactivation=linear\ngroups=2
[shortcut]\nfrom=-3\nactivation=relu
[maxpool]\nsize=2\nstride=2
[upsample]\nstride=2
[route]\nlayers=-1,-3
[route]\nlayers=-1\ngroups=2\ngroup_id=1
[convolutional]\nfilters=6\nsize=3\nstride=2\npad=1\nactivation=relu6
[avgpool]
[connected]\noutput=5\nactivation=logistic
"""


def test_joins_and_a_classifier_are_those_of_another_runtime(tmp_path: Path) -> None:
    cfg = tmp_path / "joins.cfg"
    cfg.write_text(JOINS)
    network = read_darknet(cfg, None, weight_source=zoo.seeded(4))
    picture = pixels(3, 16, 16)
    back = check_against_runtime(written(network), picture)
    np.testing.assert_allclose(run_float(back, picture)[-1], run_float(network, picture)[-1], atol=1e-5)


def _sides(network: Network) -> tuple[int, int, int]:
    shape = network.input_shape
    return shape.channels, shape.height, shape.width


def convolved(writer: Writer, source: str, channels: int, filters: int, **attributes: Any) -> str:
    weights = RANDOM.normal(0, 0.3, (filters, channels // attributes.get("group", 1), 3, 3))
    return writer.put(
        "Conv", [source, writer.constant(weights), writer.constant(RANDOM.normal(size=filters))], **attributes
    )


def _normalised(writer: Writer) -> str:
    mean, deviation = (
        writer.constant(np.reshape(values, (1, 3, 1, 1))) for values in ((0.4, 0.5, 0.6), (0.2, 0.3, 0.25))
    )
    source = writer.put("Div", [writer.put("Sub", ["picture", mean]), deviation])
    return writer.put("Relu", [convolved(writer, source, 3, 4, pads=[1, 1, 1, 1])])


def _padded(writer: Writer) -> str:
    source = writer.put("Pad", ["picture", writer.constant([0, 0, 1, 2, 0, 0, 0, 1], np.int64)])
    return convolved(writer, source, 3, 5, auto_pad="VALID", strides=[2, 2])


def _same_lower(writer: Writer) -> str:
    return convolved(writer, "picture", 3, 6, auto_pad="SAME_LOWER", strides=[2, 2], group=3)


def _dilated(writer: Writer) -> str:
    return convolved(writer, "picture", 3, 4, dilations=[2, 3], pads=[2, 3, 2, 3])


def _standing_alone(writer: Writer) -> str:
    norm = [writer.constant(values) for values in ([1, 2, 3], [0, 1, 0.5], [0.1, 0.2, 0], [1, 0.5, 2])]
    source = writer.put("Relu", [writer.put("BatchNormalization", ["picture", *norm])])
    return writer.put(
        "Add", [writer.put("Mul", [writer.constant(0.5), source]), writer.constant([[[1]], [[2]], [[3]]])]
    )


def _scaled(writer: Writer) -> str:
    """A factor, an offset and a batch norm behind one convolution, all of which it takes in."""
    factor = writer.constant(RANDOM.random((1, 4, 1, 1)))
    source = writer.put("Add", [writer.put("Mul", [convolved(writer, "picture", 3, 4), factor]), writer.constant(0.25)])
    norm = [writer.constant(values) for values in (np.ones(4), np.zeros(4), np.full(4, 0.1), np.full(4, 2.0))]
    return writer.put("Div", [writer.put("BatchNormalization", [source, *norm]), writer.constant(2)])


def _read_twice(writer: Writer) -> str:
    """A convolution that is read before its activation too cannot take it in."""
    source = convolved(writer, "picture", 3, 4)
    return writer.put("Add", [writer.put("Relu", [source]), source])


def _read_twice_as(kind: str, *further: Any) -> Callable[[Writer], str]:
    """The same where the activation reads it by another name."""

    def graph(writer: Writer) -> str:
        source = convolved(writer, "picture", 3, 4)
        view = writer.put(kind, [source, *(writer.constant(array, np.int64) for array in further)])
        return writer.put("Add", [writer.put("Relu", [view]), source])

    return graph


def _normalised_by_another_name(writer: Writer) -> str:
    source = convolved(writer, "picture", 3, 4)
    norm = [writer.constant(values) for values in (np.full(4, 2.0), np.zeros(4), np.full(4, 0.1), np.ones(4))]
    return writer.put("Add", [writer.put("BatchNormalization", [writer.put("Identity", [source]), *norm]), source])


def _shapes_worked_out(writer: Writer) -> str:
    """As exporters of dynamic shapes write a flattening."""
    pooled = writer.put(
        "GlobalAveragePool", [writer.put("Slice", ["picture", *(writer.constant([n], np.int64) for n in (0, 2, 1))])]
    )
    batch = writer.put("Gather", [writer.put("Shape", [pooled]), writer.constant(0, np.int64)], axis=0)
    rows = writer.put("Unsqueeze", [batch, writer.constant([0], np.int64)])
    shape = writer.put("Concat", [rows, writer.constant([-1], np.int64)], axis=0)
    flat = writer.put("Reshape", [pooled, shape])
    matrix = writer.put("MatMul", [flat, writer.constant(RANDOM.random((2, 7)))])
    return writer.put("Softmax", [writer.put("Add", [matrix, writer.constant(np.arange(7))])], axis=1)


def _parts(writer: Writer) -> str:
    first = writer.put("Split", ["picture", writer.constant([1, 2], np.int64)], outputs=2, axis=1)
    return writer.put("Concat", [convolved(writer, first + "_", 2, 3), convolved(writer, first, 1, 2)], axis=1)


def _rounded_up(writer: Writer) -> str:
    return writer.put("MaxPool", ["picture"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)


def _of_one_value(writer: Writer) -> str:
    """As AdaptiveAvgPool2d is exported where the map has that size already."""
    return writer.put("AveragePool", [convolved(writer, "picture", 3, 4)], kernel_shape=[1, 1], strides=[1, 1])


def _mean(writer: Writer) -> str:
    return writer.put("ReduceMean", [convolved(writer, "picture", 3, 4)], axes=[-1, 2], keepdims=0)


def _curved(kind: str, **attributes: Any) -> Callable[[Writer], str]:
    """A function that is looked up, behind a convolution."""
    return lambda writer: writer.put(kind, [convolved(writer, "picture", 3, 4)], **attributes)


CURVED = (
    _curved("Abs"),
    _curved("Celu", alpha=0.7),
    _curved("Elu", alpha=0.5),
    _curved("Gelu"),
    _curved("Gelu", approximate="tanh"),
    _curved("HardSigmoid", alpha=0.3),
    _curved("HardSwish"),
    _curved("LeakyRelu", alpha=0.25),
    _curved("Mish"),
    _curved("Selu"),
    _curved("Sigmoid"),
    _curved("Softplus"),
    _curved("Softsign"),
    _curved("Tanh"),
    _curved("ThresholdedRelu", alpha=0.2),
)


def _gated(kind: str) -> Callable[[Writer], str]:
    """x · f(x), as exporters write SiLU and hard swish."""

    def graph(writer: Writer) -> str:
        source = convolved(writer, "picture", 3, 4)
        return writer.put("Mul", [source, writer.put(kind, [source])])

    return graph


def _mish(writer: Writer) -> str:
    """As exporters of older opsets write it."""
    source = convolved(writer, "picture", 3, 4)
    return writer.put("Mul", [writer.put("Tanh", [writer.put("Softplus", [source])]), source])


def _one_slope(writer: Writer) -> str:
    return writer.put("PRelu", [convolved(writer, "picture", 3, 4), writer.constant(np.full((1, 1, 1), 0.3))])


def _cut_off(writer: Writer) -> str:
    source = writer.put("Clip", [convolved(writer, "picture", 3, 4), writer.constant(-0.5), writer.constant(1)])
    return writer.put("Clip", [source, "", writer.constant(0.75)])


def _positive(writer: Writer) -> str:
    """A ReLU behind what is never below 0 does nothing."""
    return writer.put("Relu", [writer.put("Sigmoid", [convolved(writer, "picture", 3, 4)])])


GRAPHS: tuple[Callable[[Writer], str], ...] = (
    _normalised,
    _padded,
    _same_lower,
    _dilated,
    _standing_alone,
    _scaled,
    _read_twice,
    _read_twice_as("Identity"),
    _read_twice_as("Reshape", [1, 4, 12, 16]),
    _normalised_by_another_name,
    _shapes_worked_out,
    _parts,
    _rounded_up,
    _of_one_value,
    _mean,
    *CURVED,
    _gated("Sigmoid"),
    _gated("HardSigmoid"),
    _mish,
    _one_slope,
    _cut_off,
    _positive,
)


@cases("graph", GRAPHS)
def test_what_exporters_write_is_what_another_runtime_makes_of_it(graph: Callable[[Writer], str]) -> None:
    writer = Writer(20 if graph in CURVED else 17)
    check_against_runtime(writer.model([graph(writer)], (1, 3, 14, 18)), pixels(3, 14, 18))


@cases("graph, kind", [(_gated("Sigmoid"), "silu"), (_mish, "mish")])
def test_what_exporters_take_apart_is_one_function(graph: Callable[[Writer], str], kind: str) -> None:
    writer = Writer()
    network = network_of(writer.model([graph(writer)], (1, 3, 14, 18)), "net.onnx", "net")
    assert [node.name for node in network.nodes if node.op == Activate(kind)] == [f"{kind}1"]


def test_what_stands_behind_a_convolution_costs_no_layer() -> None:
    writer = Writer()
    network = check_against_runtime(writer.model([_scaled(writer)], (1, 3, 14, 18)), pixels(3, 14, 18))
    assert len(network.nodes) == 2


def test_forms_of_old_opsets() -> None:
    writer = Writer(9)
    source = writer.put("Pad", ["picture"], pads=[0, 0, 1, 1, 0, 0, 1, 1])
    source = writer.put("Clip", [convolved(writer, source, 3, 4)], min=0.0, max=6.0)
    source = writer.put("Upsample", [source, writer.constant([1, 1, 2, 2])], mode="nearest")
    source = writer.put("Slice", [source], axes=[1], starts=[1], ends=[3])
    source = writer.put("Squeeze", [writer.put("GlobalAveragePool", [source])], axes=[2, 3])
    check_against_runtime(writer.model([source], (1, 3, 9, 9)), pixels(3, 9, 9))


def test_every_operator_that_is_not_taken_is_told_with_what_would_do(tmp_path: Path) -> None:
    writer = Writer()
    first = writer.put("Relu", [convolved(writer, "picture", 3, 4)])
    slopes = writer.constant(np.full((4, 1, 3), 1.5))
    second = writer.put("PRelu", [convolved(writer, first, 4, 4), slopes])
    last = writer.put("Sin", [writer.put("Relu", [convolved(writer, second, 4, 4)])])
    with raises(
        SeveralFaultsError,
        where="net.onnx",
        subject="2 of 7 operators cannot become layers",
        remedy="cut the network after 3 operators that map, and the host computes the rest: --cut conv2",
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


def test_operators_that_are_refused_for_one_reason_are_told_once(tmp_path: Path) -> None:
    writer, source = Writer(), "picture"
    for _ in range(3):
        source = writer.put("Sin", [convolved(writer, source, 3, 3)])
    with raises(SeveralFaultsError, subject="3 of 6 operators cannot become layers") as caught:
        read_onnx(saved(writer.model([source]), tmp_path))
    names = [f"Sin '/Sin_{place}'" for place in (1, 3, 5)]
    assert [error.subject for error in faults_of(caught.value, UnsupportedError, reason=UNKNOWN)] == names
    assert str(caught.value).count("Sin '") == 1


def test_sides_that_are_left_open_are_asked_for(tmp_path: Path) -> None:
    writer = Writer()
    path = saved(writer.model([convolved(writer, "picture", 3, 4)], ("batch", 3, "height", "width")), tmp_path)
    with raises(MissingValueError, what="the height or width of the input 'picture'", where="net.onnx"):
        read_onnx(path)
    read = read_onnx(path, (20, 12))
    network, data = read.network, read.data
    assert (network.input_shape.width, network.input_shape.height) == (20, 12)
    assert network_of(parsed(data, "net.onnx"), "net.onnx", "net").nodes[-1].shape == network.nodes[-1].shape


def test_data_beside_the_file_is_brought_inside_and_no_other(tmp_path: Path) -> None:
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


def _of_two(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2


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
                "the inputs of the network", ["picture", "other"], "one tensor, the picture", where="net.onnx"
            ),
        ),
        (
            _of_two,
            RangeError(
                "the batch of the input 'picture'",
                2,
                high=1,
                where="net.onnx",
                remedy="export the model with a batch of 1 or an open one",
            ),
        ),
        (_infinite, UnsupportedError("Conv '/Conv_0'", "some of its numbers are not finite")),
        (_many_operations, RangeError("the number of operations", 8193, high=8192, where="net.onnx")),
        (
            _many_edges,
            RangeError("the number of inputs and outputs of operations", 65540, high=65536, where="net.onnx"),
        ),
        (_many_initialisers, RangeError("the number of initialisers", 65538, high=65536, where="net.onnx")),
        (_large, RangeError("height of the input 'picture'", 1099511627776, 1, 8192, where="net.onnx")),
    ],
)
def test_a_hostile_file_is_one_sentence(damage: Callable[[Any], None], fault: SystolicError, tmp_path: Path) -> None:
    writer = Writer()
    model = writer.model([convolved(writer, "picture", 3, 4)])
    damage(model)
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    with refused(fault):
        read_onnx(path)


@cases("data", [b"", b"\x00\x01\x02", b"[net]\nwidth=3\n" * 10])
def test_what_is_no_onnx_file_is_said(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    with raises(DamagedFileError, path="net.onnx"):
        read_onnx(path)
