"""The systolic array: its geometry and buffers as one frozen value, legality as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from boards.errors import ChoiceError, InvalidValueError, RangeError, SeveralFaultsError, SystolicError
from cnn.quantized import TABLE_BITS, VALUES_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import WIDEST_WORD

PIXEL_BYTES = 4
"""Bytes of one input pixel: 4 channels of 8 bits, a *plane* of the picture, whatever the format of the array."""

HLS, RTL = "hls", "rtl"
ENGINES = (HLS, RTL)
"""Languages of the engine: C++ for Vitis HLS, SystemVerilog."""

BITS = (4, 8, 16)
"""Formats of the engine: bits of a weight and of an activation in a lane."""

TABLE_DEPTHS = (0, *(1 << bits for bits in range(TABLE_BITS, VALUES_BITS + 1)))
"""Entries of a table, at most one for each value of 12 bits; 0 where nothing is looked up."""

TABLE_VALUES = 256
"""Of a function that is looked up: one for each value of 8 bits, or for each piece of a line, whatever the format."""

SLOPE_BITS = 18
"""Of a piece of a line, with the sign (cnn.quantisation.tables.SLOPE_LIMIT)."""

RESULT_BITS = 16
"""Bits of a result that leaves as it is, for the host: INT16 whatever the format."""

SUM_BITS, GROUP_BITS = 32, 16 + 1
"""Bits of a sum with its bias, and of what the Saver's words have beside their sums (systolic/types.h, group_t)."""


@dataclass(frozen=True)
class Packing:
    """How products share a DSP: weights of ``columns`` filters × activations of ``positions`` neighbours of a row in
    one multiplication, each product in a field of ``shift`` bits; ``chain`` of them are summed before the fields are
    taken apart. array/packed.h has the arithmetic, the tests the proof that it is exact for narrow weights (−7…7,
    −127…127)."""

    columns: int
    positions: int
    shift: int
    chain: int

    @property
    def products(self) -> int:
        return self.columns * self.positions


SIX = Packing(3, 2, 7, 1)
"""Six products a DSP48E2 at 4 bits: (w2 · 2^14 + w1 · 2^7 + w0) · (a1 · 2^21 + a0). A product of −7…7 and −8…7 is
−56…56 and fills a field of 7 bits, so that nothing is summed in the DSP: a constant of 64 in each field keeps them from
borrowing, and the lanes are added up in adders of three (array/six_products.h, pe_row_six.sv). Three weights of −8
would not fit the 18 bits of the port."""

PACKINGS = {
    ("DSP48E2", 4): Packing(2, 2, 11, 16),
    ("DSP48E2", 8): Packing(2, 1, 18, 8),
    ("DSP48E2", 16): Packing(1, 1, 32, 8),
    ("DSP48E1", 4): Packing(2, 2, 10, 8),
    ("DSP48E1", 8): Packing(2, 1, 17, 4),
    ("DSP48E1", 16): Packing(1, 1, 32, 4),
}
"""By DSP and bits. The ports are 27 × 18 bits (DSP48E2, UG579) and 25 × 18 bits (DSP48E1, UG479), the sum has 48.

4 bits: two weights × two activations, after AMD's WP521 (fields of 11 bits); a DSP48E1 takes fields of at most 10.
8 bits: two weights × one activation, after WP486 (shift 18, chains of 7 to 8). A DSP48E2 would take 19 too, with
chains of 16: not used, because 8 divide the lanes of every array. 17 is the widest that a DSP48E1 takes.
16 bits: one product, nothing to take apart; the chain is what is added in one column of DSPs."""


