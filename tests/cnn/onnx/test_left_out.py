"""Tests of the defaults of what a file leaves out, and of the count of bytes that are computed while reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx

from boards.errors import (
    DoesNotFitError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    ShapeError,
    SystolicError,
)
from cnn.datatype import TensorType
from cnn.maps import Shape
from cnn.network import Node
from cnn.onnx.constants import _sides
from cnn.onnx.file import graph_of
from cnn.onnx.graph import MAX_NUMBERS, OnnxOperation, RefusedError, whole_numbers
from cnn.onnx.heads import NamedHead, _followed, _of_size, parse_heads, recognised
from cnn.onnx.layers import EACH_WORKED_OUT, MAX_WORKED_OUT, Layers, Map, map_shape
from cnn.onnx.network import _own_heads, _read_as_a_picture, network_of
from cnn.onnx.quantised.linear import quantise
from cnn.onnx.shapes import depth_to_space, gather
from cnn.ops import Concat, Convolution, Input, Slice
from tests.support.cases import cases
from tests.support.errors import raises, refused
from tests.support.onnx.grids import Grids, read
from tests.support.onnx.networks import convolved
from tests.support.onnx.operators import HEIGHT, MEANT, WIDTH
from tests.support.onnx.trained import DOMAIN, Trained
from tests.support.onnx.writer import Writer

SHAPE = (1, 3, HEIGHT, WIDTH)
ONE_WORD = 4
"""Bytes per float32."""


# --- attributes ------------------------------------------------------------------------------------------------------


def completed(model: Any) -> int:
    """Write every attribute that the model leaves out, with the default of its schema, and return how many."""
    count, opset = 0, model.opset_import[0].version
    for node in model.graph.node:
        given = {attribute.name for attribute in node.attribute}
        for name, attribute in onnx.defs.get_schema(node.op_type, opset, node.domain).attributes.items():
            if name not in given and attribute.default_value.name:
                node.attribute.append(attribute.default_value)
                count += 1
    return count


def alike(first: Any, second: Any) -> bool:
    """Return whether two values are equal. Arrays are compared by value, and floats in float32 precision."""
    if is_dataclass(first):
        values = ((getattr(first, f.name), getattr(second, f.name)) for f in fields(first))
        return type(first) is type(second) and all(alike(mine, theirs) for mine, theirs in values)
    if isinstance(first, (np.ndarray, float)) or (isinstance(first, tuple) and first and isinstance(first[0], float)):
        return np.shape(first) == np.shape(second) and bool(np.allclose(first, second, rtol=1e-6, atol=0))
    return bool(first == second)


@cases("name", [name for name in MEANT if name.count(",") < 3])
def test_attribute_left_out_has_the_schema_default(name: str) -> None:
    opset, graph = MEANT[name]
    writer = Writer(opset)
    model = writer.model([graph(writer)], SHAPE)
    plain = network_of(model, "net.onnx", "net")
    completed(model)
    told = network_of(model, "net.onnx", "net")
    assert all(alike(mine, theirs) for mine, theirs in zip(plain.nodes, told.nodes, strict=True))


def test_schema_defaults_are_written_and_compared() -> None:
    writer = Writer()
    model = writer.model([MEANT["Gemm, no bias"][1](writer)], SHAPE)
    assert completed(model) >= 4  # alpha, beta, transA and transB
    assert alike(np.arange(2), np.arange(2))
    assert not alike((0.1,), (0.2,))
    assert not alike(np.arange(2), np.arange(3))
    assert not alike(Shape(1, 2, 3), Shape(1, 2, 4))


QUANTS: dict[str, Callable[[Trained, str], list[str]]] = {
    "signed": lambda w, source: [source, w.constant(0.5), w.constant(-1), w.constant(4)],
    "of weights": lambda w, source: [source, w.constant(0.25), w.constant(0), w.constant(3)],
}


@cases("name", QUANTS)
def test_quant_attributes_left_out_have_qonnx_defaults(name: str) -> None:
    """Expect qonnx's documented defaults: signed 1, narrow 0 and rounding_mode ROUND."""
    told: dict[str, Any] = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    networks = []
    every: list[dict[str, Any]] = [{}, told, {**told, "narrow": 1}]
    for attributes in every:
        writer = Trained()
        kernel = np.array([-9, -0.75, 0.125, 9] * 3).reshape(4, 3, 1, 1)
        weights = writer.put("Quant", QUANTS[name](writer, writer.constant(kernel)), domain=DOMAIN, **attributes)
        map_inputs = QUANTS[name](writer, writer.put("Conv", [writer.quant("picture", 8, 1 / 128), weights]))
        networks.append(read(writer.file(writer.put("Quant", map_inputs, domain=DOMAIN, **attributes))).quantized)
    plain, whole, narrow = networks
    assert plain is not None
    assert whole is not None
    assert all(alike(mine, theirs) for mine, theirs in zip(plain.nodes, whole.nodes, strict=True))
    assert narrow is not None
    assert len(narrow.nodes) == len(plain.nodes) + 1  # a layer clips the lowest integer


