"""Counts the primitives of memories and FIFOs (scheduler/hardware/primitives.py). BRAM is counted in BRAM18."""

from __future__ import annotations

from functools import lru_cache

from scheduler.hardware.fifos import SHIFT_BITS, SHIFT_REGISTER, fifo_kind
from scheduler.hardware.primitives import bram18, constant_luts, distributed_luts, shift_luts, uram
from scheduler.streaming.area.usage import StreamingUsage

SHALLOW = 64
"""The maximum words of a memory that "auto" counts as LUTs at any word width."""

FIFO_LOGIC = 12
"""The LUTs of a FIFO's counters and flags. Estimate: two counters of 4 bits and four flags."""


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
    """Return the resources of a FIFO of ``depth`` words of ``bits``: shift registers of 32 bits per LUT, or BRAM."""
    if fifo_kind(bits, depth) == SHIFT_REGISTER:
        luts = shift_luts(bits, depth)
        return StreamingUsage(lut=luts + FIFO_LOGIC, lutram=luts)
    return StreamingUsage(lut=2 * FIFO_LOGIC, bram18=bram18(bits, depth))
