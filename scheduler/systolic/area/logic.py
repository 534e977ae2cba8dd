"""The count of LUTs and FFs of logic, and the adder trees that the C++ and the SystemVerilog engine share."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array

SOURCE = "estimate: adders, multiplexers, registers and memories counted from the engine's structure"


@dataclass(frozen=True)
class Fabric:
    """An amount of FPGA logic: numbers of LUTs and FFs. Each may be a numpy grid, with one number per candidate
    array."""

    lut: int
    ff: int

    def __add__(self, part: Fabric) -> Fabric:
        return Fabric(self.lut + part.lut, self.ff + part.ff)


def six_product_logic(array: Array) -> Fabric:
    """Return the LUTs and FFs around DSPs that compute six products at once (array/pe_row_six.sv).

    Each sum has two trees of three-input adders, one for the even and one for the odd lanes. One more adder joins the
    trees, with the odd sum times 1 or 16, and an accumulator adds up the steps. A three-input adder takes one LUT per
    bit, like a two-input adder (UG574).
    """
    lut = ff = 0
    addends, bits = array.lanes // 2, array.packing.shift
    while addends > 1:
        adders = (addends + 1) // 3  # a single addend left over only passes through a register
        addends, bits = ceil_div(addends, 3), bits + 2
        lut, ff = lut + 2 * bits * adders, ff + 2 * bits * addends
    both = bits + 5
    sums = array.rows * array.columns * array.packing.positions
    # Three weights are packed into the 18 bits of a DSP's port, once for all rows.
    packed = array.columns * array.lanes // 3 * 18
    widened = array.rows * (packed - array.columns * array.lanes * array.bits)
    return Fabric(lut=sums * (lut + both + array.sum_bits) + packed, ff=sums * (ff + both) + packed + widened)


def levels_of(addends: int) -> int:
    """Return the levels of a tree of three-input adders that sums ``addends`` numbers."""
    levels = 0
    while addends > 1:
        addends, levels = ceil_div(addends, 3), levels + 1
    return levels