def test_head_entry_without_options_has_its_defaults() -> None:
    text = '{"heads": [{"kind": "anchor-free", "tensors": ["a"]%s}]}'
    (head,) = parse_heads(text % "", "heads.json")
    assert (head.classes, head.anchors, head.softmax, head.scale_xy, head.bins) == (0, (), False, 1.0, 1)
    for key, first, below in (("bins", 1, 0), ("classes", 0, -1)):
        (head,) = parse_heads(text % f', "{key}": {first}', "heads.json")
        assert getattr(head, key) == first
        with raises(RangeError, what=f"'{key}'", got=below, low=first):
            parse_heads(text % f', "{key}": {below}', "heads.json")


def test_shape_operator_gives_all_or_some_sides() -> None:
    source = Map(0, (1, 3, 8, 9))
    for attributes, sides in (
        ({}, [1, 3, 8, 9]),
        ({"start": 1}, [3, 8, 9]),
        ({"end": 3}, [1, 3, 8]),
        ({"start": -2, "end": -1}, [8]),
    ):
        values = _sides(OnnxOperation("", "Shape", ("x",), ("y",), attributes), source)
        assert values.tolist() == sides
        assert values.dtype == np.int64


# --- shapes of tensors ------------------------------------------------------------------------------------------------


def layers(*sides: int, view: tuple[int, ...] = (), **constants: Any) -> Layers:
    """Return layers of an input image and constants, each of which has one reader."""
    node = Node("input", Input(), (), map_shape((1, *sides)), "net.onnx")
    readers = dict.fromkeys(("x", "y", "z", *constants), 1)
    return Layers("net.onnx", (node,), constants, {"x": Map(0, view or (1, *sides))}, readers, 17)


def operation(kind: str, *more: str, **attributes: Any) -> OnnxOperation:
    return OnnxOperation("it", kind, ("x", *more), ("y",), attributes)


@cases(
    "sides, shape",
    [((1, 5), Shape(5, 1, 1)), ((1, 5, 7), Shape(5, 1, 7)), ((1, 5, 7, 2), Shape(5, 7, 2))],
)
def test_map_shape_takes_the_sides_in_order(sides: tuple[int, ...], shape: Shape) -> None:
    assert map_shape(sides) == shape
    assert layers(*sides[1:]).shape_of(Map(0, sides)) == shape


@cases("view", [(1, 6), (1, 6, 1), (6,), (1, 2, 1, 3), (1, 2, 3, 1, 1), (2, 1, 1, 3)])
def test_input_with_another_view_is_refused(view: tuple[int, ...]) -> None:
    with raises(ShapeError, what="its input", got=view, required=(1, 2, 3, 1)):
        layers(2, 3, 1, view=view).picture(operation("Relu"))


