"""LUTs and FFs of the logic of the engine in SystemVerilog, with one term for each module of rtl_templates/.

Literal numbers are the counts of ``python -m benchmarks.counts``, which runs Yosys on each module for an UltraScale+
part. tests/scheduler/yosys/ has the designs. The terms that grow with the array follow from the module's text, and are
checked with the same counts:

- adders and 4:1 multiplexers: one LUT per bit;
- comparisons: half a LUT per bit;
- registers: one FF per bit.

Yosys counts each module alone, without the modules that it instantiates. Constants are not propagated from module to
module, so that the counts are too high rather than too low. scheduler/systolic/area/memories.py counts memories, and
fifos.py next to this module lists the FIFOs with their words.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.formulas import MAX_STRIDED_ROWS
from contract.geometry import RESULT_BITS, SUM_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import product_luts
from scheduler.systolic.area.logic import Fabric, six_product_logic
from scheduler.systolic.array import SIX, Array

CONTROL, REGISTERS = Fabric(2059, 5512), Fabric(53, 96)
"""The control logic, and the registers of control_slave for the base address of one port.

The control logic is the sum of these modules: control_slave; read_program and sequence_passes, each with registers for
the 64 words of a pass; plan_tiles and plan_chunks with tile_rows; feed_weights."""

ASKS, READS, WRITES = Fabric(171, 97), Fabric(8, 4), Fabric(29, 12)
"""The modules axi_bursts, axi_read and axi_write. axi_bursts is not included in the other two."""

READ_ROWS, CHUNK_ROWS, READ_WEIGHTS = Fabric(1073, 391), Fabric(323, 257), Fabric(298, 97)
"""The modules read_rows, chunk_rows and read_weights, with the multipliers of their addresses.

Each port has an instance of its own."""

FIRST_ROWS = Fabric(842 - 1073, 0)
"""The correction for the read_rows of the first port, whose number is 0. It needs no product with this number."""

QUEUE = Fabric(15, 15)
"""The module fifo without its memory: two pointers and a count."""

CONSTANT_BITS = 72
"""Bits of a channel_t (package systolic_geometry), which the register after the memory of requantisers holds.

The register needs FFs if the memory is built in LUTs, as for few channels. Such registers of other memories are not
counted."""

PLACE = 41
"""LUTs of load per row, for the address of the next word in a bank of a map buffer, which is a sum.

tests/scheduler/test_yosys.py checks the terms of load and pool for 13 rows too, counted alone or in an engine."""

STEPPING_ROW, LEAPING, LEAPING_ROW = Fabric(21, 13), Fabric(1021, 596), Fabric(115, 37)
"""The further logic of load for maps on chip that are read with strides above 1.

STEPPING_ROW is the address of a bank, per row, for stride 2. LEAPING and LEAPING_ROW are for strides above 2: they
compute the places of the row strides, once per engine and once per row. The numbers are differences of counts, with and
without these strides: at 5 rows for both, and at 13 rows for strides above 2. ``_moved`` counts the multiplexers of
the words."""

DIGIT_ROWS = 13
"""The factor's bits for which ``product_luts`` gives the LUTs of saver/lut_product.sv.

The module adds nine digits of two bits, and joins their thirds by two longer adders. This takes 396 LUTs, as for a
factor of 13 bits. Yosys counts 385. If a tool merges the two adders into one three-input adder (one LUT per bit,
UG574), about 40 LUTs fewer are needed."""

SHIFTED = 3
"""The number of registers in series from which they are built as a shift register.

A LUT is a shift register of up to 32 bits (SRL16E, SRLC32E)."""


def rtl_fabric(array: Array) -> Fabric:
    """Return the LUTs and FFs of the SystemVerilog engine's logic for ``array``, whose numbers may be numpy grids."""
    parts = (_ports, _load, _window, _array, _pool, _requantise, _multiply, _arrange)
    return sum((part(array) for part in parts), _control(array))


def _times(count: int, part: Fabric) -> Fabric:
    return Fabric(count * part.lut, count * part.ff)


def _muxes(choices: int) -> int:
    """Return the LUTs per bit of a multiplexer with ``choices`` inputs: a tree of 4:1 multiplexers."""
    return ceil_div(choices - 1, 3)


def _any(number: int) -> int:
    """Return 1 if ``number`` is positive, and 0 if it is 0, by arithmetic that also works for numpy grids."""
    return 1 - 1 // (1 + number)


def _larger(a: int, b: int) -> int:
    return (a + b + abs(a - b)) // 2


def _control(array: Array) -> Fabric:
    return CONTROL + _times(array.map_ports + array.added_maps + array.weight_ports, REGISTERS)


