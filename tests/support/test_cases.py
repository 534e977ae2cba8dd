"""tests/support/cases.py: every case runs, and those that fail are named."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.support.cases import cases

RAN: list[tuple[int, str]] = []


@cases("number", range(3))
@cases("letter", ["a", "b"])
def test_cases_stack_and_take_fixtures(number: int, letter: str, tmp_path: Path) -> None:
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    RAN.append((number, letter))
    assert RAN.count((number, letter)) == 1


def test_cases_run_once_each() -> None:
    ran: list[int] = []

    @cases("one, other", [(1, 2), (3, 4)])
    def add(one: int, other: int) -> None:
        ran.append(one + other)

    add()
    assert ran == [3, 7]


def test_cases_that_fail_are_named_and_the_others_run() -> None:
    ran: list[int] = []

    @cases("value", [4, 5, 6, 7], ids=["four", "five", "six", "seven"])
    def is_even(value: int) -> None:
        ran.append(value)
        assert value % 2 == 0

    with pytest.raises(AssertionError, match=r"^2 of 4 cases: five; seven$") as caught:
        is_even()
    assert ran == [4, 5, 6, 7]
    assert isinstance(caught.value.__cause__, AssertionError)


def test_labels_are_values_or_made_by_a_function() -> None:
    @cases("value, wanted", [(1, 2)])
    def equal(value: int, wanted: int) -> None:
        assert value == wanted

    with pytest.raises(AssertionError, match=r"value=1, wanted=2$"):
        equal()

    @cases("value", [1], ids=lambda value: f"<{value}>")
    def never(value: int) -> None:
        raise ValueError(value)

    with pytest.raises(AssertionError, match=r"<1>$"):
        never()


def test_fixtures_stay_in_the_signature() -> None:
    @cases("value", [1])
    def test(value: int, tmp_path: Path) -> None: ...

    assert list(inspect.signature(test).parameters) == ["tmp_path"]


def test_cases_without_the_expected_error_are_named() -> None:
    @cases("value", ["x", "1"])
    def no_number(value: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011
            int(value)

    with pytest.raises(AssertionError, match=r"^1 of 2 cases: value='1'$"):
        no_number()
