"""The array's rules, their sentences, and the bounds that make products in one DSP exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import ScheduleError
from scheduler.systolic.array import PACKINGS, RULES, Array, check
from scheduler.systolic.program.images import PIXEL_OFFSETS

GOOD = Array(13, 16, 16)

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "zero": ({"chunk": 0}, "every number of the array is at least 1"),
    "one row": (
        {"rows": 1, "save_rows": 1, "map_ports": 1},
        "rows is at least 2, so that a pool finds two rows in a tile",
    ),
    "rows of an address": (
        {"rows": 512},
        "rows · upscale and columns / lanes are below 512, because addresses are multiplied by no more",
    ),
    "upsampled rows of an address": (
        {"rows": 256, "upscale": 2},
        "rows · upscale and columns / lanes are below 512, because addresses are multiplied by no more",
    ),
    "table depth": ({"table_depth": 255}, "table_depth is 0 or 256"),
    "slopes": ({"table_slopes": 2, "table_depth": 256}, "table_slopes is 0, or 1 with a table_depth"),
    "slopes of no table": ({"table_slopes": 1}, "table_slopes is 0, or 1 with a table_depth"),
    "late offsets": ({"late_offsets": 2}, "late_offsets is 0 or 1"),
    "maps that are added": ({"added_maps": 2}, "added_maps is 0 or 1"),
    "rows of maps on chip": ({"map_stride": 8}, "map_stride is 1…7"),
    "products of maps": ({"map_products": 2}, "map_products is 0 or 1"),
    "the clock of the DSPs": (
        {"dsp_clock": 3},
        "dsp_clock is 1 or 2, cycles of the DSPs' clock in one of the array's",
    ),
    "products of a DSP": ({"dsp_products": 4}, "dsp_products is 0, as many as the format has, or 6"),
    "six products of 8 bits": (
        {"dsp_products": 6, "columns": 48},
        "dsp_products is 6 at 4 bits alone, on a DSP48E2, whose ports hold three weights and two activations",
    ),
    "six products of a DSP48E1": (
        {"dsp_products": 6, "columns": 48, "bits": 4, "dsp": "DSP48E1"},
        "dsp_products is 6 at 4 bits alone, on a DSP48E2, whose ports hold three weights and two activations",
    ),
    "six products at twice the clock": (
        {"dsp_products": 6, "columns": 48, "bits": 4, "dsp_clock": 2},
        "dsp_clock is 1 with dsp_products 6, whose sums are added up outside of the DSPs",
    ),
    "registers of another DSP": ({"dsp_registers": 1}, "dsp_registers is 0, or 1 with dsp_products 6"),
    "six products of two columns": (
        {"dsp_products": 6, "bits": 4},
        "columns is a multiple of 3 with dsp_products 6, because three output channels share a DSP",
    ),
    "windows": ({"windows": 2}, "windows is 0 or 1"),
    "upscale": ({"upscale": 3}, "upscale is 1 or 2"),
    "odd columns": ({"columns": 15, "lanes": 5}, "columns is even, because two output channels share a DSP"),
    "columns and lanes": ({"columns": 24}, "columns is a multiple of lanes, so that a channel tile fills whole words"),
    "lanes": (
        {"columns": 24, "lanes": 12},
        "lanes is a power of two of at least 4 and at most 64 (an AXI word of 512 bits)",
    ),
    "map ports": ({"map_ports": 3}, "map_ports is 1, 2 or 4 and not more than rows"),
    "weight ports": ({"weight_ports": 3}, "weight_ports is 1, 2 or 4 and divides columns"),
    "weight words": (
        {"columns": 48, "weight_ports": 4, "weight_words": 3},
        "weight_words is 1, 2 or 4, and weight_ports × weight_words divides columns",
    ),
    "save rows": ({"save_rows": 3}, "save_rows is a power of two and not more than rows"),
    "bits": ({"bits": 6}, "bits is one of 4, 8, 16"),
    "lanes of 4 bits": (
        {"lanes": 4, "bits": 4},
        "lanes at 4 bits are at least 8, so that they hold the nibbles of a pixel",
    ),
    "lanes of 16 bits": (
        {"lanes": 64, "columns": 64, "bits": 16},
        "lanes at 16 bits are at most 32 (an AXI word of 512 bits)",
    ),
    "a stream of weights": (
        {"columns": 48},
        "streams have at most 4096 bits: columns × lanes × bits of weights, columns × sum_bits of the sums of a "
        "position (two at 4 bits), columns × save_rows × sum_bits + 17 of the Saver's",
    ),
    "engine": ({"engine": "vhdl"}, "engine is one of hls, rtl"),
    "sums in C++": (
        {"sum_bits": 24},
        "sum_bits is 32 in C++, and in SystemVerilog at most that and more than the 2 · bits of a product",
    ),
    "wide sums": (
        {"sum_bits": 33, "engine": "rtl"},
        "sum_bits is 32 in C++, and in SystemVerilog at most that and more than the 2 · bits of a product",
    ),
    "sums of less than a product": (
        {"sum_bits": 16, "engine": "rtl"},
        "sum_bits is 32 in C++, and in SystemVerilog at most that and more than the 2 · bits of a product",
    ),
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


@pytest.mark.parametrize(
    ("change", "bits"),
    [
        ({}, 2048),  # 16 × 16 × 8 of weights
        ({"columns": 32}, 4096),
        ({"columns": 48}, 6144),
        ({"save_rows": 8}, 4113),
        ({"save_rows": 4, "columns": 32, "bits": 4}, 4113),
        ({"columns": 80, "lanes": 8, "save_rows": 1, "bits": 4}, 5120),  # two positions of 80 × 32 of sums
        ({"columns": 64, "lanes": 8, "save_rows": 1}, 4096),
    ],
)
def test_no_stream_is_wider_than_the_tool_has_numbers(change: dict[str, Any], bits: int) -> None:
    array = replace(GOOD, **change)
    assert array.widest_stream == bits
    if bits <= 4096:
        assert check(array) is array
        return
    with pytest.raises(ScheduleError, match="streams have at most 4096 bits"):
        check(array)


def test_a_legal_array_is_given_back() -> None:
    assert check(GOOD) is GOOD


def test_two_channels_share_a_dsp() -> None:
    assert GOOD.macs_per_cycle == 13 * 16 * 16
    assert GOOD.mac_dsps == 1664
    assert GOOD.mac_dsps == 1664


def test_four_products_share_a_dsp_at_4_bits_and_none_at_16() -> None:
    four, wide = replace(GOOD, bits=4), replace(GOOD, bits=16)
    assert (four.mac_dsps, four.macs_per_cycle) == (1664, 4 * 1664)
    assert (wide.mac_dsps, wide.macs_per_cycle) == (13 * 16 * 16, 13 * 16 * 16)


@pytest.mark.parametrize(("bits", "word", "in_word", "in_step"), [(4, 8, 2, 2), (8, 16, 4, 4), (16, 32, 8, 4)])
def test_pixels_lie_as_bytes_in_words_of_every_format(bits: int, word: int, in_word: int, in_step: int) -> None:
    array = replace(GOOD, bits=bits)
    assert (array.word_bytes, array.word_pixels, array.step_pixels) == (word, in_word, in_step)


def ends(bits: int) -> tuple[int, int, int]:
    """Greatest weight (narrow), least and greatest activation."""
    top = (1 << (bits - 1)) - 1
    return top, -top - 1, top


SHARED = [key for key, how in PACKINGS.items() if how.products > 1]


@pytest.mark.parametrize(("dsp", "bits"), SHARED)
def test_a_chain_of_products_fits_its_field(dsp: str, bits: int) -> None:
    """|Σ w · a| stays below half a field, and what the field above takes from it is its sign alone. The sums of all
    fields together fit the DSP's 48 bits."""
    how, (top, least, _) = PACKINGS[dsp, bits], ends(bits)
    most = how.chain * top * -least
    assert most < 1 << (how.shift - 1)
    assert most * sum(1 << (field * how.shift) for field in range(how.products)) < 1 << 47