def _ports(array: Array) -> Fabric:
    """Return the LUTs and FFs of the DDR side: the readers and writers of rows, chunks and weights, AXI masters, and
    FIFO counters."""
    reader, writer = ASKS + READS, ASKS + WRITES
    maps = READ_ROWS + reader + CHUNK_ROWS + writer
    added = CHUNK_ROWS + CHUNK_ROWS + reader + writer
    queues = 8 + array.rows + 4 * array.map_ports + array.weight_ports + 5 * array.added_maps + array.map_products
    return (
        FIRST_ROWS
        + _times(array.map_ports, maps)
        + _times(array.weight_ports, READ_WEIGHTS + reader)
        + _times(array.added_maps, added)
        + _times(2, reader)  # for the program, and for the requantisers' constants
        + _times(queues, QUEUE)
    )


def _load(array: Array) -> Fabric:
    """Return the LUTs and FFs of module load, which fills the row buffer and moves its words to the rows of PEs."""
    word = array.rows * 8 * array.word_bytes
    # The words of even and of odd address are rotated to their rows: by a multiple of four rows, whose multiplexer
    # compares its choices one by one, and then by up to three rows.
    turned = word * (3 * (ceil_div(array.rows, 4) - 1) // 2 + 2 * _muxes(min(array.rows, 4)))
    # Multiplexers select the port from which a word is stored, and between the ports and a map buffer.
    came = word * (_any(array.map_ports - 1) + _any(array.map_depth)) + _any(array.map_depth) * array.rows * PLACE
    waiting = 2 * word // array.rows * (1 + _any(array.map_ports - 1) * (array.rows - 1))
    steps = (4 + array.packing.positions) * word + waiting
    return _moved(array) + Fabric(3430 + 105 * array.rows + turned + came, 1750 + 90 * array.rows + steps)


def _moved(array: Array) -> Fabric:
    """Return the LUTs and FFs with which module load copies words from a map buffer to the banks of the row buffer.

    With stride 2 it is the word of one of three banks. With larger strides, words of MAX_STRIDED_ROWS row strides are
    read per cycle, each from any bank, and each bank of the row buffer takes one of them.
    """
    word = 8 * array.word_bytes
    steps = _times(array.rows, STEPPING_ROW + Fabric(word, 0))
    chosen = MAX_STRIDED_ROWS * word * _muxes(array.rows) + array.rows * word * _muxes(MAX_STRIDED_ROWS)
    leaps = LEAPING + _times(array.rows, LEAPING_ROW) + Fabric(chosen, 0)
    return _times(1 * (array.map_stride > 1), steps) + _times(1 * (array.map_stride > 2), leaps)


def _window(array: Array) -> Fabric:
    """Return the LUTs and FFs of module window, which aligns row-buffer words to pixels and inserts padding.

    A word for the array may begin at any pixel of two words of the row buffer, or hold padding. Each step of the shift
    takes 1.5 LUTs per bit. At 4 bits the nibbles take half a LUT per bit more.
    """
    word = array.rows * array.packing.positions * 8 * array.word_bytes
    return Fabric(word * (3 * array.word_pixels.bit_length() + (array.bits == 4)) // 2, 0)


def _array(array: Array) -> Fabric:
    """Return the LUTs and FFs of the PE array (pe_array and pe_row), with the delays of the operands."""
    chains, positions = array.lanes // array.pack_chain, array.packing.positions
    sums = array.rows * array.columns * positions
    distributed = array.lanes * array.columns * array.bits // array.dsp_clock
    handed = Fabric(60, 70 + (array.rows - 1) * distributed)
    if array.packing is SIX:
        return six_product_logic(array) + handed + Fabric(0, sums * array.sum_bits)
    field_bits = array.packing.shift if array.packing.products > 1 else array.sum_bits
    # At 4 bits every second chain may compute with the high nibbles of pixels. Its sum is then multiplied by 16.
    nibbles = chains // 2 * (field_bits + 4) if array.bits == 4 else 0
    rows = Fabric(sums * (array.sum_bits * chains + nibbles), sums * (array.sum_bits + chains * field_bits))
    return rows + handed + _delays(array)


def _delays(array: Array) -> Fabric:
    """Return the LUTs and FFs of the registers that delay weights and activations on their way to the DSPs.

    Each DSP of a chain takes its operands one cycle after the DSP before it. Each row takes its activations one cycle
    after the row above.
    """
    chains, places = array.lanes // array.pack_chain, range(array.pack_chain)
    weights, values = chains * array.columns * array.bits, chains * array.bits * array.packing.positions
    steps = [row + place for row in range(array.rows) for place in places]
    if array.dsp_clock == 1:
        return _delayed([*((place, weights) for place in places), *((step, values) for step in steps)])
    # operand and distribute_weights delay by cycles of the fabric's clock and one more, then by cycles of the DSPs'
    # clock. A multiplexer selects one half of the weights. capture_sums has one or two registers of the DSPs' clock per
    # sum, and then the registers of two sums.
    crossing = [(1 + place // 2, weights) for place in places] + [(1 + step // 2, values) for step in steps]
    fast = [(place % 2, weights // 2) for place in places] + [(1 + step % 2, values) for step in steps]
    chosen = len(places) * weights // 2
    sums = array.mac_dsps // array.pack_chain * array.packing.products * array.packing.shift
    return _delayed(crossing) + _delayed(fast) + Fabric(chosen, chosen + sums * 7 // 2)


def _delayed(words: Sequence[tuple[int, int]]) -> Fabric:
    """Return the LUTs and FFs that delay words by given cycles, in registers or in shift registers.

    Args:
        words: The cycles of each delay, and the bits that are delayed.
    """
    luts = sum(ceil_div(cycles, 32) * bits for cycles, bits in words if cycles >= SHIFTED)
    return Fabric(luts, sum(cycles * bits for cycles, bits in words if cycles < SHIFTED))


def _pool(array: Array) -> Fabric:
    """Return the LUTs and FFs of module pool (the fused max pool).

    It takes the larger of two values for each sum that arrives. It then selects the rows of a group, and takes the
    larger of two of them.
    """
    came, group = array.rows * array.columns * array.sum_bits, array.columns * array.sum_bits
    span = 2 * array.save_rows
    arrived = came * (3 + 2 * (array.packing.positions - 1) + 2 * array.windows) // 2
    # Each place of a group selects among the rows with equal row modulo ``span``. The last place can also select the
    # row that was stored from the tile above.
    choices = (ceil_div(array.rows - row, span) + (row == span - 1) for row in range(array.rows))
    # Each choice is compared separately (lap == choice), and takes one LUT per bit, except the first.
    places = group * sum((row < span) * (count - 1) for row, count in enumerate(choices))
    left = array.save_rows * group * (3 + 4 * _muxes(array.save_rows)) // 2
    before = array.map_products * array.rows * array.columns * array.bits
    return Fabric(480 + arrived + places + left + before, 160 + 2 * came + before)


LINE = Fabric(lut=199, ff=143)
"""saver/look_up_segment.sv without its memory, as counted by Yosys.

The module shifts a value, and adds the product of the position in a segment and the segment's slope (lut_product,
18 × 9 bits)."""


HALVES, ADDED_HALVES = Fabric(lut=16, ff=2), Fabric(lut=72, ff=2)
"""The further logic for rounding halves to even: in saver/shift_and_saturate.sv, and per lane of saver/add_words.sv.

Yosys counted it. It tests whether a bit below the half is set, and whether the integer is even."""


def _requantise(array: Array) -> Fabric:
    """Return the LUTs and FFs of requantise, requantise_sum and shift_and_saturate, without the multipliers.

    The shift amounts of a column are delayed once for all its results.
    """
    results = array.save_rows * array.columns
    # If offsets are added after the products: multiplexers of two biases and of two multipliers, and the adder.
    # Tables: a multiplexer of two results.
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
    """Return the LUTs and FFs of module multiply, which multiplies two feature maps, or nothing if the array has
    none."""
    values = array.save_rows * array.columns
    product = product_luts(array.bits, array.bits)
    return _times(array.map_products * values, Fabric(product + array.sum_bits, 3 * array.sum_bits + 3 * array.bits))


def _arrange(array: Array) -> Fabric:
    """Return the LUTs and FFs of arrange and add_words (reordering and residual add), and of the map buffers' word
    registers."""
    word = 8 * array.word_bytes
    results = array.save_rows * array.tile_blocks * array.result_words * word
    banks = _larger(array.save_rows, array.map_ports)
    chosen = word * array.map_ports * _muxes(banks * array.tile_blocks * array.result_words)
    kept = array.rows * word
    on_chip = _any(array.map_depth) * kept * (1 + array.added_maps)
    # saturate((a · own + b · other + offset) >> shift). Yosys counts 5,130 LUTs for 4 lanes at 8 bits.
    lane = Fabric(400 + 110 * array.bits, 108 + 15 * array.bits) + _times(int(array.late_offsets > 1), ADDED_HALVES)
    added = _times(array.added_maps * array.lanes, lane)
    return added + Fabric(
        800 + 100 * array.rows + results + chosen + kept * _any(banks - 1) + on_chip,
        675 + 33 * array.rows + word + (array.rows - 1) * word * _any(banks - 1),
    )
