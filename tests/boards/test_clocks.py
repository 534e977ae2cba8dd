"""The PL clocks that each board's processing system makes."""

from __future__ import annotations

import pytest

from boards.board import Board, load
from boards.errors import BoardError


def test_clocks_of_the_zcu104() -> None:
    clocks = [round(clock.mhz, 1) for clock in load("zcu104").clocks(300)]
    assert clocks == sorted(clocks)
    assert clocks[-8:] == [125.0, 136.4, 150.0, 166.7, 187.5, 214.3, 250.0, 300.0]
    assert 100.0 in clocks


def test_clocks_are_what_the_divisors_give(any_board: Board) -> None:
    frequency = {pll.name: pll.mhz for pll in any_board.plls}
    for clock in any_board.clocks():
        assert 1 <= clock.divisor0 <= 63
        assert 1 <= clock.divisor1 <= 63
        assert clock.mhz == pytest.approx(frequency[clock.pll] / (clock.divisor0 * clock.divisor1))
        assert clock.mhz <= any_board.fmax.lowest


@pytest.mark.parametrize("mhz", [100, 150, 187.5, 250, 300])
def test_nearest_clock_is_the_exact_one(mhz: float) -> None:
    for name in ("zcu104", "zcu102", "ultra96-v2", "aup-zu3"):
        assert load(name).nearest_clock(mhz).mhz == pytest.approx(mhz, rel=2e-4)


def test_slow_clocks_need_both_divisors() -> None:
    clock = load("zcu104").nearest_clock(10)
    assert clock.divisor0 * clock.divisor1 == 150
    assert min(clock.mhz for clock in load("zcu104").clocks()) == pytest.approx(1500 / 63**2)


def test_a_clock_between_two_names_both() -> None:
    with pytest.raises(BoardError) as caught:
        load("zcu104").nearest_clock(200)
    assert str(caught.value) == (
        "200 MHz is not produced by the PS of ZCU104 (IOPLL 1500 MHz / integers); nearest are 187.5 and 214.3"
    )


def test_a_clock_above_the_silicon_names_the_slowest_block() -> None:
    with pytest.raises(BoardError) as caught:
        load("zcu104").nearest_clock(900)
    assert str(caught.value) == (
        "900 MHz is above what xczu7ev-ffvc1156-2-e can be clocked at: its slowest block (AXI) is limited to 333 MHz"
    )


@pytest.mark.parametrize("mhz", [0.0, -100.0, float("nan"), float("inf")])
def test_a_clock_is_a_positive_number(mhz: float) -> None:
    with pytest.raises(BoardError, match="a clock is a positive number of MHz, not"):
        load("zcu104").nearest_clock(mhz)


def test_kv260_divides_1000_mhz() -> None:
    board = load("kv260")
    assert board.nearest_clock(200).divisor0 == 5
    with pytest.raises(BoardError, match=r"IOPLL 1000 MHz / integers\); nearest is 250.0"):
        board.nearest_clock(300)
