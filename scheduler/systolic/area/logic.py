"""LUT and FF of logic, and of what the engines of both languages have alike."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array

SOURCE = "estimate: adders, multiplexers, registers and memories counted from the engine's structure"


@dataclass(frozen=True)
class Fabric:
    lut: int
    ff: int

    def __add__(self, part: Fabric) -> Fabric:
        return Fabric(self.lut + part.lut, self.ff + part.ff)


def of_six(array: Array) -> Fabric:
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
    return Fabric(lut=sums * (lut + both + array.sum_bits) + packed, ff=sums * (ff + both) + packed + widened)


def levels_of(addends: int) -> int:
    """Of adders of three behind each other, until one sum is left."""
    levels = 0
    while addends > 1:
        addends, levels = ceil_div(addends, 3), levels + 1
    return levels