@cases(
    "sides, shape, view",
    [
        ((1, 4, 5, 6), Shape(3, 2, 1), (1, 3, 2, 1)),
        ((1, 4, 6), Shape(3, 1, 7), (1, 3, 7)),
        ((1, 4, 6), Shape(3, 2, 7), (1, 3, 2, 7)),
        ((1, 4), Shape(3, 1, 1), (1, 3)),
        ((1, 4), Shape(3, 1, 7), (1, 3, 1, 7)),
        ((1, 4), Shape(3, 7, 1), (1, 3, 7, 1)),
    ],
)
def test_layer_output_has_the_number_of_sides_of_its_input(
    sides: tuple[int, ...], shape: Shape, view: tuple[int, ...]
) -> None:
    """Expect sides of 1 to be left out."""
    value = layers(*sides[1:]).with_node(operation("Concat"), "route", Concat(), shape, 0).value("y")
    assert value == Map(1, view)


@cases(
    "indices, slice_or_order",
    [
        ([1, 2, 3], Slice(1, 3)),
        ([-2, -1], Slice(3, 2)),
        ([2], Slice(2, 1)),
        ([0, 1, 2, 3, 4], None),
        ([2, 2], [2, 2]),
        ([3, 2, 1], [3, 2, 1]),
        ([0, 2], [0, 2]),
        ([-5, 4], [0, 4]),
    ],
)
def test_gathered_channels_become_a_slice_or_a_convolution(indices: list[int], slice_or_order: Any) -> None:
    whole = layers(5, 2, 2, z=np.array(indices))
    picked = gather(whole, operation("Gather", "z", axis=1))
    if slice_or_order is None:
        assert picked.value("y") == whole.value("x")
        return
    op = picked.nodes[-1].op
    if isinstance(slice_or_order, Slice):
        assert op == slice_or_order
        return
    assert isinstance(op, Convolution)
    assert op.weights.reshape(-1, 5).argmax(axis=1).tolist() == slice_or_order
    assert (op.weights.sum(), np.abs(op.bias).sum()) == (len(indices), 0)


@cases(
    "indices, axis, fault",
    [
        ([], 1, RefusedError("channels are gathered only by a list of their indices, along axis 1")),
        ([[1]], 1, RefusedError("channels are gathered only by a list of their indices, along axis 1")),
        ([1.0], 1, RefusedError("channels are gathered only by a list of their indices, along axis 1")),
        ([1], 0, RefusedError("channels are gathered only by a list of their indices, along axis 1")),
        ([-6], 1, RangeError("an index", -6, -5, 4)),
        ([5], 1, RangeError("an index", 5, -5, 4)),
    ],
)
def test_gather_of_wrong_channels_is_refused(indices: list[Any], axis: int, fault: SystolicError) -> None:
    kind = np.int64 if not indices else None
    with refused(fault):
        gather(layers(5, 2, 2, z=np.array(indices, kind)), operation("Gather", "z", axis=axis))


def test_depth_to_space_reorders_channels_for_mode_crd() -> None:
    """Expect DCR's channel order, (row · s + column) · C + c. CRD's order c · s² + row · s + column is converted to
    it."""
    assert [type(node.op).__name__ for node in depth_to_space(layers(8, 1, 1), operation("D", blocksize=2)).nodes] == [
        "Input",
        "DepthToSpace",
    ]
    crd = depth_to_space(layers(8, 1, 1), operation("D", blocksize=2, mode="CRD"))
    op = crd.nodes[1].op
    assert isinstance(op, Convolution)
    order = [c * 4 + row * 2 + column for row in range(2) for column in range(2) for c in range(2)]
    assert op.weights.reshape(8, 8).argmax(axis=1).tolist() == order
    assert len(depth_to_space(layers(8, 1, 1), operation("D", blocksize=1, mode="CRD")).nodes) == 2
    with raises(InvalidValueError, what="blocksize", got=3):
        depth_to_space(layers(8, 1, 1), operation("D", blocksize=3))


