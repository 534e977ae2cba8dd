"""The parts of activations, in LUTs and DSPs, compared with counts by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cnn.datatype import DataType
from cnn.maps import IntArray
from cnn.requantise import EVEN, MultiplyShift, Requantiser, Thresholds
from cnn.tables import Table
from scheduler.hardware.primitives import constant_luts
from scheduler.streaming.area.activations import HALVES_LUT, Functors, activation_parts
from scheduler.streaming.area.usage import StreamingUsage
from tests.support.cases import cases

PE, PIXELS, GROUPS, SUM_BITS = 3, 2, 5, 17
FAMILY = "zynquplus"
PRODUCT = 49
"""Bits of the product of a sum (32 bits) and a multiplier (17 bits)."""


def functors(bits: int, signed: bool = True) -> Functors:
    return Functors(PE, PIXELS, GROUPS, SUM_BITS, DataType(bits, signed))


def full(*values: int) -> IntArray:
    return np.array(values, np.int64)


@cases("entries, luts", [(16, 1), (64, 1), (128, 2), (256, 4)])
def test_table_luts_are_one_per_64_entries_and_bit(entries: int, luts: int) -> None:
    """A table of 6-bit outputs takes one LUT per 64 entries, output bit and lane."""
    (part,) = activation_parts(Table(np.zeros(entries, np.int64)), functors(6), FAMILY)
    assert part.usage == StreamingUsage(lut=luts * 6 * PE * PIXELS)


@cases("bits, steepest, slope_bits", [(16, 131071, 18), (12, -60, 7), (9, 63, 7), (9, 0, 1)])
def test_piecewise_linear_table_has_two_tables_and_a_product_per_lane(
    bits: int, steepest: int, slope_bits: int
) -> None:
    """The upper 8 bits of the input select a line, and the remaining bits are multiplied by its slope.

    The adder has the 6 bits of the output and the remaining input bits.
    """
    slopes = np.zeros(256, np.int64)
    slopes[17] = steepest
    read = replace(functors(6), sum_bits=bits + 1)
    values, more, lines = activation_parts(Table(np.zeros(256, np.int64), slopes), read, FAMILY)
    assert values.usage == StreamingUsage(lut=4 * 6 * PE * PIXELS)
    assert more.usage == StreamingUsage(lut=4 * slope_bits * PE * PIXELS)
    assert lines.usage == StreamingUsage(lut=(6 + bits - 8) * PE * PIXELS, dsp=PE * PIXELS)
    assert all(part.source for part in (values, more, lines))


def test_thresholds_have_a_comparator_per_level_and_lane() -> None:
    levels = 15
    by = Thresholds(np.zeros((PE * GROUPS, levels), np.int64), np.zeros(PE * GROUPS, np.bool_))
    (part,) = activation_parts(by, functors(4, signed=False), FAMILY)
    compared, table = levels * SUM_BITS, levels * SUM_BITS
    assert part.usage.lut == compared * PE * PIXELS + PE * table
    assert part.usage.dsp == 0


@cases("shifts, stages", [((9, 9), 0), ((9, 10), 1), ((9, 12), 1), ((9, 13), 2), ((9, 24), 2)])
def test_requantise_luts_follow_the_spread_of_shifts(shifts: tuple[int, int], stages: int) -> None:
    """The product's 49 bits are rounded and shifted, and the result is clipped to 8 bits.

    A Requantiser adds a bias before the product.
    """
    zeros = full(0, 0)
    both = (
        (MultiplyShift(zeros, zeros, full(*shifts)), 0, PE * PIXELS),
        (Requantiser(zeros, zeros, zeros, full(*shifts)), SUM_BITS + 16, 2 * PE * PIXELS),
    )
    for by, biased, dsps in both:
        parameters, part = activation_parts(by, functors(8), FAMILY)
        assert parameters.usage.lut == PE * constant_luts(72 if biased else 71, GROUPS, FAMILY)
        assert part.usage == StreamingUsage(lut=(PRODUCT * (1 + stages) + 16 + biased) * PE * PIXELS, dsp=dsps)
        _, even = activation_parts(replace(by, halves=EVEN), functors(8), FAMILY)
        assert even.usage.lut == part.usage.lut + HALVES_LUT * PE * PIXELS


def test_activation_parts_without_an_activation_are_empty() -> None:
    assert activation_parts(None, functors(8), FAMILY) == []
