"""Tests of the scales, zero points and bits that a file gives for maps and weights, each against its formula."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.datatype import BIPOLAR, TERNARY, DataType, TensorType
from cnn.onnx.network import read_onnx
from cnn.onnx.quantised.integers import _reached
from cnn.onnx.quantised.linear import ONE_SCALE, same_as_pixels
from cnn.ops import Activate, Concat, Convolution, QConvolution
from tests.support.cases import cases
from tests.support.errors import raises_among, refused
from tests.support.onnx.grids import QUANTISES, Grids, reaching, read, requantised
from tests.support.onnx.integers import MICROSOFT, PIXEL, SIDES, Integers
from tests.support.onnx.quantising import differences
from tests.support.onnx.trained import DOMAIN, Trained

Array = np.ndarray[Any, Any]


# --- QuantizeLinear and DequantizeLinear


def cut(kind: str, scale: float, zero: int) -> Any:
    """Write a convolution and an activation, whose output is quantised."""
    writer = Grids()
    last = writer.conv()
    if kind == "Clip":
        last = writer.put("Clip", [last, writer.constant(0), writer.constant(6)])
    elif kind:
        last = writer.put(kind, [last])
    return writer.floats(writer.integers_of(last, writer.grid(scale, zero)))


ENDS = [
    ("", 0.05, 0, ["QConvolution"]),
    ("", 0.05, -128, ["QConvolution"]),
    ("Relu", 0.05, 0, ["QConvolution"]),
    ("Relu", 0.05, -128, ["QConvolution"]),
    ("Relu", 0.05, 1, ["QConvolution", "QActivate"]),
    ("Relu", 0.05, -5, ["QConvolution", "QActivate"]),
    ("Clip", 6 / 127, 0, ["QConvolution"]),
    ("Clip", 6 / 255, -128, ["QConvolution"]),
    ("Clip", 6 / 125, 0, ["QConvolution", "QActivate"]),
    ("Clip", 6 / 253, -128, ["QConvolution", "QActivate"]),
    ("Clip", 0.05, 3, ["QConvolution", "QActivate"]),
    ("Clip", 6 / 126.25, 0, ["QConvolution", "QActivate"]),
    ("Clip", 6 / 126.75, 0, ["QConvolution"]),
    ("Clip", 6 / 254.75, -128, ["QConvolution"]),
    ("Clip", 6 / 254.25, -128, ["QConvolution", "QActivate"]),
]


@cases("kind, scale, zero, layers", ENDS)
def test_activation_merges_into_the_quantiser_or_becomes_a_layer(
    kind: str, scale: float, zero: int, layers: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(cut(kind, scale, zero), path)
    network = read_onnx(path)
    assert network.quantized is not None
    assert [type(node.op).__name__ for node in network.quantized.nodes[1:]] == layers
    picture = np.random.default_rng(3).integers(0, 256, SIDES[1:], np.uint8)
    steps = differences(path, network, picture)
    assert max(steps.values()) <= 1, steps


def test_integers_that_start_at_0_become_a_relu_in_floats() -> None:
    for zero, activation in ((-128, "relu"), (-127, "linear"), (0, "linear")):
        op = read(cut("", 0.05, zero)).network.nodes[-1].op
        assert isinstance(op, Convolution)
        assert op.activation == activation


@cases(
    "scale, zero, bits, same",
    [
        (1 / 255, -128, 8, True),
        (1.0019 / 255, -128, 8, True),
        (1.0021 / 255, -128, 8, False),
        (0.9981 / 255, -128, 8, True),
        (1 / 255, -127, 8, False),
        (1 / 255, 0, 8, False),
        (1 / 255, -(1 << 15), 16, False),
        (1 / 256, -128, 8, False),
    ],
)
def test_type_equals_pixels_if_each_pixel_has_its_own_integer(scale: float, zero: int, bits: int, same: bool) -> None:
    assert same_as_pixels(TensorType(DataType(bits, True), scale, zero)) is same


@cases("scale, zero", [(0.004, -128), (1 / 128, 0), (1 / 255, -100)])
def test_image_of_another_type_is_converted(scale: float, zero: int, tmp_path: Path) -> None:
    writer = Grids()
    last = writer.floats_of(writer.integers_of("picture", writer.grid(scale, zero)))
    model = writer.floats(writer.integers_of(writer.conv(last), writer.grid(0.05, -7)))
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    network = read_onnx(path)
    assert network.quantized is not None
    assert [type(node.op).__name__ for node in network.quantized.nodes[1:]] == ["QConvolution", "QConvolution"]
    picture = np.random.default_rng(3).integers(0, 256, SIDES[1:], np.uint8)
    assert max(differences(path, network, picture).values()) <= 1


def test_missing_zero_points_have_their_defaults() -> None:
    """Expect the zero point of unsigned integers or of the same layer for a map, and 0 for weights."""
    writer = Grids()
    scale, other = writer.constant(PIXEL), writer.constant(0.05)
    last = writer.put("DequantizeLinear", [writer.put("QuantizeLinear", ["picture", scale]), scale])
    weights = writer.put("DequantizeLinear", [writer.whole(-9, 9, 4, 3, 1, 1), writer.constant(0.02)])
    last = writer.put("QuantizeLinear", [writer.conv(last, weights), other])
    network = read(writer.floats([last, other])).quantized
    assert network is not None
    assert network.nodes[-1].type == TensorType(DataType(8, True), float(np.float32(0.05)), -128)
    writer = Grids()
    signed = writer.grid(0.05, 0)
    last = writer.put("QuantizeLinear", [writer.conv(), *signed])
    network = read(writer.floats([last, signed[0]])).quantized
    assert network is not None
    assert network.nodes[-1].type.zero_point == 0


def test_map_quantised_again_keeps_its_type() -> None:
    """Expect no layer for the same type and one layer for another type, also per input of a Concat."""
    writer = Grids()
    grid = writer.grid(0.05, -7)
    last = writer.integers_of(writer.conv(), grid)
    last = writer.integers_of(writer.floats_of(last), grid)
    last = writer.integers_of(writer.floats_of(last), writer.grid(0.04, 3))
    nodes = read(writer.floats(last)).network.nodes
    assert [type(node.op) for node in nodes[1:]] == [Convolution, Activate]
    writer = Grids()
    grids = [writer.grid(0.05, -7), writer.grid(0.04, 3)]
    parts = [writer.floats_of(writer.integers_of(writer.conv(), grid)) for grid in grids]
    joined = writer.put("Concat", parts, axis=1)
    network = read(writer.floats(writer.integers_of(joined, grids[1])))
    assert [type(node.op) for node in network.network.nodes[1:]] == [Convolution, Convolution, Activate, Concat]
    assert network.quantized is not None
    assert network.network.nodes[-1].inputs == (3, 2)
    assert {node.type.zero_point for node in network.quantized.nodes[2:]} == {3}


def test_integer_input_is_converted_by_its_scale() -> None:
    """Use a uint8 input, whose DequantizeLinear gives the float of a pixel."""
    writer = Grids()
    last = writer.put("DequantizeLinear", ["picture", *writer.grid(0.02, 100, np.uint8)])
    network = read(writer.floats(writer.integers_of(writer.conv(last), writer.grid(0.05, -7))))
    op, quantised = network.network.nodes[1].op, network.quantized.nodes[1].op  # type: ignore[union-attr]
    assert isinstance(op, Convolution)
    assert isinstance(quantised, QConvolution)
    assert quantised.weights.ravel().tolist() == [127] * 3
    assert quantised.weight_type == DataType(8, True)
    pixel = np.array([0, 100, 101, 255])
    floats = op.weights.ravel()[0] * pixel / 255 + op.bias[0]
    np.testing.assert_allclose(floats, (pixel - 100) * 0.02, atol=1e-6)
    writer = Grids()
    last = writer.put("DequantizeLinear", ["picture", *writer.grid(PIXEL, 0, np.uint8)])
    assert len(read(writer.floats(writer.integers_of(writer.conv(last), writer.grid(0.05)))).network.nodes) == 2


def _weights(make: Callable[[Grids], list[str]], **attributes: Any) -> Any:
    writer = Grids()
    weights = writer.put("DequantizeLinear", make(writer), **attributes)
    return writer.floats(writer.integers_of(writer.conv("", weights), writer.grid(0.05)))


def _read_as(grid: Callable[[Grids], list[str]]) -> Any:
    writer = Grids()
    return writer.floats([writer.integers_of(writer.conv(), writer.grid(0.05, -7))[0], *grid(writer)])


def _raw(kind: Any) -> Any:
    writer = Grids()
    return writer.floats(["picture", *writer.grid(PIXEL, 0, kind)])


REFUSED: dict[str, tuple[Callable[[], Any], SystolicError]] = {
    "a scale of 0": (
        lambda: requantised(lambda w: w.grid(0.0)),
        InvalidValueError("a scale", 0.0, "finite and above 0", where=QUANTISES),
    ),
    "a scale below 0": (
        lambda: requantised(lambda w: w.grid(-0.1)),
        InvalidValueError("a scale", -0.10000000149011612, "finite and above 0", where=QUANTISES),
    ),
    "an infinite scale": (
        lambda: requantised(lambda w: w.grid(np.inf)),
        InvalidValueError("a scale", np.inf, "finite and above 0", where=QUANTISES),
    ),
    "a scale a channel": (
        lambda: requantised(lambda w: [w.constant([0.1, 0.2]), w.constant([0, 0], np.int8)]),
        ShapeError("the scale of a map", "2 values", "one value", remedy=ONE_SCALE, where=QUANTISES),
    ),
    "a table of scales": (
        lambda: requantised(lambda w: w.grid([[0.1]])),
        ShapeError("the scale", (1, 1), "one value, or one for each channel", where=QUANTISES),
    ),
    "more zero points": (
        lambda: requantised(lambda w: [w.constant([0.1, 0.2]), w.constant([0, 0, 0], np.int8)]),
        ShapeError(
            "the zero point",
            (3,),
            "one value, or the shape (2,) of the scale",
            where=QUANTISES,
        ),
    ),
    "a zero point of floats": (
        lambda: requantised(lambda w: w.grid(0.1, 0, np.float32)),
        ChoiceError(
            "the type of quantised values",
            "float32",
            ("int2", "int4", "int8", "int16", "int32", "uint2", "uint4", "uint8", "uint16", "uint32"),
            where=QUANTISES,
        ),
    ),
    "scales of other filters": (
        lambda: _weights(lambda w: [w.whole(-9, 9, 4, 3, 1, 1), w.constant([0.1] * 5), w.whole(0, 0, 5)], axis=0),
        ShapeError(
            "the scale",
            "5 values",
            "a value for each on axis 0 of (4, 3, 1, 1)",
            where="DequantizeLinear '/DequantizeLinear_0'",
        ),
    ),
    "scales of no axis": (
        lambda: _weights(lambda w: [w.whole(-9, 9, 4, 3, 1, 1), w.constant([0.1] * 4), w.whole(0, 0, 4)], axis=4),
        ShapeError(
            "the scale",
            "4 values",
            "a value for each on axis 4 of (4, 3, 1, 1)",
            where="DequantizeLinear '/DequantizeLinear_0'",
        ),
    ),
    "scales before all axes": (
        lambda: _weights(lambda w: [w.whole(-9, 9, 4, 3, 1, 1), w.constant([0.1] * 4), w.whole(0, 0, 4)], axis=-5),
        ShapeError(
            "the scale",
            "4 values",
            "a value for each on axis -1 of (4, 3, 1, 1)",
            where="DequantizeLinear '/DequantizeLinear_0'",
        ),
    ),
    "scales of the last axis": (
        lambda: _weights(lambda w: [w.whole(-9, 9, 4, 3, 1, 1), w.constant([0.1] * 4), w.whole(0, 0, 4)], axis=-1),
        ShapeError(
            "the scale",
            "4 values",
            "a value for each on axis 3 of (4, 3, 1, 1)",
            where="DequantizeLinear '/DequantizeLinear_0'",
        ),
    ),
    "another scale": (
        lambda: _read_as(lambda w: w.grid(0.06, -7)),
        MismatchError(
            "scale and zero point", "0.06 and -7", "0.05 and -7", where="DequantizeLinear '/DequantizeLinear_5'"
        ),
    ),
    "a zero point of -128 for uint8": (
        lambda: _read_as(lambda w: w.grid(PIXEL, -128)),
        MismatchError(
            "scale and zero point", "0.00392157 and -128", "0.05 and -7", where="DequantizeLinear '/DequantizeLinear_5'"
        ),
    ),
    "16 bits of a pixel": (
        lambda: _raw(np.uint16),
        RangeError("bits of a pixel", 16, 8, 8, where="DequantizeLinear '/DequantizeLinear_0'"),
    ),
    "4 bits of a pixel": (
        lambda: _raw(ml_dtypes.uint4),
        RangeError("bits of a pixel", 4, 8, 8, where="DequantizeLinear '/DequantizeLinear_0'"),
    ),
}


@cases("case", REFUSED)
def test_wrong_scales_and_zero_points_are_refused(case: str) -> None:
    make, fault = REFUSED[case]
    with refused(fault):
        read(make())


def test_dequantising_floats_is_refused() -> None:
    writer = Grids()
    node = "DequantizeLinear '/DequantizeLinear_4'"
    with refused(UnsupportedError(node, "its input has no scale: no QuantizeLinear is before it")):
        read(writer.floats([writer.conv(), *writer.grid(0.05, -7)]))


def test_axis_may_be_counted_from_the_end() -> None:
    values = [0.01, 0.02, 0.03, 0.04]
    for axis in (0, -4):
        model = _weights(lambda w: [w.whole(-9, 9, 4, 3, 1, 1), w.constant(values), w.whole(0, 0, 4)], axis=axis)
        network = read(model)
        op = network.network.nodes[-1].op
        assert isinstance(op, Convolution)
        steps = op.weights / np.array(values, np.float32).reshape(4, 1, 1, 1)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-4)


# --- sums


def _convolved_integers(zero: int, weight_zero: int = 0) -> Any:
    """Write a ConvInteger of a map with the zero point −7."""
    writer = Grids()
    integers = writer.integers_of(writer.conv(), writer.grid(0.05, -7))[0]
    inputs = [integers, writer.whole(-9, 9, 2, 4, 1, 1), writer.constant(zero, np.int8)]
    sums = writer.put("ConvInteger", [*inputs, writer.constant(weight_zero, np.int8)], kernel_shape=[1, 1])
    cast = writer.put("Cast", [sums], to=onnx.TensorProto.FLOAT)
    floats = writer.put("Mul", [cast, writer.constant(0.05 * 0.01)])
    return writer.floats(writer.integers_of(floats, writer.grid(0.03, 3)))


@cases("weight_zero", [0, 2])
def test_conv_integer_subtracts_the_zero_points(weight_zero: int, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(_convolved_integers(-7, weight_zero), path)
    picture = np.random.default_rng(3).integers(0, 256, SIDES[1:], np.uint8)
    network = read_onnx(path)
    assert network.quantized is not None
    op = network.quantized.nodes[-1].op
    assert isinstance(op, QConvolution)
    assert np.abs(op.weights).max() <= 9 + weight_zero
    assert max(differences(path, network, picture).values()) <= 1


def test_conv_integer_with_another_zero_point_is_refused() -> None:
    with raises_among(MismatchError, what="its zero point", got=-6, expected=-7):
        read(_convolved_integers(-6))


# --- Quant and BipolarQuant


def _trained(values: Any, bits: int = 4, scale: float = 0.25, zero: float = 0, **attributes: Any) -> Array:
    """Return the weights that the file's Quant gives, in steps."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    kernel = writer.quant(writer.constant(np.reshape(values, (-1, 3, 1, 1))), bits, scale, zero, **attributes)
    last = writer.put("Conv", [last, kernel], kernel_shape=[1, 1])
    op = read(writer.file(writer.quant(last, 8, 0.05))).network.nodes[-1].op
    assert isinstance(op, Convolution)
    return np.asarray(op.weights.ravel() / scale)


