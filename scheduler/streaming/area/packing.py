"""Products a DSP, and what multipliers of logic cost: hls_templates/streaming/arithmetic/packing.h in Python.

    two weights     (w0 + w1·2^f) · a                  two PEs share an activation
    two pixels      w · (a0 + a1·2^f)                  two pixels share a weight
    four products   (w0 + w1·2^2f) · (a0 + a1·2^f)     two PEs × two pixels

A field of f bits holds the sum of as many products as stay within −2^(f−1) … 2^(f−1) − 1 at the corners of the
operands' ranges. f is the widest that the ports take: 27 × 18 bits of a DSP48E2 (UG579), 25 × 18 of a DSP48E1 (UG479).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from boards.errors import ScheduleError

WIDE_PORT = {"DSP48E1": 25, "DSP48E2": 27}
NARROW_PORT = 18
WIDEST_FIELD = 23
"""Two fields and their borrow in the 48 bits of the sum."""


@dataclass(frozen=True)
class Range:
    """The integers low … high."""

    low: int
    high: int

    def in_bits(self, port: int) -> bool:
        return -(1 << port - 1) <= self.low and self.high < 1 << port - 1

    def paired(self, shift: int) -> Range:
        """Of a + b · 2^shift."""
        return Range((self.low << shift) + self.low, (self.high << shift) + self.high)


def value_range(bits: int, signed: bool, narrow: bool = False) -> Range:
    """Of an integer of ``bits`` bits; narrow: without the least value."""
    return Range(-(1 << bits - 1) + narrow, (1 << bits - 1) - 1) if signed else Range(0, (1 << bits) - 1)


@dataclass(frozen=True)
class Packing:
    """Fields of ``field`` bits, ``terms`` products summed before they are taken apart; terms 0: not exact, not used."""

    field: int
    terms: int


def two_weights(weight: Range, value: Range, dsp: str) -> Packing:
    return _packing(_two_field(weight, value, dsp), weight, value)


def two_pixels(weight: Range, value: Range, dsp: str) -> Packing:
    return _packing(_two_field(value, weight, dsp), weight, value)


def four_products(weight: Range, value: Range, dsp: str) -> Packing:
    fits = (
        field
        for field in range(1, WIDEST_FIELD // 2 + 1)
        if weight.paired(2 * field).in_bits(WIDE_PORT[dsp]) and value.paired(field).in_bits(NARROW_PORT)
    )
    return _packing(max(fits, default=0), weight, value)


def _two_field(pair: Range, single: Range, dsp: str) -> int:
    fields = range(1, WIDEST_FIELD + 1)
    fits = (field for field in fields if pair.paired(field).in_bits(WIDE_PORT[dsp]))
    return max(fits, default=0) if single.in_bits(NARROW_PORT) else 0


def _packing(field: int, weight: Range, value: Range) -> Packing:
    if field == 0:
        return Packing(0, 0)
    corners = [w * v for w, v in product((weight.low, weight.high), (value.low, value.high))]
    half = 1 << field - 1
    return Packing(field, min((half - 1) // max(*corners, 1), half // max(-min(corners), 1)))


def dsps(
    pe: int,
    simd: int,
    pixels: int,
    weight_bits: int,
    activation_bits: int,
    signed: bool,
    dsp: str,
    multiplier: str,
    *,
    depthwise: bool = False,
) -> int:
    """DSPs that multiply in a matrix-vector unit of PE × SIMD × PIXELS, depthwise: in a vector-vector unit.

    signed: the activations are. multiplier: "dsp" or "lut". Weights are signed, of the whole range; one-bit operands
    (bipolar) need no multiplier. Raises ScheduleError for a DSP or a multiplier that there is not.
    """
    _check(dsp, multiplier)
    if multiplier == "lut" or min(weight_bits, activation_bits) == 1:
        return 0
    weight, value = value_range(weight_bits, True), value_range(activation_bits, signed)
    by_pixels = two_pixels(weight, value, dsp).terms > 0
    if depthwise:
        return pe * simd * (_halves(pixels) if by_pixels else pixels)
    by_weights = two_weights(weight, value, dsp).terms > 0
    by_four = four_products(weight, value, dsp).terms > 0
    squares = (pe // 2) * (pixels // 2) * (1 if by_four else 2 if by_weights or by_pixels else 4)
    last_pixel = (pe // 2) * (pixels % 2) * (1 if by_weights else 2)
    last_pe = (pe % 2) * (_halves(pixels) if by_pixels else pixels)
    return simd * (squares + last_pixel + last_pe)


def _halves(count: int) -> int:
    return -(-count // 2)


def _check(dsp: str, multiplier: str) -> None:
    if dsp not in WIDE_PORT:
        raise ScheduleError(f"a DSP is one of {', '.join(WIDE_PORT)}, not {dsp!r}; see the board's file")
    if multiplier not in ("dsp", "lut"):
        raise ScheduleError(f"a multiplier is dsp or lut, not {multiplier!r}")


def multiplier_luts(pe: int, simd: int, pixels: int, weight_bits: int, activation_bits: int, multiplier: str) -> int:
    """An estimate of the logic that multiplies: PE · SIMD · PIXELS · (2⌈(W + A) / 6⌉ − 1)(W + A); 0 for DSPs.

    Source: FINN-R (Blott et al., ACM TRETS 11(3), 2018), the formula that FINN's own estimation uses for multipliers.
    """
    _check("DSP48E2", multiplier)
    if multiplier == "dsp" and min(weight_bits, activation_bits) > 1:
        return 0
    width = weight_bits + activation_bits
    return pe * simd * pixels * (2 * math.ceil(width / 6) - 1) * width


def activation_dsps(pe: int, pixels: int, sum_bits: int, kind: str) -> int:
    """DSPs of PE · PIXELS functors: "requantise" multiplies 32 × 17 bits, "multiply" sum_bits × 17, others none.

    A DSP's wide port takes 25 bits of a DSP48E1: what is wider needs two.
    """
    if kind == "requantise":
        return 2 * pe * pixels
    return pe * pixels * (1 if sum_bits <= min(WIDE_PORT.values()) else 2) if kind == "multiply" else 0