def test_whole_numbers_above_64_or_of_another_type_are_refused() -> None:
    assert whole_numbers(np.arange(MAX_NUMBERS, dtype=np.uint8)) == tuple(range(64))
    for array in (np.arange(MAX_NUMBERS + 1), np.arange(3.0), np.array([True])):
        kind = RangeError if array.dtype.kind == "i" else ShapeError
        with raises(kind):
            whole_numbers(array)


# --- integers read by a ReLU ------------------------------------------------------------------------------------------


@cases(
    "kind, zero, ops",
    [
        ("Relu", -128, ["QConvolution"]),
        ("Relu", 0, ["QConvolution"]),
        ("Relu", -127, ["QConvolution", "QActivate"]),
        ("Relu", 1, ["QConvolution", "QActivate"]),
        ("LeakyRelu", 0, ["QConvolution", "QActivate"]),
    ],
)
def test_relu_of_integers_that_start_at_0_is_no_layer(kind: str, zero: int, ops: list[str]) -> None:
    """Check also zero points inside the range, for which the ReLU belongs to the convolution or becomes a table."""
    writer = Grids()
    grid = writer.grid(0.05, zero)
    last = writer.floats_of(writer.integers_of(writer.conv(), grid))
    attributes: dict[str, Any] = {"alpha": 0.1} if kind == "LeakyRelu" else {}
    network = read(writer.floats(writer.integers_of(writer.put(kind, [last], **attributes), grid))).quantized
    assert network is not None
    assert [type(node.op).__name__ for node in network.nodes[1:]] == ops