VALUES = np.array([-9.0, -0.625, -0.375, -0.125, 0.0, 0.125, 0.375, 0.625, 9.0])


@cases(
    "mode, rounded",
    [("ROUND", np.rint), ("HALF_EVEN", np.rint), ("FLOOR", np.floor), ("CEIL", np.ceil), ("ROUND_TO_ZERO", np.trunc)],
)
@cases("signed, narrow", [(1, 0), (1, 1), (0, 0), (0, 1)])
def test_quant_weights_are_rounded_and_clipped_by_their_attributes(
    mode: str, rounded: Any, signed: int, narrow: int
) -> None:
    low, high = (-8 + narrow, 7) if signed else (0, 15 - narrow)
    steps = _trained(VALUES, signed=signed, narrow=narrow, rounding_mode=mode)
    np.testing.assert_array_equal(steps, np.clip(rounded(VALUES / 0.25), low, high))
    steps = _trained(VALUES, zero=2, signed=signed, narrow=narrow, rounding_mode=mode)
    np.testing.assert_array_equal(steps, np.clip(rounded(VALUES / 0.25 + 2), low, high) - 2)


def test_bipolar_quant_of_0_is_positive() -> None:
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    values = np.array([-2.0, -1e-9, 0.0, 1e-9, 2.0, 0.5]).reshape(2, 3, 1, 1)
    kernel = writer.put("BipolarQuant", [writer.constant(values), writer.constant(0.5)], domain=DOMAIN)
    last = writer.put("Conv", [last, kernel], kernel_shape=[1, 1])
    quantized = read(writer.file(writer.quant(last, 8, 0.05))).quantized
    assert quantized is not None
    op = quantized.nodes[-1].op
    assert isinstance(op, QConvolution)
    assert op.weights.ravel().tolist() == [-1, -1, 1, 1, 1, 1]
    assert op.weight_type == BIPOLAR


