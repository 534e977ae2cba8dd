"""Tables of tests/support/pairwise.py cover every pair of values with few rows."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.pairwise import pairwise


def pairs(rows: list[tuple[Any, ...]]) -> set[tuple[int, Any, int, Any]]:
    return {(i, row[i], j, row[j]) for row in rows for i, j in combinations(range(len(row)), 2)}


def named(count: int) -> list[str]:
    return [f"axis{number}" for number in range(count)]


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_pairwise_covers_what_the_grid_covers(lengths: list[int]) -> None:
    axes = {name: range(length) for name, length in zip(named(len(lengths)), lengths, strict=True)}
    rows = pairwise(**axes)
    assert pairs(rows) == pairs(list(product(*axes.values())))
    assert len(rows) == len(set(rows)) <= len(list(product(*axes.values())))


@given(st.sets(st.tuples(*[st.integers(0, 2)] * 3), max_size=20))
def test_pairwise_covers_every_pair_of_an_allowed_row(banned: set[tuple[int, int, int]]) -> None:
    rows = pairwise(lambda a, b, c: (a, b, c) not in banned, a=range(3), b=range(3), c=range(3))
    assert pairs(rows) == pairs([row for row in product(range(3), repeat=3) if row not in banned])
    assert not banned & set(rows)


def test_pairwise_needs_few_rows() -> None:
    assert len(pairwise(**{name: range(3) for name in named(4)})) <= 11
    assert len(pairwise(**{name: range(2) for name in named(10)})) <= 12


def test_pairwise_of_one_axis_is_that_axis() -> None:
    assert pairwise(bits=(4, 8)) == [(4,), (8,)]


def test_pairwise_takes_values_without_a_hash_in_the_order_of_the_axes() -> None:
    assert pairwise(b=[[1]], a=["x", "y"]) == [([1], "x"), ([1], "y")]
