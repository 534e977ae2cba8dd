"""Memories and FIFOs by primitive (scheduler/hardware/primitives.py), BRAM in halves. Nothing is placed."""

from __future__ import annotations

from functools import lru_cache

from scheduler.hardware.fifos import SHIFT_BITS, SHIFT_REGISTER, fifo_kind
from scheduler.hardware.primitives import bram18, constant_luts, distributed_luts, shift_luts, uram
from scheduler.streaming.area.usage import StreamingUsage

SHALLOW = 64
"""Memories of at most so many words are taken to be LUTs where the style is auto."""

FIFO_LOGIC = 12
"""LUT of a FIFO's counters and flags. Estimate: two counters of 4 bits and four flags."""


def style(bits: int, depth: int, ram: str) -> str:
    """The primitive of a memory; "auto" is LUTs where they are few, else BRAM."""
    return ram if ram != "auto" else "lutram" if depth <= SHALLOW or bits * depth <= SHIFT_BITS else "bram"


@lru_cache(maxsize=1 << 16)
def memory(bits: int, depth: int, ram: str, family: str, constant: bool = False) -> StreamingUsage:
    """A memory of ``depth`` words of ``bits`` in ``ram``: lutram, bram, uram or auto. constant: never written."""
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
    """A stream of ``depth`` words: shift registers of 32 bits a LUT, or BRAM."""
    if fifo_kind(bits, depth) == SHIFT_REGISTER:
        luts = shift_luts(bits, depth)
        return StreamingUsage(lut=luts + FIFO_LOGIC, lutram=luts)
    return StreamingUsage(lut=2 * FIFO_LOGIC, bram18=bram18(bits, depth))
