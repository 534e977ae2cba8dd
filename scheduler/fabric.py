"""LUT and FF of an array: counted from its structure, before any vendor tool. For comparing arrays, not for placing.

What is counted: one LUT and one FF a bit of an adder with its register (UG574, CARRY8: a LUT a bit), one LUT6 a bit
of a 4:1 multiplexer (UG574), one FF a bit of a pipeline register. What is not: AXI adapters, FSMs, address counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.array import PIXEL_LANES, Array
from scheduler.tile import ceil_div
from scheduler.work import value_bits

SUM_BITS, FIELD_BITS = 32, 30
SOURCE = "estimate: adders, multiplexers and registers counted from the engine's structure"


@dataclass(frozen=True)
class Fabric:
    lut: int
    ff: int


def fabric(array: Array) -> Fabric:
    word = array.lanes * value_bits(array)
    pairs = array.rows * array.columns // 2
    chains = ceil_div(array.lanes, array.pack_chain)
    # A chain's two fields: the upper one corrected by the lower one's sign, then both accumulated.
    adders = pairs * chains * (2 * SUM_BITS + FIELD_BITS)
    rotation = array.rows * word * ceil_div(array.rows - 1, 3)
    windows = array.rows * word * ceil_div(array.lanes // PIXEL_LANES, 3)
    requantisers = array.save_rows * array.columns * (SUM_BITS + 2 * 48 + 64)  # bias, rounding, shift by 4:1 stages
    pools = 2 * array.rows * array.columns * SUM_BITS
    skew = array.rows * (array.rows + 1) // 2 * word
    weights = array.rows * array.columns * word
    sums = array.rows * array.columns * SUM_BITS
    return Fabric(
        lut=adders + rotation + windows + requantisers + pools,
        ff=skew + weights + 4 * sums + array.save_rows * array.columns * 4 * 64,
    )
