"""The array's rules, their sentences, and the bound that makes two products in one DSP exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import ScheduleError
from scheduler.array import PACK_CHAIN, PACK_SHIFT, RULES, Array, check

GOOD = Array(13, 16, 16)

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "zero": ({"chunk": 0}, "every number of the array is at least 1"),
    "one row": (
        {"rows": 1, "save_rows": 1, "map_ports": 1},
        "rows is at least 2, so that a pool finds two rows in a tile",
    ),
    "odd columns": ({"columns": 15, "lanes": 5}, "columns is even, because two output channels share a DSP"),
    "columns and lanes": ({"columns": 24}, "columns is a multiple of lanes, so that a channel tile fills whole words"),
    "lanes": (
        {"columns": 24, "lanes": 12},
        "lanes is a power of two of at least 4 and at most 64 (an AXI word of 512 bits)",
    ),
    "map ports": ({"map_ports": 3}, "map_ports is 1, 2 or 4 and not more than rows"),
    "weight ports": ({"weight_ports": 3}, "weight_ports is 1, 2 or 4 and divides columns"),
    "save rows": ({"save_rows": 3}, "save_rows is a power of two and not more than rows"),
    "row depth": ({"row_depth": 2047}, "row_depth is even, because a bank is two interleaved halves"),
    "dsp": ({"dsp": "DSP58"}, "dsp is DSP48E2 or DSP48E1"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_said(name: str) -> None:
    change, sentence = BROKEN[name]
    with pytest.raises(ScheduleError) as raised:
        check(replace(GOOD, **change))
    assert "is not legal: " in str(raised.value)
    assert sentence in str(raised.value)


def test_all_broken_rules_are_said_at_once() -> None:
    with pytest.raises(ScheduleError, match=r"rows is at least 2.*row_depth is even"):
        check(replace(GOOD, rows=1, save_rows=1, map_ports=1, row_depth=7))


def test_every_rule_can_be_broken() -> None:
    said = {sentence for _, sentence in BROKEN.values()}
    assert all(any(rule.sentence.startswith(sentence) for sentence in said) for rule in RULES)


def test_a_legal_array_is_given_back() -> None:
    assert check(GOOD) is GOOD


def test_two_channels_share_a_dsp() -> None:
    assert GOOD.macs_per_cycle == 13 * 16 * 16
    assert GOOD.mac_dsps == 1664
    assert GOOD.dsps == 1664 + 2 * 2 * 16


@pytest.mark.parametrize("kind", sorted(PACK_CHAIN))
def test_a_chain_of_products_fits_its_field(kind: str) -> None:
    """|Σ w · a| with narrow weights: 127 · 128 a product; the low field is signed. One more product would not fit."""
    chain, half = PACK_CHAIN[kind], 1 << (PACK_SHIFT[kind] - 1)
    assert chain * 127 * 128 < half
    assert 2 * chain * 127 * 128 >= half


@pytest.mark.parametrize("kind", sorted(PACK_CHAIN))
@given(data=st.data())
def test_packed_products_come_apart_exactly(kind: str, data: st.DataObject) -> None:
    """The arithmetic of include/packed.h on Python's integers, up to both ends of the range."""
    weight, value = st.integers(-127, 127), st.integers(-128, 127)
    triples = data.draw(
        st.lists(st.tuples(weight, weight, value), min_size=PACK_CHAIN[kind], max_size=PACK_CHAIN[kind])
    )
    shift = PACK_SHIFT[kind]
    chain = sum((high * (1 << shift) + low) * a for low, high, a in triples)
    field = chain & ((1 << shift) - 1)
    low_sum = field - (1 << shift) if field >> (shift - 1) else field
    assert low_sum == sum(low * a for low, _, a in triples)
    assert (chain - low_sum) >> shift == sum(high * a for _, high, a in triples)


@pytest.mark.parametrize(("kind", "a_bits", "b_bits"), [("DSP48E2", 27, 18), ("DSP48E1", 25, 18)])
def test_packed_weights_fit_the_multiplier(kind: str, a_bits: int, b_bits: int) -> None:
    assert 127 * (1 << PACK_SHIFT[kind]) + 127 < 1 << (a_bits - 1)
    assert -(1 << (b_bits - 1)) <= -128
