"""The systolic array: its geometry and buffers as one frozen value, and the rules of a legal array as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from boards.errors import ChoiceError, InvalidValueError, RangeError, SeveralFaultsError, SystolicError
from boards.ranges import OneOf, Range
from contract.geometry import MAX_MAP_STRIDE, SUM_BITS, Geometry, as_stored, parameters
from scheduler.hardware.primitives import WIDEST_WORD
from scheduler.systolic.engines.language import LANGUAGES

BITS = (4, 8, 16)
"""The formats of the engine: bits of a weight and of an activation in a lane."""

TABLE_VALUES = 256
"""The lowest number of entries of a table: one per value of 8 bits, or one per segment if it is piecewise linear."""

SLOPE_BITS = 18
"""Bits of the slope of a segment of a piecewise-linear table, including the sign (cnn.tables.SLOPE_LIMIT)."""

GROUP_BITS = 16 + 1
"""Bits of a word of the Saver in addition to its sums: the channel tile and a flag (systolic/types.h, group_t)."""


@dataclass(frozen=True)
class Packing:
    """A way to compute several products of weights and activations in one multiplication of a DSP.

    array/packed.h has the arithmetic. The tests prove that it is exact for narrow weights (−7…7 and −127…127).

    Attributes:
        columns: The filters whose weights share the multiplication.
        positions: The neighbouring output pixels of a row whose activations share the multiplication.
        shift: Bits of the field of one product.
        chain: DSP multiplications whose results are summed before the fields are separated.
    """

    columns: int
    positions: int
    shift: int
    chain: int

    @property
    def products(self) -> int:
        """Products per DSP multiplication."""
        return self.columns * self.positions


SIX = Packing(3, 2, 7, 1)
"""Six products per DSP48E2 at 4 bits: (w2 · 2^14 + w1 · 2^7 + w0) · (a1 · 2^21 + a0).

A product of −7…7 and −8…7 is in −56…56 and fills a field of 7 bits. Therefore no sum is accumulated in the DSP. A
constant of 64 in each field prevents borrows between fields, and adders of three operands sum the lanes
(array/six_products.h, pe_row_six.sv). Three weights of −8 would not fit the 18 bits of the port."""

PACKINGS = {
    ("DSP48E2", 4): Packing(2, 2, 11, 16),
    ("DSP48E2", 8): Packing(2, 1, 18, 8),
    ("DSP48E2", 16): Packing(1, 1, 32, 8),
    ("DSP48E1", 4): Packing(2, 2, 10, 8),
    ("DSP48E1", 8): Packing(2, 1, 17, 4),
    ("DSP48E1", 16): Packing(1, 1, 32, 4),
}
"""The packing for each DSP and number of bits.

The ports have 27 × 18 bits (DSP48E2, UG579) and 25 × 18 bits (DSP48E1, UG479). The sum has 48 bits.

4 bits: two weights × two activations, as in AMD's WP521 (fields of 11 bits). The fields of a DSP48E1 have at most 10.
8 bits: two weights × one activation, as in AMD's WP486 (shift 18, chains of 7 to 8). A DSP48E2 could also use shift 19
and chains of 16. These are not used, because 8 divides the lanes of every array of 8 bits. A DSP48E1 has room for shift
17 at most.
16 bits: one product, without fields. The chain is the number of DSPs of a column that add their products up."""


@dataclass(frozen=True)
class Array(Geometry):
    """A systolic array: its rows, columns, lanes and buffers (``Geometry``), with the numbers of DSPs and streams that
    follow."""

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates of the array per cycle in a layer of stride 1. At other strides, a DSP computes one
        output pixel, not two."""
        return self.rows * self.columns * self.lanes * self.packing.positions

    @property
    def packing(self) -> Packing:
        """The packing with which several products share a DSP of the array."""
        return SIX if self.dsp_products == SIX.products else PACKINGS[self.dsp, self.bits]

    @property
    def mac_dsps(self) -> int:
        """The number of DSPs in the array's PEs."""
        return self.rows * self.columns * self.lanes // (self.packing.columns * self.dsp_clock)

    @property
    def intense(self) -> bool:
        """Return whether a DSP computes more products per cycle than usual for its bits: by a doubled DSP clock or six
        products.

        On such arrays, AXI ports and requantisers are scarce in relation to the DSPs.
        """
        return self.dsp_clock > 1 or self.dsp_products > 0

    @property
    def pack_chain(self) -> int:
        """Lanes of a PE whose products one chain of DSPs sums. At 4 bits it is at most half of them, as high nibbles
        have their own chains."""
        return min(self.packing.chain, self.lanes // (2 if self.bits == 4 else 1))

    @property
    def widest_stream(self) -> int:
        """Bits of the widest word between the engine's processes: weights_t, positions_t or group_t of
        systolic/types.h."""
        sums = self.sum_bits * self.columns
        weights = self.columns * self.lanes * self.bits
        return max(weights, sums * self.packing.positions, sums * self.save_rows + GROUP_BITS)

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.lanes}"