@pytest.mark.parametrize(("dsp", "bits"), SHARED)
def test_a_longer_chain_of_a_power_of_two_would_not_fit(dsp: str, bits: int) -> None:
    how, (top, least, _) = PACKINGS[dsp, bits], ends(bits)
    assert 2 * how.chain * top * -least >= 1 << (how.shift - 1)


@pytest.mark.parametrize(("dsp", "bits"), SHARED)
def test_packed_operands_fit_the_multiplier(dsp: str, bits: int) -> None:
    """27 × 18 bits of a DSP48E2, 25 × 18 of a DSP48E1, two's complement; least and greatest of each."""
    how, (top, least, high) = PACKINGS[dsp, bits], ends(bits)
    wide, narrow = (27 if dsp == "DSP48E2" else 25), 18
    weight = sum(top << (column * how.positions * how.shift) for column in range(how.columns))
    assert weight < 1 << (wide - 1)
    for end in (least, high):
        value = sum(end << (row * how.shift) for row in range(how.positions))
        assert -(1 << (narrow - 1)) <= value < 1 << (narrow - 1)


def test_four_bits_take_the_widest_fields_that_a_dsp48e1_holds() -> None:
    how = PACKINGS["DSP48E1", 4]
    assert (7 << (2 * (how.shift + 1))) + 7 >= 1 << 24