@cases(
    "kind, sides, inputs, attributes",
    [
        ("Reshape", (4, 3), [(4, 3, 1, 1)], {}),
        ("Unsqueeze", (4, 3), [(2, 3)], {}),
        ("Squeeze", (4, 3, 1, 1, 1), [(4,)], {}),
        ("Transpose", (1, 1, 3, 4), [], {"perm": [3, 2, 0, 1]}),
        ("Identity", (4, 3, 1, 1), [], {}),
    ],
)
def test_moved_weights_keep_their_scale(
    kind: str, sides: tuple[int, ...], inputs: list[tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    writer = Grids()
    weights = writer.floats_of([writer.whole(-9, 9, *sides), *writer.grid(0.02)])
    moved = writer.put(kind, [weights, *(writer.constant(values, np.int64) for values in inputs)], **attributes)
    network = read(writer.floats(writer.integers_of(writer.conv("", moved), writer.grid(0.05)))).quantized
    assert network is not None
    op: Any = network.nodes[-1].op
    assert np.abs(op.weights).max() in range(2, 10)


# --- heads with a known layout ----------------------------------------------------------------------------------------


def distribution(bins: int = 4) -> Any:
    """Write one scale of an ultralytics head: boxes and classes, joined, with the mean of a distribution at the end."""
    writer = Writer()
    boxes, classes = convolved(writer, "picture", 3, 4 * bins), convolved(writer, "picture", 3, 2)
    size = writer.put("Concat", [boxes, classes], axis=1)
    places = (HEIGHT - 2) * (WIDTH - 2)
    joined = writer.put("Concat", [writer.put("Reshape", [size, writer.constant([1, -1, places], np.int64)])], axis=2)
    part = writer.put("Slice", [joined, *(writer.constant([n], np.int64) for n in (0, 4 * bins, 1))])
    split = writer.put("Reshape", [part, writer.constant([1, 4, bins, places], np.int64)])
    turned = writer.put("Softmax", [writer.put("Transpose", [split], perm=[0, 2, 1, 3])], axis=1)
    mean = writer.put("Conv", [turned, writer.constant(np.arange(bins).reshape(1, bins, 1, 1))])
    return writer.model([mean], SHAPE)


def test_known_layout_is_cut_at_its_joined_maps(tmp_path: Any) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(distribution(), path)
    model, (head,) = _own_heads(onnx.load(path), path, None)
    assert (head.kind, head.bins, len(head.tensors)) == ("anchor-free", 4, 2)
    assert [output.name for output in model.graph.output] == list(head.tensors)
    plain = Writer()
    onnx.save(plain.model([convolved(plain, "picture", 3, 4)], SHAPE), path)
    model = onnx.load(path)
    assert _own_heads(model, path, None) == (model, ())


@cases("kind", ["Add", "Conv", "ConcatFromSequence", "Mul"])
def test_followed_view_ends_only_at_a_concat(kind: str) -> None:
    """Check operator names before and after it in the alphabet."""
    view = OnnxOperation("", "Reshape", ("joined",), ("view",), {})
    for name, wanted in ((kind, False), ("Concat", True)):
        producers = {"view": view, "joined": OnnxOperation("", name, ("a", "b"), ("joined",), {})}
        assert (_followed("view", producers) is not None) is wanted


@cases("axis", [0, 1, 2, None])
def test_maps_of_one_scale_are_joined_along_the_channels(axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    head = _of_size("joined", {"joined": OnnxOperation("", "Concat", ("a", "b"), ("joined",), attributes)}, 8)
    assert head == (NamedHead("anchor-free", ("a", "b"), bins=8) if axis == 1 else None)
    bare = NamedHead("anchor-free", ("a",))
    assert (bare.classes, bare.anchors, bare.softmax, bare.scale_xy, bare.bins) == (0, (), False, 1.0, 1)


def test_layout_is_recognised_only_if_every_scale_is() -> None:
    """Check also two scales, of which one is a single map."""
    mark = {"w": np.arange(4.0).reshape(1, 4, 1, 1)}

    def graph(*sizes: OnnxOperation) -> Any:
        joined = OnnxOperation("", "Concat", tuple(size.outputs[0] for size in sizes), ("all",), {"axis": 2})
        mean = OnnxOperation("", "Conv", ("all", "w"), ("y",), {})
        return SimpleNamespace(operations=(*sizes, joined, mean), constants=mark)

    pair = OnnxOperation("", "Concat", ("a", "b"), ("s0",), {"axis": 1})
    alone = OnnxOperation("", "Concat", ("a", "b", "c"), ("s1",), {"axis": 1})
    assert recognised(graph(pair)) == (NamedHead("anchor-free", ("a", "b"), bins=4),)
    assert recognised(graph(pair, pair)) == (NamedHead("anchor-free", ("a", "b"), bins=4),) * 2
    for sizes in ((alone,), (pair, alone), (alone, pair)):
        assert recognised(graph(*sizes)) == ()
    none: Any = SimpleNamespace(operations=(OnnxOperation("", "Conv", ("a", "w"), ("y",), {}),), constants=mark)
    assert recognised(none) == ()


def test_anchors_that_are_not_pairs_of_positive_sides_are_refused() -> None:
    def text(*anchors: Any) -> str:
        good = {"kind": "yolo", "tensors": ["a"], "anchors": [[1, 2]]}
        return json.dumps({"heads": [good, {**good, "anchors": list(anchors)}]})

    assert parse_heads(text([0.1, 999_999], [3, 4]), "heads.json")[1].anchors == ((0.1, 999_999.0), (3.0, 4.0))
    for pair in ([0, 1], [1, -0.5], [1e6, 1], [1], [1, 2, 3], 3, ["1", "2"], [True, 1]):
        with raises(InvalidValueError, what="'anchors'", got=[pair], where="heads.json: head 2"):
            parse_heads(text(pair), "heads.json")
    with raises(MissingValueError, what="'anchors'", where="heads.json: head 2"):
        parse_heads(text(), "heads.json")


# --- bytes computed while reading -------------------------------------------------------------------------------------


def taken(model: Any) -> int:
    """Return the bytes that reading the model takes from its allowance."""
    graph = graph_of(model, "net.onnx")
    walked, refusals = _read_as_a_picture(graph, "net.onnx")
    assert not refusals
    room = EACH_WORKED_OUT * sum(array.nbytes for array in graph.constants.values()) + MAX_WORKED_OUT
    return room - walked.left


def of_map(kind: str, *constants: Any, channels: int = 4, **attributes: Any) -> Callable[[], Any]:
    """Return a function that writes a convolution and the operator after it."""

    def make() -> Any:
        writer = Writer()
        arrays = [writer.constant(c, np.int64 if np.asarray(c).dtype.kind == "i" else np.float32) for c in constants]
        source = convolved(writer, "picture", 3, channels)
        return writer.model([writer.put(kind, [source, *arrays], **attributes)], SHAPE)

    return make


def dequantised(count: int) -> Any:
    writer = Grids()
    weights = writer.floats_of([writer.whole(-9, 9, count, 3, 1, 1), *writer.grid(0.02)])
    return writer.model([writer.put("Conv", ["picture", weights])], SHAPE)


def negated_constant() -> Any:
    """Write a constant that is computed, and then reshaped, which computes nothing new."""
    writer = Writer()
    values = writer.put("Neg", [writer.constant(np.ones((4, 1)))])
    values = writer.put("Reshape", [values, writer.constant([4, 1, 1], np.int64)])
    return writer.model([writer.put("Add", [convolved(writer, "picture", 3, 4), values])], SHAPE)


TAKEN: dict[str, tuple[Callable[[], Any], int]] = {
    "a convolution": (of_map("Sigmoid"), 0),
    "a factor of its weights": (of_map("Mul", 2.0), 4 * 3 * 3 * 3 * ONE_WORD),
    "an offset": (of_map("Add", 2.0), 4 * 3 * 3 * 3 * ONE_WORD),
    "channels in another order": (of_map("Gather", [3, 1], axis=1), 4 * 2 * ONE_WORD),
    "channels one after the other": (of_map("Gather", [2, 3], axis=1), 0),
    "channels before they are spread": (of_map("DepthToSpace", channels=8, blocksize=2, mode="CRD"), 64 * ONE_WORD),
    "the places of a transposed convolution": (
        of_map("ConvTranspose", np.ones((4, 5, 3, 2)), strides=[2, 3]),
        4 * 5 * 3 * 2 * ONE_WORD * 6 + 5 * 2 * 2 * ONE_WORD,  # and the window of the crop
    ),
    "floats of integers": (lambda: dequantised(7), 7 * 3 * ONE_WORD),
    "a constant": (negated_constant, 4 * ONE_WORD + 4 * 3 * 3 * 3 * ONE_WORD),
}


@cases("name", TAKEN)
def test_computed_array_is_counted(name: str) -> None:
    make, size = TAKEN[name]
    assert taken(make()) == size


def test_quantised_constants_are_counted_by_their_bytes() -> None:
    """Use 8-bit integers of one byte each, and check that no more than the allowance can be taken."""
    values = np.linspace(-1, 1, 10, dtype=np.float32)
    grid: dict[str, Any] = {"s": np.array(0.01, np.float32), "z": np.array(3, np.int8)}
    before = layers(3, 2, 2, v=values, **grid)
    asked = OnnxOperation("it", "QuantizeLinear", ("v", "s", "z"), ("y",), {})
    after = quantise(before, asked)
    assert before.left - after.left == 10
    integers = after.value("y")
    assert isinstance(integers, np.ndarray)
    assert integers.tolist() == [max(-128, min(127, round(float(v / np.float32(0.01))) + 3)) for v in values]
    assert before.with_bytes_spent(before.left).left == 0
    with raises(DoesNotFitError, need=before.left + 1, have=before.left):
        before.with_bytes_spent(before.left + 1)


def test_map_with_several_readers_is_not_read_once() -> None:
    """Count two views of a map as two readers."""
    whole = layers(3, 2, 2)
    assert whole.read_once(0)
    twice = whole.with_values(operation("Identity"), Map(0, (1, 3, 2, 2)))
    assert twice.read_once(0)
    assert not Layers(**{**vars(twice), "readers": {"x": 1, "y": 2}}).read_once(0)
    assert not whole.typed(0, TensorType(_int8(), 0.1)).can_merge(operation("Relu"))


def _int8() -> Any:
    from cnn.datatype import DataType

    return DataType(8, True)
