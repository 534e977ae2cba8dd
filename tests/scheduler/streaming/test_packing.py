"""Packed products: the fields of a DSP's sum separate exactly for any operands, and the term counts are the largest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from boards.errors import ChoiceError
from scheduler.hardware.primitives import NARROW_PORT, WIDE_PORT
from scheduler.streaming.area.packing import (
    Operands,
    PackedFields,
    Range,
    Unrolling,
    activation_dsps,
    dsps,
    four_products,
    two_pixels,
    two_weights,
    value_range,
)
from tests.support.cases import cases
from tests.support.errors import raises

DSPS = sorted(WIDE_PORT)
Packer = Callable[[Range, Range, str], PackedFields]

ranges = st.builds(value_range, st.integers(2, 8), st.booleans(), st.booleans())


def term_count(packing: PackedFields) -> st.SearchStrategy[int]:
    """Return a strategy that draws the length of a chain: short ones, and the longest allowed."""
    return st.one_of(st.integers(1, min(packing.terms, 24)), st.just(packing.terms))


def operand(of: Range) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from([of.low, of.high, 0]), st.integers(of.low, of.high))


def take_field(chain: int, field: int) -> tuple[int, int]:
    """Return the lowest field's signed value, and the rest of the sum, as the hardware separates them."""
    low = chain & (1 << field) - 1
    low -= (low >> field - 1) << field
    return low, (chain - low) >> field


def fields_of(chain: int, field: int, count: int) -> list[int]:
    assert -(1 << 47) <= chain < 1 << 47, "the sum exceeds the DSP's 48 bits"
    found = []
    for _ in range(count - 1):
        low, chain = take_field(chain, field)
        found.append(low)
    return [*found, chain]


@given(st.data(), ranges, ranges, st.sampled_from(DSPS), st.sampled_from([two_weights, two_pixels]))
def test_packing_of_two_products_separates_exactly(
    data: st.DataObject, weight: Range, value: Range, dsp: str, of: Packer
) -> None:
    packing = of(weight, value, dsp)
    if packing.terms == 0:
        return
    pair, single = (weight, value) if of is two_weights else (value, weight)
    p0, p1, s = data.draw(operand(pair)), data.draw(operand(pair)), data.draw(operand(single))
    terms = data.draw(term_count(packing))
    wide = p0 + (p1 << packing.field)
    assert Range(wide, wide).in_bits(WIDE_PORT[dsp])
    assert Range(s, s).in_bits(NARROW_PORT)
    assert fields_of(terms * wide * s, packing.field, 2) == [terms * p0 * s, terms * p1 * s]


@given(st.data(), ranges, ranges, st.sampled_from(DSPS))
def test_packing_of_four_products_separates_exactly(data: st.DataObject, weight: Range, value: Range, dsp: str) -> None:
    packing = four_products(weight, value, dsp)
    if packing.terms == 0:
        return
    w0, w1, a0, a1 = (data.draw(operand(of)) for of in (weight, weight, value, value))
    terms = data.draw(term_count(packing))
    wide, narrow = w0 + (w1 << 2 * packing.field), a0 + (a1 << packing.field)
    assert Range(wide, wide).in_bits(WIDE_PORT[dsp])
    assert Range(narrow, narrow).in_bits(NARROW_PORT)
    expected = [terms * w * a for w, a in ((w0, a0), (w0, a1), (w1, a0), (w1, a1))]
    assert fields_of(terms * wide * narrow, packing.field, 4) == expected


@given(ranges, ranges, st.sampled_from(DSPS), st.sampled_from([two_weights, two_pixels, four_products]))
def test_packing_terms_are_the_most_that_fit_the_field(weight: Range, value: Range, dsp: str, of: Packer) -> None:
    packing = of(weight, value, dsp)
    if packing.field == 0:
        return
    corners = [w * v * (packing.terms + 1) for w, v in product((weight.low, weight.high), (value.low, value.high))]
    assert not Range(min(corners), max(corners)).in_bits(packing.field)


@cases(
    "bits, signed, narrow, dsp, of, field, terms",
    [
        (8, True, True, "DSP48E2", two_weights, 19, 16),  # 16 · 127 · 128 < 2^18
        (8, True, False, "DSP48E2", two_weights, 18, 7),  # 8 · 128 · 128 = 2^17
        (8, False, False, "DSP48E2", two_weights, 18, 4),
        (4, False, False, "DSP48E2", four_products, 11, 8),  # 8 · 8 · 15 < 2^10
        (4, True, False, "DSP48E2", four_products, 11, 15),  # 16 · 8 · 8 = 2^10
        (4, False, False, "DSP48E1", four_products, 10, 4),
        (8, True, False, "DSP48E2", four_products, 9, 0),
    ],
)
def test_packing_of_common_widths_has_known_field_and_terms(
    bits: int, signed: bool, narrow: bool, dsp: str, of: Packer, field: int, terms: int
) -> None:
    weight, value = value_range(bits, True, narrow), value_range(bits, signed)
    assert of(weight, value, dsp) == PackedFields(field, terms)


