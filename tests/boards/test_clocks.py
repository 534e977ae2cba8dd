"""Tests of the PL clocks that each board's processing system can generate."""

from __future__ import annotations

import pytest

from boards.board import load, names
from boards.errors import InvalidValueError, RangeError
from tests.support.errors import raises


def test_clocks_of_the_zcu104_are_sorted_quotients_of_1500_mhz() -> None:
    clocks = [round(clock.mhz, 1) for clock in load("zcu104").clocks(300)]
    assert clocks == sorted(clocks)
    assert clocks[-8:] == [125.0, 136.4, 150.0, 166.7, 187.5, 214.3, 250.0, 300.0]
    assert 100.0 in clocks


def test_clocks_equal_the_pll_rate_over_the_divisors() -> None:
    for board in map(load, names()):
        frequency = {pll.name: pll.mhz for pll in board.plls}
        for clock in board.clocks():
            assert 1 <= clock.divisor0 <= 63, board.name
            assert 1 <= clock.divisor1 <= 63, board.name
            assert clock.mhz == pytest.approx(frequency[clock.pll] / (clock.divisor0 * clock.divisor1)), board.name
            assert clock.mhz <= board.fmax.lowest, board.name


def test_nearest_clock_of_a_possible_clock_is_that_clock() -> None:
    for name in ("zcu104", "zcu102", "ultra96-v2", "aup-zu3"):
        for mhz in (100, 150, 187.5, 250, 300):
            assert load(name).nearest_clock(mhz).mhz == pytest.approx(mhz, rel=2e-4), name


def test_nearest_clock_of_a_slow_clock_uses_both_divisors() -> None:
    clock = load("zcu104").nearest_clock(10)
    assert clock.divisor0 * clock.divisor1 == 150
    assert min(clock.mhz for clock in load("zcu104").clocks()) == pytest.approx(1500 / 63**2)


def test_nearest_clock_between_two_possible_clocks_is_refused_with_both() -> None:
    with raises(InvalidValueError, what="the clock in MHz", got=200, nearest=[187.5, 214.3]) as caught:
        load("zcu104").nearest_clock(200)
    assert "ZCU104 produces (IOPLL 1500 MHz / integers)" in caught.value.required


def test_nearest_clock_above_the_limit_is_refused_with_the_slowest_block() -> None:
    with raises(RangeError, got=900, low=0, high=333, where="xczu7ev-ffvc1156-2-e (limited by its AXI)"):
        load("zcu104").nearest_clock(900)


def test_nearest_clock_not_a_positive_number_is_refused() -> None:
    for mhz in (0.0, -100.0, float("inf")):
        with raises(RangeError, what="the clock in MHz", got=mhz, low=0, exclusive=True):
            load("zcu104").nearest_clock(mhz)
    with raises(RangeError, what="the clock in MHz"):
        load("zcu104").nearest_clock(float("nan"))


def test_nearest_clock_of_a_kv260_divides_1000_mhz() -> None:
    board = load("kv260")
    assert board.nearest_clock(200).divisor0 == 5
    with raises(InvalidValueError, got=300, nearest=[250.0]):
        board.nearest_clock(300)
