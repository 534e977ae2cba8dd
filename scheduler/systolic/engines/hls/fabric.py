"""LUTs and FFs of the logic of the engine in C++, counted from its structure without a vendor tool.

The numbers serve to compare arrays and are not exact enough for placement. These parts are counted:

- adders: one LUT per bit (UG574, CARRY8), and one FF per bit of their register;
- 4:1 multiplexers: one LUT6 per bit (UG574);
- pipeline registers: one FF per bit;
- multipliers of addresses, which the engine binds to LUTs.

AXI adapters, FSMs and address counters are not counted. scheduler/systolic/area/memories.py counts memories, and
scheduler/systolic/engines/hls/fifos.py lists the FIFOs. scheduler/systolic/engines/rtl/fabric.py counts the logic of
the engine in SystemVerilog.
"""

from __future__ import annotations

from contract.formulas import MAX_STRIDED_ROWS
from contract.geometry import RESULT_BITS, SUM_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import product_luts
from scheduler.systolic.area.logic import Fabric, six_product_logic
from scheduler.systolic.array import COUNT_BITS, SIX, SLOPE_BITS, Array

FIELD_BITS = 30
"""Bits of a field when the C++ extracts it from a chain's sum."""

ADDRESS_BITS = 32
"""Bits of the wider operand of ``address_product`` in systolic/pass.h.

A constant narrower operand counts like a variable one."""
PASS_PRODUCTS, PORT_PRODUCTS, ADDED_PRODUCTS = 7, 6, 1
"""Calls of ``address_product``: in load and plan_chunks; in read_rows and write_rows, per map port; in plan_chunks for
residual adds. A test counts the calls."""

FACTOR_BITS, OFFSET_BITS = 32, 48
"""Bits of the factor of a value in a residual add, and bits of the sum of both products (systolic/add.h)."""

PLACE_BITS = 9
"""Bits of a value's position within a segment of a piecewise-linear table, with the sign (saver/requantise.h)."""


def hls_fabric(array: Array) -> Fabric:
    """Return the LUTs and FFs of the C++ engine's logic for ``array``, whose numbers may be numpy grids."""
    products = PASS_PRODUCTS + PORT_PRODUCTS * array.map_ports + ADDED_PRODUCTS * array.added_maps
    addresses = Fabric(products * product_luts(ADDRESS_BITS, COUNT_BITS), 0)
    return _rows(array) + _pes(array) + _pools(array) + _requantisers(array) + addresses


def _rows(array: Array) -> Fabric:
    """Return the LUTs of the multiplexers that move words from the row buffer's banks to the rows of PEs."""
    word = 8 * array.word_bytes
    rotation = array.packing.positions * array.rows * word * ceil_div(array.rows - 1, 3)
    windows = array.packing.positions * array.rows * word * ceil_div(array.word_pixels, 3)
    # If maps on chip are read with stride 2, each bank of the row buffer selects its word from three banks.
    moved = min(array.map_stride - 1, 1) * array.rows * word
    return Fabric(rotation + windows + moved, 0) + strided_read_luts(array)


def strided_read_luts(array: Array) -> Fabric:
    """Return the LUTs of the multiplexers that read feature maps from a map buffer on chip with a stride above 2.

    It selects MAX_STRIDED_ROWS words, each from any bank of the map buffer. Each bank of the row buffer then takes one
    of these words, and each bank of the map buffer takes one of their addresses.
    """
    chosen = MAX_STRIDED_ROWS * 8 * array.word_bytes * ceil_div(array.rows - 1, 3)
    distributed = array.rows * (8 * array.word_bytes + ADDRESS_BITS) * ceil_div(MAX_STRIDED_ROWS - 1, 3)
    return Fabric((array.map_stride > 2) * (chosen + distributed), 0)


def _pes(array: Array) -> Fabric:
    """Return the LUTs and FFs around the DSPs of the PEs: operand delays, and adders and registers of the sums."""
    shared = array.rows * array.columns // array.packing.columns
    chains, fields = ceil_div(array.lanes, array.pack_chain), array.packing.products
    # Each field of a chain but the lowest is corrected by the sign of the field below. Then all are accumulated.
    adders = Fabric(shared * chains * (fields * SUM_BITS + (fields - 1) * FIELD_BITS), 0)
    adders = six_product_logic(array) if array.packing is SIX else adders
    # The operands of a step are delayed for each DSP of a chain by one cycle more than for the DSP before.
    step_bits = array.rows * 8 * array.word_bytes * (array.columns + array.packing.positions)
    delays = step_bits * (array.pack_chain + 1) // 2
    sums = array.rows * array.columns * SUM_BITS * array.packing.positions
    return adders + Fabric(0, delays + 4 * sums)


def _pools(array: Array) -> Fabric:
    """Return the LUTs of the max pool's comparators, and of the multipliers for element-wise products of maps.

    If windows are compared, a further multiplexer selects between the new sum and the larger one.
    """
    pools = (2 + array.windows) * array.rows * array.columns * SUM_BITS
    # Products of maps are computed in LUTs. Multiplexers select the rows that are multiplied.
    products = array.save_rows * array.columns * (product_luts(array.bits, array.bits) + array.bits * array.rows // 3)
    return Fabric(pools + array.map_products * (products + array.rows * array.columns * SUM_BITS), 0)


HALVES_LUT = 35
"""LUTs per value for rounding halves to even: the tests whether a bit below the half is set and the integer is even.

For the engine in SystemVerilog, Yosys counts 16 in the requantiser, and 35 to 72 in the residual add."""


def _requantisers(array: Array) -> Fabric:
    """Return the LUTs and FFs of the requantisers and of the residual adds."""
    requantised = array.save_rows * array.columns
    luts = requantised * (SUM_BITS + 2 * 48 + 64)  # bias, rounding, shift by 4:1 stages
    # If offsets are added after the products, multiplexers select between two biases, multipliers and addends.
    luts = luts + (array.late_offsets > 0) * requantised * (SUM_BITS + 17 + 48)
    # If halves are rounded to even: the tests of the bits below the half and of the integer.
    luts = luts + (array.late_offsets > 1) * requantised * HALVES_LUT
    # Piecewise-linear tables: the shift of a value by one of 9 distances, its position times the slope, and the sum.
    lines = 2 * RESULT_BITS + product_luts(SLOPE_BITS, PLACE_BITS) + RESULT_BITS
    luts = luts + array.table_slopes * requantised * lines
    # Residual adds, per value of a word: two products, their sum with an offset, a shift, and two limits.
    added = array.lanes * (2 * product_luts(array.bits, FACTOR_BITS) + 3 * OFFSET_BITS + 64)
    added = added + array.lanes * (array.late_offsets > 1) * HALVES_LUT
    return Fabric(luts + array.added_maps * added, (requantised + array.added_maps * array.lanes) * 4 * 64)
