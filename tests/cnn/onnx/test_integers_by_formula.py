"""Tests of the integers of a quantised file: scales, weights, sums and tables, each against its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boards.errors import InvalidValueError, RangeError
from cnn.datatype import BIPOLAR, INT16, TERNARY, DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.network import Network, Node
from cnn.onnx.graph import RefusedError
from cnn.onnx.quantised.fitted import FileRequantiser, Reach
from cnn.onnx.quantised.functions import Functions, function_of, quantised_values
from cnn.onnx.quantised.integers import (
    LARGEST,
    _fitted,
    _leaving,
    _narrow,
    _of_maps,
    _reached,
    _slope,
    _weighted,
    _with_type,
    affine_of,
    scales_of_filters,
    whole_weights,
)
from cnn.onnx.quantised.mark import Mark
from cnn.ops import Activate, Add, BatchNorm, Convolution, Input
from cnn.requantise import THRESHOLD_LIMIT, MultiplyShift, requantise
from tests.support.cases import cases
from tests.support.errors import raises

INT8 = DataType(8, True)
NODE = Node("conv1", Input(), (), Shape(2, 1, 1), "net.onnx")


def conv(weights: Any, bias: Any = None, norm: BatchNorm | None = None, activation: str = "linear") -> Convolution:
    array = np.asarray(weights, np.float32)
    array = array.reshape(len(array), -1, 1, 1)
    own = np.zeros(len(array), np.float32) if bias is None else np.asarray(bias, np.float32)
    return Convolution(array, own, norm, 1, Padding(), 1, activation)


def normed(scale: Any, mean: Any, variance: Any) -> BatchNorm:
    """Return a batch norm with an epsilon of 0."""
    gain, centre, spread = (np.asarray(values, np.float32) for values in (scale, mean, variance))
    return BatchNorm(gain, centre, spread, 0.0)


# --- weights ----------------------------------------------------------------------------------------------------------


@cases(
    "weights, datatype",
    [
        ([1, -1, 1], BIPOLAR),
        ([1, -1, 0], TERNARY),
        ([0, 0, 0], TERNARY),
        ([2, 0, 0], DataType(3, True)),
        ([3, -3, 0], DataType(3, True)),
        ([-4, 0, 0], DataType(4, True)),
        ([7, 0, 0], DataType(4, True)),
        ([127, 0, 0], DataType(8, True)),
        ([-128, 0, 0], DataType(9, True)),
    ],
)
def test_weights_have_the_fewest_bits_that_hold_them_and_their_negatives(
    weights: list[int], datatype: DataType
) -> None:
    assert _narrow(np.array(weights)) == datatype


def test_weights_that_are_not_multiples_of_their_scale_are_refused() -> None:
    """Allow a hundredth of a step, and fewer than 2^48 steps."""
    scale = np.array([0.5, 0.25])
    assert whole_weights(np.array([[0.5, -1.5], [0.2501, 0.0]], np.float32), scale).tolist() == [[1, -3], [1, 0]]
    for beside, fits in ((0.0099, True), (-0.0099, True), (0.0101, False), (-0.0101, False)):
        weights: Any = np.array([[1 + beside, 2]])
        if fits:
            assert whole_weights(weights, np.ones(1)).tolist() == [[1, 2]]
        else:
            with raises(
                RefusedError,
                reason="its weights are not multiples of their scale; something changed them after quantisation",
            ):
                whole_weights(weights, np.ones(1))
    assert LARGEST == 2**48
    assert whole_weights(np.array([[-(2.0**48) + 1]]), np.ones(1)).tolist() == [[1 - 2**48]]
    for weight in (2.0**48, -(2.0**48)):
        with raises(RangeError, what="the greatest weight, in steps of its scale,", got=2.0**48, high=2**48 - 1):
            whole_weights(np.array([[weight]]), np.ones(1))


@cases(
    "weights, scale, scales",
    [
        ([[1, 2], [3, 4]], [0.5], [0.5, 0.5]),
        ([[1, 2], [3, 4]], [0.5, 0.25], [0.5, 0.25]),
        ([[1, 2], [3, 4]], None, [1, 1]),
        ([[1, 2], [3, 4]], [1, 2, 3], [1, 1]),
        ([[32767, 0], [-32767, 1]], None, [1, 1]),
        ([[0, 0.5], [-254, 0]], None, [0.5 / 127, 2]),
        ([[0, 0], [0.1, 0]], None, [1 / 127, 0.1 / 127]),
        ([[32768, 0], [0, 1]], None, [32768 / 127, 1 / 127]),
    ],
)
def test_scale_of_a_filter_is_the_file_s_or_follows_from_its_weights(
    weights: Any, scale: Any, scales: list[float]
) -> None:
    """Expect a scale of 1 for integers up to ±32767, and 127 steps for a single weight."""
    told = None if scale is None else np.array(scale, np.float32)
    np.testing.assert_allclose(scales_of_filters(conv(weights), told), scales, rtol=1e-6)


@cases("weights", [[[0.5, 0.25], [1, 0]], [[1, 2], [40000, 1]]])
def test_float_filters_without_a_scale_are_refused(weights: Any) -> None:
    with raises(RefusedError) as caught:
        scales_of_filters(conv(weights), None)
    assert caught.value.reason.startswith("its weights are floats")


def test_batch_norm_becomes_a_gain_and_an_offset() -> None:
    norm = normed([2, -1], [3, 0.5], [4, 0.25])
    gain, offset = affine_of(conv([[1], [1]], [10, 20], norm))
    assert gain.tolist() == [1, -2]
    assert offset.tolist() == [10 - 3, 20 + 1]
    gain, offset = affine_of(conv([[1], [1]], [10, 20]))
    assert (gain.tolist(), offset.tolist()) == ([1, 1], [10, 20])


# --- sums -------------------------------------------------------------------------------------------------------------


def rule_of(ratio: Any, offset: Any, zero: int, activation: str = "linear") -> FileRequantiser:
    """Return a requantiser. The offset is given in units of the sums."""
    slope = _slope(activation, TensorType(INT8, 1.0, zero))
    return FileRequantiser(np.asarray(ratio, np.float64), np.asarray(ratio * offset, np.float64), zero, INT8, slope)


def reach_of(end: int, channels: int) -> Reach:
    """Return the range of sums from −end to end."""
    ends = np.full(channels, end, np.int64)
    return Reach(-ends, ends, ends)


@cases("zero", [0, -128, 5])
def test_sum_becomes_a_step_above_the_zero_point(zero: int) -> None:
    ratio, offset = np.array([0.01, 0.25]), np.array([3.0, -8.0])
    by = _fitted(rule_of(ratio, offset, zero), reach_of(20000, 2), "linear", NODE).by
    sums = range(-2000, 2000, 37)
    for acc in sums:
        exact = np.clip(ratio * (acc + offset) + zero, -128, 127)
        ours = requantise(np.array([[acc], [acc]]), by, INT8)[:, 0]
        assert np.abs(ours - exact).max() <= 0.5 + 1e-2


def test_activation_clips_as_the_integers_do() -> None:
    one = np.ones(1)

    def below(activation: str, zero: int) -> bool:
        by = _fitted(rule_of(one, 0 * one, zero, activation), reach_of(100, 1), activation, NODE).by
        return isinstance(by, MultiplyShift) or bool(by.negative.any())

    for activation, negative in (("linear", True), ("relu", False), ("relu6", False)):
        assert below(activation, 0) is negative
        assert below(activation, -128)
    assert below("leaky", 0)
    with raises(InvalidValueError, what="the zero point of its leaky", got=1, remedy="quantise its input too"):
        below("leaky", 1)


@cases("sign", [1, -1])
def test_bias_that_is_not_finite_is_refused(sign: int) -> None:
    for bias in (np.inf, np.nan):
        with raises(InvalidValueError, what="its bias, in steps of its output,", required="a finite number"):
            _fitted(rule_of(np.ones(1), np.array([sign * bias]), 0), reach_of(100, 1), "linear", NODE)


def test_output_sums_have_16_bits_that_none_exceeds() -> None:
    """Expect the greatest Σ |w| · 128 + |shift| of all filters, in floats. A scale for all is at least as coarse as the
    sums."""
    weights, source = np.array([[3, -4], [1, 0]], np.int8), TensorType(INT8, 0.5)
    for unit, shift, scale in (
        ([0.5, 0.5], [0.0, 0.0], 0.5),
        ([100.0, 2.0], [0.0, 0.0], 7 * 128 * 100 / 32767),
        ([0.001, 2.0], [0.0, 1000.0], (7 * 128 + 1000) * 2 / 32767),
        ([0.001, 2.0], [0.0, -1000.0], (7 * 128 + 1000) * 2 / 32767),
        ([1e-3, 2e-3], [0.0, 0.0], 7 * 128 * 2e-3 / 32767),
        ([2.0, 2.0], [40000.0, 0.0], (7 * 128 + 40000) * 2 / 32767),
    ):
        target = _leaving(weights, DataType(4, True), source, np.array(unit), np.array(shift))
        assert target.datatype == INT16
        assert target.scale == pytest.approx(scale)
        assert target.zero_point == 0


def test_threshold_is_the_lowest_sum_that_reaches_it() -> None:
    edges = np.array([[1.2, 2.0, 2.0000001, 2.1, -1.5, -2.0], [1e9, 1e9 + 100, -1e30, 1e30, 0, -0.0]])
    reached = _reached(edges)
    assert reached.thresholds[0].tolist() == [2, 2, 2, 3, -1, -2]
    assert reached.thresholds[1, 2:4].tolist() == [-THRESHOLD_LIMIT, THRESHOLD_LIMIT]
    assert not reached.flip.any()


@cases("signs", [1, -1])
def test_integers_of_a_convolution_equal_its_floats(signs: int) -> None:
    """Compare with round(s_x · s_w · gain / s_y · Σ w (x − z_x) + offset / s_y) + z_y, for gains of both signs."""
    random = np.random.default_rng(3)
    integers = random.integers(-7, 8, (3, 5))
    scale, source, target = np.array([0.25, 0.5, 0.125]), TensorType(INT8, 0.1, -20), TensorType(INT8, 0.3141, 7)
    norm = normed([signs * 2, 1, -1], [0.5, 0, -3], [4, 1, 0.25])
    op = conv(integers * scale[:, None], [1, -2, 3], norm)
    read = _weighted(op, source, Mark(scale=scale.astype(np.float32), type=target), NODE)
    layer: Any = read.op
    assert read.type == target
    gain, mean = norm.scale / np.sqrt(norm.variance), norm.mean
    for _ in range(20):
        x = random.integers(-128, 128, 5)
        floats = gain * ((integers * scale[:, None]) @ ((x + 20) * 0.1) - mean) + op.bias
        sums = layer.weights.reshape(3, 5).astype(int) @ x
        ours = requantise(sums[:, None], layer.requantiser, INT8)[:, 0]
        assert ours.tolist() == np.clip(np.rint(floats / 0.3141) + 7, -128, 127).tolist()
    assert layer.weight_type == DataType(4, True)


def test_filter_of_gain_0_gives_its_offset() -> None:
    norm = normed([0, 1], [5, 0], [1, 1])
    op = conv([[1, 2], [3, 4]], [2, 0], norm)
    target = TensorType(INT8, 0.5)
    layer: Any = _weighted(op, TensorType(INT8, 0.25), Mark(type=target), NODE).op
    assert layer.weights.reshape(2, 2).tolist() == [[0, 0], [3, 4]]
    assert requantise(np.zeros((2, 1), np.int64), layer.requantiser, INT8)[0, 0] == 4


def test_add_multiplies_each_map_by_its_share() -> None:
    """Use scales 0.1 and 0.05, so that the second multiplier is half the first, and two zero points."""
    sources, target = [TensorType(INT8, 0.1, 10), TensorType(INT8, 0.05, -30)], TensorType(INT8, 0.2, 3)
    sums = _of_maps(Add("linear"), sources, target, Mark(), 1)
    op: Any = _with_type(Add("linear"), sums, sources, target, Mark(), NODE).op
    assert op.multipliers[0] == 2 * op.multipliers[1]
    for x, y in ((0, 0), (100, -100), (-128, 127), (64, 1)):
        acc = op.multipliers[0] * x + op.multipliers[1] * y
        exact = ((x - 10) * 0.1 + (y + 30) * 0.05) / 0.2 + 3
        ours = requantise(np.full((2, 1), acc), op.requantiser, INT8)
        assert np.abs(ours - np.clip(exact, -128, 127)).max() <= 0.6


@cases("scales, zero", [((0.5, 0.25), 3), ((0.1, 0.07), -4), ((0.5, 0.5 / 128), 0)])
def test_add_counts_every_pair_that_differs(scales: tuple[float, float], zero: int) -> None:
    """Expect none for ratios that the 7-bit multipliers hold, and pairs near a half for the ratio 1 to 128."""
    sources, target = [TensorType(INT8, scale, 5) for scale in scales], TensorType(INT8, 1.0, zero)
    added, mark = Add("linear"), Mark(target)
    read = _with_type(added, _of_maps(added, sources, target, mark, 1), sources, target, mark, NODE)
    op: Any = read.op
    pairs = [(x, y) for x in range(-128, 128) for y in range(-128, 128)]
    sums = np.array([[op.multipliers[0] * x + op.multipliers[1] * y for x, y in pairs]] * 2)
    floats = np.array([(x - 5) * scales[0] + (y - 5) * scales[1] for x, y in pairs])
    right = np.clip(np.rint(floats.astype(np.float32)) + zero, -128, 127)
    differing = right != requantise(sums, op.requantiser, INT8)[0]
    assert read.fit is not None
    assert read.fit.differing.tolist() == [differing.sum()]
    assert read.fit.sums.tolist() == [len(pairs)]
    assert bool(differing.any()) is (scales == (0.5, 0.5 / 128))


# --- tables -----------------------------------------------------------------------------------------------------------


def test_values_become_integers_of_the_type() -> None:
    values = np.array([-100.0, -0.26, -0.24, 0.0, 0.26, 100.0])
    assert quantised_values(values, TensorType(INT8, 0.5, 3)).tolist() == [-128, 2, 3, 3, 4, 127]


def test_gate_is_rounded_before_it_multiplies() -> None:
    """Compare SiLU with x · σ(x), where σ is rounded to steps of 1/256."""
    gate, output = TensorType(INT8, 1 / 256, -128), TensorType(INT8, 0.11, -100)
    floats = np.asarray((np.arange(-128, 128) + 20) * 0.1, np.float64)
    for integer, ours in zip(
        range(-128, 128), function_of(Activate("silu"), Mark(output, gate=gate))(floats), strict=True
    ):
        x = (integer + 20) * 0.1
        sigma = min(255, round(256 / (1 + np.exp(-x)))) / 256
        assert abs(ours - min(127, max(-128, round(x * sigma / 0.11) - 100))) <= 0


def test_table_of_more_than_16_bits_is_refused() -> None:
    node = Node("silu1", Activate("silu"), (0,), Shape(2, 1, 1), "net.onnx")
    functions = Functions(Network("net", (NODE, node)), {1: Mark(type=TensorType(INT8, 0.11))})
    with raises(RangeError, what="the bits of the table's input", got=17, high=16):
        functions.at(1).table(TensorType(DataType(17, True), 0.1))