@cases(
    "largest, datatype",
    [([0, 1, -1], TERNARY), ([1, 1, -1], BIPOLAR), ([2, 1, 0], DataType(3, True)), ([-4, 3, 0], DataType(4, True))],
)
def test_weights_have_as_few_bits_as_they_need(largest: list[int], datatype: DataType) -> None:
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    kernel = writer.quant(writer.constant(np.reshape(np.array(largest) * 0.25, (1, 3, 1, 1))), 8, 0.25)
    quantized = read(
        writer.file(writer.quant(writer.put("Conv", [last, kernel], kernel_shape=[1, 1]), 8, 0.05))
    ).quantized
    assert quantized is not None
    op = quantized.nodes[-1].op
    assert isinstance(op, QConvolution)
    assert op.weight_type == datatype


@cases(
    "bits, signed, narrow, zero, datatype, shifted, cut_off",
    [
        (8, 1, 0, 0, DataType(8, True), 0, None),
        (8, 1, 1, 0, DataType(8, True), 0, (-127, 127)),
        (4, 0, 0, 0, DataType(4, True), -8, None),
        (4, 0, 1, 0, DataType(4, True), -8, (0, 14)),
        (4, 0, 0, 3, DataType(4, True), -5, None),
        (1, 0, 0, 0, DataType(2, True), -2, (0, 1)),
        (16, 1, 0, 0, DataType(16, True), 0, None),
    ],
)
def test_quant_of_a_map_has_the_integers_of_its_attributes(
    bits: int, signed: int, narrow: int, zero: int, datatype: DataType, shifted: int, cut_off: tuple[int, int] | None
) -> None:
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    kernel = writer.quant(writer.constant(VALUES.reshape(3, 3, 1, 1)), 4, 0.25)
    last = writer.put("Conv", [last, kernel], kernel_shape=[1, 1])
    network = read(writer.file(writer.quant(last, bits, 0.5, zero, signed=signed, narrow=narrow)))
    assert network.quantized is not None
    node = network.quantized.nodes[-1]
    assert node.type == TensorType(datatype, 0.5, shifted)
    op = network.network.nodes[-1].op
    if cut_off is None:
        assert isinstance(op, Convolution)
    else:
        assert op == Activate("clip", ((cut_off[0] - zero) * 0.5, (cut_off[1] - zero) * 0.5))


