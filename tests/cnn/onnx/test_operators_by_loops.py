"""Tests of operators on small inputs against loops over the documented formulas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError, SystolicError
from cnn.float_model import run_float
from cnn.maps import Shape
from cnn.network import Network, Node
from cnn.onnx.graph import OnnxOperation, RefusedError
from cnn.onnx.layers import Layers, Map, map_shape
from cnn.onnx.operators import BUILDERS
from cnn.onnx.pads import append_padding
from cnn.onnx.pools import average_pool, max_pool
from cnn.ops import Activate, Convolution, Input
from tests.support.cases import cases
from tests.support.errors import raises, refused

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(23)


def layers(picture: Array, opset: int = 17, view: tuple[int, ...] = (), **constants: Any) -> Layers:
    """Return layers of an input with the array's sides, and constants, each of which has one reader."""
    sides = (1, *picture.shape)
    readers = dict.fromkeys(("x", "y", *constants), 1)
    node = Node("input", Input(), (), map_shape(sides), "net.onnx")
    return Layers("net.onnx", (node,), constants, {"x": Map(0, view or sides)}, readers, opset)


def put(
    kind: str, picture: Array, *constants: Any, opset: int = 17, view: tuple[int, ...] = (), **options: Any
) -> Layers:
    """Apply the operator to the input and the constants. A constant of None is an input that is left out."""
    named = {f"c{i}": np.asarray(c) for i, c in enumerate(constants) if c is not None}
    inputs = ("x", *(f"c{i}" if c is not None else "" for i, c in enumerate(constants)))
    return BUILDERS[kind](layers(picture, opset, view, **named), OnnxOperation("it", kind, inputs, ("y",), options))


def computed(grown: Layers, picture: Array) -> Array:
    """Return the operator's output, in the shape that the graph gives it."""
    value = grown.value("y")
    assert isinstance(value, Map)
    outputs = run_float(Network("net", grown.nodes), picture.reshape(_sides(grown.nodes[0].shape)).astype(np.float32))
    return outputs[value.node].reshape(value.shape)


def _sides(shape: Shape) -> tuple[int, int, int]:
    return shape.channels, shape.height, shape.width


def check(grown: Layers, picture: Array, wanted: Array) -> None:
    np.testing.assert_allclose(computed(grown, picture), wanted[None], rtol=1e-4, atol=1e-5)


def pixels(*sides: int) -> Array:
    return RANDOM.normal(size=sides).astype(np.float32)


# --- windows ----------------------------------------------------------------------------------------------------------


def windows(
    picture: Array, window: tuple[int, int], stride: int, pads: tuple[int, ...], dilations: tuple[int, int]
) -> list[list[dict[tuple[int, int], Array]]]:
    """Return, per output row and column, the values that a window reads, by position in the window, without padding."""
    top, left, bottom, right = pads
    spans = [(size - 1) * step + 1 for size, step in zip(window, dilations, strict=True)]
    return [
        [
            {
                (i, j): picture[:, y + i * dilations[0], x + j * dilations[1]]
                for i, j in product(range(window[0]), range(window[1]))
                if 0 <= y + i * dilations[0] < picture.shape[1] and 0 <= x + j * dilations[1] < picture.shape[2]
            }
            for x in range(-left, picture.shape[2] + right - spans[1] + 1, stride)
        ]
        for y in range(-top, picture.shape[1] + bottom - spans[0] + 1, stride)
    ]


CONVOLUTIONS: list[tuple[tuple[int, int], int, int, tuple[int, ...], tuple[int, int]]] = [
    ((1, 1), 1, 1, (0, 0, 0, 0), (1, 1)),
    ((3, 2), 1, 2, (1, 0, 2, 1), (1, 1)),
    ((2, 3), 2, 1, (0, 1, 1, 0), (2, 1)),
    ((1, 4), 1, 4, (0, 2, 0, 1), (1, 2)),
    ((5, 6), 3, 1, (0, 0, 0, 0), (1, 1)),
]
"""Window, stride, groups, pads and dilations."""


