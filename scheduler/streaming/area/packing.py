"""Counts the DSPs of a unit, with several products packed into a DSP.

The packing is the same as in hls_templates/streaming/arithmetic/packing.h:

    two weights     (w0 + w1·2^f) · a                  two PEs share an activation
    two pixels      w · (a0 + a1·2^f)                  two pixels share a weight
    four products   (w0 + w1·2^2f) · (a0 + a1·2^f)     two PEs × two pixels

Each field has f bits and accumulates several products. Their number is limited so that the sum stays within
−2^(f−1) … 2^(f−1) − 1 even for the extreme values of the operands. f is the widest field for which the operands fit the
ports: 27 × 18 bits on a DSP48E2 (UG579), 25 × 18 bits on a DSP48E1 (UG479).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from boards.errors import ChoiceError
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import NARROW_PORT, WIDE_PORT

WIDEST_FIELD = 23
"""The maximum bits of a field: two fields and a borrow fit the 48 bits of the DSP's sum."""


@dataclass(frozen=True)
class Range:
    """The range of values, low … high inclusive, that a DSP operand can have."""

    low: int
    high: int

    def in_bits(self, port: int) -> bool:
        """Return whether all integers of the range fit a signed port of ``port`` bits."""
        return -(1 << port - 1) <= self.low and self.high < 1 << port - 1

    def paired(self, shift: int) -> Range:
        """Return the range of a + b · 2^shift for a and b of this range."""
        return Range((self.low << shift) + self.low, (self.high << shift) + self.high)


def value_range(bits: int, signed: bool, narrow: bool = False) -> Range:
    """Return the range of an integer of ``bits`` bits. With ``narrow``, the most negative value is excluded."""
    return Range(-(1 << bits - 1) + narrow, (1 << bits - 1) - 1) if signed else Range(0, (1 << bits) - 1)


@dataclass(frozen=True)
class PackedFields:
    """A way to pack several products into one DSP multiplication, with one bit field of the result per product.

    Attributes:
        field: The bits of a field, or 0 if no field fits the ports.
        terms: The products that are summed in a field before the fields are separated. With 0, the packing would not be
            exact and is not used.
    """

    field: int
    terms: int


def two_weights(weight: Range, value: Range, dsp: str) -> PackedFields:
    """Return the packing of two weights times one activation in one DSP multiplication."""
    return _packing(_two_field(weight, value, dsp), weight, value)


def two_pixels(weight: Range, value: Range, dsp: str) -> PackedFields:
    """Return the packing of one weight times two activations in one DSP multiplication."""
    return _packing(_two_field(value, weight, dsp), weight, value)


def four_products(weight: Range, value: Range, dsp: str) -> PackedFields:
    """Return the packing of two weights times two activations, which are four products, in one DSP multiplication."""
    fits = (
        field
        for field in range(1, WIDEST_FIELD // 2 + 1)
        if weight.paired(2 * field).in_bits(WIDE_PORT[dsp]) and value.paired(field).in_bits(NARROW_PORT)
    )
    return _packing(max(fits, default=0), weight, value)


def _two_field(pair: Range, single: Range, dsp: str) -> int:
    """Return the bits of the widest field with which a DSP multiplies two values of range ``pair`` by one of
    ``single``; 0 if none fits."""
    fields = range(1, WIDEST_FIELD + 1)
    fits = (field for field in fields if pair.paired(field).in_bits(WIDE_PORT[dsp]))
    return max(fits, default=0) if single.in_bits(NARROW_PORT) else 0


def _packing(field: int, weight: Range, value: Range) -> PackedFields:
    """Return the packing with ``field`` bits per product. Its ``terms`` is the most products that a field can
    accumulate without overflow."""
    if field == 0:
        return PackedFields(0, 0)
    corners = [w * v for w, v in product((weight.low, weight.high), (value.low, value.high))]
    half = 1 << field - 1
    return PackedFields(field, min((half - 1) // max(*corners, 1), half // max(-min(corners), 1)))


@dataclass(frozen=True)
class Unrolling:
    """The products of a unit per cycle: PE output channels × SIMD inputs × pixels that share the weights."""

    pe: int
    simd: int
    pixels: int

    @property
    def products(self) -> int:
        return self.pe * self.simd * self.pixels


@dataclass(frozen=True)
class Operands:
    """The bit widths of the weights and activations that a unit multiplies.

    Attributes:
        weight_bits: The bits of a weight. Weights are signed.
        value_bits: The bits of an activation.
        signed: Whether activations are signed.
    """

    weight_bits: int
    value_bits: int
    signed: bool

    @property
    def is_one_bit(self) -> bool:
        """Return whether the weight or the activation has one bit (BIPOLAR).

        That bit selects the other operand's sign and needs no multiplier.
        """
        return min(self.weight_bits, self.value_bits) == 1

    @property
    def are_one_bit(self) -> bool:
        """Return whether weight and activation both have one bit. Products are XNORs then, and a sum counts ones."""
        return max(self.weight_bits, self.value_bits) == 1


@lru_cache(maxsize=1 << 16)
def dsps(unrolling: Unrolling, operands: Operands, dsp: str, multiplier: str, depthwise: bool = False) -> int:
    """Return the number of DSPs that the multipliers of a matrix-vector or vector-vector unit take, with packing.

    Args:
        unrolling: The products per cycle.
        operands: The operands.
        dsp: The board's kind of DSP.
        multiplier: "dsp" or "lut".
        depthwise: Whether the unit is a vector-vector unit, whose PEs do not share activations.

    Raises:
        ChoiceError: The kind of DSP or the multiplier is unknown.
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
    """Return the number of DSPs of the requantisers for PE × pixels sums in parallel.

    A product needs two DSPs if the sum is wider than 25 bits, the wide port of the smallest DSP (DSP48E1).

    Args:
        pe: The channels processed in parallel.
        pixels: The pixels processed in parallel.
        sum_bits: The bits of a sum.
        kind: "requantise" for products of 32 × 17 bits, "multiply" for sum_bits × 17. Other kinds have no products.
    """
    if kind == "requantise":
        return 2 * pe * pixels
    return pe * pixels * (1 if sum_bits <= min(WIDE_PORT.values()) else 2) if kind == "multiply" else 0
