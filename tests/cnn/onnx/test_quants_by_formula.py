"""Tests of Quant, BipolarQuant and MultiThreshold: the limits of their numbers, and integers by qonnx's formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
)
from cnn.datatype import BIPOLAR, DataType, TensorType
from cnn.maps import Shape
from cnn.network import Node
from cnn.onnx.graph import OnnxOperation, RefusedError
from cnn.onnx.layers import Layers, Map, bare_convolution
from cnn.onnx.quantised.linear import ONE_SCALE
from cnn.onnx.quantised.qonnx import QONNX
from cnn.onnx.quantised.values import NEAR, WIDEST, ends_of
from cnn.onnx.reordering import slices
from cnn.onnx.shapes import split
from cnn.ops import Activate, Input
from tests.support.cases import cases
from tests.support.errors import refused

DOMAIN = "qonnx.custom_op.general."
Array = np.ndarray[Any, Any]


def put(kind: str, *inputs: Any, before: Any = None, **options: Any) -> Layers:
    """Apply the operator to a constant, or to "x", the output of a convolution of two channels."""
    names = tuple(value if isinstance(value, str) else f"c{i}" for i, value in enumerate(inputs))
    constants = {n: np.asarray(v) for n, v in zip(names, inputs, strict=True) if not isinstance(v, str)}
    shape = Shape(2, 1, 3)
    nodes = (
        Node("input", Input(), (), shape, "net.onnx"),
        Node("conv1", before or bare_convolution(None, 2), (0,), shape, ""),
    )
    readers = dict.fromkeys(("x", "y", *constants), 1)
    whole = Layers("net.onnx", nodes, constants, {"x": Map(1, (1, 2, 1, 3))}, readers, 17)
    return QONNX[f"{DOMAIN}{kind}"](whole, OnnxOperation("it", kind, names, ("y",), options))


def check_refused(fault: SystolicError, kind: str, *inputs: Any, **options: Any) -> None:
    with refused(fault):
        put(kind, *inputs, **options)


def result(grown: Layers) -> Array:
    value = grown.value("y")
    assert isinstance(value, np.ndarray)
    return value


# --- Quant ------------------------------------------------------------------------------------------------------------


@cases("signed", [0, 1])
def test_quant_of_a_map_outside_its_bits_is_refused(signed: int) -> None:
    """Expect one bit more for an unsigned map of one bit, because its integers are shifted to signed ones."""
    for bits in range(1, WIDEST + 2):
        inputs = ("x", 0.5, 0.0, float(bits))
        if 2 <= bits + (1 - signed) <= WIDEST:
            grown = put("Quant", *inputs, signed=signed)
            datatype = DataType(max(2, bits), True)
            zero = 0 if signed else -(2 ** (max(2, bits) - 1))
            assert grown.type_of(len(grown.nodes) - 1) == TensorType(datatype, 0.5, zero)
        else:
            fault = (
                RangeError("bits of signed integers of a map", bits, 2, WIDEST)
                if signed
                else RangeError("bits of unsigned integers of a map", bits, 1, WIDEST - 1)
            )
            check_refused(fault, "Quant", *inputs, signed=signed)


@cases(
    "bits, signed, narrow, ends",
    [
        (4, True, False, (-8, 7)),
        (4, True, True, (-7, 7)),
        (4, False, False, (0, 15)),
        (4, False, True, (0, 14)),
        (1, False, False, (0, 1)),
        (2, True, True, (-1, 1)),
    ],
)
def test_quant_clips_to_the_range_of_its_bits(bits: int, signed: bool, narrow: bool, ends: tuple[int, int]) -> None:
    """Expect weights to be clipped, and a map to be clipped by a layer after it if its type is wider."""
    assert ends_of(bits, signed, narrow) == ends
    options = {"signed": int(signed), "narrow": int(narrow)}
    weights = np.linspace(-20, 20, 9)
    limited = result(put("Quant", weights, 0.5, 0.0, float(bits), **options))
    np.testing.assert_array_equal(limited, np.clip(np.rint(weights / 0.5), *ends) * np.float32(0.5))
    grown = put("Quant", "x", 0.5, 0.0, float(bits), **options)
    whole = ends == ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2 ** max(2, bits) - 1))
    cut = grown.nodes[2:]
    assert [node.op for node in cut] == ([] if whole else [Activate("clip", (ends[0] * 0.5, ends[1] * 0.5))])


@cases("zero", [0.0, 3.0, -2.0])
@cases(
    "mode, rounded",
    [(None, np.rint), ("ROUND", np.rint), ("half_even", np.rint), ("CEIL", np.ceil), ("FLOOR", np.floor)],
)
def test_quant_weights_are_rounded_by_the_mode(zero: float, mode: str | None, rounded: Any) -> None:
    """Compare with (clip(round(x / s + z)) − z) · s, and check that the scale is kept for the layer."""
    weights = np.array([[-0.9, 0.24], [0.26, 0.5], [1.7, 9]], np.float32)
    scale, options = np.array([[0.5, 0.25]], np.float32), {} if mode is None else {"rounding_mode": mode}
    grown = put("Quant", weights, scale, zero, 4.0, **options)
    steps = np.clip(rounded(weights.astype(np.float64) / scale + zero), -8, 7)
    np.testing.assert_allclose(result(grown), (steps - zero) * scale)
    assert grown.scales["y"].tolist() == [0.5, 0.25]
    assert result(grown).dtype == np.float32
    before = put("Quant", "x", 0.5, 0.0, 4.0).left
    assert before - grown.left == 4 * weights.size


NO_QUANT: list[tuple[tuple[Any, ...], dict[str, Any], SystolicError]] = [
    (("x", 0.0, 0.0, 4.0), {}, InvalidValueError("a scale", 0.0, "finite and above 0")),
    (("x", -1.0, 0.0, 4.0), {}, InvalidValueError("a scale", -1.0, "finite and above 0")),
    (("x", np.inf, 0.0, 4.0), {}, InvalidValueError("a scale", np.inf, "finite and above 0")),
    (("x", [1.0, 0.0], 0.0, 4.0), {}, InvalidValueError("a scale", 0.0, "finite and above 0")),
    (("x", 1.0, 0.5, 4.0), {}, InvalidValueError("a zero point", 0.5, "a whole number")),
    (("x", 1.0, np.nan, 4.0), {}, InvalidValueError("a zero point", np.nan, "a whole number")),
    (("x", 1.0, 0.0, 4.5), {}, RangeError("the number of bits", 4.5, 1, 32, True)),
    (("x", 1.0, 0.0, 0.0), {}, RangeError("the number of bits", 0.0, 1, 32, True)),
    (("x", 1.0, 0.0, 33.0), {}, RangeError("the number of bits", 33.0, 1, 32, True)),
    (("x", 1.0, 0.0, [4.0, 4.0]), {}, ShapeError("the number of bits", "2 values", "one value")),
    (("x", [1.0, 2.0], 0.0, 4.0), {}, ShapeError("the scale of a map", "2 values", "one value", remedy=ONE_SCALE)),
    (("x", 1.0, [0.0, 1.0], 4.0), {}, ShapeError("the zero point of a map", "2 values", "one value")),
    (("x", 1.0, 0.0, 4.0), {"rounding_mode": "FLOOR"}, ChoiceError("rounding_mode of a map", "FLOOR", ("ROUND",))),
    (
        ("x", 1.0, 0.0, 4.0),
        {"rounding_mode": "up"},
        ChoiceError("rounding_mode", "UP", ("ROUND", "FLOOR", "CEIL", "ROUND_TO_ZERO")),
    ),
    (("x", 1.0, 8.0, 4.0), {}, RangeError("its zero point", 8, -8, 7)),
    (("x", 1.0, -9.0, 4.0), {}, RangeError("its zero point", -9, -8, 7)),
    (("x", 1.0, 16.0, 4.0), {"signed": 0}, RangeError("its zero point", 16, 0, 15)),
    (
        (np.ones((2, 3)), np.ones(2), 0.0, 4.0),
        {},
        ShapeError("the scale or zero point", (2,), "a shape that broadcasts to the values' (2, 3)"),
    ),
    (
        (np.ones(3), np.ones((1, 3)), 0.0, 4.0),
        {},
        ShapeError("the scale or zero point", (1, 3), "a shape that broadcasts to the values' (3,)"),
    ),
]


@cases("inputs, options, fault", NO_QUANT)
def test_wrong_quant_is_refused(inputs: tuple[Any, ...], options: dict[str, Any], fault: SystolicError) -> None:
    check_refused(fault, "Quant", *inputs, **options)


def test_quant_at_its_limits_is_accepted() -> None:
    for zero in (-8.0, 7.0):
        assert put("Quant", "x", 1.0, zero, 4.0).type_of(1) == TensorType(DataType(4, True), 1.0, int(zero))
    weights = np.array([2.0**30, -(2.0**31), 2.0**33])
    assert result(put("Quant", weights, 1.0, 0.0, 32.0)).tolist() == [2.0**30, -(2.0**31), 2.0**31]
    assert result(put("Quant", weights / 2**30, 1.0, 0.0, 1.0, signed=0)).tolist() == [1, 0, 1]


# --- BipolarQuant -----------------------------------------------------------------------------------------------------


def test_bipolar_quant_of_0_is_positive() -> None:
    """Expect a constant per scale for weights, and a threshold at 0 for a map."""
    weights = np.array([[-0.5, 0.0], [2.0, -3.0]])
    grown = put("BipolarQuant", weights, np.array([[0.5, 2.0]], np.float32))
    assert result(grown).tolist() == [[-0.5, 2.0], [0.5, -2.0]]
    assert grown.scales["y"].tolist() == [0.5, 2.0]
    mark = put("BipolarQuant", "x", 0.25).mark(1)
    assert mark.type == TensorType(BIPOLAR, 0.25)
    assert mark.thresholds is not None
    assert mark.thresholds.tolist() == [[0]]
    for scale in (0.0, -1.0, np.nan):
        check_refused(InvalidValueError("a scale", scale, "finite and above 0"), "BipolarQuant", "x", scale)
    check_refused(
        ShapeError("the scale of a map", "2 values", "one value", remedy=ONE_SCALE), "BipolarQuant", "x", [1.0, 1.0]
    )


# --- MultiThreshold ---------------------------------------------------------------------------------------------------


@cases(
    "datatype, scale, bias, zero",
    [
        ("UINT2", 1.0, 0.0, 0),
        ("UINT2", 0.5, 1.5, -3),
        ("INT2", 1.0, -2.0, 0),
        ("INT2", 0.25, 0.0, -2),
        ("BIPOLAR", 2.0, -1.0, 0),
    ],
)
def test_thresholds_count_steps_above_the_lowest_value(datatype: str, scale: float, bias: float, zero: int) -> None:
    """Check out_bias + out_scale · reached = (lowest + reached · step − zero) · scale. A BIPOLAR step is 2."""
    type_ = DataType.parse(datatype)
    edges = np.arange(type_.levels)[None].astype(np.float64)
    mark = put("MultiThreshold", "x", edges, out_dtype=datatype, out_scale=scale, out_bias=bias).mark(1)
    assert mark.type is not None
    assert mark.type == TensorType(type_, scale / type_.step, zero)
    for reached in range(type_.levels + 1):
        integer = type_.low + reached * type_.step
        assert (integer - mark.type.zero_point) * mark.type.scale == bias + scale * reached


UINT2 = np.array([[0.0, 1.0, 2.0]])
NO_THRESHOLDS: list[tuple[Any, dict[str, Any], SystolicError]] = [
    (UINT2[:, :2], {}, MismatchError("the number of thresholds of UINT2", 2, 3)),
    (np.zeros((1, 4)), {}, MismatchError("the number of thresholds of UINT2", 4, 3)),
    (np.zeros(3), {}, ShapeError("the thresholds", (3,), "sides channels × levels")),
    (np.zeros((1, 511)), {"out_dtype": "UINT9"}, RangeError("bits of the output of thresholds", 9, high=8)),
    (UINT2[:, ::-1], {}, RefusedError("its thresholds must ascend in every channel")),
    (np.array([[0.0, np.nan, 2.0]]), {}, RefusedError("its thresholds must ascend in every channel")),
    (np.array([[0.0, 1, 2], [2, 1, 3]]), {}, RefusedError("its thresholds must ascend in every channel")),
    (
        UINT2,
        {"out_dtype": "FLOAT"},
        InvalidValueError("a datatype", "FLOAT", "INT2…INT32, UINT1…UINT32, BIPOLAR or TERNARY"),
    ),
    (UINT2, {"out_scale": 0.0}, InvalidValueError("out_scale and out_bias", (0.0, 0.0), "finite, the scale above 0")),
    (
        UINT2,
        {"out_bias": float("inf")},
        InvalidValueError("out_scale and out_bias", (1.0, np.inf), "finite, the scale above 0"),
    ),
    (UINT2, {"data_layout": "NHWC"}, InvalidValueError("data_layout", "NHWC", "NCHW, the layout of the map")),
    (UINT2, {"out_bias": 0.5}, InvalidValueError("out_bias", 0.5, "a whole multiple of the scale 1")),
    (
        UINT2,
        {"out_bias": 2.1 * NEAR},
        InvalidValueError("out_bias", 0.0021000000000000003, "a whole multiple of the scale 1"),
    ),
    (UINT2, {"out_bias": 65536.0}, InvalidValueError("out_bias", 65536.0, "a whole multiple of the scale 1")),
    (np.zeros((3, 3)), {}, ShapeError("the thresholds", "3 rows", "1 row or 2, one for each channel")),
    (
        UINT2,
        {"before": Activate("silu")},
        RefusedError("integers of one scale must be before it, or a convolution or matrix that nothing else reads"),
    ),
]


@cases("edges, options, fault", NO_THRESHOLDS)
def test_wrong_thresholds_are_refused(edges: Any, options: dict[str, Any], fault: SystolicError) -> None:
    check_refused(fault, "MultiThreshold", "x", edges, **{"out_dtype": "UINT2", **options})


def test_thresholds_in_accepted_forms_are_read() -> None:
    for edges in (UINT2, np.zeros((1, 3)), np.zeros((2, 3))):
        for options in ({}, {"data_layout": "NC"}, {"data_layout": ""}, {"out_bias": 0.4 * NEAR}):
            mark = put("MultiThreshold", "x", edges, out_dtype="UINT2", **options).mark(1)
            assert mark.type == TensorType(DataType.parse("UINT2"), 1.0, 0)
    edges = np.zeros((1, 255))
    assert put("MultiThreshold", "x", edges).mark(1).type == TensorType(DataType.parse("UINT8"), 1.0, 0)


# --- slices of channels -----------------------------------------------------------------------------------------------


def parts(sizes: Any, outputs: int, **options: Any) -> list[tuple[int, int]]:
    """Return the first channel and the number of channels of each part of five channels."""
    names = tuple(f"y{i}" for i in range(outputs))
    node = Node("input", Input(), (), Shape(5, 1, 3), "net.onnx")
    constants = {} if sizes is None else {"s": np.array(sizes)}
    whole = Layers("", (node,), constants, {"x": Map(0, (1, 5, 1, 3))}, dict.fromkeys(("x", *names), 1), 18)
    inputs = ("x", *constants)
    grown = split(whole, OnnxOperation("it", "Split", inputs, names, {"axis": 1, **options}))
    taken = []
    for name in names:
        value = grown.value(name)
        assert isinstance(value, Map)
        op: Any = grown.nodes[value.node].op
        taken.append((0, 5) if value.node == 0 else (op.first, op.channels))
    return taken


def test_split_gives_equal_parts_or_the_given_sizes() -> None:
    """Expect the last of equal parts to be smaller if the channels do not divide evenly."""
    assert parts(None, 1) == [(0, 5)]
    assert parts(None, 1, num_outputs=1) == [(0, 5)]
    assert parts(None, 2) == [(0, 3), (3, 2)]
    assert parts(None, 5, num_outputs=5) == [(i, 1) for i in range(5)]
    assert parts([1, 4], 2) == [(0, 1), (1, 4)]
    assert parts([1, 3, 1], 2) == [(0, 1), (1, 3)]
    in_sum = "numbers that add up to 5 channels, one for each of 2 outputs"
    refusals: list[tuple[list[int] | None, int, dict[str, Any], SystolicError]] = [
        (None, 1, {"num_outputs": 0}, RangeError("num_outputs", 0, 1, 5)),
        (None, 1, {"num_outputs": 6}, RangeError("num_outputs", 6, 1, 5)),
        ([1, 3], 2, {}, InvalidValueError("split", (1, 3), in_sum)),
        ([5], 2, {}, InvalidValueError("split", (5,), in_sum)),
        ([5], 1, {"axis": 2}, RefusedError("maps are split only along their channels, axis 1")),
    ]
    for sizes, outputs, options, fault in refusals:
        with refused(fault):
            parts(sizes, outputs, **options)


def test_split_part_without_readers_is_no_layer() -> None:
    node = Node("input", Input(), (), Shape(5, 1, 3), "net.onnx")
    readers = {"x": 1, "a": 1, "b": 0, "c": 1}
    whole = Layers("", (node,), {}, {"x": Map(0, (1, 5, 1, 3))}, readers, 18)
    grown = split(whole, OnnxOperation("it", "Split", ("x",), ("a", "b", "c", ""), {"axis": 1, "split": (1, 2, 1, 1)}))
    ops: list[Any] = [node.op for node in grown.nodes[1:]]
    assert [(op.first, op.channels) for op in ops] == [(0, 1), (3, 1)]


@cases(
    "starts, ends, axes, part",
    [
        ([1], [3], [1], (1, 2)),
        ([-2], [5], [-3], (3, 2)),
        ([0], [-1], [1], (0, 4)),
        ([4], [99], [1], (4, 1)),
        ([0, 2], [3, 4], [3, 1], (2, 2)),
        ([0, 1], [1, 2], None, (1, 1)),
    ],
)
def test_slice_of_channels_becomes_a_slice_layer(
    starts: list[int], ends: list[int], axes: list[int] | None, part: tuple[int, int]
) -> None:
    node = Node("input", Input(), (), Shape(5, 1, 3), "net.onnx")
    constants = {"s": np.array(starts), "e": np.array(ends), **({} if axes is None else {"a": np.array(axes)})}
    whole = Layers("", (node,), constants, {"x": Map(0, (1, 5, 1, 3))}, {"x": 1, "y": 1}, 18)
    op: Any = slices(whole, OnnxOperation("it", "Slice", ("x", *constants), ("y",), {})).nodes[-1].op
    assert (op.first, op.channels) == part
