"""Tests of operators on integers: their floats and scales against loops over the documented formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boards.errors import InvalidValueError, MismatchError, ShapeError
from cnn.datatype import DataType, TensorType
from cnn.float_model import run_float
from cnn.maps import Shape
from cnn.network import Network, Node
from cnn.onnx.graph import OnnxOperation
from cnn.onnx.layers import Layers, Map, map_shape
from cnn.onnx.network import BUILDERS
from cnn.onnx.quantised.linear import SAME, dequantise
from cnn.onnx.quantised.operators import MICROSOFT
from cnn.ops import Convolution, Input
from cnn.quantisation.tensor_types import PIXEL
from tests.support.cases import cases
from tests.support.errors import raises

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(29)
SCALE, ZERO = np.float32(0.5), np.int8(-7)
OUT = np.float32(0.25), np.int8(9)
INT8 = DataType(8, True)


def named(*values: Any) -> tuple[tuple[str, ...], dict[str, Array]]:
    """Return names and arrays of constants. None is an input that is left out, and a text is the name of a tensor."""
    names = tuple(
        value if isinstance(value, str) else "" if value is None else f"c{index}" for index, value in enumerate(values)
    )
    arrays = {n: np.asarray(v) for n, v in zip(names, values, strict=True) if v is not None and not isinstance(v, str)}
    return names, arrays


def put(kind: str, picture: Array, *values: Any, **options: Any) -> Layers:
    """Apply the operator to constants and "x", a copy of the input with the type of SCALE and ZERO."""
    inputs, constants = named(*values)
    sides = (1, *picture.shape)
    nodes = [
        Node(name, op, source, map_shape(sides), "net.onnx")
        for name, op, source in (("input", Input(), ()), ("same", SAME, (0,)))
    ]
    readers = dict.fromkeys(("x", "y", *constants), 1)
    whole = Layers("net.onnx", tuple(nodes), constants, {"x": Map(1, sides)}, readers, 17)
    whole = whole.typed(1, TensorType(INT8, float(SCALE), int(ZERO)))
    return BUILDERS[kind](whole, OnnxOperation("it", kind, inputs, ("y",), options))


def check(grown: Layers, picture: Array, wanted: Any, out: tuple[Any, Any] | None = OUT) -> None:
    """Check the floats of the output, and that its type follows from ``out``."""
    value = grown.value("y")
    assert isinstance(value, Map)
    shape: Shape = grown.nodes[0].shape
    floats = run_float(Network("net", grown.nodes), picture.reshape(shape.channels, shape.height, shape.width))
    np.testing.assert_allclose(floats[value.node].ravel(), np.ravel(wanted), rtol=1e-4, atol=1e-4)
    type_ = None if out is None else TensorType(INT8, float(out[0]), int(out[1]))
    assert grown.type_of(value.node) == type_


def pixels(*sides: int) -> Array:
    return RANDOM.normal(size=sides).astype(np.float32)


def whole(*sides: int, kind: Any = np.int8) -> Array:
    return np.asarray(RANDOM.integers(-9, 10, sides), kind)


SCALES = {
    "one": (np.float32(0.02), np.int8(3)),
    "filters": (np.array([0.02, 0.5, 0.1, 0.25], np.float32), np.array([3, 0, -2, 1], np.int8)),
}


@cases("scales", SCALES)
@cases("biased", [False, True])
def test_qlinear_conv_equals_its_formula(scales: str, biased: bool) -> None:
    """Compare with y = Σ x · (w − z_w) · s_w + b · s_x · s_w, with numbers per filter."""
    picture, weights, (scale, zero) = pixels(3, 3, 4), whole(4, 3, 1, 2), SCALES[scales]
    bias = np.array([100, -50, 7, 1], np.int32) if biased else None
    grown = put("QLinearConv", picture, "x", SCALE, ZERO, weights, scale, zero, *OUT, bias)
    wanted = np.zeros((4, 3, 3))
    for f, y, x in np.ndindex(wanted.shape):
        own, shift = np.broadcast_to(scale, 4)[f], np.broadcast_to(zero, 4)[f]
        wanted[f, y, x] = sum(
            picture[c, y, x + i] * (int(weights[f, c, 0, i]) - shift) * own for c in range(3) for i in range(2)
        ) + (0 if bias is None else bias[f] * SCALE * own)
    check(grown, picture, wanted)
    inputs = ("x", SCALE, ZERO, weights, *SCALES["filters"], *OUT, np.ones(3, np.int32))
    with raises(ShapeError, what="its bias", got="3 values", required="a value for each of 4 scales"):
        put("QLinearConv", picture, *inputs)


@cases("scales", SCALES)
def test_qlinear_matmul_equals_its_formula(scales: str) -> None:
    """Check also one scale per column."""
    picture, matrix, (scale, zero) = pixels(5), whole(5, 4), SCALES[scales]
    grown = put("QLinearMatMul", picture, "x", SCALE, ZERO, matrix, scale, zero, *OUT)
    wanted = [
        sum(
            picture[i] * (int(matrix[i, o]) - np.broadcast_to(zero, 4)[o]) * np.broadcast_to(scale, 4)[o]
            for i in range(5)
        )
        for o in range(4)
    ]
    check(grown, picture, wanted)


@cases("turned", [0, 1])
@cases("alpha", [None, 0.5])
@cases("scales", SCALES)
def test_qgemm_scales_its_bias_too(turned: int, alpha: float | None, scales: str) -> None:
    """Compare with alpha · Σ x · w + b · alpha · s_x · s_w."""
    picture, matrix, (scale, zero), bias = pixels(5), whole(5, 4), SCALES[scales], np.array([9, -8, 7, 6], np.int32)
    options = {"transB": turned, **({} if alpha is None else {"alpha": alpha})}
    grown = put(
        f"{MICROSOFT}QGemm",
        picture,
        "x",
        SCALE,
        ZERO,
        matrix.T if turned else matrix,
        scale,
        zero,
        bias,
        *OUT,
        **options,
    )
    factor, own, shift = alpha or 1, np.broadcast_to(scale, 4), np.broadcast_to(zero, 4)
    wanted = [
        factor
        * (sum(picture[i] * (int(matrix[i, o]) - shift[o]) * own[o] for i in range(5)) + bias[o] * SCALE * own[o])
        for o in range(4)
    ]
    check(grown, picture, wanted)
    default = put(f"{MICROSOFT}QGemm", picture, "x", SCALE, ZERO, matrix, 0.02, ZERO, None, *OUT)
    assert len(default.nodes) == 3


def test_qlinear_add_mul_and_concat_equal_their_formulas() -> None:
    picture, grid = pixels(2, 2, 2), ("x", SCALE, ZERO)
    check(put(f"{MICROSOFT}QLinearAdd", picture, *grid, *grid, *OUT), picture, 2 * picture)
    check(put(f"{MICROSOFT}QLinearMul", picture, *grid, *grid, *OUT), picture, picture * picture)
    check(
        put(f"{MICROSOFT}QLinearConcat", picture, *OUT, *grid, *grid, *grid, axis=1),
        picture,
        np.concatenate([picture] * 3),
    )


def test_qlinear_pools_and_functions_equal_their_formulas() -> None:
    picture, grid = pixels(2, 4, 4), ("x", SCALE, ZERO, *OUT)
    mean = picture.reshape(2, 2, 2, 2, 2).mean(axis=(2, 4))
    pool = {"kernel_shape": (2, 2), "strides": (2, 2)}
    for last in ({}, {"channels_last": 0}):
        check(put(f"{MICROSOFT}QLinearAveragePool", picture, *grid, **pool, **last), picture, mean)
        check(put(f"{MICROSOFT}QLinearGlobalAveragePool", picture, *grid, **last), picture, picture.mean(axis=(1, 2)))
    check(put(f"{MICROSOFT}QLinearSigmoid", picture, *grid), picture, 1 / (1 + np.exp(-picture)))
    leaky = np.where(picture < 0, 0.25 * picture, picture)
    check(put(f"{MICROSOFT}QLinearLeakyRelu", picture, *grid, alpha=0.25), picture, leaky)
    with raises(InvalidValueError, what="channels_last", got=1):
        put(f"{MICROSOFT}QLinearAveragePool", picture, *grid, **pool, channels_last=1)


ZEROS = {"one": np.int8(3), "filters": np.array([3, 0, -2, 1], np.int8), "none": None}


@cases("zeros", ZEROS)
def test_integer_products_count_steps(zeros: str) -> None:
    """Compare with Σ (x − z_x) · (w − z_w) of integers, where x = float / s + z."""
    zero = ZEROS[zeros]
    shift = np.broadcast_to(0 if zero is None else zero, 4).astype(int)
    picture, weights, matrix = pixels(3, 2, 2), whole(4, 3, 1, 1), whole(3, 4)
    grown = put("ConvInteger", picture, "x", weights, ZERO, zero)
    steps = picture / SCALE
    wanted = [
        [
            [sum(steps[c, y, x] * (int(weights[f, c, 0, 0]) - shift[f]) for c in range(3)) for x in range(2)]
            for y in range(2)
        ]
        for f in range(4)
    ]
    check(grown, picture, wanted, None)
    assert grown.mark(2).scale == pytest.approx([1 / SCALE])
    row = pixels(3)
    grown = put("MatMulInteger", row, "x", matrix, ZERO, zero)
    wanted_row = [sum(row[i] / SCALE * (int(matrix[i, o]) - shift[o]) for i in range(3)) for o in range(4)]
    check(grown, row, wanted_row, None)


def test_zero_points_of_weights_of_wrong_number_are_refused() -> None:
    picture, row = pixels(3, 2, 2), pixels(3)
    for count in (3, 5):
        zeros = np.zeros(count, np.int8)
        with raises(ShapeError, what="the zero point of weights", got=f"{count} values"):
            put("ConvInteger", picture, "x", whole(4, 3, 1, 1), ZERO, zeros)
        with raises(ShapeError, what="the zero point of weights", got=f"{count} values"):
            put("MatMulInteger", row, "x", whole(3, 4), ZERO, zeros)
    with raises(ShapeError, what="the zero point of a map", got="2 values"):
        put("ConvInteger", picture, "x", whole(4, 3, 1, 1), np.zeros(2, np.int8))


@cases(
    "zero, fits",
    [
        (np.int8(-7), True),
        (np.uint8(121), True),
        (np.int8(-8), False),
        (np.int8(-6), False),
        (np.uint8(122), False),
        (None, False),
    ],
)
def test_conv_integer_with_another_zero_point_is_refused(zero: Any, fits: bool) -> None:
    """Expect the input's zero point, or 128 more for uint8. A zero point that is left out is an unsigned 0."""
    if fits:
        put("ConvInteger", pixels(3, 2, 2), "x", whole(4, 3, 1, 1), zero)
        return
    with raises(MismatchError, what="its zero point"):
        put("ConvInteger", pixels(3, 2, 2), "x", whole(4, 3, 1, 1), zero)


