"""Tests of thresholds and multiply-shift, against Python integers and against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import ConflictError, InvalidValueError, RangeError, ShapeError, SystolicError, UnsupportedError
from cnn.datatype import BIPOLAR, INT8, INT16, INT32, TERNARY, UINT8, DataType, TensorType
from cnn.integer_model import run_integer
from cnn.maps import Padding
from cnn.ops import QConvolution
from cnn.quantisation.thresholds import thresholds_of
from cnn.quantized import QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import HALVES, MultiplyShift, Requantiser, Requantising, Thresholds, requantise, requantise_floats
from tests.support.binary import binary
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.kinds import as_kind

UINT4 = DataType(4, False)
SMALL = (DataType(1, False), DataType(2, False), UINT4, UINT8, DataType(3, True), INT8, TERNARY)
SEEDS = st.integers(0, 1 << 30)
CHANNELS = 6


def multiply_shift(random: np.random.Generator, channels: int, bits: int = 46) -> MultiplyShift:
    multiplier = random.integers(-(1 << 16) + 1, 1 << 16, channels)
    multiplier[::4] = 0
    bias = random.integers(-(1 << bits), 1 << bits, channels)
    return MultiplyShift(multiplier, bias, random.integers(1, 48, channels))


def requantiser(random: np.random.Generator, channels: int) -> Requantiser:
    m = random.integers(1, 1 << 16, channels)
    negative = np.array([0, 1, *m[2:]])
    return Requantiser(random.integers(-(1 << 20), 1 << 20, channels), m, negative, random.integers(1, 48, channels))


def slow_multiply_shift(acc: int, by: MultiplyShift, c: int, datatype: DataType) -> int:
    s = int(by.shift[c])
    y = (acc * int(by.multiplier[c]) + int(by.bias[c]) + (1 << (s - 1))) >> s
    return min(max(y, datatype.low), datatype.high)


def slow_threshold(acc: int, by: Thresholds, c: int, datatype: DataType) -> int:
    value = -acc if by.flip[c] else acc
    return datatype.low + datatype.step * sum(value >= int(t) for t in by.thresholds[c])


def slow_requantise(acc: int, by: Requantising, c: int, datatype: DataType) -> int:
    if isinstance(by, Thresholds):
        return slow_threshold(acc, by, c, datatype)
    return slow_multiply_shift(acc, as_kind(MultiplyShift, by), c, datatype)


def sums(random: np.random.Generator, edges: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return sums of all magnitudes and the neighbours of ``edges``, of shape (CHANNELS, sums)."""
    most = (1 << 31) - 1
    around = [e + d for e in edges for d in (-1, 0, 1)]
    sizes = np.ldexp(random.uniform(-1, 1, (CHANNELS, 60)), random.integers(0, 31, (CHANNELS, 60))).astype(np.int64)
    fixed = np.clip(np.array([0, -1, 1, most, -most, *around], np.int64), -most, most)
    return np.concatenate([sizes, np.tile(fixed, (CHANNELS, 1))], axis=1)


# ---------------------------------------------------------------- arithmetic


@settings(max_examples=80)
@given(SEEDS, st.sampled_from([*SMALL, INT16, INT32]), st.integers(1, 46))
def test_multiply_shift_equals_python_integers(seed: int, datatype: DataType, bits: int) -> None:
    random = np.random.default_rng(seed)
    by = multiply_shift(random, CHANNELS, bits)
    acc = sums(random, [])
    expected = [[slow_multiply_shift(int(v), by, c, datatype) for v in acc[c]] for c in range(CHANNELS)]
    np.testing.assert_array_equal(requantise(acc, by, datatype), expected)
    np.testing.assert_array_equal(requantise_floats(acc.astype(np.float64), by, datatype), expected)
    assert requantise(acc, by, datatype).dtype == datatype.carrier


@settings(max_examples=80)
@given(SEEDS, st.sampled_from([*SMALL, BIPOLAR]), st.integers(1, 31))
def test_thresholds_equal_python_integers(seed: int, datatype: DataType, bits: int) -> None:
    random = np.random.default_rng(seed)
    edges = np.sort(random.integers(-(1 << bits), (1 << bits) + 1, (CHANNELS, datatype.levels)), axis=1)
    by = Thresholds(edges, random.integers(0, 2, CHANNELS).astype(bool))
    acc = sums(random, [int(sign * t) for t in edges.ravel()[:20] for sign in (-1, 1)])
    expected = [[slow_threshold(int(v), by, c, datatype) for v in acc[c]] for c in range(CHANNELS)]
    np.testing.assert_array_equal(requantise(acc, by, datatype), expected)
    np.testing.assert_array_equal(requantise_floats(acc.astype(np.float64), by, datatype), expected)


