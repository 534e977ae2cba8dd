"""LUT and FF of the logic of the engine in SystemVerilog: a term for every module of rtl_templates/, as of Yosys.

A number that is no name is what ``python -m benchmarks.counts`` counted of the module on an UltraScale+ part
(tests/scheduler/yosys/ has the designs); what grows is what its text says, checked there too: a LUT a bit of an
adder and of a multiplexer of four, half of one a bit of a comparison, a FF a bit of a register. Yosys counts a module
without what it instantiates, so that no constant crosses a border, which makes the figures high.
Memories are counted in scheduler/systolic/area/memories.py, and words of FIFOs in fifos.py next to this module.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.formulas import LEAPS
from contract.geometry import RESULT_BITS, SUM_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import product_luts
from scheduler.systolic.area.logic import Fabric, of_six
from scheduler.systolic.array import SIX, Array

CONTROL, REGISTERS = Fabric(2059, 5512), Fabric(53, 96)
"""control_slave; read_program and sequence_passes, with the registers of a pass of 64 words each; plan_tiles and
plan_chunks with tile_rows; feed_weights. And of control_slave, where a port's base is kept."""

ASKS, READS, WRITES = Fabric(171, 97), Fabric(8, 4), Fabric(29, 12)
"""axi_bursts; axi_read and axi_write beside theirs."""

READ_ROWS, CHUNK_ROWS, READ_WEIGHTS = Fabric(1073, 391), Fabric(323, 257), Fabric(298, 97)
"""An instance a port, with the products of addresses."""

FIRST_ROWS = Fabric(842 - 1073, 0)
"""Of read_rows: the first port's multiplies by no number of its own."""

QUEUE = Fabric(15, 15)
"""fifo: two pointers and a count."""

CONSTANT_BITS = 72
"""systolic_geometry, channel_t: a register behind the memory of requantisers, which is in LUTs where channels are few.
Those of other memories in LUTs are left out."""

PLACE = 41
"""Of load, where a bank of a map buffer has the word that comes next: a sum of addresses.

The terms of load and pool are held at 13 rows too, counted alone or in an engine (tests/scheduler/test_yosys.py)."""

STEPPING_ROW, LEAPING, LEAPING_ROW = Fabric(21, 13), Fabric(1021, 596), Fabric(115, 37)
"""Of load, where a map on chip may be read with stride 2, and with larger ones: a bank's address, and where row strides
lie. Of counts of 5 rows with either and of 13 with the larger ones, beside the same arrays without; words left out."""

DIGIT_ROWS = 13
"""saver/lut_product.sv: digits of two bits add as many rows as a factor of 13 bits, nine, and two longer adders for the
thirds: 396 LUTs. Yosys counts 385; where the two are made one of three (a LUT a bit, UG574) it is some 40 less."""

SHIFTED = 3
"""Of registers behind each other, from so many on they are a LUT of a shift register (SRL16E, SRLC32E: up to 32)."""


def rtl_fabric(array: Array) -> Fabric:
    """The logic of ``array`` in SystemVerilog; its numbers may be grids."""
    parts = (_ports, _load, _window, _array, _pool, _requantise, _multiply, _arrange)
    return sum((part(array) for part in parts), _control(array))


def _times(count: int, part: Fabric) -> Fabric:
    return Fabric(count * part.lut, count * part.ff)


def _muxes(choices: int) -> int:
    """LUTs of a bit of a multiplexer: a tree of those of four."""
    return ceil_div(choices - 1, 3)


def _any(number: int) -> int:
    """0 where there is none, else 1."""
    return 1 - 1 // (1 + number)


def _larger(a: int, b: int) -> int:
    return (a + b + abs(a - b)) // 2


def _control(array: Array) -> Fabric:
    return CONTROL + _times(array.map_ports + array.added_maps + array.weight_ports, REGISTERS)