@cases("window, stride, groups, pads, dilations", CONVOLUTIONS)
@cases("biased", [False, True])
def test_conv_equals_a_loop_over_its_windows(
    window: tuple[int, int], stride: int, groups: int, pads: tuple[int, ...], dilations: tuple[int, int], biased: bool
) -> None:
    picture, weights = pixels(4, 5, 6), pixels(8, 4 // groups, *window)
    bias = pixels(8) if biased else None
    options: dict[str, Any] = {"strides": (stride, stride), "group": groups, "pads": pads, "dilations": dilations}
    grown = put("Conv", picture, weights, bias, **options)
    rows = windows(picture, window, stride, pads, dilations)
    wanted = np.zeros((8, len(rows), len(rows[0])))
    for f, y, x in np.ndindex(wanted.shape):
        first = f // (8 // groups) * (4 // groups)
        wanted[f, y, x] = 0.0 if bias is None else bias[f]
        for (i, j), values in rows[y][x].items():
            wanted[f, y, x] += sum(weights[f, c, i, j] * values[first + c] for c in range(4 // groups))
    check(grown, picture, wanted)
    assert len(grown.nodes) == 2


def test_consecutive_convs_of_a_signal_equal_loops() -> None:
    """Check also that the outputs stay signals, for which weights have three sides."""
    picture, first, second = pixels(4, 9), pixels(6, 2, 3), pixels(2, 6, 2)
    whole = layers(picture, w=first, v=second)
    readers = dict.fromkeys(("x", "y", "z", "w", "v"), 1)
    whole = Layers(**{**vars(whole), "readers": readers})
    grown = BUILDERS["Conv"](whole, OnnxOperation("a", "Conv", ("x", "w"), ("z",), {"group": 2, "strides": (2,)}))
    assert grown.value("z") == Map(1, (1, 6, 4))
    grown = BUILDERS["Conv"](grown, OnnxOperation("b", "Conv", ("z", "v"), ("y",), {"pads": (1, 0)}))
    middle = np.zeros((6, 4))
    for f, x in np.ndindex(middle.shape):
        middle[f, x] = sum(first[f, c, i] * picture[f // 3 * 2 + c, 2 * x + i] for c in range(2) for i in range(3))
    padded = np.pad(middle, ((0, 0), (1, 0)))
    wanted = np.zeros((2, 4))
    for f, x in np.ndindex(wanted.shape):
        wanted[f, x] = sum(second[f, c, i] * padded[c, x + i] for c in range(6) for i in range(2))
    check(grown, picture, wanted)


@cases(
    "sides, weights, options, fault",
    [
        ((4, 5, 6), (8, 4, 1), {}, ShapeError("weights", (8, 4, 1), "4 sides, the same number as its input")),
        ((4, 6), (8, 4, 1, 1), {}, ShapeError("weights", (8, 4, 1, 1), "3 sides, the same number as its input")),
        ((4,), (8, 4), {}, ShapeError("weights", (8, 4), "3 sides, the same number as its input")),
        (
            (4, 5, 6),
            (8, 3, 1, 1),
            {},
            ShapeError(
                "weights", (8, 3, 1, 1), "4 channels in 1 groups, and filters that are a multiple of the groups"
            ),
        ),
        (
            (4, 5, 6),
            (8, 2, 1, 1),
            {},
            ShapeError(
                "weights", (8, 2, 1, 1), "4 channels in 1 groups, and filters that are a multiple of the groups"
            ),
        ),
        (
            (4, 5, 6),
            (7, 2, 1, 1),
            {"group": 2},
            ShapeError(
                "weights", (7, 2, 1, 1), "4 channels in 2 groups, and filters that are a multiple of the groups"
            ),
        ),
        (
            (4, 5, 6),
            (8, 4, 1, 1),
            {"group": -1},
            ShapeError(
                "weights", (8, 4, 1, 1), "4 channels in -1 groups, and filters that are a multiple of the groups"
            ),
        ),
        (
            (4, 5, 6),
            (0, 4, 1, 1),
            {},
            ShapeError(
                "weights", (0, 4, 1, 1), "4 channels in 1 groups, and filters that are a multiple of the groups"
            ),
        ),
        (
            (4, 5, 6),
            (8, 4, 1, 0),
            {},
            ShapeError(
                "weights", (8, 4, 1, 0), "4 channels in 1 groups, and filters that are a multiple of the groups"
            ),
        ),
        ((1, 5000, 1), (1, 1, 4096, 1), {}, RangeError("rows or columns of a window", 4096, 1, 4095)),
        ((1, 200, 200), (1, 1, 150, 150), {}, RangeError("places of a window", 22500, 1, 16384)),
    ],
)
def test_conv_with_weights_of_wrong_shape_is_refused(
    sides: tuple[int, ...], weights: tuple[int, ...], options: dict[str, Any], fault: SystolicError
) -> None:
    with refused(fault):
        put("Conv", pixels(*sides), np.zeros(weights, np.float32), **options)


def test_conv_with_biases_of_wrong_shape_is_refused() -> None:
    for biases in ((7,), (9,), (8, 1)):
        with raises(ShapeError, what="bias", got=biases, required=(8,)):
            put("Conv", pixels(4, 5, 6), np.zeros((8, 4, 1, 1), np.float32), np.zeros(biases, np.float32))


@cases("strides", [None, (1, 1), (2, 2), (2, 1), (1, 3)])
def test_conv_transpose_equals_a_loop_over_its_inputs(strides: tuple[int, int] | None) -> None:
    """Check also the default stride of 1, and a signal."""
    picture, weights = pixels(2, 3, 4), pixels(2, 3, 2, 3)
    rows, columns = strides or (1, 1)
    wanted = np.zeros((3, 2 * rows + 2, 3 * columns + 3))
    for c, y, x, f, i, j in np.ndindex(2, 3, 4, 3, 2, 3):
        wanted[f, y * rows + i, x * columns + j] += picture[c, y, x] * weights[c, f, i, j]
    options: dict[str, Any] = {} if strides is None else {"strides": strides}
    check(put("ConvTranspose", picture, weights, **options), picture, wanted)
    length, kernel = picture[:, 0], weights[:, :, 0]
    spread = np.zeros((3, 3 * columns + 3))
    for c, x, f, j in np.ndindex(2, 4, 3, 3):
        spread[f, x * columns + j] += length[c, x] * kernel[c, f, j]
    options = {} if strides is None else {"strides": (columns,)}
    check(put("ConvTranspose", length, kernel, **options), length, spread)


POOLS: list[tuple[tuple[int, int], int, tuple[int, ...]]] = [
    ((2, 2), 2, (0, 0, 0, 0)),
    ((3, 3), 1, (1, 1, 1, 1)),
    ((2, 3), 2, (1, 0, 0, 2)),
    ((1, 2), 3, (0, 1, 0, 0)),
    ((3, 1), 1, (0, 0, 2, 0)),
]


@cases("window, stride, pads", POOLS)
@cases("counted", [0, 1])
def test_average_pool_equals_a_loop_over_its_windows(
    window: tuple[int, int], stride: int, pads: tuple[int, ...], counted: int
) -> None:
    picture = pixels(2, 5, 6)
    options = {"kernel_shape": window, "strides": (stride, stride), "pads": pads, "count_include_pad": counted}
    grown = average_pool(layers(picture), OnnxOperation("it", "AveragePool", ("x",), ("y",), options))
    rows = windows(picture, window, stride, pads, (1, 1))
    places = window[0] * window[1]
    wanted = [[sum(read.values()) / (places if counted else len(read)) for read in row] for row in rows]
    check(grown, picture, np.moveaxis(np.array(wanted), 2, 0))


@cases("window, stride, pads", POOLS)
def test_max_pool_equals_a_loop_over_its_windows(window: tuple[int, int], stride: int, pads: tuple[int, ...]) -> None:
    picture = pixels(2, 5, 6) - 5  # negative values, for which zeros in the padding would show
    options = {"kernel_shape": window, "strides": (stride, stride), "pads": pads}
    operation = OnnxOperation("it", "MaxPool", ("x",), ("y",), options)
    rows = windows(picture, window, stride, pads, (1, 1))
    wanted = [[np.max(list(read.values()), axis=0) for read in row] for row in rows]
    check(max_pool(layers(picture), operation), picture, np.moveaxis(np.array(wanted), 2, 0))


@cases("window", [(), (2,), (2, 2, 2), (0, 3)])
def test_pool_window_of_wrong_sides_is_refused(window: tuple[int, ...]) -> None:
    operation = OnnxOperation("it", "MaxPool", ("x",), ("y",), {"kernel_shape": window})
    with raises(InvalidValueError, what="kernel_shape", required="two numbers of 1 or more"):
        max_pool(layers(pixels(2, 5, 6)), operation)


@cases("around", [(0, 0, 0, 0), (1, 2, 0, 3), (0, 0, 2, 1), (3, 0, 0, 0)])
def test_zero_padding_without_a_convolution_becomes_a_layer(around: tuple[int, int, int, int]) -> None:
    picture, (top, left, bottom, right) = pixels(2, 3, 4), around
    whole = layers(picture)
    pads = np.array([0, 0, top, left, 0, 0, bottom, right])
    padded = BUILDERS["Pad"](
        Layers(**{**vars(whole), "constants": {"p": pads}}), OnnxOperation("it", "Pad", ("x", "p"), ("y",), {})
    )
    check(append_padding(padded, "y"), picture, np.pad(picture, ((0, 0), (top, bottom), (left, right))))


# --- elementwise operators --------------------------------------------------------------------------------------------


COLUMN = np.array([0.5, -2.0, 3.0], np.float32).reshape(3, 1, 1)
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
}


@cases("kind", ARITHMETIC)
@cases("number", [np.array(0.25, np.float32), COLUMN, COLUMN[None]], ids=["one", "channels", "all sides"])
def test_arithmetic_with_a_constant_equals_numpy(kind: str, number: Array) -> None:
    picture = pixels(3, 2, 4)
    check(put(kind, picture, number), picture, ARITHMETIC[kind](picture, number).reshape(picture.shape))
    turned = OnnxOperation("it", kind, ("c", "x"), ("y",), {})
    if kind == "Div":
        with raises(RefusedError, reason="a constant is divided by a map; only a map can be divided by a constant"):
            BUILDERS[kind](layers(picture, c=number), turned)
    else:
        grown = BUILDERS[kind](layers(picture, c=number), turned)
        check(grown, picture, ARITHMETIC[kind](number, picture).reshape(picture.shape))


@cases("alone", [True, False])
@cases("normed", [True, False])
def test_constants_merge_into_the_convolution_or_become_a_layer(alone: bool, normed: bool) -> None:
    """Expect them in the convolution and its batch norm, unless their sums have other readers."""
    picture, weights, bias = pixels(3, 2, 4), pixels(3, 3, 1, 1), pixels(3)
    norm = [pixels(3), pixels(3), pixels(3), RANDOM.uniform(0.5, 2, 3).astype(np.float32)]
    constants: dict[str, Any] = {
        "w": weights,
        "b": bias,
        "m": COLUMN,
        "o": COLUMN[::-1] + 1,
        **dict(zip("stuv", norm, strict=True)),
    }
    whole = layers(picture, **constants)
    readers = dict.fromkeys(("x", "y", "k", "n", "p", *constants), 1 if alone else 2)
    whole = BUILDERS["Conv"](
        Layers(**{**vars(whole), "readers": readers}), OnnxOperation("k", "Conv", ("x", "w", "b"), ("k",), {})
    )
    sums = np.einsum("fc,cyx->fyx", weights[:, :, 0, 0], picture) + bias[:, None, None]
    last = "k"
    if normed:
        inputs = (last, *"stuv")
        whole = BUILDERS["BatchNormalization"](
            whole, OnnxOperation("n", "BatchNormalization", inputs, ("n",), {"epsilon": 0.1})
        )
        scale, shift, mean, variance = (values[:, None, None] for values in norm)
        sums, last = scale * (sums - mean) / np.sqrt(variance + 0.1) + shift, "n"
    whole = BUILDERS["Mul"](whole, OnnxOperation("p", "Mul", (last, "m"), ("p",), {}))
    whole = BUILDERS["Add"](whole, OnnxOperation("y", "Add", ("p", "o"), ("y",), {}))
    check(whole, picture, sums * COLUMN + COLUMN[::-1] + 1)
    assert len(whole.nodes) == (2 if alone else 4 + normed)


def test_batch_norm_alone_equals_its_formula() -> None:
    picture, variance = pixels(3, 2, 4), np.array([0, 1, 4], np.float32)
    norm = [pixels(3), pixels(3), pixels(3), variance]
    scale, bias, mean, var = (values[:, None, None] for values in norm)
    told: list[tuple[dict[str, Any], float]] = [({}, 1e-5), ({"epsilon": 0.5}, 0.5)]
    for options, epsilon in told:
        grown = put("BatchNormalization", picture, *norm, **options)
        wanted = scale * (picture - mean) / np.sqrt(var + epsilon) + bias
        np.testing.assert_allclose(computed(grown, picture)[0], wanted, rtol=1e-3, atol=1e-3)
        op = grown.nodes[-1].op
        assert isinstance(op, Convolution)
        assert op.groups == 3
    for place in range(4):
        wrong = [values if i != place else np.ones(4, np.float32) for i, values in enumerate(norm)]
        with raises(ShapeError, required=(3,)):
            put("BatchNormalization", picture, *wrong)


def test_prelu_with_a_slope_per_channel_equals_its_formula() -> None:
    picture, slopes = pixels(3, 2, 4), np.array([0.5, 1.0, -2.0], np.float32).reshape(3, 1, 1)
    check(put("PRelu", picture, slopes), picture, np.where(picture < 0, picture * slopes, picture))
    slopes = slopes + np.float32(0.5)  # one slope is 1.5
    check(put("PRelu", picture, slopes), picture, np.where(picture < 0, picture * slopes, picture))


def test_prelu_of_a_signal_equals_its_formula() -> None:
    """Check also that the output is a signal."""
    picture, slopes = pixels(3, 5), np.array([0.5, 1.0, -2.0], np.float32).reshape(3, 1)
    grown = put("PRelu", picture, slopes)
    check(grown, picture, np.where(picture < 0, picture * slopes, picture))
    assert grown.value("y") == Map(3, (1, 3, 5))


@cases(
    "low, high, op",
    [
        (-1.0, 2.0, Activate("clip", (-1.0, 2.0))),
        (2.0, 2.0, Activate("clip", (2.0, 2.0))),
        (None, 2.0, Activate("clip", (-np.inf, 2.0))),
        (-1.0, None, Activate("clip", (-1.0, np.inf))),
        (2.0, -1.0, None),
        (np.inf, np.inf, None),
        (-np.inf, -np.inf, None),
    ],
)
def test_clip_with_an_empty_range_is_refused(low: float | None, high: float | None, op: Activate | None) -> None:
    picture = pixels(3, 2, 2)
    if op is not None:
        assert put("Clip", picture, low, high).nodes[-1].op == op
        return
    with raises(InvalidValueError, what="min and max", got=(low, high)):
        put("Clip", picture, low, high)


def test_clip_from_infinity_is_refused() -> None:
    with raises(InvalidValueError, what="min and max", got=(np.inf, np.inf)):
        put("Clip", pixels(3, 2, 2), np.inf, None)


# --- operators on several maps ----------------------------------------------------------------------------------------


JOINS: dict[str, Callable[..., Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Max": np.maximum,
    "Min": np.minimum,
    "Sum": lambda a, b: a + b,
}


@cases("kind", JOINS)
@cases("own, shape", [("whole", (3, 2, 4)), ("pixel", (3, 1, 1)), ("plane", (1, 2, 4))])
@cases("first", [True, False])
def test_join_of_maps_equals_numpy(kind: str, own: str, shape: tuple[int, ...], first: bool) -> None:
    """Join the input with a map of its shape, a map of one value per channel, or a map of one channel."""
    picture = pixels(3, 2, 4)
    whole = layers(picture, w=np.ones((1, 3, 1, 1), np.float32), v=(2 * np.eye(3, dtype=np.float32))[..., None, None])
    readers = dict.fromkeys(("x", "o", "y", "w", "v"), 1)
    whole = Layers(**{**vars(whole), "readers": readers})
    made = {"whole": ("Conv", ("x", "v")), "pixel": ("GlobalAveragePool", ("x",)), "plane": ("Conv", ("x", "w"))}
    other = {
        "whole": 2 * picture,
        "pixel": picture.mean(axis=(1, 2), keepdims=True),
        "plane": picture.sum(0, keepdims=True),
    }
    made_kind, inputs = made[own]
    whole = BUILDERS[made_kind](whole, OnnxOperation("o", made_kind, inputs, ("o",), {}))
    assert whole.value("o") == Map(1, (1, *shape))
    names = ("x", "o") if first else ("o", "x")
    grown = BUILDERS[kind](whole, OnnxOperation("it", kind, names, ("y",), {}))
    arrays = (picture, other[own]) if first else (other[own], picture)
    check(grown, picture, JOINS[kind](*arrays))


def test_join_of_three_maps_equals_numpy() -> None:
    picture = pixels(3, 2, 4)
    for kind, wanted in (("Sum", picture * 3), ("Max", picture), ("Min", picture)):
        grown = BUILDERS[kind](layers(picture), OnnxOperation("it", kind, ("x", "x", "x"), ("y",), {}))
        check(grown, picture, wanted)


# --- matrices ---------------------------------------------------------------------------------------------------------


@cases("turned", [0, 1])
@cases("scaled", [False, True])
@cases("bias", [None, np.float32(2), np.arange(3, dtype=np.float32)], ids=["none", "one", "each"])
def test_gemm_scales_the_matrix_and_the_bias(turned: int, scaled: bool, bias: Any) -> None:
    picture, matrix = pixels(5), pixels(5, 3)
    options: dict[str, Any] = {"alpha": 0.5, "beta": -2.0} if scaled else {}
    grown = put("Gemm", picture, matrix.T if turned else matrix, bias, transB=turned, **options)
    alpha, beta = (0.5, -2.0) if scaled else (1, 1)
    wanted = [
        alpha * sum(picture[i] * matrix[i, o] for i in range(5))
        + beta * (0 if bias is None else np.broadcast_to(bias, 3)[o])
        for o in range(3)
    ]
    check(grown, picture, np.array(wanted))
    assert grown.value("y") == Map(1, (1, 3))


def test_matmul_reads_one_row_of_values() -> None:
    picture, matrix = pixels(2, 3, 1), pixels(6, 4)
    check(put("MatMul", picture, matrix, view=(1, 6)), picture, picture.ravel() @ matrix)
    for view in ((1, 6, 1), (1, 1, 6), (6, 1)):
        with raises(ShapeError, got=view, required="one row of 6 values, the rows of the matrix"):
            put("MatMul", picture, matrix, view=view)
    for rows in (5, 7):
        with raises(ShapeError, got=(1, 6), required=f"one row of {rows} values, the rows of the matrix"):
            put("MatMul", picture, pixels(rows, 4), view=(1, 6))
    for sides in ((6,), (6, 4, 1)):
        with raises(ShapeError, what="the matrix", got=sides, required="two sides"):
            put("MatMul", picture, pixels(*sides), view=(1, 6))


@cases(
    "opset, options, sides, fits",
    [
        (17, {"axis": 1}, (4, 1, 1), True),
        (17, {"axis": -3}, (4, 1, 1), True),
        (17, {"axis": 2}, (4, 1, 1), False),
        (17, {}, (4, 1, 1), False),
        (17, {}, (4,), True),
        (13, {}, (4, 1, 1), False),
        (12, {}, (4, 1, 1), True),
        (17, {"axis": 1}, (4, 2, 1), True),
        (17, {"axis": 1}, (4, 2, 3), True),
        (12, {"axis": 1}, (4, 1, 2), False),
    ],
)
def test_softmax_is_over_the_channels_of_each_position(
    opset: int, options: dict[str, Any], sides: tuple[int, ...], fits: bool
) -> None:
    """Expect the last axis as the default since opset 13."""
    picture = pixels(*sides)
    if fits:
        powers = np.exp(picture)
        check(put("Softmax", picture, opset=opset, **options), picture, powers / powers.sum(axis=0))
        check(put("LogSoftmax", picture, opset=opset, **options), picture, np.log(powers / powers.sum(axis=0)))
        return
    with raises(InvalidValueError, what="its axis"):
        put("Softmax", picture, opset=opset, **options)