def slowly(weights: int, values: int, ranges: tuple[Range, Range], dsp: str) -> PackedFields:
    """Return the packing by trying every field width and every number of terms.

    A DSP holds ``weights`` × ``values`` products. The field is the widest with which both operands fit their ports, and
    the sum fits 48 bits. The terms are the most whose sum fits that field; the search stops at 600.
    """
    weight, value = ranges
    count = weights * values
    port = {(2, 1): (weight, value, 1), (1, 2): (value, weight, 1), (2, 2): (weight, value, 2)}[weights, values]
    widest = 0
    for field in range(1, 48):
        wide, single, step = port
        high, low = (end + (end << step * field) for end in (wide.high, wide.low))
        narrow = single if count == 2 else Range(*(end + (end << field) for end in (single.low, single.high)))
        fits = Range(low, high).in_bits(WIDE_PORT[dsp]) and narrow.in_bits(NARROW_PORT)
        if fits and count * field + count // 2 <= 48:  # one bit more for the borrow between fields
            widest = field
    terms = 0
    corners = [w * v for w in (weight.low, weight.high) for v in (value.low, value.high)]
    while widest and Range(min(corners) * (terms + 1), max(corners) * (terms + 1)).in_bits(widest) and terms < 600:
        terms += 1
    return PackedFields(widest, terms)


@cases("dsp", DSPS)
@cases("signed", [True, False])
def test_packing_of_all_widths_equals_an_exhaustive_search(dsp: str, signed: bool) -> None:
    for weight_bits, value_bits in product(range(2, 9), (2, 3, 4, 5, 8, 16)):
        ranges = value_range(weight_bits, True), value_range(value_bits, signed)
        for of, weights, values in ((two_weights, 2, 1), (two_pixels, 1, 2), (four_products, 2, 2)):
            packing, tried = of(*ranges, dsp), slowly(weights, values, ranges, dsp)
            assert (packing.field, min(packing.terms, 600)) == (tried.field, tried.terms), (of, ranges)


# fold: PE, SIMD and pixels. bits: weight bits, activation bits, signed activations. counts: DSP48E2, DSP48E1.
@cases(
    "fold, bits, counts",
    [
        ((8, 16, 2), (4, 4, False), (64, 64)),  # four products per DSP
        ((8, 16, 1), (4, 4, False), (64, 64)),  # two products per DSP
        ((5, 16, 2), (4, 4, False), (3 * 16, 3 * 16)),  # PEs × pixels: twice 2×2, and 1×2
        ((5, 16, 1), (4, 4, False), (3 * 16, 3 * 16)),
        ((8, 16, 1), (8, 8, True), (64, 64)),
        ((8, 16, 2), (8, 8, False), (128, 128)),
        ((1, 16, 2), (8, 8, False), (16, 16)),
        ((8, 16, 1), (8, 16, True), (128, 128)),  # no field can hold a product of 24 bits
        ((3, 4, 3), (4, 4, True), (4 * (1 + 1 + 2), 4 * (1 + 1 + 2))),  # PEs × pixels: 2×2, 2×1 and 1×3
        ((4, 3, 2), (8, 16, True), (3 * 2 * 4, 3 * 2 * 4)),  # operands of 8 and 16 bits are not packed
        ((8, 16, 1), (1, 4, False), (0, 0)),
        ((8, 16, 1), (6, 4, False), (64, 64)),
        ((8, 16, 2), (6, 4, False), (64, 128)),  # four products do not fit a DSP48E1
    ],
)
def test_dsps_of_a_unit_are_as_counted_by_hand(
    fold: tuple[int, int, int], bits: tuple[int, int, bool], counts: tuple[int, int]
) -> None:
    unit = Unrolling(*fold), Operands(*bits)
    assert (dsps(*unit, "DSP48E2", "dsp"), dsps(*unit, "DSP48E1", "dsp")) == counts
    assert dsps(*unit, "DSP48E2", "lut") == 0


def test_dsps_of_a_depthwise_unit_pair_pixels_only() -> None:
    assert dsps(Unrolling(8, 9, 1), Operands(8, 8, False), "DSP48E2", "dsp", depthwise=True) == 72
    assert dsps(Unrolling(8, 9, 2), Operands(8, 8, False), "DSP48E2", "dsp", depthwise=True) == 72
    assert dsps(Unrolling(8, 9, 2), Operands(8, 16, True), "DSP48E2", "dsp", depthwise=True) == 144


def test_dsps_of_an_unknown_dsp_or_multiplier_are_refused() -> None:
    with raises(ChoiceError, got="DSP58", choices=("DSP48E1", "DSP48E2")):
        dsps(Unrolling(1, 1, 1), Operands(4, 4, False), "DSP58", "dsp")
    with raises(ChoiceError, got="gate", choices=("dsp", "lut")):
        dsps(Unrolling(1, 1, 1), Operands(4, 4, False), "DSP48E2", "gate")


def test_activation_dsps_follow_lanes_and_bits() -> None:
    assert activation_dsps(4, 2, 17, "requantise") == 16
    assert activation_dsps(4, 2, 17, "multiply") == 8
    assert activation_dsps(4, 2, 26, "multiply") == 16
    assert activation_dsps(4, 2, 17, "thresholds") == 0
