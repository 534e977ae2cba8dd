"""Counts the resources of activations, which convert a block's sums to output values.

An activation consists of thresholds, of a requantiser (bias, multiplication, shift) or of a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cnn.datatype import DataType
from cnn.maps import IntArray
from cnn.requantise import UP, MultiplyShift, Requantiser, Requantising, Thresholds
from cnn.tables import TABLE_BITS, Table
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming.area.memory import memory
from scheduler.streaming.area.packing import activation_dsps
from scheduler.streaming.area.part import Part
from scheduler.streaming.area.usage import StreamingUsage

PRODUCT_BITS = 49
"""The bits of the product of a sum (32) and a multiplier (17)."""

REQUANTISER_BITS, MULTIPLY_SHIFT_BITS = 72, 71
"""The bits of constants per channel: bias, multipliers and shift."""


HALVES_LUT = 24
"""The additional LUTs for rounding halves to even. They test whether a bit below the half is set, and whether the
integer is even."""

LUT_ENTRIES = 64
"""The one-bit entries of a six-input LUT as a memory."""


@dataclass(frozen=True)
class Functors:
    """The size of the hardware that applies a block's activation to PE × pixels sums in parallel.

    Attributes:
        pe: The channels processed in parallel.
        pixels: The pixels processed in parallel.
        nf: The number of channels that one PE processes in turn, which is the depth of each table of constants.
        sum_bits: The bits of a sum.
        out: The type of an output value.
    """

    pe: int
    pixels: int
    nf: int
    sum_bits: int
    out: DataType


def activation_parts(activation: Requantising | Table | None, functors: Functors, family: str) -> list[Part]:
    """Return the hardware parts, with their resources, of an activation: its tables and its arithmetic. ``family`` is
    the board's FPGA family.

    The list is empty without an activation, because the sums are the output then.
    """
    if activation is None:
        return []
    if isinstance(activation, Thresholds):
        return [_thresholds(functors, family)]
    if isinstance(activation, Table):
        return _tables(activation, functors)
    return _requantisers(activation, functors, family)


def slope_bits(slopes: IntArray) -> int:
    """Return the bits that hold the largest slope of a piecewise-linear table, including its sign."""
    return int(np.abs(slopes).max()).bit_length() + 1


def _tables(table: Table, functors: Functors) -> list[Part]:
    """Return the hardware parts of an activation by table: the table of values and, if it is piecewise linear, slopes
    and interpolation."""
    lanes, source = functors.pe * functors.pixels, "one LUT per 64 one-bit values, in every lane"
    luts = ceil_div(table.values.size, LUT_ENTRIES) * lanes
    parts = [Part("table", StreamingUsage(lut=luts * functors.out.bits), source)]
    if table.slopes is None:
        return parts
    # The input bits below the table's index. sum_bits is one more than the bits of the input, because it covers the
    # magnitude of the most negative value and a sign.
    places = functors.sum_bits - 1 - TABLE_BITS
    lines = StreamingUsage(lut=(functors.out.bits + places) * lanes, dsp=lanes)
    return [
        *parts,
        Part("slopes", StreamingUsage(lut=luts * slope_bits(table.slopes)), source),
        Part("lines", lines, "one DSP per product with a slope (at most 18 × 9 bits), one LUT per bit of the sum"),
    ]


def _thresholds(functors: Functors, family: str) -> Part:
    bits = functors.out.levels * functors.sum_bits
    table = memory(bits, functors.nf, "auto", family, constant=True).times(functors.pe)
    comparators = StreamingUsage(lut=bits * functors.pe * functors.pixels)
    return Part("thresholds", table + comparators, "FINN-R: comparators of levels · bits, and a table of thresholds")


def _requantisers(activation: Requantiser | MultiplyShift, functors: Functors, family: str) -> list[Part]:
    biased_first = isinstance(activation, Requantiser)
    kind, bits = ("requantise", REQUANTISER_BITS) if biased_first else ("multiply", MULTIPLY_SHIFT_BITS)
    dsps = activation_dsps(functors.pe, functors.pixels, functors.sum_bits, kind)
    table = memory(bits, functors.nf, "auto", family, constant=True).times(functors.pe)
    logic = PRODUCT_BITS * (1 + _shift_stages(activation)) + 2 * functors.out.bits
    logic += functors.sum_bits + 16 if biased_first else 0
    logic += HALVES_LUT if activation.halves != UP else 0
    return [
        Part("parameters", table, "bias, multipliers and shift of every channel, one table per PE"),
        Part(
            "requantise",
            StreamingUsage(lut=logic * functors.pe * functors.pixels, dsp=dsps),
            "estimate: rounding, 4:1 multiplexers for the different shifts, clipping",
        ),
    ]


@lru_cache(maxsize=1024)
def _shift_stages(activation: Requantiser | MultiplyShift) -> int:
    """Return the number of stages of 4:1 multiplexers in a requantiser that select the channel's shift, or 0 if all
    channels share one shift."""
    spread = int(activation.shift.max() - activation.shift.min())
    return ceil_div(spread.bit_length(), 2)