def _ports(array: Array) -> Fabric:
    """Who asks for rows, chunks and weights, the masters, and the counters of all FIFOs."""
    reader, writer = ASKS + READS, ASKS + WRITES
    maps = READ_ROWS + reader + CHUNK_ROWS + writer
    added = CHUNK_ROWS + CHUNK_ROWS + reader + writer
    queues = 8 + array.rows + 4 * array.map_ports + array.weight_ports + 5 * array.added_maps + array.map_products
    return (
        FIRST_ROWS
        + _times(array.map_ports, maps)
        + _times(array.weight_ports, READ_WEIGHTS + reader)
        + _times(array.added_maps, added)
        + _times(2, reader)  # of the program, of requantisers
        + _times(queues, QUEUE)
    )


def _load(array: Array) -> Fabric:
    """load: words of the row buffer on their way to the array, each in its row."""
    word = array.rows * 8 * array.word_bytes
    # Of an even and an odd address: turned by fours, whose choices are compared one by one, then by what is left.
    turned = word * (3 * (ceil_div(array.rows, 4) - 1) // 2 + 2 * _muxes(min(array.rows, 4)))
    # From which port, and whether from a map buffer.
    came = word * (_any(array.map_ports - 1) + _any(array.map_depth)) + _any(array.map_depth) * array.rows * PLACE
    waiting = 2 * word // array.rows * (1 + _any(array.map_ports - 1) * (array.rows - 1))
    steps = (4 + array.packing.positions) * word + waiting
    return _moved(array) + Fabric(3430 + 105 * array.rows + turned + came, 1750 + 90 * array.rows + steps)


def _moved(array: Array) -> Fabric:
    """Of load: which bank's word is stored of those that a map buffer gives. With stride 2 one of three; with a larger
    one words of LEAPS row strides come, each of any bank, and it is one of these."""
    word = 8 * array.word_bytes
    steps = _times(array.rows, STEPPING_ROW + Fabric(word, 0))
    chosen = LEAPS * word * _muxes(array.rows) + array.rows * word * _muxes(LEAPS)
    leaps = LEAPING + _times(array.rows, LEAPING_ROW) + Fabric(chosen, 0)
    return _times(1 * (array.map_stride > 1), steps) + _times(1 * (array.map_stride > 2), leaps)


def _window(array: Array) -> Fabric:
    """window: a word begins with any pixel of two, or holds padding: 1.5 LUTs a bit for a step of the shift, at 4 bits
    half of one more for nibbles."""
    word = array.rows * array.packing.positions * 8 * array.word_bytes
    return Fabric(word * (3 * array.word_pixels.bit_length() + (array.bits == 4)) // 2, 0)


def _array(array: Array) -> Fabric:
    """pe_array with pe_row and what delays operands."""
    chains, positions = array.lanes // array.pack_chain, array.packing.positions
    sums = array.rows * array.columns * positions
    dealt = array.lanes * array.columns * array.bits // array.dsp_clock
    handed = Fabric(60, 70 + (array.rows - 1) * dealt)
    if array.packing is SIX:
        return of_six(array) + handed + Fabric(0, sums * array.sum_bits)
    field_bits = array.packing.shift if array.packing.products > 1 else array.sum_bits
    # At 4 bits every second chain may be of high nibbles, and counts 16 times then.
    nibbles = chains // 2 * (field_bits + 4) if array.bits == 4 else 0
    rows = Fabric(sums * (array.sum_bits * chains + nibbles), sums * (array.sum_bits + chains * field_bits))
    return rows + handed + _delays(array)


def _delays(array: Array) -> Fabric:
    """Operands of a chain's places, and rows of activations: each a cycle later than those before."""
    chains, places = array.lanes // array.pack_chain, range(array.pack_chain)
    weights, values = chains * array.columns * array.bits, chains * array.bits * array.packing.positions
    steps = [row + place for row in range(array.rows) for place in places]
    if array.dsp_clock == 1:
        return _delayed([*((place, weights) for place in places), *((step, values) for step in steps)])
    # operand and deal_weights: cycles of the fabric and one more, then of the DSPs' clock; of weights one half or the
    # other. take_sums: one register of that clock, or two, and two sums behind it.
    crossing = [(1 + place // 2, weights) for place in places] + [(1 + step // 2, values) for step in steps]
    fast = [(place % 2, weights // 2) for place in places] + [(1 + step % 2, values) for step in steps]
    chosen = len(places) * weights // 2
    sums = array.mac_dsps // array.pack_chain * array.packing.products * array.packing.shift
    return _delayed(crossing) + _delayed(fast) + Fabric(chosen, chosen + sums * 7 // 2)


def _delayed(words: Sequence[tuple[int, int]]) -> Fabric:
    """Words by their cycles and bits, in registers or in shift registers."""
    luts = sum(ceil_div(cycles, 32) * bits for cycles, bits in words if cycles >= SHIFTED)
    return Fabric(luts, sum(cycles * bits for cycles, bits in words if cycles < SHIFTED))


def _pool(array: Array) -> Fabric:
    """Of each sum that comes the larger of two; the places of a group, each of few rows; of them the larger of two."""
    came, group = array.rows * array.columns * array.sum_bits, array.columns * array.sum_bits
    span = 2 * array.save_rows
    arrived = came * (3 + 2 * (array.packing.positions - 1) + 2 * array.windows) // 2
    # Of the rows that are the same modulo ``span`` one, and the row that was kept among the last of these.
    choices = (ceil_div(array.rows - row, span) + (row == span - 1) for row in range(array.rows))
    # Each choice is told by itself (lap == choice): a LUT a bit for every one but the first.
    places = group * sum((row < span) * (count - 1) for row, count in enumerate(choices))
    left = array.save_rows * group * (3 + 4 * _muxes(array.save_rows)) // 2
    before = array.map_products * array.rows * array.columns * array.bits
    return Fabric(480 + arrived + places + left + before, 160 + 2 * came + before)


LINE = Fabric(lut=199, ff=143)
"""saver/look_up_piece.sv without its memory, as Yosys counts it: a value is moved up, its place times a slope
(lut_product, 18 × 9 bits) is added."""


HALVES, ADDED_HALVES = Fabric(lut=16, ff=2), Fabric(lut=72, ff=2)
"""What rounding halves to even adds to saver/shift_and_saturate.sv and to a lane of saver/add_words.sv, as Yosys
counts: tests whether a bit below the half is set, and whether the integer is even."""


def _requantise(array: Array) -> Fabric:
    """requantise with requantise_sum and shift_and_saturate, products left out; a column's shifts delayed together."""
    results = array.save_rows * array.columns
    # Offsets behind the products: which of two biases and multipliers it is, the sum. Tables: which of two results.
    adds, halves = int(array.late_offsets > 0), int(array.late_offsets > 1)
    late = adds * (SUM_BITS + 17 + 49) + halves * HALVES.lut
    table = (_any(array.table_depth) - array.table_slopes) * RESULT_BITS
    lines = array.table_slopes * LINE.lut, array.table_slopes * LINE.ff
    registers = 272 - (SUM_BITS - array.sum_bits) + adds * 49 + halves * HALVES.ff
    return Fabric(
        130 + 16 * array.columns + results * (225 + late + table + lines[0]),
        90 + (1 + CONSTANT_BITS) * array.columns + results * (registers + table + lines[1]),
    )


def _multiply(array: Array) -> Fabric:
    """multiply, where maps are multiplied by maps: products of values in LUTs, a group's registers."""
    values = array.save_rows * array.columns
    product = product_luts(array.bits, array.bits)
    return _times(array.map_products * values, Fabric(product + array.sum_bits, 3 * array.sum_bits + 3 * array.bits))


def _arrange(array: Array) -> Fabric:
    """arrange with add_words, and the words of map_buffers."""
    word = 8 * array.word_bytes
    results = array.save_rows * array.tile_blocks * array.result_words * word
    banks = _larger(array.save_rows, array.map_ports)
    chosen = word * array.map_ports * _muxes(banks * array.tile_blocks * array.result_words)
    kept = array.rows * word
    on_chip = _any(array.map_depth) * kept * (1 + array.added_maps)
    # saturate((a · own + b · other + offset) >> shift): 5,130 LUTs counted of 4 lanes at 8 bits.
    lane = Fabric(400 + 110 * array.bits, 108 + 15 * array.bits) + _times(int(array.late_offsets > 1), ADDED_HALVES)
    added = _times(array.added_maps * array.lanes, lane)
    return added + Fabric(
        800 + 100 * array.rows + results + chosen + kept * _any(banks - 1) + on_chip,
        675 + 33 * array.rows + word + (array.rows - 1) * word * _any(banks - 1),
    )
