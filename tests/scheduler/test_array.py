"""The array's rules, their errors, and the bounds that make products in one DSP exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import ChoiceError, InvalidValueError, RangeError, SeveralFaultsError, SystolicError
from scheduler.systolic.array import PACKINGS, RULES, Array, check
from scheduler.systolic.program.images import PIXEL_OFFSETS
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among

GOOD = Array(13, 16, 16)

BROKEN: dict[str, tuple[dict[str, Any], type[SystolicError], dict[str, Any]]] = {
    "zero": ({"chunk": 0}, RangeError, {"what": "chunk", "got": 0, "low": 1}),
    "map depth": ({"map_depth": -1}, RangeError, {"what": "map_depth", "got": -1, "low": 0}),
    "one row": ({"rows": 1, "save_rows": 1, "map_ports": 1}, RangeError, {"what": "rows", "got": 1, "low": 2}),
    "rows of an address": ({"rows": 512}, RangeError, {"what": "rows · upscale", "got": 512, "high": 511}),
    "upsampled rows": ({"rows": 256, "upscale": 2}, RangeError, {"what": "rows · upscale", "got": 512, "high": 511}),
    "blocks of an address": (
        {"columns": 2048, "lanes": 4, "save_rows": 1, "map_ports": 1},
        RangeError,
        {"what": "columns / lanes", "got": 512, "high": 511},
    ),
    "table depth": (
        {"table_depth": 255},
        ChoiceError,
        {"what": "table_depth", "got": 255},
    ),
    "slopes of no table": ({"table_slopes": True}, InvalidValueError, {"what": "table_slopes", "got": 1}),
    "late offsets": ({"late_offsets": 3}, ChoiceError, {"what": "late_offsets", "got": 3, "choices": (0, 1, 2)}),
    "rows of maps on chip": ({"map_stride": 8}, RangeError, {"what": "map_stride", "got": 8, "low": 1, "high": 7}),
    "the clock of the DSPs": ({"dsp_clock": 3}, ChoiceError, {"what": "dsp_clock", "got": 3, "choices": (1, 2)}),
    "products of a DSP": ({"dsp_products": 4}, ChoiceError, {"what": "dsp_products", "got": 4, "choices": (0, 6)}),
    "six products of 8 bits": (
        {"dsp_products": 6, "columns": 48},
        InvalidValueError,
        {"what": "dsp_products", "got": 6},
    ),
    "six products of a DSP48E1": (
        {"dsp_products": 6, "columns": 48, "bits": 4, "dsp": "DSP48E1"},
        InvalidValueError,
        {"what": "dsp_products", "got": 6},
    ),
    "six products at twice the clock": (
        {"dsp_products": 6, "columns": 48, "bits": 4, "dsp_clock": 2},
        InvalidValueError,
        {"what": "dsp_clock", "got": 2},
    ),
    "registers of another DSP": ({"dsp_registers": True}, InvalidValueError, {"what": "dsp_registers", "got": 1}),
    "six products of two columns": (
        {"dsp_products": 6, "bits": 4},
        InvalidValueError,
        {"what": "columns", "got": 16},
    ),
    "upscale": ({"upscale": 3}, ChoiceError, {"what": "upscale", "got": 3, "choices": (1, 2)}),
    "odd columns": ({"columns": 15, "lanes": 5}, InvalidValueError, {"what": "columns", "got": 15, "nearest": ()}),
    "columns and lanes": (
        {"columns": 24},
        InvalidValueError,
        {"what": "columns", "got": 24, "nearest": (16, 32)},
    ),
    "columns and half of the lanes": (
        {"columns": 12, "dsp_products": 6, "bits": 4},
        InvalidValueError,
        {"what": "columns", "got": 12, "nearest": (8, 16)},
    ),
    "lanes": ({"columns": 24, "lanes": 12}, ChoiceError, {"what": "lanes", "got": 12, "choices": (4, 8, 16, 32, 64)}),
    "map ports": ({"map_ports": 3}, ChoiceError, {"what": "map_ports", "got": 3, "choices": (1, 2, 4)}),
    "map ports and rows": ({"rows": 3, "map_ports": 4}, InvalidValueError, {"what": "map_ports", "got": 4}),
    "weight ports": ({"weight_ports": 3}, ChoiceError, {"what": "weight_ports", "got": 3, "choices": (1, 2, 4)}),
    "weight ports and columns": (
        {"columns": 30, "lanes": 5, "weight_ports": 4},
        InvalidValueError,
        {"what": "weight_ports", "got": 4},
    ),
    "weight words": (
        {"columns": 48, "weight_ports": 4, "weight_words": 3},
        ChoiceError,
        {"what": "weight_words", "got": 3, "choices": (1, 2, 4)},
    ),
    "weight words and columns": (
        {"columns": 8, "lanes": 8, "weight_ports": 4, "weight_words": 4},
        InvalidValueError,
        {"what": "weight_words", "got": 4},
    ),
    "save rows": ({"save_rows": 3}, InvalidValueError, {"what": "save_rows", "got": 3}),
    "save rows and rows": ({"save_rows": 16}, InvalidValueError, {"what": "save_rows", "got": 16}),
    "bits": ({"bits": 6}, ChoiceError, {"what": "bits", "got": 6, "choices": (4, 8, 16)}),
    "lanes of 4 bits": ({"lanes": 4, "bits": 4}, InvalidValueError, {"what": "lanes", "got": 4}),
    "lanes of 16 bits": ({"lanes": 64, "columns": 64, "bits": 16}, InvalidValueError, {"what": "lanes", "got": 64}),
    "a stream of weights": ({"columns": 48}, RangeError, {"got": 6144, "high": 4096}),
    "engine": ({"engine": "vhdl"}, ChoiceError, {"what": "engine", "got": "vhdl", "choices": ("hls", "rtl")}),
    "sums in C++": ({"sum_bits": 24}, InvalidValueError, {"what": "sum_bits", "got": 24}),
    "wide sums": ({"sum_bits": 33, "engine": "rtl"}, InvalidValueError, {"what": "sum_bits", "got": 33}),
    "sums of less than a product": (
        {"sum_bits": 16, "engine": "rtl"},
        InvalidValueError,
        {"what": "sum_bits", "got": 16},
    ),
    "row depth": ({"row_depth": 2047}, InvalidValueError, {"what": "row_depth", "got": 2047}),
    "dsp": ({"dsp": "DSP58"}, ChoiceError, {"what": "dsp", "got": "DSP58", "choices": ("DSP48E2", "DSP48E1")}),
}


@cases("name", BROKEN)
def test_check_names_the_number_that_breaks_a_rule(name: str) -> None:
    change, kind, fields = BROKEN[name]
    with raises_among(kind, **fields):
        check(replace(GOOD, **change))


def test_check_names_all_broken_rules_at_once() -> None:
    with raises(SeveralFaultsError) as caught:
        check(replace(GOOD, rows=1, save_rows=1, map_ports=1, row_depth=7))
    assert faults_of(caught.value, RangeError, what="rows")
    assert faults_of(caught.value, InvalidValueError, what="row_depth")
    assert len(caught.value.errors) == 2


def test_rules_are_each_broken_by_a_case() -> None:
    arrays = [replace(GOOD, **change) for change, _, _ in BROKEN.values()]
    positive, *relations = RULES
    assert any(not positive.holds(array) for array in arrays)
    for number, rule in enumerate(relations):
        assert any(positive.holds(array) and not rule.holds(array) for array in arrays), number


@cases(
    "change, bits",
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
def test_rules_widest_stream_is_limited_to_the_tool(change: dict[str, Any], bits: int) -> None:
    array = replace(GOOD, **change)
    assert array.widest_stream == bits
    if bits <= 4096:
        assert check(array) is array
        return
    with raises_among(RangeError, got=bits, high=4096):
        check(array)


def test_check_legal_array_returns_it() -> None:
    assert check(GOOD) is GOOD


def test_mac_dsps_two_channels_share_a_dsp_at_8_bits() -> None:
    assert GOOD.macs_per_cycle == 13 * 16 * 16
    assert GOOD.mac_dsps == 1664
    assert GOOD.mac_dsps == 1664


def test_mac_dsps_four_products_share_a_dsp_at_4_bits() -> None:
    four, wide = replace(GOOD, bits=4), replace(GOOD, bits=16)
    assert (four.mac_dsps, four.macs_per_cycle) == (1664, 4 * 1664)
    assert (wide.mac_dsps, wide.macs_per_cycle) == (13 * 16 * 16, 13 * 16 * 16)


@pytest.mark.parametrize(("bits", "word", "in_word", "in_step"), [(4, 8, 2, 2), (8, 16, 4, 4), (16, 32, 8, 4)])
def test_word_pixels_and_step_pixels_of_every_format(bits: int, word: int, in_word: int, in_step: int) -> None:
    array = replace(GOOD, bits=bits)
    assert (array.word_bytes, array.word_pixels, array.step_pixels) == (word, in_word, in_step)


def ends(bits: int) -> tuple[int, int, int]:
    """Return the largest (narrow) weight, and the smallest and largest activation."""
    top = (1 << (bits - 1)) - 1
    return top, -top - 1, top


SHARED = [key for key, how in PACKINGS.items() if how.products > 1]


@cases("dsp, bits", SHARED)
def test_packings_chain_fits_its_field(dsp: str, bits: int) -> None:
    """|Σ w · a| stays below half a field, so that the field above only has to correct its sign.

    The sums of all fields together fit the DSP's 48 bits.
    """
    how, (top, least, _) = PACKINGS[dsp, bits], ends(bits)
    most = how.chain * top * -least
    assert most < 1 << (how.shift - 1)
    assert most * sum(1 << (field * how.shift) for field in range(how.products)) < 1 << 47


@cases("dsp, bits", SHARED)
def test_packings_longer_chain_does_not_fit(dsp: str, bits: int) -> None:
    how, (top, least, _) = PACKINGS[dsp, bits], ends(bits)
    assert 2 * how.chain * top * -least >= 1 << (how.shift - 1)


@cases("dsp, bits", SHARED)
def test_packings_operands_fit_the_multiplier(dsp: str, bits: int) -> None:
    # A DSP48E2 multiplies 27 × 18 bits and a DSP48E1 25 × 18 bits, in two's complement.
    how, (top, least, high) = PACKINGS[dsp, bits], ends(bits)
    wide, narrow = (27 if dsp == "DSP48E2" else 25), 18
    weight = sum(top << (column * how.positions * how.shift) for column in range(how.columns))
    assert weight < 1 << (wide - 1)
    for end in (least, high):
        value = sum(end << (row * how.shift) for row in range(how.positions))
        assert -(1 << (narrow - 1)) <= value < 1 << (narrow - 1)


def test_packings_4_bits_use_the_widest_fields_of_a_dsp48e1() -> None:
    how = PACKINGS["DSP48E1", 4]
    assert (7 << (2 * (how.shift + 1))) + 7 >= 1 << 24


@pytest.mark.parametrize(("dsp", "bits"), SHARED)
@given(data=st.data())
def test_packings_products_are_separated_exactly(dsp: str, bits: int, data: st.DataObject) -> None:
    # The arithmetic of array/packed.h is repeated with Python's integers, up to both ends of the range.
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
def test_nibbles_of_pixels_give_exact_sums(pixels: list[int], seed: int) -> None:
    """loader/load.h has p = 16 · h + l + 136, with h and l in −8…7, so Σ w · p = Σ w · (16 · h + l) + 136 · Σ w."""
    weights = [(seed * 31 + i * 7) % 15 - 7 for i in range(len(pixels))]
    parts = [((p >> 4) - 8, p % 16 - 8) for p in pixels]
    assert all(-8 <= part <= 7 for both in parts for part in both)
    sums = sum(w * (16 * high + low) for w, (high, low) in zip(weights, parts, strict=True))
    assert sums + PIXEL_OFFSETS[4] * sum(weights) == sum(w * p for w, p in zip(weights, pixels, strict=True))


@cases("sides", [(0, 0, 0), (13, 16, 0), (13, 0, 16), (0, 16, 16)])
def test_check_zero_side_is_refused_without_division(sides: tuple[int, int, int]) -> None:
    with raises(SeveralFaultsError) as caught:
        check(Array(*sides))
    (error,) = caught.value.errors
    assert isinstance(error, RangeError)
    assert (error.got, error.low) == (0, 1)