@pytest.mark.parametrize(("dsp", "bits"), SHARED)
@given(data=st.data())
def test_packed_products_come_apart_exactly(dsp: str, bits: int, data: st.DataObject) -> None:
    """The arithmetic of include/packed.h on Python's integers, up to both ends of the range."""
    how, (top, least, high) = PACKINGS[dsp, bits], ends(bits)
    weight, value = st.sampled_from((-top, top)) | st.integers(-top, top), st.integers(least, high)
    place = st.tuples(st.tuples(*how.columns * [weight]), st.tuples(*how.positions * [value]))
    places = data.draw(st.lists(place, min_size=how.chain, max_size=how.chain))
    chain = sum(
        sum(w << (c * how.positions * how.shift) for c, w in enumerate(ws))
        * sum(a << (r * how.shift) for r, a in enumerate(vs))
        for ws, vs in places
    )
    for field in range(how.products):
        low = chain & ((1 << how.shift) - 1)
        low -= (low >> (how.shift - 1)) << how.shift
        found = chain if field == how.products - 1 else low
        column, row = divmod(field, how.positions)
        assert found == sum(ws[column] * vs[row] for ws, vs in places)
        chain = (chain - low) >> how.shift


@given(pixels=st.lists(st.integers(0, 255), min_size=1), seed=st.integers(0, 99))
def test_nibbles_of_pixels_are_exact(pixels: list[int], seed: int) -> None:
    """include/load.h: p = 16 · h + l + 136 with both in −8…7, so Σ w · p = Σ w · (16 · h + l) + 136 · Σ w."""
    weights = [(seed * 31 + i * 7) % 15 - 7 for i in range(len(pixels))]
    parts = [((p >> 4) - 8, p % 16 - 8) for p in pixels]
    assert all(-8 <= part <= 7 for both in parts for part in both)
    sums = sum(w * (16 * high + low) for w, (high, low) in zip(weights, parts, strict=True))
    assert sums + PIXEL_OFFSETS[4] * sum(weights) == sum(w * p for w, p in zip(weights, pixels, strict=True))


@pytest.mark.parametrize("sides", [(0, 0, 0), (13, 16, 0), (13, 0, 16), (0, 16, 16)])
def test_a_side_of_nothing_is_said_and_divides_nothing(sides: tuple[int, int, int]) -> None:
    with pytest.raises(
        ScheduleError, match=r"legal: every number of the array is at least 1, map_depth and table_depth at least 0$"
    ):
        check(Array(*sides))
