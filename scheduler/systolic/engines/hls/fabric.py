"""LUT and FF of an array's logic: counted from its structure, before any vendor tool. For comparing arrays, not for
placing. That of the engine in SystemVerilog is in scheduler/systolic/engines/rtl/fabric.py.

What is counted of the engine in C++: one LUT and one FF a bit of an adder with its register (UG574, CARRY8: a LUT a
bit), one LUT6 a bit of a 4:1 multiplexer (UG574), one FF a bit of a pipeline register, the multipliers of addresses,
which the engine binds to LUTs. What is not: AXI adapters, FSMs, address counters.
Memories are counted in scheduler/systolic/area/memories.py, and FIFOs in scheduler/systolic/engines/hls/fifos.py.
"""

from __future__ import annotations

from contract.formulas import LEAPS
from contract.geometry import RESULT_BITS, SUM_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import product_luts
from scheduler.systolic.area.logic import Fabric, of_six
from scheduler.systolic.array import COUNT_BITS, SIX, SLOPE_BITS, Array

FIELD_BITS = 30
"""Of a field as the C++ takes it from a chain's sum."""

ADDRESS_BITS = 32
"""Of the wider operand of ``times`` in systolic/pass.h; constants among the narrower ones are counted as numbers."""
PASS_PRODUCTS, PORT_PRODUCTS, ADDED_PRODUCTS = 7, 6, 1
"""Places that call it: in load and plan_chunks; in read_rows and write_rows of every port; in plan_chunks where maps
are added. A test counts them."""

FACTOR_BITS, OFFSET_BITS = 32, 48
"""systolic/add.h: of what a value is multiplied with, of what both products are added to."""

PLACE_BITS = 9
"""saver/requantise.h: of a value's place within a piece of a line, with a sign."""


def hls_fabric(array: Array) -> Fabric:
    """The logic of ``array`` in C++; its numbers may be grids."""
    products = PASS_PRODUCTS + PORT_PRODUCTS * array.map_ports + ADDED_PRODUCTS * array.added_maps
    addresses = Fabric(products * product_luts(ADDRESS_BITS, COUNT_BITS), 0)
    return _rows(array) + _pes(array) + _pools(array) + _requantisers(array) + addresses


def _rows(array: Array) -> Fabric:
    """Words of the row buffer on their way to the array, each in its row."""
    word = 8 * array.word_bytes
    rotation = array.packing.positions * array.rows * word * ceil_div(array.rows - 1, 3)
    windows = array.packing.positions * array.rows * word * ceil_div(array.word_pixels, 3)
    # Where maps on chip are read with stride 2: from which of three banks each bank of the row buffer takes its word.
    moved = min(array.map_stride - 1, 1) * array.rows * word
    return Fabric(rotation + windows + moved, 0) + leaping_rows(array)


def leaping_rows(array: Array) -> Fabric:
    """Where maps on chip are read with a stride above 2: LEAPS words, each of any bank, of these the one that a bank
    of the row buffer takes, and the address at which a bank is read."""
    chosen = LEAPS * 8 * array.word_bytes * ceil_div(array.rows - 1, 3)
    dealt = array.rows * (8 * array.word_bytes + ADDRESS_BITS) * ceil_div(LEAPS - 1, 3)
    return Fabric((array.map_stride > 2) * (chosen + dealt), 0)


def _pes(array: Array) -> Fabric:
    """What is around the DSPs: operands before them, sums behind them."""
    shared = array.rows * array.columns // array.packing.columns
    chains, fields = ceil_div(array.lanes, array.pack_chain), array.packing.products
    # A chain's fields: each but the lowest corrected by the sign of the one below, then all accumulated.
    adders = Fabric(shared * chains * (fields * SUM_BITS + (fields - 1) * FIELD_BITS), 0)
    adders = of_six(array) if array.packing is SIX else adders
    # What a row takes in a step, delayed for each DSP of a chain by a cycle more than for the one before.
    step_bits = array.rows * 8 * array.word_bytes * (array.columns + array.packing.positions)
    delays = step_bits * (array.pack_chain + 1) // 2
    sums = array.rows * array.columns * SUM_BITS * array.packing.positions
    return adders + Fabric(0, delays + 4 * sums)


def _pools(array: Array) -> Fabric:
    """Comparators; and where windows are compared, what is kept of one: the sum that came, or the larger one."""
    pools = (2 + array.windows) * array.rows * array.columns * SUM_BITS
    # Products of maps in logic, and which rows are multiplied.
    products = array.save_rows * array.columns * (product_luts(array.bits, array.bits) + array.bits * array.rows // 3)
    return Fabric(pools + array.map_products * (products + array.rows * array.columns * SUM_BITS), 0)


HALVES_LUT = 35
"""LUTs that rounding halves to even adds to a value: tests whether a bit below the half is set, and whether the integer
is even. Yosys counts 16 in the requantiser of the engine in SystemVerilog, and 35 to 72 where it adds maps."""


def _requantisers(array: Array) -> Fabric:
    """Requantisers, and the sums of two maps."""
    requantised = array.save_rows * array.columns
    luts = requantised * (SUM_BITS + 2 * 48 + 64)  # bias, rounding, shift by 4:1 stages
    # Where offsets are added behind the products: which of two biases, multipliers and addends it is.
    luts = luts + (array.late_offsets > 0) * requantised * (SUM_BITS + 17 + 48)
    # Where halves go to even: whether any bit below them is set, and whether the integer is even.
    luts = luts + (array.late_offsets > 1) * requantised * HALVES_LUT
    # Where tables are pieces of lines: which of 9 places a value begins at, its place times a slope, the sum.
    lines = 2 * RESULT_BITS + product_luts(SLOPE_BITS, PLACE_BITS) + RESULT_BITS
    luts = luts + array.table_slopes * requantised * lines
    # Where the Saver adds maps: two products of each value of a word, their sum with an offset, a shift, two limits.
    added = array.lanes * (2 * product_luts(array.bits, FACTOR_BITS) + 3 * OFFSET_BITS + 64)
    added = added + array.lanes * (array.late_offsets > 1) * HALVES_LUT
    return Fabric(luts + array.added_maps * added, (requantised + array.added_maps * array.lanes) * 4 * 64)