def _map(bits: float = 8, scale: Any = 0.5, zero: Any = 0, **attributes: Any) -> Any:
    writer = Trained()
    inputs = ["picture", *map(writer.constant, (scale, zero, bits))]
    return writer.file(writer.put("Quant", inputs, domain=DOMAIN, **attributes))


QUANT = "qonnx.custom_op.general.Quant '/Quant_0'"

QUANTS: dict[str, tuple[Callable[[], Any], SystolicError]] = {
    "one bit, signed": (
        lambda: _map(1),
        RangeError("bits of signed integers of a map", 1, 2, 16, where=QUANT),
    ),
    "17 bits": (
        lambda: _map(17),
        RangeError("bits of signed integers of a map", 17, 2, 16, where=QUANT),
    ),
    "16 bits, unsigned": (
        lambda: _map(16, signed=0),
        RangeError("bits of unsigned integers of a map", 16, 1, 15, where=QUANT),
    ),
    "no bits": (
        lambda: _map(0),
        RangeError("the number of bits", 0.0, 1, 32, True, where=QUANT),
    ),
    "33 bits": (
        lambda: _map(33),
        RangeError("the number of bits", 33.0, 1, 32, True, where=QUANT),
    ),
    "half a bit": (
        lambda: _map(4.5),
        RangeError("the number of bits", 4.5, 1, 32, True, where=QUANT),
    ),
    "two scales": (
        lambda: _map(scale=[0.5, 0.5]),
        ShapeError("the scale of a map", "2 values", "one value", remedy=ONE_SCALE, where=QUANT),
    ),
    "two zero points": (
        lambda: _map(zero=[0, 0]),
        ShapeError("the zero point of a map", "2 values", "one value", where=QUANT),
    ),
    "a zero point between": (
        lambda: _map(zero=0.5),
        InvalidValueError("a zero point", 0.5, "a whole number", where=QUANT),
    ),
    "a scale of 0": (
        lambda: _map(scale=0.0),
        InvalidValueError("a scale", 0.0, "finite and above 0", where=QUANT),
    ),
    "a map cut off": (
        lambda: _map(rounding_mode="FLOOR"),
        ChoiceError("rounding_mode of a map", "FLOOR", ("ROUND",), where=QUANT),
    ),
    "no mode": (
        lambda: _map(rounding_mode="UP"),
        ChoiceError(
            "rounding_mode",
            "UP",
            ("ROUND", "FLOOR", "CEIL", "ROUND_TO_ZERO"),
            where=QUANT,
        ),
    ),
    "a zero point outside": (
        lambda: _map(zero=128),
        RangeError("its zero point", 128, -128, 127, where=QUANT),
    ),
    "one below": (
        lambda: _map(zero=-129),
        RangeError("its zero point", -129, -128, 127, where=QUANT),
    ),
}


