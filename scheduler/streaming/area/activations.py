"""What turns sums into output values: thresholds and requantisers of a block, counted."""

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
"""Of a product of sum and multiplier."""

REQUANTISER_BITS, MULTIPLY_SHIFT_BITS = 72, 71
"""Of a channel: bias, multipliers, shift."""


HALVES_LUT = 24
"""What rounding halves to even adds: tests whether a bit of the product below the half is set, and whether the integer
is even."""

LUT_ENTRIES = 64
"""Of a LUT of six inputs as a memory."""


@dataclass(frozen=True)
class Functors:
    """The activations of a block: PE × pixels of them, each with the constants of NF channels, on sums of sum_bits."""

    pe: int
    pixels: int
    nf: int
    sum_bits: int
    out: DataType


def activation_parts(activation: Requantising | Table | None, functors: Functors, family: str) -> list[Part]:
    """Tables and arithmetic; nothing where the sums leave as they are. family: of the board."""
    if activation is None:
        return []
    if isinstance(activation, Thresholds):
        return [_thresholds(functors, family)]
    if isinstance(activation, Table):
        return _tables(activation, functors)
    return _requantisers(activation, functors, family)


def slope_bits(slopes: IntArray) -> int:
    """Of each slope of a table's pieces, with the sign."""
    return int(np.abs(slopes).max()).bit_length() + 1


def _tables(table: Table, functors: Functors) -> list[Part]:
    """A table's values, and where they are those of pieces the slopes and the lines."""
    lanes, source = functors.pe * functors.pixels, "a LUT for 64 values of a bit, in every lane"
    luts = ceil_div(table.values.size, LUT_ENTRIES) * lanes
    parts = [Part("table", StreamingUsage(lut=luts * functors.out.bits), source)]
    if table.slopes is None:
        return parts
    places = functors.sum_bits - 1 - TABLE_BITS  # the magnitude of a least value has a bit more than the value
    lines = StreamingUsage(lut=(functors.out.bits + places) * lanes, dsp=lanes)
    return [
        *parts,
        Part("slopes", StreamingUsage(lut=luts * slope_bits(table.slopes)), source),
        Part("lines", lines, "a DSP for the product of a slope, of at most 18 × 9 bits; a LUT a bit of the sum"),
    ]


def _thresholds(functors: Functors, family: str) -> Part:
    bits = functors.out.levels * functors.sum_bits
    table = memory(bits, functors.nf, "auto", family, constant=True).times(functors.pe)
    comparators = StreamingUsage(lut=bits * functors.pe * functors.pixels)
    return Part("thresholds", table + comparators, "FINN-R: levels · bits to compare, and a table of them")


def _requantisers(activation: Requantiser | MultiplyShift, functors: Functors, family: str) -> list[Part]:
    biased_first = isinstance(activation, Requantiser)
    kind, bits = ("requantise", REQUANTISER_BITS) if biased_first else ("multiply", MULTIPLY_SHIFT_BITS)
    dsps = activation_dsps(functors.pe, functors.pixels, functors.sum_bits, kind)
    table = memory(bits, functors.nf, "auto", family, constant=True).times(functors.pe)
    logic = PRODUCT_BITS * (1 + _shift_stages(activation)) + 2 * functors.out.bits
    logic += functors.sum_bits + 16 if biased_first else 0
    logic += HALVES_LUT if activation.halves != UP else 0
    return [
        Part("parameters", table, "bias, multipliers and shift of every channel, a table a PE"),
        Part(
            "requantise",
            StreamingUsage(lut=logic * functors.pe * functors.pixels, dsp=dsps),
            "estimate: rounding, 4:1 stages for the shifts that there are, clip",
        ),
    ]


@lru_cache(maxsize=1024)
def _shift_stages(activation: Requantiser | MultiplyShift) -> int:
    """4:1 multiplexers in a row that shift by any of the channels' shifts: none where all are alike."""
    spread = int(activation.shift.max() - activation.shift.min())
    return ceil_div(spread.bit_length(), 2)
