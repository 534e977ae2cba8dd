"""Tests of the size limits of a network from an ONNX file, at the highest value and the next, and of pruning."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from boards.errors import MAX_VALUE_LENGTH, RangeError
from cnn.datatype import DataType, TensorType
from cnn.limits import MAX_CHANNELS, MAX_LAYERS, MAX_MAP, MAX_MAPS, MAX_WEIGHTS
from cnn.maps import Padding, Shape
from cnn.network import Node
from cnn.onnx.advice import advice
from cnn.onnx.arithmetic import _negative, _of_one_type, extreme
from cnn.onnx.file import MAX_FILE_BYTES, MAX_SHARED, _operation, _opset
from cnn.onnx.graph import OnnxOperation, RefusedError
from cnn.onnx.layers import EACH_WORKED_OUT, MAX_WORKED_OUT, Layers, Map, Unknown, _check_numbers, bare_convolution
from cnn.onnx.network import _check_bounds
from cnn.onnx.quantised.mark import Mark
from cnn.ops import Activate, BatchNorm, Convolution, Dense, Input
from cnn.quantisation.tensor_types import PIXEL
from tests.support.cases import cases
from tests.support.errors import raises

PICTURE = Shape(3, 4, 5)


def node(op: Any, *inputs: int, shape: Shape = PICTURE, name: str = "node") -> Node:
    return Node(name, op, inputs, shape, "net.onnx")


def layers(*nodes: Node, **values: Any) -> Layers:
    """Return layers of these nodes after an input image, with these named values, each of which is read once."""
    readers = dict.fromkeys((*values, "x", "y"), 1)
    return Layers("net.onnx", (node(Input(), name="input"), *nodes), {}, values, readers, 17)


def conv(filters: int = 2, numbers: float = 1.0) -> Convolution:
    weights = np.full((filters, 3, 1, 1), numbers, np.float32)
    return Convolution(weights, np.zeros(filters, np.float32), None, 1, Padding(), 1, "linear")


RELU = Activate("clip", (0.0, np.inf))


# --- how much ---------------------------------------------------------------------------------------------------------


@cases(
    "shape, fits",
    [
        (Shape(1, 1, 1), True),
        (Shape(0, 1, 1), False),
        (Shape(1, 0, 1), False),
        (Shape(MAX_CHANNELS, 1, 1), True),
        (Shape(MAX_CHANNELS + 1, 1, 1), False),
        (Shape(1, 1, MAX_MAP), True),
        (Shape(1, 1, MAX_MAP + 1), False),
    ],
)
def test_layer_output_above_the_limits_is_refused(shape: Shape, fits: bool) -> None:
    if fits:
        layers().check_room(shape)
        return
    what, got, most = "the number of values of its output", shape.values, MAX_MAP
    if not 1 <= shape.channels <= MAX_CHANNELS:
        what, got, most = "channels of its output", shape.channels, MAX_CHANNELS
    with raises(RangeError, what=what, got=got, low=1, high=most):
        layers().check_room(shape)


def test_layers_above_the_limit_are_refused() -> None:
    full = [node(RELU, index) for index in range(MAX_LAYERS - 1)]
    layers(*full[:-1]).check_room(PICTURE)
    with raises(RangeError, what="the number of layers", got=MAX_LAYERS, high=MAX_LAYERS - 1):
        layers(*full).check_room(PICTURE)


def filled(values: int = 1, weights: int = 1, kind: Any = Convolution) -> tuple[Node, ...]:
    """Return two nodes with the given total of values and weights. The arrays are broadcast, so that they take no
    memory."""
    array = np.broadcast_to(np.float32(0), (weights, 1, 1, 1))
    op = conv() if kind is Convolution else Dense(array, array[:, 0, 0, 0], None, "linear")
    return (
        node(Input(), shape=Shape(1, 1, values - 1)),
        node(Convolution(array, *arguments_after_weights(op)) if kind is Convolution else op, 0, shape=Shape(1, 1, 1)),
    )


def arguments_after_weights(op: Any) -> tuple[Any, ...]:
    """Return all arguments of a convolution after its weights."""
    return op.bias, op.batch_norm, op.stride, op.padding, op.groups, op.activation


@cases("kind", [Convolution, Dense])
def test_network_above_the_limits_is_refused(kind: Any) -> None:
    _check_bounds(filled(MAX_MAPS, MAX_WEIGHTS, kind), "net.onnx")
    with raises(RangeError, what="the number of values of all maps", got=MAX_MAPS + 1, high=MAX_MAPS):
        _check_bounds(filled(MAX_MAPS + 1, 1, kind), "net.onnx")
    with raises(RangeError, what="the number of weights", got=MAX_WEIGHTS + 1, high=MAX_WEIGHTS):
        _check_bounds(filled(2, MAX_WEIGHTS + 1, kind), "net.onnx")
    with raises(RangeError, what="the number of layers after the input", got=0, low=1, where="net.onnx"):
        _check_bounds((node(Input()),), "net.onnx")


def test_limits_of_bytes_follow_from_the_limit_of_weights() -> None:
    """Count 4 bytes per float32 and one more byte per integer. A file may hold the largest network and 64 MiB."""
    assert np.dtype(np.float32).itemsize + np.dtype(np.int8).itemsize == EACH_WORKED_OUT
    assert MAX_WORKED_OUT == 128 * 1024 * 1024 == 2 * MAX_SHARED
    assert np.dtype(np.float32).itemsize * MAX_WEIGHTS + 64 * 1024 * 1024 == MAX_FILE_BYTES


@cases("bad", [np.nan, np.inf, -np.inf])
def test_layer_with_a_number_that_is_not_finite_is_refused(bad: float) -> None:
    one, two = np.ones(2, np.float32), np.full(2, bad, np.float32)
    good = conv()
    ops: list[Any] = [conv(numbers=bad), Dense(np.ones((2, 1), np.float32), two, None, "linear")]
    for place in range(3):
        numbers = [one, one, one]
        numbers[place] = two
        norm = BatchNorm(numbers[0], numbers[1], numbers[2], 1e-5)
        ops.append(Convolution(good.weights, good.bias, norm, 1, Padding(), 1, "linear"))
    ops.append(Activate("leaky_relu", (bad,)))
    for op in ops:
        with raises(RefusedError, reason="some numbers of its layer would not be finite"):
            _check_numbers(op)
    _check_numbers(good)
    _check_numbers(Activate("clip", (-np.inf, np.inf)))


# --- pruning and names ------------------------------------------------------------------------------------------------


def test_pruning_removes_unread_nodes_and_renumbers_the_rest() -> None:
    """Check also that the input image stays, and that marks and values follow their nodes."""
    nodes = [node(conv(), 0, name="dead"), node(conv(), 0, name="first"), node(RELU, 1, name="also dead")]
    nodes.append(node(RELU, 2, name="last"))
    mark, view = Mark(scale=np.ones(1, np.float32)), (1, 3, 4, 5)
    values = {name: Map(index, view) for index, name in enumerate(("x", "dead", "first", "also", "y"))}
    whole = layers(*nodes, **values, other=Unknown()).marked(2, mark).marked(1, Mark(thresholds=np.ones((1, 1))))
    left = whole.pruned(["y"])
    assert [(n.name, n.inputs) for n in left.nodes] == [("input", ()), ("first", (0,)), ("last", (1,))]
    assert left.marks == {1: mark}
    places = {name: value.node if isinstance(value, Map) else None for name, value in left.values.items()}
    assert places == {"x": 0, "dead": None, "first": 1, "also": None, "y": 2, "other": None}
    assert [n.name for n in whole.pruned(["x"]).nodes] == ["input"]
    assert [n.name for n in whole.pruned(["also"]).nodes] == ["input", "dead", "also dead"]


def test_node_names_are_numbered_from_1_per_stem() -> None:
    grown = layers(x=Map(0, (1, 3, 4, 5)))
    for stem in ("conv", "pool", "conv", "conv2x", "conv"):
        grown = grown.with_node(OnnxOperation("it", "Conv", ("x",), ("y",), {}), stem, conv(), Shape(2, 4, 5), 0)
    assert [n.name for n in grown.nodes[1:]] == ["conv1", "pool1", "conv2", "conv2x1", "conv3"]


# --- operators of a file ----------------------------------------------------------------------------------------------


@cases(
    "kind, domain, told",
    [
        ("Conv", "", "Conv"),
        ("Conv", "ai.onnx", "Conv"),
        ("Quant", "qonnx.custom_op.general", "qonnx.custom_op.general.Quant"),
        ("a b", "", "'a b'"),
        ("", "", "''"),
        ("x" * MAX_VALUE_LENGTH, "", "x" * MAX_VALUE_LENGTH),
    ],
)
def test_operator_is_named_by_its_domain_and_kind(kind: str, domain: str, told: str) -> None:
    assert _operation(helper.make_node(kind, ["x"], ["y"], domain=domain), "net.onnx").kind == told
    longer = _operation(helper.make_node("x" * (MAX_VALUE_LENGTH + 1), ["x"], ["y"]), "net.onnx").kind
    assert len(longer) <= MAX_VALUE_LENGTH + 2
    assert longer.startswith("'xxx")


def test_opset_is_read_from_the_default_domain() -> None:
    newest = onnx.defs.onnx_opset_version()
    for version, fits in ((6, False), (7, True), (newest, True), (newest + 1, False)):
        imports = [helper.make_opsetid("other", 3), helper.make_opsetid("", version)]
        model: Any = onnx.ModelProto(opset_import=imports)
        if fits:
            assert _opset(model, "net.onnx") == version
        else:
            with raises(RangeError, what="the opset", got=version, low=7, high=newest, where="net.onnx"):
                _opset(model, "net.onnx")
    with raises(RangeError, what="the opset", got=0, low=7, high=newest):
        _opset(onnx.ModelProto(opset_import=[helper.make_opsetid("other", 9)]), "net.onnx")


def test_advice_offers_only_usable_tensors_as_cuts() -> None:
    """Expect only the last tensors of a chain. Names unfit for a command line, maps with pending padding and the input
    are not offered."""
    long, longer = "x" * MAX_VALUE_LENGTH, "x" * (MAX_VALUE_LENGTH + 1)
    chain = (("x", "a"), ("a", "b"), ("x", "c"), ("x", "d"), ("a", long), ("a", longer), ("a", "a\nb"))
    operations = [OnnxOperation(name, "Relu", (source,), (name,), {}) for source, name in chain]
    graph: Any = type("G", (), {"input": "x", "operations": tuple(operations), "constants": {}})
    view, conv = (1, 3, 4, 5), node(bare_convolution(None, 3), 0)
    maps = {name: Map(1, view) for name in ("a", "b", long, longer, "a\nb")}
    whole = layers(conv, x=Map(0, view), c=Map(1, view, Padding(1, 0, 0, 0)), d=Map(0, view), **maps)
    tensors = {name for _, name in chain}
    told = "cut the network after {} operators that can be mapped, and compute the rest on the host: --cut {}"
    assert advice(graph, whole, tensors, (), None) == told.format(3, f"b {long}")
    assert advice(graph, whole, tensors - {"b"}, (), None) == told.format(2, long)
    assert advice(graph, layers(x=Map(0, view)), tensors, (), None) == ""


# --- integers of joined maps ------------------------------------------------------------------------------------------


@cases(
    "type_",
    [
        PIXEL,
        TensorType(DataType(8, True), 0.1),
        TensorType(DataType(8, True), 0.1, -128),
        TensorType(DataType(4, True), 2.0, 3),
    ],
)
def test_negated_integers_have_a_type_that_holds_all_of_them(type_: TensorType) -> None:
    """Expect the same scale, and one more bit only for unsigned integers."""
    grown, index = _negative(
        layers(x=Map(0, (1, 3, 4, 5))).typed(0, type_), OnnxOperation("it", "Sub", ("x",), ("y",), {}), 0
    )
    mirrored = grown.type_of(index)
    assert mirrored is not None
    assert mirrored.datatype.signed
    assert mirrored.scale == type_.scale
    assert mirrored.datatype.bits == type_.datatype.bits + (not type_.datatype.signed)
    for integer in range(type_.datatype.low, type_.datatype.high + 1):
        negative = -(integer - type_.zero_point) + mirrored.zero_point
        assert mirrored.datatype.low <= negative <= mirrored.datatype.high
    op = grown.nodes[index].op
    assert isinstance(op, Convolution)
    assert (op.weights == -1).all()


def test_maps_of_several_types_are_converted_to_one_that_holds_all() -> None:
    """Check that its range covers the lowest and the highest value of all maps, to half a step."""
    types = [TensorType(DataType(8, True), 0.02, -128), TensorType(DataType(8, True), 0.01, 50)]
    whole = layers(node(RELU, 0), x=Map(0, (1, 3, 4, 5))).typed(0, types[0]).typed(1, types[1])
    asked = OnnxOperation("it", "Max", ("x",), ("y",), {})
    brought, maps, target = _of_one_type(whole, asked, [0, 1])
    assert target is not None
    assert target.datatype == DataType(8, True)
    low, high = min(0.0, (-128 - 50) * 0.01), max(255 * 0.02, (127 - 50) * 0.01)
    assert target.scale == pytest.approx((high - low) / 255)
    for integer, value in ((-128, low), (127, high)):
        assert (integer - target.zero_point) * target.scale == pytest.approx(value, abs=target.scale / 2)
    assert [brought.type_of(index) for index in maps] == [target, target]
    same = whole.typed(1, types[0])
    assert _of_one_type(same, asked, [0, 1])[1:] == ([0, 1], types[0])
    assert _of_one_type(same, asked, [0])[1:] == ([0], types[0])
    assert _of_one_type(layers(node(RELU, 0)), asked, [0, 1])[1:] == ([0, 1], None)
    with raises(RefusedError, reason="some of its maps are quantised and some are not"):
        _of_one_type(layers(node(RELU, 0)).typed(0, types[0]), asked, [0, 1])


def test_max_of_one_map_is_that_map() -> None:
    whole = layers(x=Map(0, (1, 3, 4, 5)))
    for kind in ("Max", "Min"):
        assert extreme(whole, OnnxOperation("it", kind, ("x",), ("y",), {})).value("y") == Map(0, (1, 3, 4, 5))
