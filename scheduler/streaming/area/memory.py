"""Counts the primitives of memories and FIFOs (scheduler/hardware/primitives.py). BRAM is counted in BRAM18."""

from __future__ import annotations

from functools import lru_cache

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.fifos import SHIFT_BITS, SHIFT_REGISTER, fifo_kind
from scheduler.hardware.primitives import BRAM18_SHAPES, bram18, constant_luts, distributed_luts, shift_luts, uram
from scheduler.streaming.area.usage import StreamingUsage

SHALLOW = 64
"""The maximum words of a memory that "auto" counts as LUTs at any word width."""


def style(bits: int, depth: int, ram: str) -> str:
    """Return the primitive that builds a memory. With "auto" this is "lutram" for small memories and "bram" for
    others."""
    return ram if ram != "auto" else "lutram" if depth <= SHALLOW or bits * depth <= SHIFT_BITS else "bram"


@lru_cache(maxsize=1 << 16)
def memory(bits: int, depth: int, ram: str, family: str, constant: bool = False) -> StreamingUsage:
    """Return the LUTs, BRAM18s or URAMs of a memory of ``depth`` words of ``bits``.

    Args:
        bits: The bits per word.
        depth: The number of words.
        ram: The primitive, "lutram", "bram", "uram" or "auto".
        family: The board's FPGA family.
        constant: Whether the memory is never written.
    """
    kind = style(bits, depth, ram)
    if kind == "bram":
        return StreamingUsage(bram18=bram18(bits, depth))
    if kind == "uram":
        return StreamingUsage(uram=uram(bits, depth))
    if constant:
        return StreamingUsage(lut=constant_luts(bits, depth, family))
    luts = distributed_luts(bits, depth, family)
    return StreamingUsage(lut=luts, lutram=luts)


@lru_cache(maxsize=1 << 16)
def fifo(bits: int, depth: int) -> StreamingUsage:
    """Return the resources of a FIFO of ``depth`` words of ``bits``: shift registers of 32 bits per LUT, or BRAM.

    The LUTs of its counters and flags follow FINN's fit to its FIFOs, synthesised by Vivado 2026.1 for an xczu7ev
    (Xilinx/finn, pull request 1658): 5 per bit of the fill level minus 7 with shift registers; with BRAM 54, and 3 per
    cascaded BRAM18 and 0.4 per BRAM18.
    """
    if fifo_kind(bits, depth) == SHIFT_REGISTER:
        luts, level_bits = shift_luts(bits, depth), depth.bit_length() + 1
        return StreamingUsage(lut=luts + 5 * level_bits - 7, lutram=luts)
    blocks = bram18(bits, depth)
    cascaded = min(blocks, ceil_div(depth, BRAM18_SHAPES[0][1]))
    return StreamingUsage(lut=54 + 3 * cascaded + 2 * blocks // 5, bram18=blocks)
