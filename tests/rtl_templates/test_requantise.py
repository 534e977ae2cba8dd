"""Requantisers against the contract in Python: every shift, values near each limit, offsets after the product."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from cnn.datatype import DataType
from cnn.maps import IntArray
from cnn.requantise import HALVES, NEAR_HALF, SHIFT_LIMIT, UP, MultiplyShift, Requantiser, numbers_of, requantise
from cnn.tables import looked_up, table_of_values
from scheduler.systolic.array import TABLE_VALUES
from scheduler.systolic.program.images import halves_mark, table_words
from tests.support.cases import cases
from tests.support.rtl.bench import (
    COLUMNS,
    INSTANCES,
    NUMBERS,
    SAVE_ROWS,
    Bench,
    Builder,
    Instance,
    files,
    packed,
    pass_of,
    unpacked,
)
from tests.support.rtl.streams import Sink, Stream, drive, pulse

pytestmark = pytest.mark.engine

LIMITS = [(-128, 127), (0, 255), (-8, 7), (0, 15), (-32768, 32767), (-32768, 0), (-3, 11)]
STAGES = 4
"""Cycles of shift_and_saturate from a value to its result."""

TO_EVEN, PIECES = 2, 3
"""The keys in ``WAYS`` of the engine that rounds halves to even, and of the engine with a table."""

SHIFTER = {
    "shifter": Instance(
        "shift_and_saturate",
        "",
        [
            *(("value", 49), ("coarse", 2), ("fine", 4), ("rounds", 1), ("to_parity", 1), ("odd", 1)),
            *(("least", 16), ("greatest", 16)),
        ],
        [("result", 16)],
    ),
    "requantise": INSTANCES["requantise"],
}


WAYS = {late: {"LATE_OFFSETS": late, "REQUANTISE_DSPS": int(late == 0)} for late in (0, 1, TO_EVEN)}
WAYS[PIECES] = {"TABLE_DEPTH": TABLE_VALUES, "TABLE_SLOPES": 1, "REQUANTISE_DSPS": 1}


class Libraries(dict[int, Path]):
    """The libraries of the engines in ``WAYS``, each built at its first use.

    Engine 0 multiplies in DSPs and has no offsets after the product. Engines 1 and 2 multiply in LUTs and have them;
    engine 2 also rounds halves to even. Engine 3 has piecewise-linear tables.
    """

    def __init__(self, built: Builder) -> None:
        self._built = built

    def __missing__(self, way: int) -> Path:
        self[way] = self._built(files({**NUMBERS, **WAYS[way]}, SHIFTER))
        return self[way]


@pytest.fixture(scope="module")
def libraries(built: Builder) -> Libraries:
    return Libraries(built)


def values_about(dice: random.Random, least: int, greatest: int) -> Iterator[tuple[int, int]]:
    """Yield products and shifts: for every shift the values around each limit, extremes, and random values."""
    for shift in range(1, SHIFT_LIMIT + 1):
        half = 1 << (shift - 1)
        for limit in (least, greatest, 0):
            for edge in ((limit << shift) - half, (limit << shift) + half):
                yield from ((value, shift) for value in (edge - 1, edge, edge + 1) if abs(value) < 1 << 48)
        for bits in range(1, 49):
            yield dice.getrandbits(bits) - (1 << (bits - 1)), shift
        yield from ((sign * ((1 << 47) - 1), shift) for sign in (-1, 1))
        yield from ((value, shift) for value in ((1 << 48) - 1, -(1 << 48)))


@cases("least, greatest", LIMITS)
@cases("rounds", [1, 0])
def test_shifter_shifts_and_limits_equal_the_contract(
    libraries: Libraries, least: int, greatest: int, rounds: int
) -> None:
    """Give a value in every cycle, in an order in which the shift changes."""
    bench = Bench(libraries[1], SHIFTER)
    shifted = list(values_about(dice := random.Random(least), least, greatest))
    dice.shuffle(shifted)
    bench.put("shifter", {"least": least, "greatest": greatest, "rounds": rounds})
    for (value, shift), result in zip(shifted, _given(bench, shifted), strict=True):
        rounded = (value + rounds * (1 << (shift - 1))) >> shift
        assert result == min(max(rounded, least), greatest), (value, shift)


@pytest.mark.engine
@cases("least, greatest", LIMITS)
@cases("odd", [0, 1])
def test_shifter_halves_become_even_or_odd(libraries: Libraries, least: int, greatest: int, odd: int) -> None:
    """Give a value in every cycle. Most are halves or next to a half, with every shift. Others are random."""
    bench, dice = Bench(libraries[TO_EVEN], SHIFTER), random.Random(greatest)
    halves = [
        ((2 * dice.randint(least - 2, greatest + 2) + 1 << (shift - 1)) + beside, shift)
        for shift in range(1, SHIFT_LIMIT + 1)
        for beside in (0, 0, 1, -1, (1 << NEAR_HALF) - 1, 1 << NEAR_HALF, -(1 << NEAR_HALF))
    ]
    shifted = [
        *((value, shift) for value, shift in halves if abs(value) < 1 << 48),
        *values_about(dice, least, greatest),
    ]
    dice.shuffle(shifted)
    bench.put("shifter", {"least": least, "greatest": greatest, "rounds": 1, "to_parity": 1, "odd": odd})
    for (value, shift), result in zip(shifted, _given(bench, shifted), strict=True):
        counted = value >> NEAR_HALF << NEAR_HALF
        up = (counted + (1 << (shift - 1))) >> shift
        is_half = up << shift == counted + (1 << (shift - 1))
        rounded = up - (is_half and up % 2 != odd)
        assert result == min(max(rounded, least), greatest), (value, shift)


def _given(bench: Bench, shifted: list[tuple[int, int]]) -> list[int]:
    """Return the results of values and shifts that are given one per cycle."""
    results, before = [], 0
    for value, shift in [*shifted, *[(0, 1)] * STAGES]:
        places = shift - 1
        bench.put("shifter", {"value": value, "coarse": places >> 4, "fine": before & 15})
        bench.settle()
        results.append(unpacked(bench.get("shifter", "result"), 16, 1)[0])
        bench.edge()
        before = places
    return results[STAGES:]


def constants_of(by: Requantiser | MultiplyShift, channels: int) -> list[int]:
    """Return the words in DDR, as in the images of the layer program."""
    words = []
    for c in range(channels):
        shift, multiplier = int(by.shift[c]), int(by.multiplier[c])
        if isinstance(by, Requantiser):
            words.append([int(by.bias[c]), multiplier | int(by.negative[c]) << 16, shift, 0])
        else:
            offset = int(by.bias[c]) + (1 << (shift - 1)) * (by.halves == UP)
            sign = 128 if multiplier < 0 else 0
            upper = offset >> 32 & 0xFFFF
            words.append([offset & 0xFFFFFFFF, multiplier & 0xFFFF | upper << 16, shift | 64 | sign, 0])
    words[0][3] = halves_mark(by.halves)
    return [packed(word, 32) for word in words]


@pytest.mark.parametrize(
    ("kind", "engine"), [("biased", 1), ("late", 1), pytest.param("biased", 0, marks=pytest.mark.engine)]
)
@cases("halves", HALVES)
@cases("bits, signed", [(8, True), (4, False), (16, True)])
def test_requantise_channels_equal_the_golden_model(
    libraries: Libraries, kind: str, engine: int, bits: int, signed: bool, halves: str
) -> None:
    """Use sums that are small numbers of halves if these are rounded in a special way: products of powers of two."""
    if halves != UP and engine == 0:
        return
    engine = TO_EVEN if halves != UP else engine
    bench, dice, datatype = Bench(libraries[engine], SHIFTER), np.random.default_rng(bits), DataType(bits, signed)
    channels, groups = 4 * COLUMNS, 80
    shift = dice.integers(1, SHIFT_LIMIT + 1, channels)
    by: Requantiser | MultiplyShift
    if kind == "late":
        by = MultiplyShift(
            dice.integers(-(1 << 16) + 1, 1 << 16, channels), dice.integers(-(1 << 46), 1 << 46, channels), shift
        )
    else:
        multiplier, negative = dice.integers(0, 1 << 16, (2, channels))
        by = Requantiser(dice.integers(-(1 << 30), 1 << 30, channels), multiplier, negative, shift)
    sums = dice.integers(-(1 << 30), 1 << 30, (groups, SAVE_ROWS, COLUMNS)) >> dice.integers(0, 30, (groups, 1, 1))
    if halves != UP:
        by, sums = _of_halves(by, halves), sums % (1 << (bits + 2)) - (1 << (bits + 1))
    for number, actual in enumerate(results_of(bench, constants_of(by, channels), sums, datatype)):
        own = slice(number % 4 * COLUMNS, (number % 4 + 1) * COLUMNS)
        part = type(by)(*(numbers[own] for numbers in numbers_of(by).values()), halves=by.halves)
        expected = requantise(sums[number].T.astype(np.int64), part, datatype).T
        assert np.array_equal(actual.astype(expected.dtype), expected)


def _of_halves(by: Requantiser | MultiplyShift, halves: str) -> Requantiser | MultiplyShift:
    """Return a requantiser whose factors and bias make every result a whole number of halves."""
    multiplier, shift = np.full(by.channels, 1 << 15), np.full(by.channels, 16)
    if isinstance(by, MultiplyShift):
        return MultiplyShift(multiplier * np.sign(by.multiplier | 1), (by.bias % 9) << 15, shift, halves=halves)
    return Requantiser(by.bias % 9, multiplier, multiplier, shift, halves=halves)


@cases("table", [True, False])
@cases("bits, signed", [(16, True), (15, False), (12, True), (9, False), (8, True), (5, False)])
def test_requantise_table_equals_the_golden_model(libraries: Libraries, bits: int, signed: bool, table: bool) -> None:
    """Check tables with every slope, exact tables of few bits, and passes without a table."""
    bench, dice, read = Bench(libraries[PIECES], SHIFTER), np.random.default_rng(bits), DataType(bits, signed)
    channels, groups = 4 * COLUMNS, 400
    multiplier, negative = dice.integers(1 << 15, 1 << 16, (2, channels))
    by = Requantiser(dice.integers(-5, 6, channels), multiplier, negative, np.full(channels, 15))
    sums = dice.integers(read.low // 2, read.high // 2 + 1, (groups, SAVE_ROWS, COLUMNS))
    levels = dice.integers(-(1 << 15), 1 << 15, read.high - read.low + 1)
    looks_up = table_of_values(levels, read)
    constants = constants_of(by, channels)
    if table:
        rows = [packed(row, 32) for row in table_words(looks_up, read, TABLE_VALUES).tolist()]
        constants = [constants[0] | TABLE_VALUES << 96, *constants[1:], *rows]
    for number, actual in enumerate(results_of(bench, constants, sums, read)):
        own = slice(number % 4 * COLUMNS, (number % 4 + 1) * COLUMNS)
        part = Requantiser(*(numbers[own] for numbers in numbers_of(by).values()))
        values = requantise(sums[number].T.astype(np.int64), part, read).T
        expected = looked_up(looks_up, values, read) if table else values
        assert np.array_equal(actual.astype(np.int16), expected.astype(np.int16))


def results_of(
    bench: Bench, constants: list[int], sums: IntArray, datatype: DataType
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield [SAVE_ROWS, COLUMNS] for each of ``sums`` [groups, SAVE_ROWS, COLUMNS], of four channel tiles in turn."""
    groups, channels = len(sums), 4 * COLUMNS
    limits = (datatype.high << 16) + (datatype.low & 0xFFFF)
    bench.put("requantise", {"pass": pass_of(channels=channels, limits=limits), "command_ready": 1})
    pulse(bench, "requantise")
    words = [
        packed(group.reshape(-1).tolist(), 32) << 33 | (number % 4) << 1 | int(number == groups - 1)
        for number, group in enumerate(sums)
    ]
    streams = [
        Stream(bench, "requantise", ("constant_valid", "constant_ready", "constant"), constants),
        Stream(bench, "requantise", ("group_valid", "group_ready", "group"), words),
    ]
    sink = Sink(bench, "requantise", ("result_valid", "result_ready", "result"))
    for word in drive(bench, streams, sink, groups, 6):
        yield np.array(unpacked(word, 16, SAVE_ROWS * COLUMNS)).reshape(SAVE_ROWS, COLUMNS)