@cases(
    "zero, fits",
    [
        (np.uint8(0), True),
        (np.int8(-128), True),
        (None, True),
        (np.uint8(1), False),
        (np.int8(-127), False),
        (np.int8(0), False),
    ],
)
def test_conv_integer_of_pixels_with_another_zero_point_is_refused(zero: Any, fits: bool) -> None:
    inputs, constants = named("x", whole(4, 3, 1, 1), zero)
    node = Node("input", Input(), (), Shape(3, 2, 2), "net.onnx")
    for type_ in (None, PIXEL):
        picture = Layers(
            "net.onnx", (node,), constants, {"x": Map(0, (1, 3, 2, 2))}, dict.fromkeys(("x", "y", *constants), 1), 17
        )
        picture = picture if type_ is None else picture.typed(0, PIXEL)
        if fits:
            grown = BUILDERS["ConvInteger"](picture, OnnxOperation("it", "ConvInteger", inputs, ("y",), {}))
            assert isinstance(grown.nodes[-1].op, Convolution)
        elif type_ is not None:
            with raises(MismatchError, what="its zero point"):
                BUILDERS["ConvInteger"](picture, OnnxOperation("it", "ConvInteger", inputs, ("y",), {}))


# --- constants --------------------------------------------------------------------------------------------------------


