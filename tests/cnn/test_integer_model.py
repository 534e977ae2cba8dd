"""Tests of the golden model against slow definitions, written directly from the contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import ShapeError
from cnn.datatype import INT8, INT16, UINT8, DataType, TensorType
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import Padding, Shape
from cnn.network import Network, Node
from cnn.ops import (
    Concat,
    Input,
    MaxPool,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    Reorg,
    Slice,
    Upsample,
    Yolo,
)
from cnn.ops.convolution import convolve
from cnn.ops.weights import _parts
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import EVEN, NEAR_HALF, ODD, MultiplyShift, Requantiser, requantise, requantise_floats
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.kinds import as_kind

# ---------------------------------------------------------------- slow reference in Python integers


def slow_requantise(acc: int, r: Requantiser, c: int, datatype: DataType) -> int:
    total = acc + int(r.bias[c])
    m = int(r.negative[c]) if total < 0 else int(r.multiplier[c])
    s = int(r.shift[c])
    return min(max((total * m + (1 << (s - 1))) >> s, datatype.low), datatype.high)


def slow_convolution(a: np.ndarray, op: QConvolution, shape: Shape, datatype: DataType) -> np.ndarray:
    filters, channels, high, wide = op.weights.shape
    out = np.zeros((shape.channels, shape.height, shape.width), np.int64)
    for f, y, x in product(range(filters), range(shape.height), range(shape.width)):
        first = f // (filters // op.groups) * channels
        acc = 0
        for c, i, j in product(range(channels), range(high), range(wide)):
            row, column = y * op.stride + i - op.padding.top, x * op.stride + j - op.padding.left
            if 0 <= row < a.shape[1] and 0 <= column < a.shape[2]:
                acc += int(op.weights[f, c, i, j]) * int(a[first + c, row, column])
        out[f, y, x] = slow_requantise(acc, as_kind(Requantiser, op.requantiser), f, datatype)
    return out


def max_pool(array: np.ndarray, op: MaxPool, shape: Shape, datatype: DataType) -> np.ndarray:
    return op.run_integer([array], [], QNode("pool", op, (0,), shape, TensorType(datatype, 1.0), "test"))


def slow_max_pool(a: np.ndarray, op: MaxPool, shape: Shape) -> np.ndarray:
    out = np.zeros((shape.channels, shape.height, shape.width), np.int64)
    for c, y, x in product(range(shape.channels), range(shape.height), range(shape.width)):
        rows = [y * op.stride + i - op.padding.top for i in range(op.window[0])]
        columns = [x * op.stride + j - op.padding.left for j in range(op.window[1])]
        out[c, y, x] = max(
            int(a[c, i, j]) for i in rows for j in columns if 0 <= i < a.shape[1] and 0 <= j < a.shape[2]
        )
    return out


def slow_reorg(a: np.ndarray, stride: int) -> np.ndarray:
    """Compute darknet's reorg_cpu with forward = 0, by index over flat memory."""
    c, h, w = a.shape
    x, out, out_c = a.reshape(-1), np.zeros(a.size, a.dtype), c // stride**2
    for k, j, i in product(range(c), range(h), range(w)):
        w2, h2 = i * stride + (k // out_c) % stride, j * stride + (k // out_c) // stride
        out[i + w * (j + h * k)] = x[w2 + w * stride * (h2 + h * stride * (k % out_c))]
    return out.reshape(c * stride**2, h // stride, w // stride)


# ---------------------------------------------------------------- requantisation


def requantiser(
    random: np.random.Generator, channels: int, *, slope: str = "leaky", bias: int = 1 << 20
) -> Requantiser:
    m = random.integers(1, 1 << 16, channels)
    negative = {"leaky": np.rint(0.1 * m).astype(np.int64), "relu": np.zeros_like(m), "linear": m}[slope]
    shift = random.integers(1, 48, channels)
    return Requantiser(random.integers(-bias, bias + 1, channels), m, negative, shift)


SLOPES = st.sampled_from(["leaky", "relu", "linear"])
SEEDS = st.integers(0, 1 << 30)


@settings(max_examples=100)
@given(SEEDS, SLOPES, st.sampled_from([INT8, INT16]), st.integers(1, 30))
def test_requantise_equals_python_integers(seed: int, slope: str, datatype: DataType, bits: int) -> None:
    random = np.random.default_rng(seed)
    r = requantiser(random, 5, slope=slope, bias=1 << bits)
    acc = random.integers(-(1 << 31) + (1 << 30) + 1, 1 << 30, (5, 40))
    acc[:, :4] = np.array([-1, 0, 1, -(1 << 31) + (1 << 30) + 1])
    acc[:, 4:9] = -r.bias[:, None] + np.arange(-2, 3)  # around the change of sign of the sum with its bias
    expected = [[slow_requantise(int(v), r, c, datatype) for v in acc[c]] for c in range(5)]
    np.testing.assert_array_equal(requantise(acc, r, datatype), expected)
    np.testing.assert_array_equal(requantise_floats(acc.astype(np.float64), r, datatype), expected)
    assert requantise(acc, r, datatype).dtype == datatype.carrier


def test_requantise_rounds_half_up_and_saturates() -> None:
    r = Requantiser(*(np.array([v]) for v in (0, 1, 1, 1)))
    acc = np.array([[-3, -1, 0, 1, 3, 253, 255, 1000, -257, -1000]])
    assert requantise(acc, r, INT8).tolist() == [[-1, 0, 0, 1, 2, 127, 127, 127, -128, -128]]


@cases("shift", [1, 5, 13, 16, 30, 47])
@cases("halves", [EVEN, ODD])
def test_requantise_rounds_halves_to_even_or_odd(halves: str, shift: int) -> None:
    """Compare with exact fractions: the product without its lowest bits is rounded, and a half goes to that parity."""
    random = np.random.default_rng(shift)
    acc = np.concatenate([np.arange(-300, 301), random.integers(-(1 << 30), 1 << 30, 200)])[None]
    for multiplier, bias in ((1 << min(15, max(0, shift - 1)), 0), (40961, 3), (3 << 13, -5)):
        forms: list[Requantiser | MultiplyShift] = [
            Requantiser(*(np.array([v]) for v in (bias, multiplier, multiplier // 4, shift)), halves=halves),
            MultiplyShift(*(np.array([v]) for v in (-multiplier, bias << 15, shift)), halves=halves),
        ]
        for by in forms:
            expected = [slow_halves(int(v), by, INT16) for v in acc[0]]
            assert requantise(acc, by, INT16)[0].tolist() == expected
            assert requantise_floats(acc.astype(np.float64), by, INT16)[0].tolist() == expected


def slow_halves(acc: int, by: Requantiser | MultiplyShift, datatype: DataType) -> int:
    if isinstance(by, MultiplyShift):
        product = acc * int(by.multiplier[0]) + int(by.bias[0])
    else:
        total = acc + int(by.bias[0])
        product = total * int((by.negative if total < 0 else by.multiplier)[0])
    exact = Fraction(product >> NEAR_HALF << NEAR_HALF, 1 << int(by.shift[0]))
    odd = by.halves == ODD
    return min(max(round(exact - odd) + odd, datatype.low), datatype.high)  # Python rounds a half to even


def test_requantise_selects_the_multiplier_by_sign() -> None:
    r = Requantiser(*(np.array([v]) for v in (0, 2, 6, 1)))
    acc = np.array([[-10.0, 10.0]])
    assert requantise_floats(acc, r, INT8).tolist() == [[-30, 10]]


@settings(max_examples=60)
@given(SEEDS, SLOPES)
def test_requantise_never_decreases(seed: int, slope: str) -> None:
    """Check that the order of requantisation and maximum does not matter."""
    random = np.random.default_rng(seed)
    r = requantiser(random, 4, slope=slope)
    span = int(random.integers(2, 1 << 30))
    acc = np.sort(random.integers(-span, span, (4, 500)), axis=1)
    assert np.all(np.diff(requantise(acc, r, INT16).astype(np.int64), axis=1) >= 0)


# ---------------------------------------------------------------- layers


@dataclass(frozen=True)
class Window:
    height: int
    width: int
    kernel: int
    stride: int
    padding: Padding

    def shape(self, channels: int) -> Shape:
        p = self.padding
        high, wide = self.height + p.top + p.bottom, self.width + p.left + p.right
        return Shape(channels, (high - self.kernel) // self.stride + 1, (wide - self.kernel) // self.stride + 1)


@st.composite
def windows(draw: st.DrawFn, kernels: Sequence[int], padding_below: int = 4) -> Window:
    kernel = draw(st.sampled_from(kernels))
    sides = st.integers(0, min(kernel, padding_below) - 1) if kernel > 1 else st.just(0)
    padding = Padding(*(draw(sides) for _ in range(4)))
    size = st.integers(max(1, kernel - 1), 10)
    height, width = draw(size), draw(size)
    height = max(height, kernel - padding.top - padding.bottom)
    width = max(width, kernel - padding.left - padding.right)
    return Window(height, width, kernel, draw(st.integers(1, 3)), padding)


@settings(max_examples=60)
@given(windows([1, 3, 5, 7]), SEEDS, SLOPES, st.sampled_from([INT8, UINT8]), st.sampled_from([1, 2, 3]))
def test_convolution_equals_its_definition(
    window: Window, seed: int, slope: str, datatype: DataType, groups: int
) -> None:
    random = np.random.default_rng(seed)
    channels, filters = groups * int(random.integers(1, 4)), groups * int(random.integers(1, 3))
    a = random.integers(datatype.low, datatype.high + 1, (channels, window.height, window.width))
    a = a.astype(datatype.carrier)
    k = window.kernel
    weights = random.integers(-127, 128, (filters, channels // groups, k, k)).astype(np.int8)
    r = requantiser(random, filters, slope=slope)
    op = QConvolution(weights, INT8, r, window.stride, window.padding, groups)
    shape = window.shape(filters)
    out = DataType(8, True) if seed % 2 else INT16
    result = convolve(a, datatype, op, shape, out)
    assert result.dtype == out.carrier
    np.testing.assert_array_equal(result, slow_convolution(a, op, shape, out))


def test_parts_of_a_product_stay_exact_in_float32() -> None:
    for channels, parts in ((100, 1), (300, 3)):
        weights = np.full((1, 2, channels, 9), 127, np.int8)
        cut = _parts(weights, 128)
        assert len(cut) == parts
        assert all(w.dtype == np.float32 and w.sum(axis=2).max() * 128 <= 1 << 24 for _, w in cut)
        np.testing.assert_array_equal(np.concatenate([w for _, w in cut], axis=2), weights.reshape(1, 2, -1))


def test_product_of_too_many_float32_parts_uses_float64() -> None:
    ((cut, weights),) = _parts(np.full((1, 1, 3000, 9), 127, np.int8), 128)
    assert weights.dtype == np.float64
    assert cut == slice(0, 3000)


def test_parts_of_a_product_end_at_the_float32_limit() -> None:
    """Use one weight of 1 per channel: a part holds ⌊2^24 / greatest⌋ channels, and there are at most 8 parts."""
    cases: list[tuple[int, int, int, type[np.floating]]] = [
        (1 << 24, 1, 1, np.float32),
        (1 << 24, 2, 2, np.float32),
        (1 << 23, 2, 1, np.float32),
        (1 << 23, 3, 2, np.float32),
        (1 << 24, 8, 8, np.float32),
        (1 << 24, 9, 1, np.float64),
        ((1 << 24) + 1, 1, 1, np.float64),
        ((1 << 24) + 1, 2, 1, np.float64),
    ]
    for greatest, channels, parts, dtype in cases:
        weights = np.ones((1, 1, channels, 1), np.int8)
        assert [part.dtype for _, part in _parts(weights, greatest)] == [dtype] * parts, (greatest, channels)


def test_convolution_with_a_window_that_is_not_square_equals_its_definition() -> None:
    random = np.random.default_rng(5)
    a = random.integers(-128, 128, (4, 9, 11)).astype(np.int8)
    op = QConvolution(
        random.integers(-127, 128, (6, 2, 2, 3)).astype(np.int8),
        INT8,
        requantiser(random, 6),
        2,
        Padding(1, 0, 2, 1),
        2,
    )
    shape = Shape(6, 6, 5)  # (9 + 3 − 2) / 2 + 1 by (11 + 1 − 3) / 2 + 1
    np.testing.assert_array_equal(convolve(a, INT8, op, shape, INT8), slow_convolution(a, op, shape, INT8))


def test_convolution_of_the_greatest_accumulators_is_exact() -> None:
    """Use weights and activations at the ends of their ranges and an odd sum, so that any rounding of the product
    shows."""
    for channels in (100, 300, 1000, 3000):
        random = np.random.default_rng(channels)
        weights = random.choice(np.array([-127, 126, 127], np.int8), (2, channels, 3, 3))
        a = random.choice(np.array([-128, -127, 127], np.int8), (channels, 3, 3))
        exact = np.einsum("fckl,ckl->f", weights.astype(np.int64), a.astype(np.int64))
        one = np.ones(2, np.int64)
        op = QConvolution(weights, INT8, Requantiser(-exact + one, one * 2, one * 2, one), 1, Padding(), 1)
        assert convolve(a, INT8, op, Shape(2, 1, 1), INT8).ravel().tolist() == [1, 1], channels


def test_cached_float_weights_depend_on_the_datatype() -> None:
    """Run 8, 16 and 8 bits in turn: 16-bit integers need other float weights than the cached ones for 8 bits."""
    weights, one = np.random.default_rng(3).choice(np.array([126, 127]), (2, 16, 3, 3)), np.ones(2, np.int64)
    exact = weights.astype(np.int64).sum(axis=(1, 2, 3))
    op = QConvolution(weights, INT8, Requantiser(one, one, one, one), 1, Padding(), 1)
    for datatype in (INT8, INT16, INT8):
        by = Requantiser(-exact * datatype.high + one, one * 2, one * 2, one)
        object.__setattr__(op, "requantiser", by)  # the floats are cached per operation
        array = np.full((16, 3, 3), datatype.high)
        assert convolve(array, datatype, op, Shape(2, 1, 1), INT16).ravel().tolist() == [1, 1]


def test_convolution_in_several_row_blocks_equals_its_definition() -> None:
    random = np.random.default_rng(3)
    a = random.integers(-128, 128, (64, 200, 200)).astype(np.int8)
    weights = random.integers(-127, 128, (4, 64, 3, 3)).astype(np.int8)
    by = requantiser(random, 4)
    op = QConvolution(weights, INT8, by, 2, Padding(1, 1, 1, 1), 1)
    result = convolve(a, INT8, op, Shape(4, 100, 100), INT8)
    for y, x in ((0, 0), (99, 99), (50, 3), (37, 64)):
        corner = np.pad(a, ((0, 0), (1, 1), (1, 1)))[:, 2 * y : 2 * y + 3, 2 * x : 2 * x + 3].astype(np.int64)
        acc = np.einsum("fckl,ckl->f", weights.astype(np.int64), corner)
        assert result[:, y, x].tolist() == [slow_requantise(int(acc[f]), by, f, INT8) for f in range(4)]


@settings(max_examples=60)
@given(windows([1, 2, 3, 5], padding_below=5), SEEDS, st.sampled_from([INT8, UINT8]))
def test_max_pool_equals_its_definition(window: Window, seed: int, datatype: DataType) -> None:
    random = np.random.default_rng(seed)
    low = datatype.low
    a = random.integers(low, low + 60, (2, window.height, window.width)).astype(datatype.carrier)
    op = MaxPool(window.kernel, window.stride, window.padding)
    shape = window.shape(2)
    if any_window_of_padding_only(window, shape):
        return
    np.testing.assert_array_equal(max_pool(a, op, shape, datatype), slow_max_pool(a, op, shape))


def test_max_pool_with_unequal_sides_equals_its_definition() -> None:
    for (rows, columns), stride in product([(3, 1), (1, 4), (2, 5), (5, 2)], [1, 2, 3]):
        random = np.random.default_rng(rows)
        a, padding = random.integers(-128, 127, (2, 8, 9)).astype(np.int8), Padding(rows - 1, 0, rows // 2, columns - 1)
        height = (8 + padding.top + padding.bottom - rows) // stride + 1
        width = (9 + padding.left + padding.right - columns) // stride + 1
        op, shape = MaxPool(rows, stride, padding, columns), Shape(2, height, width)
        expected = slow_max_pool(a, op, shape)
        np.testing.assert_array_equal(max_pool(a, op, shape, INT8), expected, str(op))
        nodes = (Node("in", Input(), (), Shape(2, 8, 9), ""), Node("pool", op, (0,), shape, ""))
        floats = run_float(Network("net", nodes), a.astype(np.float32))[1]
        np.testing.assert_array_equal(floats, expected, str(op))


def any_window_of_padding_only(window: Window, shape: Shape) -> bool:
    """Return whether a window covers only padding, which a pool must not do."""
    p = window.padding
    spans = ((p.top, window.height, shape.height), (p.left, window.width, shape.width))
    return any(
        all(not before <= o * window.stride + i < before + size for i in range(window.kernel))
        for before, size, outputs in spans
        for o in range(outputs)
    )


def test_max_pool_padding_is_never_the_maximum() -> None:
    a = np.full((1, 3, 3), -128, np.int8)
    a[0, 2, 2] = -5
    pooled = max_pool(a, MaxPool(2, 1, Padding(bottom=1, right=1)), Shape(1, 3, 3), INT8)
    assert pooled[0].tolist() == [[-128] * 3, [-128, -5, -5], [-128, -5, -5]]


# ---------------------------------------------------------------- whole networks


def all_operations(seed: int = 0) -> QuantizedNetwork:
    random = np.random.default_rng(seed)
    pixel, eight, last = TensorType(UINT8, 1 / 255), TensorType(INT8, 0.02), TensorType(INT16, 0.001)

    def scaled(channels: int, slope: str = "leaky") -> Requantiser:
        m = random.integers(1 << 15, 1 << 16, channels)
        negative = {"leaky": m // 10, "linear": m}[slope]
        return Requantiser(random.integers(-99, 99, channels), m, negative, np.full(channels, 22))

    weights = random.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8)
    head = random.integers(-127, 128, (3, 40)).astype(np.int8)
    nodes = (
        QNode("input", QInput(), (), Shape(4, 6, 4), pixel, "t:1"),
        QNode(
            "conv",
            QConvolution(weights, INT8, scaled(8), 1, Padding(1, 1, 1, 1), 1),
            (0,),
            Shape(8, 6, 4),
            eight,
            "t:2",
        ),
        QNode("slice", Slice(2, 4), (1,), Shape(4, 6, 4), eight, "t:3"),
        QNode("add", QAdd((3, 5), scaled(4, "linear")), (0, 2), Shape(4, 6, 4), eight, "t:4"),
        QNode("reorg", Reorg(2), (3,), Shape(16, 3, 2), eight, "t:5"),
        QNode("up", Upsample(2), (4,), Shape(16, 6, 4), eight, "t:6"),
        QNode("concat", Concat(), (5, 1, 5), Shape(40, 6, 4), eight, "t:7"),
        QNode("pool", QAveragePool(scaled(40, "linear")), (6,), Shape(40, 1, 1), eight, "t:8"),
        QNode("dense", QDense(head, INT8, scaled(3, "linear")), (7,), Shape(3, 1, 1), last, "t:9"),
        QNode("yolo", Yolo(((1.0, 1.0),), 1, False), (8,), Shape(3, 1, 1), last, "t:10"),
    )
    return QuantizedNetwork("all", nodes)


def test_operations_of_a_network_equal_their_definitions() -> None:
    q = all_operations()
    random = np.random.default_rng(5)
    picture = random.integers(0, 256, (4, 6, 4)).astype(np.uint8)
    out = run_integer(q, picture)
    ops = [node.op for node in q.nodes]
    convolution, add = as_kind(QConvolution, ops[1]), as_kind(QAdd, ops[3])
    pool, dense = as_kind(QAveragePool, ops[7]), as_kind(QDense, ops[8])
    by_add, by_pool, by_dense = (as_kind(Requantiser, op.requantiser) for op in (add, pool, dense))
    assert out[9] is None
    arrays = [a.astype(np.int64) for a in out[:9] if a is not None]
    np.testing.assert_array_equal(arrays[1], slow_convolution(picture, convolution, q.nodes[1].shape, INT8))
    np.testing.assert_array_equal(arrays[2], arrays[1][2:6])
    sums = arrays[0] * 3 + arrays[2] * 5
    for c, y, x in product(range(4), range(6), range(4)):
        assert arrays[3][c, y, x] == slow_requantise(int(sums[c, y, x]), by_add, c, INT8)
    np.testing.assert_array_equal(arrays[4], slow_reorg(arrays[3], 2))
    for y, x in product(range(6), range(4)):
        assert arrays[5][:, y, x].tolist() == arrays[4][:, y // 2, x // 2].tolist()
    np.testing.assert_array_equal(arrays[6], np.concatenate([arrays[5], arrays[1], arrays[5]]))
    means = [slow_requantise(int(arrays[6][c].sum()), by_pool, c, INT8) for c in range(40)]
    assert arrays[7].ravel().tolist() == means
    products = (dense.weights.astype(np.int64) * np.array(means)).sum(axis=1)
    heads = [slow_requantise(int(products[c]), by_dense, c, INT16) for c in range(3)]
    assert arrays[8].ravel().tolist() == heads


def test_outputs_have_their_types_and_do_not_share_the_image() -> None:
    q = all_operations()
    picture = np.zeros((4, 6, 4), np.uint8)
    out = run_integer(q, picture)
    for node, array in zip(q.nodes[:9], out[:9], strict=True):
        assert array is not None
        assert array.dtype == node.type.datatype.carrier
        assert array.shape == (node.shape.channels, node.shape.height, node.shape.width)
    assert not np.shares_memory(as_kind(np.ndarray, out[0]), picture)


def test_image_of_wrong_type_or_shape_is_refused() -> None:
    for picture, got in (
        (np.zeros((4, 6, 5), np.uint8), "type uint8 and shape 4×6×5"),
        (np.zeros((4, 6, 4), np.float32), "type float32 and shape 4×6×4"),
    ):
        with raises(ShapeError, what="the picture for 'all'", got=got, required="type uint8 and shape 4×6×4"):
            run_integer(all_operations(), picture)  # type: ignore[arg-type]  # the check that is tested


def test_dequantise_multiplies_by_the_scale() -> None:
    values = dequantise(np.array([[[-128, 0, 127]]], np.int8), TensorType(INT8, 0.5))
    assert values.dtype == np.float32
    assert values.ravel().tolist() == [-64.0, 0.0, 63.5]
