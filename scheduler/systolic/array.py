"""The systolic array: its geometry and buffers as one frozen value, legality as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from boards.errors import ScheduleError
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import WIDEST_WORD

PIXEL_BYTES = 4
"""Bytes of one input pixel: 4 channels of 8 bits, a *plane* of the picture, whatever the format of the array."""

HLS, RTL = "hls", "rtl"
ENGINES = (HLS, RTL)
"""Languages of the engine: C++ for Vitis HLS, SystemVerilog."""

BITS = (4, 8, 16)
"""Formats of the engine: bits of a weight and of an activation in a lane."""

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
    table_depth: values of the table in which a function of a layer is looked up, 256, or 0 where no layer has one.
    table_slopes: 1 where such a table is pieces of lines (inputs above 8 bits), 0 where each value has its own entry.
    upscale: how often a value is written in a row, and how many rows of it, at most: 2 where maps are upsampled.
    late_offsets: 1 where requantisers add behind their multiplication (MultiplyShift), 0 where no layer does.
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
    sentence: str
    holds: Callable[[Array], bool]


MAX_MAP_STRIDE = 7
"""With which a map on chip is read: the engine has a constant for each."""

COUNT_BITS = 9
"""Of rows, blocks and padding where an address is multiplied by them (systolic/pass.h)."""


def _power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


RULES = (
    Rule(
        "every number of the array is at least 1, map_depth and table_depth at least 0",
        lambda a: a.map_depth >= 0 and all(getattr(a, f.name) >= 1 for f in fields(a) if f.name not in _OTHER),
    ),
    Rule(f"bits is one of {', '.join(map(str, BITS))}", lambda a: a.bits in BITS),
    Rule("rows is at least 2, so that a pool finds two rows in a tile", lambda a: a.rows >= 2),
    Rule(
        f"rows · upscale and columns / lanes are below {1 << COUNT_BITS}, because addresses are multiplied by no more",
        lambda a: max(a.rows * a.upscale, a.columns // max(1, a.lanes)) < 1 << COUNT_BITS,
    ),
    Rule(f"table_depth is 0 or {TABLE_VALUES}", lambda a: a.table_depth in (0, TABLE_VALUES)),
    Rule(
        "table_slopes is 0, or 1 with a table_depth",
        lambda a: a.table_slopes == 0 or (a.table_slopes == 1 and a.table_depth > 0),
    ),
    Rule("upscale is 1 or 2", lambda a: a.upscale in (1, 2)),
    Rule("windows is 0 or 1", lambda a: a.windows in (0, 1)),
    Rule("late_offsets is 0 or 1", lambda a: a.late_offsets in (0, 1)),
    Rule("map_products is 0 or 1", lambda a: a.map_products in (0, 1)),
    Rule("added_maps is 0 or 1", lambda a: a.added_maps in (0, 1)),
    Rule(f"map_stride is 1…{MAX_MAP_STRIDE}", lambda a: a.map_stride in range(1, MAX_MAP_STRIDE + 1)),
    Rule("dsp_clock is 1 or 2, cycles of the DSPs' clock in one of the array's", lambda a: a.dsp_clock in (1, 2)),
    Rule("dsp_products is 0, as many as the format has, or 6", lambda a: a.dsp_products in (0, SIX.products)),
    Rule(
        "dsp_products is 6 at 4 bits alone, on a DSP48E2, whose ports hold three weights and two activations",
        lambda a: not a.dsp_products or (a.bits, a.dsp) == (4, "DSP48E2"),
    ),
    Rule(
        "dsp_registers is 0, or 1 with dsp_products 6",
        lambda a: a.dsp_registers == 0 or (a.dsp_registers == 1 and a.dsp_products > 0),
    ),
    Rule(
        "dsp_clock is 1 with dsp_products 6, whose sums are added up outside of the DSPs",
        lambda a: not a.dsp_products or a.dsp_clock == 1,
    ),
    Rule(
        "columns is even, because two output channels share a DSP",
        lambda a: a.dsp_products != 0 or a.columns % 2 == 0,
    ),
    Rule(
        "columns is a multiple of 3 with dsp_products 6, because three output channels share a DSP",
        lambda a: not a.dsp_products or a.columns % SIX.columns == 0,
    ),
    Rule(
        "columns is a multiple of lanes, so that a channel tile fills whole words of the output map; with dsp_products "
        "6, whose engine writes halves of words, of half of them",
        lambda a: a.columns % (a.lanes // 2 if a.dsp_products else a.lanes) == 0,
    ),
    Rule(
        "lanes is a power of two of at least 4 and at most 64 (an AXI word of 512 bits)",
        lambda a: 4 <= a.lanes <= 64 and _power_of_two(a.lanes),
    ),
    Rule(
        "lanes at 4 bits are at least 8, so that they hold the nibbles of a pixel",
        lambda a: a.bits != 4 or a.lanes >= 8,
    ),
    Rule("lanes at 16 bits are at most 32 (an AXI word of 512 bits)", lambda a: a.bits != 16 or a.lanes <= 32),
    Rule(
        "map_ports is 1, 2 or 4 and not more than rows",
        lambda a: a.map_ports in (1, 2, 4) and a.map_ports <= a.rows,
    ),
    Rule(
        "weight_ports is 1, 2 or 4 and divides columns",
        lambda a: a.weight_ports in (1, 2, 4) and a.columns % a.weight_ports == 0,
    ),
    Rule(
        "weight_words is 1, 2 or 4, and weight_ports × weight_words divides columns",
        lambda a: a.weight_words in (1, 2, 4) and a.columns % (a.weight_ports * a.weight_words) == 0,
    ),
    Rule(
        "save_rows is a power of two and not more than rows",
        lambda a: _power_of_two(a.save_rows) and a.save_rows <= a.rows,
    ),
    Rule(
        f"streams have at most {WIDEST_WORD} bits: columns × lanes × bits of weights, columns × sum_bits of the sums "
        f"of a position (two at 4 bits), columns × save_rows × sum_bits + {GROUP_BITS} of the Saver's",
        lambda a: (a.dsp, a.bits) not in PACKINGS or a.widest_stream <= WIDEST_WORD,
    ),
    Rule(f"engine is one of {', '.join(ENGINES)}", lambda a: a.engine in ENGINES),
    Rule(
        f"sum_bits is {SUM_BITS} in C++, and in SystemVerilog at most that and more than the 2 · bits of a product",
        lambda a: a.sum_bits == SUM_BITS or (a.engine == RTL and 2 * a.bits < a.sum_bits < SUM_BITS),
    ),
    Rule("row_depth is even, because a bank is two interleaved halves", lambda a: a.row_depth % 2 == 0),
    Rule("dsp is DSP48E2 or DSP48E1", lambda a: any(a.dsp == dsp for dsp, _ in PACKINGS)),
)


def check(array: Array) -> Array:
    """The array itself, or ScheduleError with the sentence of every rule it breaks.

    The first rule alone where that is broken: the others divide by what it asks for.
    """
    positive, *relations = RULES
    broken = [rule.sentence for rule in (relations if positive.holds(array) else [positive]) if not rule.holds(array)]
    if broken:
        raise ScheduleError(f"the array {array} is not legal: " + "; ".join(broken))
    return array