@cases("case", QUANTS)
def test_wrong_quant_of_a_map_is_refused(case: str) -> None:
    make, fault = QUANTS[case]
    with refused(fault):
        read(make())


# --- MultiThreshold


COUNTED = "qonnx.custom_op.general.MultiThreshold '/MultiThreshold_2'"

THRESHOLDS: dict[str, tuple[Callable[[], Any], SystolicError]] = {
    "too few": (
        lambda: reaching(np.zeros((2, 2))),
        MismatchError(
            "the number of thresholds of UINT2",
            2,
            3,
            where=COUNTED,
        ),
    ),
    "too many": (
        lambda: reaching(np.zeros((2, 4))),
        MismatchError(
            "the number of thresholds of UINT2",
            4,
            3,
            where=COUNTED,
        ),
    ),
    "of a channel more": (
        lambda: reaching(np.zeros((3, 3))),
        ShapeError(
            "the thresholds",
            "3 rows",
            "1 row or 2, one for each channel",
            where=COUNTED,
        ),
    ),
    "that fall": (
        lambda: reaching([[0, 2, 1]]),
        UnsupportedError(
            "qonnx.custom_op.general.MultiThreshold '/MultiThreshold_2'", "its thresholds must ascend in every channel"
        ),
    ),
    "a list": (
        lambda: reaching([0, 1, 2]),
        ShapeError(
            "the thresholds",
            (3,),
            "sides channels × levels",
            where=COUNTED,
        ),
    ),
    "9 bits": (
        lambda: reaching(np.zeros((1, 511)), out_dtype="INT9"),
        RangeError(
            "bits of the output of thresholds",
            9,
            high=8,
            where=COUNTED,
        ),
    ),
    "channels last": (
        lambda: reaching(np.zeros((1, 3)), data_layout="NHWC"),
        InvalidValueError(
            "data_layout",
            "NHWC",
            "NCHW, the layout of the map",
            where=COUNTED,
        ),
    ),
    "no steps": (
        lambda: reaching(np.zeros((1, 3)), out_scale=0.0),
        InvalidValueError(
            "out_scale and out_bias",
            (0.0, 0.0),
            "finite, the scale above 0",
            where=COUNTED,
        ),
    ),
    "steps below 0": (
        lambda: reaching(np.zeros((1, 3)), out_scale=-0.5),
        InvalidValueError(
            "out_scale and out_bias",
            (-0.5, 0.0),
            "finite, the scale above 0",
            where=COUNTED,
        ),
    ),
    "half a step": (
        lambda: reaching(np.zeros((1, 3)), out_bias=0.25, out_scale=0.5),
        InvalidValueError(
            "out_bias",
            0.25,
            "a whole multiple of the scale 0.5",
            where=COUNTED,
        ),
    ),
}


