"""LUT and FF of an array's logic: counted from its structure, before any vendor tool. For comparing arrays, not for
placing.

What is counted: one LUT and one FF a bit of an adder with its register (UG574, CARRY8: a LUT a bit), one LUT6 a bit
of a 4:1 multiplexer (UG574), one FF a bit of a pipeline register, the multipliers of addresses, which the engine binds
to LUTs. What is not: AXI adapters, FSMs, address counters.
Memories and FIFOs are counted in scheduler/systolic/area/resources.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import product_luts
from scheduler.systolic.array import COUNT_BITS, SIX, SUM_BITS, Array

FIELD_BITS = 30
"""Of a field as the C++ takes it from a chain's sum; the SystemVerilog, which alone has dsp_clock 2, takes no more bits
than it has."""

ADDRESS_BITS = 32
"""Of the wider operand of ``times`` in systolic/pass.h; constants among the narrower ones are counted as numbers."""
PASS_PRODUCTS, PORT_PRODUCTS, ADDED_PRODUCTS = 7, 6, 1
"""Places that call it: in load and plan_chunks; in read_rows and write_rows of every port; in plan_chunks where maps
are added. A test counts them."""

FACTOR_BITS, OFFSET_BITS = 32, 48
"""systolic/add.h: of what a value is multiplied with, of what both products are added to."""

SOURCE = "estimate: adders, multiplexers, registers and memories counted from the engine's structure"


@dataclass(frozen=True)
class Fabric:
    lut: int
    ff: int


def fabric(array: Array) -> Fabric:
    """The logic of ``array``; its numbers may be grids."""
    word = 8 * array.word_bytes
    shared = array.rows * array.columns // array.packing.columns
    chains, fields = ceil_div(array.lanes, array.pack_chain), array.packing.products
    # A chain's fields: each but the lowest corrected by the sign of the one below, then all accumulated.
    field_bits = FIELD_BITS if array.dsp_clock == 1 else array.packing.shift
    adders = Fabric(shared * chains * (fields * SUM_BITS + (fields - 1) * field_bits), 0)
    adders = _of_six(array) if array.packing is SIX else adders
    rotation = array.packing.positions * array.rows * word * ceil_div(array.rows - 1, 3)
    windows = array.packing.positions * array.rows * word * ceil_div(array.word_pixels, 3)
    requantisers = array.save_rows * array.columns * (SUM_BITS + 2 * 48 + 64)  # bias, rounding, shift by 4:1 stages
    # Where offsets are added behind the products: which of two biases, multipliers and addends it is.
    requantisers = requantisers + array.late_offsets * array.save_rows * array.columns * (SUM_BITS + 17 + 48)
    # Comparators; and where windows are compared, what is kept of one: the sum that came, or the larger one.
    pools = (2 + array.windows) * array.rows * array.columns * SUM_BITS
    # Products of maps in logic, and which rows are multiplied.
    products = array.save_rows * array.columns * (product_luts(array.bits, array.bits) + array.bits * array.rows // 3)
    pools = pools + array.map_products * (products + array.rows * array.columns * SUM_BITS)
    # Where the Saver adds maps: two products of each value of a word, their sum with an offset, a shift, two limits.
    added = array.lanes * (2 * product_luts(array.bits, FACTOR_BITS) + 3 * OFFSET_BITS + 64)
    # Where maps on chip are read with stride 2: from which of three banks each bank of the row buffer takes its word.
    moved = (array.map_stride - 1) * array.rows * word
    # What a row takes in a step, delayed for each DSP of a chain by a cycle more than for the one before.
    step_bits = array.rows * word * (array.columns + array.packing.positions)
    delays = step_bits * (array.pack_chain + 1) // 2
    # Where the DSPs' clock is twice as fast: whose weights it is, a register before and three behind each chain.
    halves = (array.dsp_clock - 1) * word * array.columns // 2
    sum_registers = (array.dsp_clock - 1) * shared * chains * fields * field_bits * 3 // 2
    products = PASS_PRODUCTS + PORT_PRODUCTS * array.map_ports + ADDED_PRODUCTS * array.added_maps
    addresses = products * product_luts(ADDRESS_BITS, COUNT_BITS)
    sums = array.rows * array.columns * SUM_BITS * array.packing.positions
    return Fabric(
        lut=adders.lut
        + rotation
        + windows
        + moved
        + requantisers
        + pools
        + addresses
        + array.added_maps * added
        + halves,
        ff=delays // array.dsp_clock
        + 3 * halves
        + sum_registers
        + adders.ff
        + 4 * sums
        + (array.save_rows * array.columns + array.added_maps * array.lanes) * 4 * 64,
    )


def _of_six(array: Array) -> Fabric:
    """What array/pe_row_six.sv has for each sum: two trees of adders of three, of the even and of the odd lanes, an
    adder of both, an odd one once or 16 times, and one of the steps. UG574: an adder of three takes a LUT a bit too."""
    lut = ff = 0
    addends, bits = array.lanes // 2, array.packing.shift
    while addends > 1:
        adders = (addends + 1) // 3  # one that is left over goes through a register
        addends, bits = ceil_div(addends, 3), bits + 2
        lut, ff = lut + 2 * bits * adders, ff + 2 * bits * addends
    both = bits + 5
    sums = array.rows * array.columns * array.packing.positions
    # Three weights come as the 18 bits of the port, packed once for all rows.
    packed = array.columns * array.lanes // 3 * 18
    widened = array.rows * (packed - array.columns * array.lanes * array.bits)
    return Fabric(lut=sums * (lut + both + SUM_BITS) + packed, ff=sums * (ff + both) + packed + widened)