@settings(max_examples=150)
@given(SEEDS, st.sampled_from(SMALL), st.booleans(), st.sampled_from(HALVES))
def test_thresholds_equal_their_requantiser(seed: int, datatype: DataType, leaky: bool, halves: str) -> None:
    """Check around every threshold. The last channel has a factor of a half, so that every second sum is a half."""
    random = np.random.default_rng(seed)
    drawn = requantiser(random, CHANNELS) if leaky else multiply_shift(random, CHANNELS)
    drawn.multiplier[-1:], drawn.shift[-1:], drawn.bias[-1:] = 1 << 15, 16, 0
    by: Requantising = replace(drawn, halves=halves)
    made = thresholds_of(by, datatype)
    signs = np.where(made.flip, -1, 1)[:, None]
    acc = sums(random, [int(t) for t in (made.thresholds * signs).ravel()])
    np.testing.assert_array_equal(requantise(acc, made, datatype), requantise(acc, by, datatype))


def test_threshold_channel_is_flipped_if_falling_and_constant_if_dead() -> None:
    by = MultiplyShift(*(np.array(v) for v in ([3, -3, 0, 0], [0, 0, 40, -40], [2, 2, 2, 2])))
    made = thresholds_of(by, UINT4)
    assert made.flip.tolist() == [False, True, False, False]
    acc = np.tile(np.arange(-30, 31), (4, 1))
    values = requantise(acc, made, UINT4)
    np.testing.assert_array_equal(values[1], values[0][::-1])
    assert set(values[2].tolist()) == {10}
    assert set(values[3].tolist()) == {0}


@cases("datatype", [INT16, BIPOLAR])
def test_thresholds_for_many_values_are_refused(datatype: DataType) -> None:
    with raises(UnsupportedError, subject=f"thresholds for {datatype.name}", remedy="keep the multiplication"):
        thresholds_of(requantiser(np.random.default_rng(0), CHANNELS), datatype)


# ---------------------------------------------------------------- datatypes


@cases(
    "name, low, high, step, levels",
    [("BIPOLAR", -1, 1, 2, 1), ("TERNARY", -1, 1, 1, 2), ("INT2", -2, 1, 1, 3), ("UINT1", 0, 1, 1, 1)],
)
def test_datatype_has_its_values(name: str, low: int, high: int, step: int, levels: int) -> None:
    datatype = DataType.parse(name)
    assert (datatype.name, datatype.low, datatype.high) == (name, low, high)
    assert (datatype.step, datatype.levels) == (step, levels)


def test_datatype_with_wrong_bits_or_name_is_refused() -> None:
    for bits, signed, few in (
        (2, True, "BIPOLAR"),
        (1, True, "TERNARY"),
        (2, False, "TERNARY"),
        (1, True, "QUATERNARY"),
    ):
        with raises(InvalidValueError, what="a datatype of few values"):
            DataType(bits, signed, few)
    for name in ("FLOAT32", "INT08", "int8", "INT8 ", "INT100"):
        with raises(InvalidValueError, what="a datatype", got=name):
            DataType.parse(name)


# ---------------------------------------------------------------- networks


@cases("seed", range(4))
def test_binary_network_equals_python_integers(seed: int) -> None:
    made = check_quantized(binary(seed))
    picture = np.random.default_rng(seed).integers(0, 256, (2, 9, 9)).astype(np.uint8)
    outputs = run_integer(made, picture)
    for at, node in enumerate(made.nodes[1:], 1):
        op, before, output = node.op, np.asarray(outputs[at - 1]).astype(int), np.asarray(outputs[at])
        assert isinstance(op, QConvolution)
        pad, k = op.padding.top, op.weights.shape[2]
        padded = np.pad(before, ((0, 0), (pad, pad), (pad, pad)))
        for f in range(node.shape.channels):
            for y in range(node.shape.height):
                for x in range(node.shape.width):
                    acc = int((padded[:, y : y + k, x : x + k] * op.weights[f].astype(int)).sum())
                    assert output[f, y, x] == slow_requantise(acc, op.requantiser, f, node.type.datatype)
        assert len(np.unique(output)) > 1