@cases("case", THRESHOLDS)
def test_wrong_thresholds_are_refused(case: str) -> None:
    make, fault = THRESHOLDS[case]
    with refused(fault):
        read(make())


def test_thresholds_are_in_units_of_the_sums() -> None:
    """Use sums of pixels, in steps of 1/255: the threshold 0.1 is 25.5 steps, so that 26 is the first sum above."""
    quantized = read(reaching([[-0.1, 0.1, 0.2]], out_scale=0.5, out_bias=-1.5)).quantized
    assert quantized is not None
    node = quantized.nodes[-1]
    assert isinstance(node.op, QConvolution)
    assert node.type == TensorType(DataType.parse("UINT2"), 0.5, 3)
    assert node.op.requantiser.thresholds.tolist() == [[-25, 26, 51]] * 2  # type: ignore[union-attr]


def test_thresholds_near_an_integer_are_rounded_to_it() -> None:
    edges = np.array([[-1.5e-6, -0.5e-6, 0.5e-6, 1.5e-6, 2 + 1e-6, 1e6 + 0.5, 1e6 + 1.5]])
    assert _reached(edges).thresholds.tolist() == [[0, 0, 0, 1, 2, 1000000, 1000002]]


# --- operators of integers


def test_pooling_with_channels_last_attribute_is_refused() -> None:
    for last in (0, 1):
        writer = Integers()
        model = writer.then("QLinearGlobalAveragePool", writer.convolved(), 0.01, 4, channels_last=last)
        assert model.opset_import[-1].domain == MICROSOFT
        if last:
            with raises_among(InvalidValueError, what="channels_last", got=1):
                read(model)
        else:
            assert read(model).quantized is not None
