"""Tests of the integer softmax against the float softmax: the largest difference, and the cases that reach it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    ChoiceError,
    ConflictError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    UnsupportedError,
)
from cnn.datatype import DataType, TensorType
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import IntArray, Shape
from cnn.ops import QSoftmax, Softmax
from cnn.ops.softmax import MAX_CHANNELS, METHODS, SHARES, shares, softmax_of, softmax_of_positions
from cnn.quantisation.calibration import choose_ranges, observe
from cnn.quantisation.quantise import quantise_format
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.softmax import integers_on_accelerator, on_accelerator
from cnn.tables import Table, table_of_values
from tests.support import networks
from tests.support.errors import check_refusals, raises
from tests.support.low_bit import Layers
from tests.support.pairwise import pairwise

TERNARY = DataType.parse("TERNARY")
INT8, INT4, UINT8, INT16 = (DataType.parse(name) for name in ("INT8", "INT4", "UINT8", "INT16"))


def bound(channels: int) -> float:
    """Return the largest difference between a share of ``stable`` and min(p, 255/256) of the float softmax."""
    return 1 / 512 + 2**-16 + channels / 2**21


def apart(values: IntArray, source: TensorType, method: str = "stable") -> float:
    """Return the largest difference between a share and min(p, 255/256), for values of shape (channels, positions)."""
    computed = shares(values, softmax_of(method, source), source.datatype.low) * SHARES.scale
    exact = softmax_of_positions(((values - source.zero_point) * source.scale).astype(np.float32))
    return float(np.abs(computed - np.minimum(exact.astype(np.float64), 255 / 256)).max())


def test_shares_are_within_the_bound() -> None:
    """Check every pair of datatype, scale and number of channels."""
    rows = pairwise(
        datatype=(INT8, UINT8, INT4, TERNARY),
        scale=(1e-4, 0.02, 0.1, 0.7, 12.0),
        channels=(1, 2, 10, 1000, MAX_CHANNELS),
    )
    for datatype, scale, channels in rows:
        random = np.random.default_rng(channels)
        drawn = random.integers(datatype.low, datatype.high + 1, (channels, 20))
        drawn[:, 0], drawn[:, 1] = datatype.high, datatype.low  # all equal
        drawn[:, 2] = datatype.low
        drawn[-1, 2] = datatype.high
        drawn[:, 3:12] = np.sort(drawn[:, 3:12], axis=0) // 2
        assert apart(drawn, TensorType(datatype, scale)) <= bound(channels), (datatype.name, scale, channels)


def worst(channels: int) -> tuple[IntArray, TensorType]:
    """Return one value above others whose powers all round from ½ up or down, which makes the sum as wrong as
    possible."""
    source = TensorType(INT8, np.log(2.0 * ((1 << 20) - 1)) / 100 * (1 - 1e-9))
    values = np.full((channels, 1), 0)
    values[0] = 100
    return values, source


def test_worst_case_of_1000_classes_reaches_the_bound() -> None:
    """Use 999 powers of ½ that become 1, so that the sum is wrong by nearly 1000 / 2^21."""
    values, source = worst(1000)
    powers = softmax_of("stable", source).table
    assert powers is not None
    assert powers.values[100] == 1
    exact = float(softmax_of_positions((values * source.scale).astype(np.float32))[0, 0])
    wrong = abs(exact - (1 << 20) / ((1 << 20) + 999))
    assert 0.9 < wrong / (1000 / 2**21) <= 1.01
    assert apart(values, source) <= bound(1000)
    most, wide = worst(MAX_CHANNELS)
    assert apart(most, wide) <= bound(MAX_CHANNELS)


def test_bound_is_nearly_reached_by_random_values() -> None:
    """Reach 0.95 of the bound, most of which is the rounding to 8 bits."""
    random = np.random.default_rng(1)
    drawn = random.integers(-128, 128, (3, 20_000))
    assert 0.95 * bound(3) < apart(drawn, TensorType(INT8, 0.011)) <= bound(3)


def test_shares_equal_hand_computed_shares() -> None:
    """Use four equal values, one value, which gives the greatest 8-bit share, and two values in the ratio 1 : e^−1."""
    source = TensorType(INT8, 0.5)
    op = softmax_of("stable", source)
    assert shares(np.full((4, 1), -7), op, -128).ravel().tolist() == [64] * 4
    assert shares(np.full((1, 1), -128), op, -128).ravel().tolist() == [255]
    assert shares(np.array([[5], [3]]), op, -128).ravel().tolist() == [187, 69]
    assert shares(np.array([[127], [-128]]), op, -128).ravel().tolist() == [255, 0]
    assert shares(np.full((1000, 1), 9), op, -128).max() == 0  # a thousandth is less than half of 1/256


def test_argmax_gives_the_first_of_the_greatest() -> None:
    values = np.array([[3, -8], [7, -8], [7, -8]])
    op = softmax_of("argmax", TensorType(INT16, 0.1))
    assert shares(values, op, INT16.low).tolist() == [[0, 255], [255, 0], [0, 0]]


def test_latency_loses_values_far_below_the_greatest_possible() -> None:
    """Expect the accuracy of ``stable`` near the top of the datatype only. Powers far below it have few or no bits."""
    source, channels = TensorType(INT8, 0.1), 10
    random = np.random.default_rng(3)
    near = random.integers(-20, 128, (channels, 200))
    near[0] = 127
    assert apart(near, source, "latency") <= bound(channels)
    far = near - 127  # after 13 e-folds 1.3e-6 of the powers remain, which is 1 or 2
    assert apart(far.clip(-128), source, "stable") <= bound(channels)
    assert apart(far.clip(-128), source, "latency") > 0.05
    lowest = np.full((channels, 1), -128)
    assert shares(lowest, softmax_of("latency", source), -128).max() == 0
    assert shares(lowest, softmax_of("stable", source), -128).min() == 26


def test_shares_have_the_order_of_the_values() -> None:
    for method in METHODS:
        random = np.random.default_rng(4)
        values = random.integers(-128, 128, (12, 300))
        given = shares(values, softmax_of(method, TensorType(INT8, 0.05)), -128)
        order = np.argsort(-values, axis=0, kind="stable")
        assert (np.diff(np.take_along_axis(given, order, axis=0), axis=0) <= 0).all(), method


def test_zero_point_does_not_change_shares() -> None:
    values = np.random.default_rng(5).integers(-128, 128, (6, 50))
    for method in METHODS:
        plain, moved = (softmax_of(method, TensorType(INT8, 0.05, zero)) for zero in (0, -100))
        np.testing.assert_array_equal(shares(values, plain, -128), shares(values, moved, -128))


def test_softmax_input_has_8_bits_in_every_format() -> None:
    """Expect a quarter more than the calibrated range. ``argmax`` reads 16 bits, as the host does."""
    plain = networks.classifier()
    statistics = observe(plain, networks.pictures(plain.input_shape))
    ranges = choose_ranges(statistics, "max", bits=8)
    picture = networks.picture(plain.input_shape)
    for bits, method in itertools.product((4, 8, 16), METHODS):
        network = on_accelerator(plain, method)
        quantised = quantise_format(network, ranges, bits)
        index = next(i for i, node in enumerate(quantised.nodes) if isinstance(node.op, QSoftmax))
        source = quantised.nodes[index].inputs[0]
        assert quantised.nodes[index].type == SHARES
        datatype, room = (INT16, 2.0) if method == "argmax" else (INT8, 1.25)
        assert quantised.nodes[source].type.datatype == datatype, (bits, method)
        assert quantised.nodes[source].type.scale == pytest.approx(room * ranges.greatest[source] / datatype.high)
        floats = run_float(network, (picture / 255).astype(np.float32))
        integers = run_integer(quantised, picture)[index]
        assert integers is not None
        assert int(np.argmax(integers)) == int(np.argmax(floats[index])) or bits == 4, (bits, method)


def test_softmax_of_more_than_8_bits_needs_argmax() -> None:
    for method in ("stable", "latency"):
        with raises(RangeError, what=f"the bits that a softmax by {method} looks up", got=16, high=8):
            softmax_of(method, TensorType(INT16, 0.1))
    assert softmax_of("argmax", TensorType(INT16, 0.1)).table is None


def test_softmax_with_slopes_is_refused() -> None:
    """Check the tables and the bits for which a generated softmax would read slopes."""
    lines = table_of_values(np.arange(4096)[::-1] << 8, DataType(12, True))

    def with_lines(bits: int) -> QuantizedNetwork:
        network = Layers(3, 4, 4, "INT8", f"INT{bits}").conv(4, 1).network("lines")
        node = QNode("shares", QSoftmax("stable", lines), (1,), network.nodes[-1].shape, SHARES, "net:3")
        return replace(network, nodes=(*network.nodes, node))

    with raises(ConflictError, subjects=("powers of a softmax", "slopes"), where="'shares' (net:3)"):
        check_quantized(with_lines(8))
    with raises(RangeError, what="the bits of what the softmax reads", got=12, high=8):
        check_quantized(with_lines(12))


def checked_with(op: QSoftmax, **node: Any) -> QuantizedNetwork:
    """Check a network that ends in this softmax of INT8."""
    network = Layers(3, 4, 4, "INT8", "INT8").conv(4, 1).network("shares")
    last = QNode("shares", op, (1,), network.nodes[-1].shape, SHARES, "net:3")
    return check_quantized(replace(network, nodes=(*network.nodes, replace(last, **node))))


def test_softmax_table_that_does_not_fit_its_method_is_refused() -> None:
    good = softmax_of("stable", TensorType(INT8, 1.0))
    assert good.table is not None
    checked_with(good)
    powers = good.table.values
    check_refusals(
        checked_with,
        [
            (replace(good, method="legacy"), ChoiceError, {"got": "legacy", "choices": METHODS}),
            (replace(good, table=None), MissingValueError, {"what": "the table of powers"}),
            (replace(good, method="argmax"), ConflictError, {"subjects": ("argmax", "a table of powers")}),
            (replace(good, table=Table(powers[:-1])), ShapeError, {"what": "the powers"}),
            (replace(good, table=Table(powers + 1)), InvalidValueError, {"what": "the powers"}),
            (replace(good, table=Table(np.where(powers == 0, -1, powers))), InvalidValueError, {"what": "the powers"}),
            (replace(good, table=Table(np.roll(powers, 1))), InvalidValueError, {"what": "the powers"}),
            (replace(good, method="latency"), InvalidValueError, {"what": "the powers"}),
        ],
    )
    with raises(MismatchError, what="the type of the shares", expected=SHARES):
        checked_with(good, type=TensorType(INT8, 1 / 256))


def test_softmax_that_the_accelerator_cannot_compute_is_refused() -> None:
    plain = networks.classifier()
    with raises(MissingValueError, what="a softmax", where="tiny", remedy="leave out --softmax"):
        on_accelerator(replace(plain, nodes=plain.nodes[:-1]), "stable")
    last = plain.nodes[-1]
    host = "leave out --softmax, so that the host does it"
    for node, subject in (
        (replace(last, op=Softmax(logarithm=True)), "a softmax that gives logarithms"),
        (replace(last, op=Softmax(5)), "a softmax over 5 groups of 5×1×1"),
        (replace(last, shape=Shape(5, 2, 1)), "a softmax over 1 groups of 5×2×1"),
    ):
        with raises(UnsupportedError, subject=subject, where="'softmax' (test:6)", remedy=host):
            on_accelerator(replace(plain, nodes=(*plain.nodes[:-1], node)), "stable")
    wide = replace(last, shape=Shape(MAX_CHANNELS + 1, 1, 1))
    with raises(RangeError, got=MAX_CHANNELS + 1, high=MAX_CHANNELS, where="'softmax' (test:6)", remedy=host):
        on_accelerator(replace(plain, nodes=(*plain.nodes[:-1], wide)), "stable")


def test_softmax_of_wide_integers_is_refused_at_its_node() -> None:
    plain = networks.classifier()
    ranges = choose_ranges(observe(plain, networks.pictures(plain.input_shape)), "max", bits=8)
    with raises(RangeError, got=16, high=8, where="'softmax' (test:6)"):
        integers_on_accelerator(quantise_format(plain, ranges, 8), "stable")