@dataclass(frozen=True)
class Array:
    """M rows × N columns × L lanes, and what surrounds them.

    save_rows: rows of one position that the Saver requantises a cycle (× columns requantisers).
    row_depth: words of ``lanes`` values in each of the ``rows`` row-buffer banks.
    weight_depth: steps (columns × lanes weights each) in the weight buffer.
    kept_depth: rows' sums that wait for their pool partner, [channel tile][column].
    chunk: columns that the Saver arranges before it writes a row piece.
    channel_tiles: requantisers kept for one pass, in tiles of ``columns`` channels.
    bits: of a weight and of an activation in a lane, one of BITS.
    weight_words: words of weights that a weight port gives a cycle, where they are narrower than the port.
    map_depth: words in each of the ``rows`` banks of the two map buffers, 0 where no map stays on chip.
    table_depth: values of the table in which a function of a layer is looked up, 256 to 4,096, or 0 where no layer
        has one.
    table_slopes: 1 where such a table is pieces of lines (inputs above 8 bits), 0 where each value has its own entry.
    upscale: how often a value is written in a row, and how many rows of it, at most: 2 where maps are upsampled.
    late_offsets: 1 where requantisers add after their multiplication (MultiplyShift), 2 where they round halves to
        even too, 0 where no layer does either.
    windows: 1 where max pools of any window are passes of their own, 0 where no layer is one.
    map_products: 1 where maps are multiplied by maps, 0 where no layer does it.
    added_maps: 1 where the Saver adds a map to that of a layer, with a port to read it, 0 where no layer asks for it.
    map_stride: largest stride with which a map on chip is read, 1…7.
    dsp_clock: cycles of the DSPs' clock in one of the array's, 1 or 2: with 2 a DSP multiplies for twice the columns.
    dsp_products: of a DSP in a cycle of its clock, 0 for those of PACKINGS, or 6 (SIX).
    dsp_registers: 1 where rows of such DSPs hand weights on in registers (SystemVerilog), 0 in FIFOs (C++).
    engine: the language of its modules, one of ENGINES: pipelines and state machines of each have cycles of their own.
    sum_bits: of an exact sum, as many as any weights of the network's layers may need; in C++ always 32.
    """

    rows: int
    columns: int
    lanes: int
    save_rows: int = 2
    map_ports: int = 2
    weight_ports: int = 2
    row_depth: int = 2048
    weight_depth: int = 4096
    kept_depth: int = 1024
    chunk: int = 64
    channel_tiles: int = 128
    dsp: str = "DSP48E2"
    bits: int = 8
    weight_words: int = 1
    map_depth: int = 0
    upscale: int = 1
    table_depth: int = 0
    table_slopes: int = 0
    windows: int = 0
    late_offsets: int = 0
    map_products: int = 0
    added_maps: int = 0
    map_stride: int = 1
    dsp_clock: int = 1
    dsp_products: int = 0
    dsp_registers: int = 0
    engine: str = HLS
    sum_bits: int = SUM_BITS

    @property
    def macs_per_cycle(self) -> int:
        """Where the stride is 1: else only one of two positions that share a DSP is there."""
        return self.rows * self.columns * self.lanes * self.packing.positions

    @property
    def packing(self) -> Packing:
        return SIX if self.dsp_products == SIX.products else PACKINGS[self.dsp, self.bits]

    @property
    def mac_dsps(self) -> int:
        """DSPs of the PEs."""
        return self.rows * self.columns * self.lanes // (self.packing.columns * self.dsp_clock)

    @property
    def intense(self) -> bool:
        """Whether a DSP does more than its format's products in a cycle of the array: ports and requantisers are
        short."""
        return self.dsp_clock > 1 or self.dsp_products > 0

    @property
    def pack_chain(self) -> int:
        """Lanes of a chain; at 4 bits at most half of them, because high nibbles have chains of their own."""
        return min(self.packing.chain, self.lanes // (2 if self.bits == 4 else 1))

    @property
    def word_bytes(self) -> int:
        """Of a word in DDR: ``lanes`` values of ``bits``."""
        return self.lanes * self.bits // 8

    @property
    def result_words(self) -> int:
        """Words that hold ``lanes`` results of RESULT_BITS."""
        return RESULT_BITS // self.bits

    @property
    def pixel_lanes(self) -> int:
        """Lanes of an input pixel: one a byte, at 4 bits one a nibble."""
        return PIXEL_BYTES * max(1, 8 // self.bits)

    @property
    def step_pixels(self) -> int:
        """Input pixels that the array takes a cycle."""
        return self.lanes // self.pixel_lanes

    @property
    def word_pixels(self) -> int:
        """Input pixels in a word of DDR: at 16 bits twice those of a step, because a byte fills half a lane."""
        return self.word_bytes // PIXEL_BYTES

    @property
    def tile_blocks(self) -> int:
        """Channel blocks (of ``lanes``) that one channel tile fills, or fills in part."""
        return ceil_div(self.columns, self.lanes)

    @property
    def widest_stream(self) -> int:
        """Bits of the widest word of a stream: weights_t, positions_t or group_t of systolic/types.h."""
        sums = self.sum_bits * self.columns
        weights = self.columns * self.lanes * self.bits
        return max(weights, sums * self.packing.positions, sums * self.save_rows + GROUP_BITS)

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.lanes}"


_OTHER = (
    *("dsp", "map_depth", "table_depth", "table_slopes", "windows", "late_offsets", "map_products", "added_maps"),
    *("dsp_products", "dsp_registers", "engine"),
)


@dataclass(frozen=True)
class Rule:
    """What every array keeps.

    Attributes:
        holds: Whether an array keeps the rule.
        error: The error for an array that breaks it.
    """

    holds: Callable[[Array], bool]
    error: Callable[[Array], SystolicError]


MAX_MAP_STRIDE = 7
"""With which a map on chip is read: the engine has a constant for each."""

COUNT_BITS = 9
"""Of rows, blocks and padding where an address is multiplied by them (systolic/pass.h)."""


def _power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


def _whole_columns(array: Array) -> int:
    """Return the number of columns that fills a word of the output map; with six products the engine writes halves."""
    return max(1, array.lanes // 2) if array.dsp_products else array.lanes


def _cut_word(array: Array) -> SystolicError:
    """Return the error for a channel tile that does not fill whole words of the output map."""
    whole = _whole_columns(array)
    below = array.columns // whole * whole
    words = "half a word" if array.dsp_products else "a word"
    required = f"a multiple of {whole}, the lanes of {words} of the output map"
    return InvalidValueError("columns", array.columns, required, tuple(filter(None, (below, below + whole))))


def _lowest(name: str) -> int | None:
    """Return the least value of a number of the array, None if the other rules say it."""
    if name in ("map_depth", "table_depth"):
        return 0
    return None if name in _OTHER else 1


_LOWEST = {f.name: low for f in fields(Array) if (low := _lowest(f.name)) is not None}


def _too_low(array: Array) -> SystolicError:
    """Return the error for the first number that is below its least value."""
    name = next(name for name, low in _LOWEST.items() if getattr(array, name) < low)
    return RangeError(name, getattr(array, name), _LOWEST[name])


def _choice(name: str, *choices: object) -> Rule:
    return Rule(
        lambda a: getattr(a, name) in choices,
        lambda a: ChoiceError(name, getattr(a, name), choices),
    )


def _range(name: str, low: int, high: int | None = None) -> Rule:
    return Rule(
        lambda a: low <= getattr(a, name) and (high is None or getattr(a, name) <= high),
        lambda a: RangeError(name, getattr(a, name), low, high),
    )


def _required(name: str, required: str, holds: Callable[[Array], bool]) -> Rule:
    """Return a rule of the number ``name``; ``required`` follows "must be"."""
    return Rule(holds, lambda a: InvalidValueError(name, getattr(a, name), required))


RULES = (
    Rule(lambda a: all(getattr(a, name) >= low for name, low in _LOWEST.items()), _too_low),
    _choice("bits", *BITS),
    _range("rows", 2),  # a pool needs two rows in a tile
    Rule(
        lambda a: a.rows * a.upscale < 1 << COUNT_BITS,  # addresses are multiplied by no more
        lambda a: RangeError("rows · upscale", a.rows * a.upscale, high=(1 << COUNT_BITS) - 1),
    ),
    Rule(
        lambda a: a.columns // max(1, a.lanes) < 1 << COUNT_BITS,
        lambda a: RangeError("columns / lanes", a.columns // max(1, a.lanes), high=(1 << COUNT_BITS) - 1),
    ),
    _choice("table_depth", *TABLE_DEPTHS),
    _required(
        "table_slopes",
        "0, or 1 if the array has a table_depth",
        lambda a: a.table_slopes == 0 or (a.table_slopes == 1 and a.table_depth > 0),
    ),
    _choice("upscale", 1, 2),
    _choice("windows", 0, 1),
    _choice("late_offsets", 0, 1, 2),
    _choice("map_products", 0, 1),
    _choice("added_maps", 0, 1),
    _range("map_stride", 1, MAX_MAP_STRIDE),
    _choice("dsp_clock", 1, 2),
    _choice("dsp_products", 0, SIX.products),
    _required(
        "dsp_products",
        "0 unless the array has 4 bits and DSP48E2s, whose ports hold three weights and two activations",
        lambda a: not a.dsp_products or (a.bits, a.dsp) == (4, "DSP48E2"),
    ),
    _required(
        "dsp_registers",
        f"0, or 1 with dsp_products {SIX.products}",
        lambda a: a.dsp_registers == 0 or (a.dsp_registers == 1 and a.dsp_products > 0),
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
    _choice("map_ports", 1, 2, 4),
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
    _choice("engine", *ENGINES),
    _required(
        "sum_bits",
        f"{SUM_BITS} in C++, and in SystemVerilog at most that and more than the bits of a product",
        lambda a: a.sum_bits == SUM_BITS or (a.engine == RTL and 2 * a.bits < a.sum_bits < SUM_BITS),
    ),
    _required("row_depth", "even, because a bank is two interleaved halves", lambda a: a.row_depth % 2 == 0),
    _choice("dsp", *dict.fromkeys(dsp for dsp, _ in PACKINGS)),
)


def check(array: Array) -> Array:
    """Return the array itself; raise SeveralFaultsError with an error for every rule that it breaks.

    The first rule alone if that is broken: the others divide by what it asks for.
    """
    positive, *relations = RULES
    asked = relations if positive.holds(array) else [positive]
    errors = [rule.error(array) for rule in asked if not rule.holds(array)]
    if errors:
        raise SeveralFaultsError(errors, f"the array {array} is not legal")
    return array
