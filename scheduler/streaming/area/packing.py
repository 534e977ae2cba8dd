"""Products a DSP, as hls_templates/streaming/arithmetic/packing.h in Python.

    two weights     (w0 + w1·2^f) · a                  two PEs share an activation
    two pixels      w · (a0 + a1·2^f)                  two pixels share a weight
    four products   (w0 + w1·2^2f) · (a0 + a1·2^f)     two PEs × two pixels

A field of f bits holds the sum of as many products as stay within −2^(f−1) … 2^(f−1) − 1 at the corners of the
operands' ranges. f is the widest that the ports take: 27 × 18 bits of a DSP48E2 (UG579), 25 × 18 of a DSP48E1 (UG479).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from boards.errors import ChoiceError
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import NARROW_PORT, WIDE_PORT

WIDEST_FIELD = 23
"""Two fields and their borrow in the 48 bits of the sum."""


@dataclass(frozen=True)
class Range:
    """The integers low … high."""

    low: int
    high: int

    def in_bits(self, port: int) -> bool:
        """Whether a signed port of so many bits takes all of them."""
        return -(1 << port - 1) <= self.low and self.high < 1 << port - 1

    def paired(self, shift: int) -> Range:
        """Of a + b · 2^shift."""
        return Range((self.low << shift) + self.low, (self.high << shift) + self.high)


def value_range(bits: int, signed: bool, narrow: bool = False) -> Range:
    """Of an integer of ``bits`` bits; narrow: without the least value."""
    return Range(-(1 << bits - 1) + narrow, (1 << bits - 1) - 1) if signed else Range(0, (1 << bits) - 1)


@dataclass(frozen=True)
class PackedFields:
    """Fields of ``field`` bits, ``terms`` products summed before they are taken apart; terms 0: not exact, not used."""

    field: int
    terms: int


def two_weights(weight: Range, value: Range, dsp: str) -> PackedFields:
    """Two weights by one activation."""
    return _packing(_two_field(weight, value, dsp), weight, value)


def two_pixels(weight: Range, value: Range, dsp: str) -> PackedFields:
    """One weight by two activations."""
    return _packing(_two_field(value, weight, dsp), weight, value)


def four_products(weight: Range, value: Range, dsp: str) -> PackedFields:
    """Two weights by two activations."""
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


def _packing(field: int, weight: Range, value: Range) -> PackedFields:
    if field == 0:
        return PackedFields(0, 0)
    corners = [w * v for w, v in product((weight.low, weight.high), (value.low, value.high))]
    half = 1 << field - 1
    return PackedFields(field, min((half - 1) // max(*corners, 1), half // max(-min(corners), 1)))


@dataclass(frozen=True)
class Unrolling:
    """What a unit multiplies in a cycle: PE output channels by SIMD inputs by pixels that share the weights."""

    pe: int
    simd: int
    pixels: int

    @property
    def products(self) -> int:
        return self.pe * self.simd * self.pixels


@dataclass(frozen=True)
class Operands:
    """What is multiplied. Weights are signed, of the whole range; signed: the activations are."""

    weight_bits: int
    value_bits: int
    signed: bool

    @property
    def is_one_bit(self) -> bool:
        """A one-bit operand (bipolar) selects, and needs no multiplier."""
        return min(self.weight_bits, self.value_bits) == 1

    @property
    def are_one_bit(self) -> bool:
        """Both: a product is an XNOR, and a sum counts ones."""
        return max(self.weight_bits, self.value_bits) == 1


@lru_cache(maxsize=1 << 16)
def dsps(unrolling: Unrolling, operands: Operands, dsp: str, multiplier: str, depthwise: bool = False) -> int:
    """DSPs that multiply in a matrix-vector unit, depthwise: in a vector-vector unit.

    dsp: kind of the board's. multiplier: "dsp" or "lut". Raises ChoiceError for another DSP or multiplier.
    """
    _check(dsp, multiplier)
    if multiplier == "lut" or operands.is_one_bit:
        return 0
    weight, value = value_range(operands.weight_bits, True), value_range(operands.value_bits, operands.signed)
    pe, pixels = unrolling.pe, unrolling.pixels
    by_pixels = two_pixels(weight, value, dsp).terms > 0
    pixel_columns = ceil_div(pixels, 2) if by_pixels else pixels
    if depthwise:
        return pe * unrolling.simd * pixel_columns
    by_weights = two_weights(weight, value, dsp).terms > 0
    by_four = four_products(weight, value, dsp).terms > 0
    squares = (pe // 2) * (pixels // 2) * (1 if by_four else 2 if by_weights or by_pixels else 4)
    last_pixel = (pe // 2) * (pixels % 2) * (1 if by_weights else 2)
    last_pe = (pe % 2) * pixel_columns
    return unrolling.simd * (squares + last_pixel + last_pe)


def _check(dsp: str, multiplier: str) -> None:
    if dsp not in WIDE_PORT:
        raise ChoiceError("the kind of DSP", dsp, tuple(WIDE_PORT), remedy="see the board's file")
    if multiplier not in ("dsp", "lut"):
        raise ChoiceError("the multiplier", multiplier, ("dsp", "lut"))


def activation_dsps(pe: int, pixels: int, sum_bits: int, kind: str) -> int:
    """DSPs of PE · PIXELS functors: "requantise" multiplies 32 × 17 bits, "multiply" sum_bits × 17, others none.

    A DSP's wide port takes 25 bits of a DSP48E1: what is wider needs two.
    """
    if kind == "requantise":
        return 2 * pe * pixels
    return pe * pixels * (1 if sum_bits <= min(WIDE_PORT.values()) else 2) if kind == "multiply" else 0