@dataclass(frozen=True)
class Rule:
    """A rule that the numbers of every systolic array must obey, with its error.

    Attributes:
        holds: Returns whether an array obeys the rule.
        error: Returns the error for an array that breaks it.
    """

    holds: Callable[[Array], bool]
    error: Callable[[Array], SystolicError]


COUNT_BITS = 9
"""Bits of the smaller factor of address products: a number of rows, blocks or rows of padding (systolic/pass.h)."""


def _power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


def _whole_columns(array: Array) -> int:
    """Return the number of array columns that fill one unit of output that the engine writes: a word, or half a word.

    The unit is a word, or half a word if a DSP computes six products.
    """
    return max(1, array.lanes // 2) if array.dsp_products else array.lanes


def _has_narrow_sums(array: Array) -> bool:
    """Return whether the array's engine allows accumulators of fewer than SUM_BITS bits."""
    return array.engine in LANGUAGES and LANGUAGES[array.engine].narrow_sums


def _cut_word(array: Array) -> SystolicError:
    """Return the error for an array whose number of columns does not fill whole words of the output map."""
    whole = _whole_columns(array)
    below = array.columns // whole * whole
    words = "half a word" if array.dsp_products else "a word"
    required = f"a multiple of {whole}, the lanes of {words} of the output map"
    return InvalidValueError("columns", array.columns, required, tuple(filter(None, (below, below + whole))))


_LOWEST = {
    parameter.name: min(parameter.least, 1)
    for parameter in parameters()
    if parameter.kind is int and (parameter.least > 0 or isinstance(parameter.allowed, Range))
}
"""The lowest value of each number that is a size or that other rules divide by."""


def _too_low(array: Array) -> SystolicError:
    """Return the error for the array's first number that is below its lowest allowed value."""
    name = next(name for name, low in _LOWEST.items() if getattr(array, name) < low)
    return RangeError(name, getattr(array, name), _LOWEST[name])


def _choice(name: str, *choices: object) -> Rule:
    """Return the rule that the array's parameter ``name`` is one of ``choices``."""
    return Rule(
        lambda a: getattr(a, name) in choices,
        lambda a: ChoiceError(name, getattr(a, name), choices),
    )


def _choices() -> Iterator[Rule]:
    """Yield a rule for each array parameter whose declaration lists its values."""
    for parameter in parameters():
        if isinstance(parameter.allowed, OneOf) and parameter.kind is not bool:
            yield _choice(parameter.name, *parameter.allowed.values)


def _range(name: str, low: int, high: int | None = None) -> Rule:
    """Return the rule that the array's parameter ``name`` is between ``low`` and ``high``."""
    return Rule(
        lambda a: low <= getattr(a, name) and (high is None or getattr(a, name) <= high),
        lambda a: RangeError(name, getattr(a, name), low, high),
    )


def _required(name: str, required: str, holds: Callable[[Array], bool]) -> Rule:
    """Return a rule on the array's parameter ``name``. In errors, the text of ``required`` follows the words "must
    be"."""
    return Rule(holds, lambda a: InvalidValueError(name, as_stored(a)[name], required))


# The rules of an array alone, for searches and schedule files. Rules that depend on a layer are in rules.py. The first
# rule must hold before the others are evaluated, because they divide by the numbers that it checks.
RULES = (
    Rule(lambda a: all(getattr(a, name) >= low for name, low in _LOWEST.items()), _too_low),
    *_choices(),
    _range("rows", 2),  # a fused pool needs two rows per tile
    Rule(
        lambda a: a.rows * a.upscale < 1 << COUNT_BITS,  # a factor of address products
        lambda a: RangeError("rows · upscale", a.rows * a.upscale, high=(1 << COUNT_BITS) - 1),
    ),
    Rule(
        lambda a: a.columns // max(1, a.lanes) < 1 << COUNT_BITS,
        lambda a: RangeError("columns / lanes", a.columns // max(1, a.lanes), high=(1 << COUNT_BITS) - 1),
    ),
    _required(
        "table_slopes",
        "0 unless the array has a table_depth",
        lambda a: not a.table_slopes or a.table_depth > 0,
    ),
    _range("map_stride", 1, MAX_MAP_STRIDE),
    _required(
        "dsp_products",
        "0 unless the array has 4 bits and DSP48E2s, whose ports hold three weights and two activations",
        lambda a: not a.dsp_products or (a.bits, a.dsp) == (4, "DSP48E2"),
    ),
    _required(
        "dsp_registers",
        f"0 unless the array has dsp_products {SIX.products}",
        lambda a: not a.dsp_registers or a.dsp_products > 0,
    ),
    _required(
        "dsp_clock",
        f"1 with dsp_products {SIX.products}, whose sums are added up outside of the DSPs",
        lambda a: not a.dsp_products or a.dsp_clock == 1,
    ),
    _required(
        "columns",
        "even, because two output channels share a DSP",
        lambda a: a.dsp_products != 0 or a.columns % 2 == 0,
    ),
    _required(
        "columns",
        f"a multiple of {SIX.columns} with dsp_products {SIX.products}, because so many output channels share a DSP",
        lambda a: not a.dsp_products or a.columns % SIX.columns == 0,
    ),
    Rule(lambda a: a.columns % _whole_columns(a) == 0, _cut_word),
    _choice("lanes", 4, 8, 16, 32, 64),  # at most an AXI word of 512 bits
    _required(
        "lanes",
        "at least 8 at 4 bits, so that a word holds the nibbles of a pixel",
        lambda a: a.bits != 4 or a.lanes >= 8,
    ),
    _required("lanes", "at most 32 at 16 bits (an AXI word has 512 bits)", lambda a: a.bits != 16 or a.lanes <= 32),
    _required("map_ports", "at most the number of rows", lambda a: a.map_ports <= a.rows),
    _choice("weight_ports", 1, 2, 4),
    _required("weight_ports", "a divisor of columns", lambda a: a.columns % a.weight_ports == 0),
    _choice("weight_words", 1, 2, 4),
    _required(
        "weight_words",
        "a number whose product with weight_ports divides columns",
        lambda a: a.columns % (a.weight_ports * a.weight_words) == 0,
    ),
    _required(
        "save_rows",
        "a power of two and at most the number of rows",
        lambda a: _power_of_two(a.save_rows) and a.save_rows <= a.rows,
    ),
    Rule(
        lambda a: (a.dsp, a.bits) not in PACKINGS or a.widest_stream <= WIDEST_WORD,
        lambda a: RangeError(
            "the number of bits of the widest stream (weights: columns × lanes × bits; sums of a position: columns × "
            "sum_bits, at 4 bits twice; saved sums: columns × save_rows × sum_bits)",
            a.widest_stream,
            high=WIDEST_WORD,
        ),
    ),
    _required(
        "sum_bits",
        f"{SUM_BITS} in C++, and in SystemVerilog at most that and more than the bits of a product",
        lambda a: a.sum_bits == SUM_BITS or (_has_narrow_sums(a) and 2 * a.bits < a.sum_bits < SUM_BITS),
    ),
    _required("row_depth", "even, because a bank is two interleaved halves", lambda a: a.row_depth % 2 == 0),
    _choice("dsp", *dict.fromkeys(dsp for dsp, _ in PACKINGS)),
)


def is_legal(array: Array) -> bool:
    """Return whether the array obeys every rule of this module."""
    return all(rule.holds(array) for rule in RULES)


def broken_rules(array: Array) -> list[SystolicError]:
    """Return one error per rule of this module that the array breaks.

    If the first rule is broken, only its error is returned, because the others divide by the numbers that it checks.
    """
    positive, *relations = RULES
    asked = relations if positive.holds(array) else [positive]
    return [rule.error(array) for rule in asked if not rule.holds(array)]


def check(array: Array) -> Array:
    """Return the array unchanged if it obeys every rule of this module; else raise an error.

    Raises:
        SeveralFaultsError: The array breaks rules; the error has one fault per broken rule.
    """
    errors = broken_rules(array)
    if errors:
        raise SeveralFaultsError(errors, f"the array {array} is not legal")
    return array
