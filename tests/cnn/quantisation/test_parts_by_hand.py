"""Tests of the parts of quantisation, computed by hand: histograms, ranges, groups, types, zero points and tables."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from boards.errors import ChoiceError, InvalidValueError, MismatchError, RangeError, UnsupportedError
from cnn.activations import FUNCTIONS
from cnn.datatype import INT16, UINT8, DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.network import Network, Node
from cnn.ops import (
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    Input,
    MaxPool,
    Multiply,
    Output,
    Slice,
    Softmax,
    Upsample,
)
from cnn.quantisation import calibration
from cnn.quantisation.calibration import BINS, CalibratedRanges, Histogram, Statistics, choose_ranges, ranges_by_bits
from cnn.quantisation.quantise import add_multipliers, quantise, quantise_format, requantiser_for, table_of
from cnn.quantisation.rounding import Filters, WeightGrid, round_to_nearest
from cnn.quantisation.tensor_types import HEADROOM, PIXEL, groups, tensor_types
from cnn.quantisation.widths import _asked_by, _within, shared_bits
from cnn.quantisation.zero_points import _below_zero, _free, _is_finer, _is_taken, _rises, zero_points
from tests.support.cases import cases
from tests.support.errors import raises, raises_among

SHAPE = Shape(2, 2, 2)
INT4, INT8 = DataType(4, True), DataType(8, True)
POOL = MaxPool(1, 1, Padding())


def conv(activation: str = "linear") -> Convolution:
    return Convolution(np.ones((2, 2, 1, 1), np.float32), np.zeros(2, np.float32), None, 1, Padding(), 1, activation)


def net(*layers: tuple[Any, tuple[int, ...]]) -> Network:
    """Return a network of nodes 1, 2, … after the input image, node 0."""
    nodes = [Node(f"n{index}", op, inputs, SHAPE, "net.cfg:1") for index, (op, inputs) in enumerate(layers, 1)]
    return Network("net", (Node("n0", Input(), (), SHAPE, "net.cfg:1"), *nodes))


def ranges(*values: float) -> CalibratedRanges:
    return CalibratedRanges("max", values, values)


# --- histograms -------------------------------------------------------------------------------------------------------


def seen(*pictures: Any) -> Histogram:
    histogram = calibration._empty()
    for values in pictures:
        histogram = calibration._observe(histogram, np.asarray(values, np.float32), "it")
    return histogram


@cases(
    "values, limit",
    [([0.75], 1.0), ([1.0], 2.0), ([-1.5], 2.0), ([2.0], 4.0), ([0.3], 0.5), ([0.25], 0.5), ([0.3, 3.0], 4.0)],
)
def test_histogram_limit_is_the_power_of_two_above_the_greatest_value(values: list[float], limit: float) -> None:
    for order in (values, values[::-1]):
        histogram = seen(*([value] for value in order))
        assert histogram.limit == limit
        assert histogram.greatest == np.float32(max(map(abs, values)))
        assert sorted(np.flatnonzero(histogram.counts).tolist()) == sorted(int(abs(v) * BINS / limit) for v in values)


def test_histogram_counts_zeros_separately() -> None:
    histogram = seen([0.0, 0.0, 0.5, -0.5, 1e-9], [0.0])
    assert (histogram.zeros, int(histogram.counts.sum())) == (3, 3)
    assert histogram.counts[0] == 1
    nothing = seen([0.0, 0.0])
    assert (nothing.zeros, nothing.limit, nothing.greatest, int(nothing.counts.sum())) == (2, 0, 0, 0)
    for bad in (np.nan, np.inf, -np.inf):
        with raises(InvalidValueError, what="the values of a layer", where="it"):
            seen([1.0, bad])


def test_histogram_bins_merge_in_pairs() -> None:
    counts = np.zeros(BINS, np.int64)
    counts[[0, 1, 2, 7, BINS - 1]] = (1, 2, 4, 8, 16)
    grown = calibration._grow(Histogram(counts, 5, 1.0, 0.9), 3.9)
    assert (grown.limit, grown.zeros, grown.greatest) == (4.0, 5, 0.9)
    assert {int(i): int(grown.counts[i]) for i in np.flatnonzero(grown.counts)} == {0: 7, 1: 8, BINS // 4 - 1: 16}
    assert len(grown.counts) == BINS
    assert calibration._grow(Histogram(counts, 5, 1.0, 0.9), 0.99).limit == 1.0
    assert calibration._grow(Histogram(counts, 5, 1.0, 0.9), 1.0).limit == 2.0


def histogram(bins: dict[int, int], limit: float = 4096.0, greatest: float = 0.0) -> Histogram:
    """Return a histogram with bins of width 1."""
    counts = np.zeros(BINS, np.int64)
    for place, count in bins.items():
        counts[place] = count
    return Histogram(counts, 9, limit, greatest or float(max(bins) + 1))


@cases("percentile, reach", [(50, 11), (50.1, 21), (75, 21), (75.1, 31), (99, 31), (99.9, 31), (100, 35)])
def test_percentile_is_the_end_of_the_bin_that_reaches_it(percentile: float, reach: float) -> None:
    """Use two values in bin 10 and one each in bins 20 and 30. The percentile 100 is the greatest value."""
    assert calibration._percentile(histogram({10: 2, 20: 1, 30: 1}, greatest=35), percentile) == reach
    assert calibration._percentile(histogram({10: 2, 20: 1, 30: 1}, greatest=30.5), 99) == 30.5


def test_ranges_by_bits_gives_each_node_the_range_of_its_bits() -> None:
    random = np.random.default_rng(5)
    statistics = Statistics(tuple(seen(random.normal(size=500) ** 3) for _ in range(3)), 1)
    for method in ("mse", "entropy", "max"):
        by_bits = {bits: choose_ranges(statistics, method, bits=bits).values for bits in (3, 5)}
        mixed = ranges_by_bits(statistics, method, (3, 5, 3))
        assert mixed.values == (by_bits[3][0], by_bits[5][1], by_bits[3][2])
        assert mixed.greatest == tuple(h.greatest for h in statistics.histograms)
    assert choose_ranges(statistics).values == mixed.greatest
    assert by_bits[3] == mixed.greatest


def test_percentile_below_50_is_refused() -> None:
    statistics = Statistics((histogram({1: 1}),), 1)
    for percentile in (50, 100):
        choose_ranges(statistics, "percentile", percentile=percentile)
    for beyond in (49.9, 100.1):
        with raises(RangeError, what="the percentile", got=beyond, low=50, high=100):
            choose_ranges(statistics, "percentile", percentile=beyond)


def test_squared_error_of_a_range_uses_the_middles_of_the_bins() -> None:
    """Use 3 bits and a range of 6, so that a step is 2: 4.5 becomes 4, and 7.5 is clipped at 6."""
    error = calibration._squared_error(histogram({4: 2, 7: 3}), 6.0, 3)
    assert error == pytest.approx(2 * 0.5**2 + 3 * 1.5**2)


def test_divergence_of_a_range_equals_its_definition() -> None:
    """Use 3 bits and a range of 6: bins 0 to 5 become the integers round((n + ½) / 2), and greater values the last."""
    bins = {0: 4, 1: 1, 2: 3, 4: 2, 5: 6, 7: 8}
    counts = np.array([bins.get(n, 0) for n in range(6)], float)
    clipped = counts.copy()
    clipped[5] += 8
    integers = [min(3, round((n + 0.5) / 2)) for n in range(6)]
    q = np.zeros(6)
    for n in range(6):
        alike = [m for m in range(6) if integers[m] == integers[n] and clipped[m] > 0]
        if clipped[n] > 0:
            q[n] = sum(counts[m] for m in range(6) if integers[m] == integers[n]) / len(alike)
    p, q = clipped / clipped.sum(), q / q.sum()
    wanted = sum(p[n] * math.log(p[n] / q[n]) for n in range(6) if p[n] > 0)
    assert calibration._divergence(histogram(bins), 6.0, 3) == pytest.approx(wanted)


def test_range_with_the_least_loss_of_a_hundred_is_chosen() -> None:
    whole = histogram({9: 1}, greatest=10)
    for wanted in (1, 37, 100):
        reach = calibration._least(whole, 8, lambda _, r, bits, w=wanted: abs(r - w / 10) + bits)  # type: ignore[misc]
        assert reach == pytest.approx(wanted / 10)
    assert calibration._least(seen([0.0]), 8, lambda *_: 1.0) == 0.0


# --- groups and types -------------------------------------------------------------------------------------------------


def test_groups_are_the_nodes_joined_by_layers_that_keep_values() -> None:
    """Compare with a repeated walk along the edges that join two nodes, until nothing changes."""
    ops = [conv(), POOL, Concat(), Upsample(2), Slice(0, 1), Add("linear"), Softmax(), Output(), Activate("silu")]
    tie = (MaxPool, Concat, Upsample, Slice)
    random = np.random.default_rng(7)
    for _ in range(40):
        layers: list[tuple[Any, tuple[int, ...]]] = []
        for index in range(1, 9):
            op = ops[int(random.integers(len(ops)))]
            count = 2 if isinstance(op, (Concat, Add)) else 1
            layers.append((op, tuple(int(i) for i in random.integers(0, index, count))))
        nodes = net(*layers).nodes
        label = list(range(len(nodes)))
        for _, (index, node) in product(range(len(nodes)), enumerate(nodes)):
            tied = (
                node.inputs
                if isinstance(node.op, tie)
                else node.inputs[:1]
                if isinstance(node.op, (Softmax, Output))
                else ()
            )
            for source in tied:
                least = min(label[index], label[source])
                label = [least if each in (label[index], label[source]) else each for each in label]
        assert groups(nodes) == label


def test_tensor_types_equal_hand_computed_types() -> None:
    """Expect the greatest scale of a group's members. The network's output has INT16 and twice the range."""
    network = net(
        (conv(), (0,)), (conv("relu6"), (0,)), (POOL, (1,)), (Add("relu"), (3, 2)), (conv(), (4,)), (Output(), (5,))
    )
    types = tensor_types(
        network, CalibratedRanges("max", (1, 3.0, 9.0, 2.0, 0.0, 5.0, 7.0), (1, 3, 9, 2, 0, 6.0, 7)), 8
    )
    assert types[0] == PIXEL == TensorType(UINT8, 1 / 255)
    assert types[1] == types[3] == TensorType(INT8, 3 / 127)
    assert types[2] == TensorType(INT8, 6 / 127)
    assert types[4] == TensorType(INT8, 1 / 127)  # the layer's observed values are all zero
    assert types[5] == types[6] == TensorType(INT16, HEADROOM * 6 / 32767)
    moved = tensor_types(network, ranges(1, 3, 9, 2, 4, 5, 7), (8, 6, 4, 5, 8, 8, 8), (0, -16, -8, -16, 3, 0, 0))
    assert moved[1] == TensorType(DataType(5, True), 3 / (15 + 16), -16)
    assert moved[2] == TensorType(INT4, 6 / (7 + 8), -8)
    assert moved[4] == TensorType(INT8, 4 / (127 - 3), 3)
    six = net((conv(), (0,)), (conv("relu6"), (1,)))
    assert tensor_types(six, ranges(1, 2, 50))[2] == TensorType(INT16, 6 / 32767)
    dead = tensor_types(six, CalibratedRanges("max", (1, 2, 50), (1, 2, 0)))
    assert dead[2].scale == 6 / 32767
    assert tensor_types(net((conv(), (0,))), ranges(1, 0))[1].scale == 1 / 32767


def test_relu6_in_a_group_with_a_greater_range_is_refused() -> None:
    def tied(reach: float) -> Network:
        return net((conv("relu6"), (0,)), (conv(), (0,)), (Concat(), (1, 2)), (conv(), (3,)))

    assert tensor_types(tied(6), ranges(1, 9, 6, 6, 6))[1].scale == 6 / 127
    with raises(RangeError, got=6.001 / 127, high=6 / 127, where="'n1' (net.cfg:1)"):
        tensor_types(tied(7), ranges(1, 9, 6.001, 6, 6))
    with raises(UnsupportedError, subject="a concat of a layer with the picture"):
        tensor_types(net((conv(), (0,)), (Concat(), (0, 1)), (conv(), (2,))), ranges(1, 1, 1, 1))


# --- zero points ------------------------------------------------------------------------------------------------------


@cases(
    "op, below",
    [
        (conv("relu"), 0.0),
        (conv("relu6"), 0.0),
        (Add("relu"), 0.0),
        (conv(), 0.5),
        (conv("leaky"), 0.5),
        (AveragePool(), 0.5),
        (Activate("logistic"), 0.0),
        (Activate("tanh"), None),
        (Activate("silu"), None),
        (Activate("affine", (1.0, -0.5)), None),
    ],
)
@cases("reach, own", [(4.0, 3.0), (0.25, 0.2), (4.0, 0.1)])
def test_share_below_zero_is_the_share_of_the_lowest_value(
    op: Any, below: float | None, reach: float, own: float
) -> None:
    """Take a function's lowest value between −reach and reach, limited to the layer's own range."""
    network = net((conv(), (0,)), (op, (1, 1) if isinstance(op, Add) else (1,)))
    if below is None:
        values = FUNCTIONS[op.function].values(np.linspace(-reach, reach, 2001), *op.parameters)
        lowest = min(max(0.0, -float(values.min())), own)
        below = lowest / (lowest + own)
    assert _below_zero(network, 2, ranges(1, reach, own)) == pytest.approx(below, abs=1e-3)


def test_share_below_zero_after_leaky_is_a_tenth() -> None:
    finer = Activate("affine", (1.0, 0.0))
    network = net((conv("leaky"), (0,)), (finer, (1,)), (conv(), (0,)), (finer, (3,)))
    assert _below_zero(network, 2, ranges(*[1.0] * 5)) == pytest.approx(0.1 / 1.1)
    assert _below_zero(network, 4, ranges(*[1.0] * 5)) == pytest.approx(0.5)
    assert _below_zero(net((conv(), (0,)), (Activate("silu"), (1,))), 2, ranges(1, 1, 0)) == 0.5


@cases("bits, zeros", [(4, (-8, -7, 0)), (8, (-128, -105, 0)), (2, (-2, -2, 0))])
def test_zero_point_is_placed_by_the_share_below_zero(bits: int, zeros: tuple[int, int, int]) -> None:
    """Expect low + round(share · (high − low)), for a share of 0, of 0.1 / 1.1 and of a half, which gives 0."""
    finer = Activate("affine", (1.0, 0.0))
    network = net(
        (conv("relu"), (0,)), (conv("leaky"), (1,)), (finer, (2,)), (conv(), (3,)), (conv(), (4,)), (conv(), (5,))
    )
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert zeros[1] == low + round(0.1 / 1.1 * (high - low))
    found = zero_points(network, ranges(*[1.0] * 7), [bits] * 7)
    assert (found[0], found[1], found[3], found[4]) == (0, zeros[0], zeros[1], zeros[2])
    assert found[6] == 0  # no layer reads it


def test_group_has_the_greatest_share_and_the_fewest_bits_of_its_members() -> None:
    network = net((conv("relu"), (0,)), (Activate("silu"), (0,)), (Concat(), (1, 2)), (conv(), (3,)))
    found = zero_points(network, ranges(1, 2, 2, 2, 2), [8, 8, 4, 6, 8])
    lowest = -float(FUNCTIONS["silu"].values(np.linspace(-1, 1, 257)).min())
    wanted = -8 + round(lowest / (lowest + 2) * 15)
    assert found == (0, wanted, wanted, wanted, 0)


def test_zero_points_are_used_only_if_every_reader_can_subtract_them() -> None:
    def reads(*ops: Any) -> Network:
        return net(
            (conv("relu"), (0,)),
            (POOL, (1,)),
            *((op, (2, 2) if isinstance(op, (Add, Multiply)) else (2,)) for op in ops),
        )

    for ops, taken in (
        ((conv(),), True),
        ((conv(), Add("linear"), AveragePool(), Activate("silu")), True),
        ((conv(), Multiply("linear")), False),
        ((Multiply("linear"),), False),
        ((Output(),), False),
        ((), False),
    ):
        assert _is_taken(reads(*ops), [1, 2]) is taken
    assert not _is_taken(reads(conv()), [0])


def test_leaky_group_is_monotonic_only_without_linear_members() -> None:
    def tied(*activations: str) -> tuple[Network, list[int]]:
        count = len(activations)
        layers = [(conv(activation), (0,)) for activation in activations]
        return net(*layers, (Concat(), tuple(range(1, count + 1))), (conv(), (count + 1,))), list(range(1, count + 2))

    for activations, rises in (
        (("leaky",), True),
        (("leaky", "relu"), True),
        (("leaky", "relu6"), True),
        (("leaky", "linear"), False),
    ):
        assert _rises(*tied(*activations)) is rises


def test_sums_read_only_by_a_table_are_finer() -> None:
    network = net(
        (conv(), (0,)),
        (Activate("silu"), (1,)),
        (conv(), (2,)),
        (conv(), (2,)),
        (Activate("silu"), (4,)),
        (conv(), (4,)),
    )
    assert [_is_finer(network, index) for index in range(7)] == [False, True, False, False, False, False, False]
    assert not _is_finer(net((Add("linear"), (0, 0)), (Activate("silu"), (1,))), 1)


def test_free_name_gets_underscores() -> None:
    names = {"a", "a_"}
    assert [_free("b", names), _free("a", names), _free("a", names), _free("b", names)] == ["b", "a__", "a___", "b_"]


# --- integers ---------------------------------------------------------------------------------------------------------


@cases("zeros", [(0, 0), (-128, 5), (10, -8)])
def test_table_equals_its_function_between_both_zero_points(zeros: tuple[int, int]) -> None:
    source, output = TensorType(INT8, 0.05, zeros[0]), TensorType(INT4 if zeros[1] == -8 else INT8, 0.02, zeros[1])
    table = table_of(Activate("tanh"), source, output, Node("n", Activate("tanh"), (0,), SHAPE, "")).values
    for integer, ours in zip(range(-128, 128), table, strict=True):
        exact = math.tanh((integer - zeros[0]) * 0.05) / 0.02 + zeros[1]
        assert ours == min(output.datatype.high, max(output.datatype.low, math.floor(exact + 0.5)))
    with raises(RangeError, what="the bits that tanh looks up", got=17, high=16, where="'n' ()"):
        table_of(
            Activate("tanh"), TensorType(DataType(17, True), 1.0), output, Node("n", Activate("tanh"), (0,), SHAPE, "")
        )


@cases("limit", [1, 2, 7, 127])
@cases("ratios", [(1.0, 1.0), (1.0, 0.5), (0.3, 1.0), (1.0, 0.01), (1.0, 0.66, 0.3)])
def test_add_multipliers_are_the_first_nearest_ones(ratios: tuple[float, ...], limit: int) -> None:
    def of_unit(unit: int) -> tuple[int, ...]:
        return tuple(max(1, round(ratio * unit)) for ratio in ratios)

    def error(unit: int) -> float:
        return max(abs(m / unit - ratio) for m, ratio in zip(of_unit(unit), ratios, strict=True))

    best = min(range(1, limit + 1), key=error)
    assert add_multipliers(ratios, limit) == (of_unit(best), best)


@cases("ratio", [0.9, 1.0, 2.0**-30, 2.0**-33, 2.0**-50, 3.7e-5, 32767.2, 2 - 2.0**-17])
def test_requantiser_multiplier_is_the_nearest_16_bit_integer_and_shift(ratio: float) -> None:
    """Expect m from 32768 to 65535 if a shift s from 1 to 47 allows it. A leaky layer's second multiplier is a
    tenth."""
    node = Node("n", conv(), (0,), SHAPE, "net.cfg:1")
    for activation, slope in (("linear", 1.0), ("relu", 0.0), ("relu6", 0.0), ("leaky", 0.1)):
        by = requantiser_for(np.array([ratio]), np.array([7]), activation, node)
        m, s = int(by.multiplier[0]), int(by.shift[0])
        assert 1 <= s <= 47
        assert m == max(1, round(ratio * 2**s))
        assert s == 47 or 32767 <= m <= 65535
        assert int(by.negative[0]) == (m if activation == "linear" else round(slope * ratio * 2**s))
        assert int(by.bias[0]) == 7
    with raises(RangeError, what="accumulator scale / output scale", got=32768.0):
        requantiser_for(np.array([ratio, 32768.0]), np.array([0, 0]), "linear", node)


def test_weights_are_rounded_to_the_nearest_and_clipped() -> None:
    grid = WeightGrid(np.array([0.5, 2.0]), np.zeros(2), 3)
    rounded = round_to_nearest(Filters(np.array([[0.74, -0.76, 9], [1.1, -20, 0.9]]), np.array([1.0, 2.0])), grid)
    assert rounded.rows.tolist() == [[1, -2, 3], [1, -3, 0]]
    assert (rounded.scale.tolist(), rounded.bias.tolist()) == ([0.5, 2.0], [1.0, 2.0])


@cases("kind", ["bits", "activation_bits"])
def test_bits_outside_2_to_16_are_refused(kind: str) -> None:
    network = net((conv(), (0,)), (conv(), (1,)))
    for fine in (2, 16, (2, 16, 9)):
        options: Any = {"bits": 8, "activation_bits": 4, kind: fine if kind == "bits" else 8 if fine == 16 else fine}
        quantise(network, ranges(1, 1, 1), **{**options, "bits": options["bits"] if kind == "bits" else 2})
    for wrong in (1, 17, (8, 1, 8), (8, 17, 8)):
        options = {kind: wrong}
        what = "the bits of weights" if kind == "bits" else "the bits of activations"
        got = wrong if isinstance(wrong, int) else wrong[1]
        with raises(RangeError, what=what, got=got, low=2, high=16):
            quantise(network, ranges(1, 1, 1), **options)


def test_ranges_of_wrong_count_or_value_are_refused() -> None:
    network = net((conv(), (0,)))
    quantise(network, ranges(1, 0))
    for wrong in (
        ranges(1),
        ranges(1, 1, 1),
        CalibratedRanges("max", (1, 1), (1,)),
        CalibratedRanges("max", (1,), (1, 1)),
    ):
        with raises(MismatchError, what="the number of ranges, one for each node of 'net',", expected=2):
            quantise(network, wrong)
    for value in (-1e-9, np.inf, np.nan):
        for wrong in (CalibratedRanges("max", (1, value), (1, 1)), CalibratedRanges("max", (1, 1), (1, value))):
            with raises(InvalidValueError, what="the range", where="'n1' (net.cfg:1)"):
                quantise(network, wrong)
    for bits in (5, 3, 32):
        with raises(ChoiceError, got=bits, choices=(4, 8, 16)):
            quantise_format(network, ranges(1, 1), bits)


def test_layer_that_cannot_be_quantised_is_refused() -> None:
    for layers, subject in (
        (((Upsample(2, 0.5), (0,)),), "Upsample with the scale 0.5"),
        (((conv("tanh"), (0,)),), "Convolution with the activation tanh"),
        (((conv(), (0,)), (Softmax(), (1,)), (conv(), (2,))), "Convolution that reads 'n2'"),
    ):
        with raises_among(UnsupportedError, subject=subject, where=f"'n{len(layers)}' (net.cfg:1)") as caught:
            quantise(net(*layers), ranges(*[1.0] * (len(layers) + 1)))
        assert caught.value.subject == "1 layer(s) of 'net' cannot be quantised"
    quantise(net((conv(), (0,)), (Softmax(), (1,)), (Output(), (2,))), ranges(1, 1, 1, 1))


# --- bits of 16-bit lanes ---------------------------------------------------------------------------------------------


def test_shared_bits_are_limited_to_8_to_16() -> None:
    assert [_within(bits) for bits in (-3, 7, 8, 9, 15, 16, 17)] == [8, 8, 8, 9, 15, 16, 16]


@cases(
    "weights, bias, reach, bits",
    [
        ([[1.0]], [0.0], 1.0, 16),  # r = 1: 1 + (31 − 0 + 2) / 2 = 17
        ([[1.0] * 900], [0.0], 1.0, 12),  # log₂ 900 = 9.8
        ([[1.0] * 4096], [0.0], 1.0, 11),  # log₂ 4096 = 12
        ([[0.5] * 4096], [0.0], 1.0, 11),
        ([[1.0]], [2.0**14 - 1], 1.0, 10),  # r = 2¹⁴
        ([[1.0]], [-(2.0**14) + 1], 1.0, 10),
        ([[1.0]], [2.0**14 - 1], 2.0**14 - 1, 16),  # r = 2
        ([[2.0]], [2.0**15 - 2], 1.0, 10),
        ([[0.0]], [100.0], 1.0, 16),
        ([[0.0], [1.0]], [1e30, 2.0**14 - 1], 1.0, 10),  # a filter of zeros does not count
        ([[1.0], [1.0], [1.0]], [0.0, 0.0, 1e30], 1.0, 16),  # the median
        ([[1.0]], [1e30], 1.0, 8),
    ],
)
def test_weights_and_activations_share_the_bits_of_a_sum(
    weights: list[list[float]], bias: list[float], reach: float, bits: int
) -> None:
    """Compare with 1 + (31 − log₂ r + 2) / 2, where r = Σ|w| / max|w| + |bias| / (reach · max|w|)."""
    array = np.array(weights, np.float32)[..., None, None]
    op = Convolution(array, np.array(bias, np.float32), None, 1, Padding(), 1, "linear")
    network = net((op, (0,)))
    assert _asked_by(network, network.nodes[1], reach) == bits
    assert shared_bits(network, ranges(reach, 1))[:2] == (bits, 16)


@cases("height, width, bits", [(1, 1, 16), (256, 256, 16), (256, 257, 15), (1024, 1024, 12), (8192, 8192, 8)])
def test_average_pool_bits_shrink_with_its_positions(height: int, width: int, bits: int) -> None:
    nodes = (Node("n0", Input(), (), Shape(1, height, width), ""), Node("n1", AveragePool(), (0,), Shape(1, 1, 1), ""))
    assert _asked_by(Network("net", nodes), nodes[1], 1.0) == bits


def test_tables_adds_and_pools_accept_16_bits() -> None:
    network = net((conv(), (0,)), (Activate("silu"), (1,)), (POOL, (1,)), (Add("linear"), (3, 3)))
    assert [_asked_by(network, node, 1.0) for node in network.nodes[2:]] == [16, 16, 16]
    assert shared_bits(network, ranges(1, 1, 1, 1, 1))[1] == 16