def test_accumulator_holds_the_sum_without_the_bias_of_multiply_shift() -> None:
    op = binary().nodes[3].op
    assert isinstance(op, QConvolution)
    most = int(np.abs(op.weights.astype(int)).sum(axis=(1, 2, 3)).max())
    assert op.accumulator_bound(TERNARY).bit_length() + 1 == most.bit_length() + 1
    large = replace(op, requantiser=replace(as_kind(MultiplyShift, op.requantiser), bias=np.full(3, 1 << 40)))
    assert large.accumulator_bound(TERNARY).bit_length() + 1 == most.bit_length() + 1


def changed(at: int, **fields: Any) -> QuantizedNetwork:
    made = binary()
    nodes = list(made.nodes)
    nodes[at] = replace(nodes[at], op=replace(as_kind(QConvolution, nodes[at].op), **fields))
    return replace(made, nodes=tuple(nodes))


def by_of(at: int) -> Requantising:
    op = binary().nodes[at].op
    assert isinstance(op, QConvolution)
    return op.requantiser


def test_check_names_the_broken_rule() -> None:
    one = binary().nodes[2].op
    assert isinstance(one, QConvolution)
    thresholds, by = by_of(2), by_of(3)
    assert isinstance(thresholds, Thresholds)
    assert isinstance(by, MultiplyShift)
    edges = thresholds.thresholds
    wide = np.ones((5, 4, 5, 5), np.int8)
    zero = np.zeros_like(as_kind(QConvolution, binary().nodes[1].op).weights)
    plain = Requantiser(*(np.full(4, v) for v in (0, 2, 2, 1)))
    wrong: list[tuple[int, dict[str, Any], type[SystolicError], dict[str, object]]] = [
        (
            2,
            {"padding": Padding(1, 1, 1, 1), "weights": wide},
            ConflictError,
            {"subjects": ("padding", "a BIPOLAR input")},
        ),
        (
            1,
            {"weights": zero},
            InvalidValueError,
            {"what": "a BIPOLAR weight", "got": 0, "remedy": "use TERNARY weights"},
        ),
        (1, {"requantiser": plain}, ConflictError, {"subjects": ("a BIPOLAR output", "Requantiser")}),
        (2, {"weights": 2 * one.weights}, RangeError, {"what": "a weight", "got": -2, "low": -1, "high": 1}),
        (
            2,
            {"requantiser": replace(thresholds, thresholds=edges[:, :1])},
            ShapeError,
            {"what": "the thresholds", "required": "type int64 and shape (5, 2)"},
        ),
        (2, {"requantiser": replace(thresholds, flip=np.zeros(5, np.int64))}, ShapeError, {"what": "flip"}),
        (2, {"requantiser": replace(thresholds, thresholds=edges[:, ::-1])}, InvalidValueError, {}),
        (2, {"requantiser": replace(thresholds, thresholds=edges + (1 << 32))}, RangeError, {"what": "a threshold"}),
        (3, {"requantiser": replace(by, multiplier=np.array([1, 2, -65536]))}, RangeError, {"low": -65535}),
        (
            3,
            {"requantiser": replace(by, bias=np.full(3, 1 << 47))},
            RangeError,
            {"what": "bias", "high": (1 << 47) - 1},
        ),
        (3, {"requantiser": replace(by, shift=np.array([0, 1, 1]))}, RangeError, {"what": "shift", "got": 0}),
    ]
    for at, changes, kind, fields in wrong:
        with raises(kind, where=f"'conv{at}' (test:{at + 1})", **fields):
            check_quantized(changed(at, **changes))


def test_thresholds_with_16_bit_outputs_are_refused() -> None:
    made = binary()
    nodes = (*made.nodes[:3], replace(made.nodes[3], type=TensorType(INT16, 1.0)))
    by = Thresholds(np.zeros((3, INT16.levels), np.int64), np.zeros(3, bool))
    nodes = (*nodes[:3], replace(nodes[3], op=replace(as_kind(QConvolution, nodes[3].op), requantiser=by)))
    what = "the bits of INT16, computed by thresholds,"
    with raises(RangeError, what=what, got=16, high=8, where="'conv3' (test:4)"):
        check_quantized(replace(made, nodes=nodes))