def constant(values: Any, scale: Any, zero: Any = None, **options: Any) -> tuple[Array, Array]:
    """Return the floats that DequantizeLinear gives for a constant, and the scales that it records."""
    inputs, constants = named(values, scale, zero)
    node = Node("input", Input(), (), Shape(3, 2, 2), "net.onnx")
    whole_ = Layers("net.onnx", (node,), constants, {}, dict.fromkeys(("y", *constants), 1), 17)
    after = dequantise(whole_, OnnxOperation("it", "DequantizeLinear", inputs, ("y",), options))
    floats = after.value("y")
    assert isinstance(floats, np.ndarray)
    assert floats.dtype == np.float32
    assert whole_.left - after.left == 4 * floats.size
    return floats, after.scales["y"]


@cases("kind", [np.int8, np.uint8, np.int16, np.int32])
def test_dequantised_constant_is_the_nearest_float(kind: Any) -> None:
    """Check also 32 bits, which float32 cannot hold exactly."""
    numbers = np.iinfo(kind)
    integers = np.array([numbers.min, numbers.max, numbers.max - 1, 1, 0, numbers.max // 3], kind)
    scale = np.float32(0.1)
    floats, scales = constant(integers, scale, np.asarray(0, kind))
    assert floats.tolist() == [float(np.float32(int(i) * np.float64(scale))) for i in integers]
    assert scales.tolist() == [float(scale)]


@cases("axis", [0, 1, -1, -2, None])
def test_scales_of_a_constant_are_along_its_axis(axis: int | None) -> None:
    """Expect axis 1 as the default."""
    along = 1 if axis is None else axis % 2
    values, options = whole(2, 3), {} if axis is None else {"axis": axis}
    scale = np.array([0.5, 0.25, 2.0][: values.shape[along]], np.float32)
    zero = np.array([1, -1, 4][: values.shape[along]], np.int8)
    floats, scales = constant(values, scale, zero, **options)
    for y, x in np.ndindex(2, 3):
        place = (y, x)[along]
        assert floats[y, x] == (int(values[y, x]) - zero[place]) * scale[place]
    assert scales.tolist() == scale.tolist()
    shared, _ = constant(values, scale, np.array([2], np.int8), **options)
    unshifted, _ = constant(values, scale, None, **options)
    np.testing.assert_allclose(
        unshifted - shared,
        np.broadcast_to(np.moveaxis(2 * scale[:, None], 0, along).reshape((-1, 1) if along == 0 else (1, -1)), (2, 3)),
    )
