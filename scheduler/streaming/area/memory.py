"""Memories and FIFOs by primitive (scheduler/hardware/primitives.py), BRAM in halves. Nothing is placed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import bram18, constant_luts, distributed_luts, shift_luts, uram

SHIFT_BITS = 1024
"""FIFOs of at most so many bits are shift registers: Vitis HLS, config_storage fifo -auto_srl_max_bits."""

SHALLOW = 64
"""Memories of at most so many words are taken to be LUTs where the style is auto."""

FIFO_LOGIC = 12
"""LUT of a FIFO's counters and flags. Estimate: two counters of 4 bits and four flags."""


@dataclass(frozen=True)
class Usage:
    """Resources. lut: all of them, those that are memory included; lutram: these alone; bram18: halves of a BRAM36.

    ddr_bits: weights that come from DDR in a frame.
    """

    lut: int = 0
    lutram: int = 0
    dsp: int = 0
    bram18: int = 0
    uram: int = 0
    ddr_bits: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.lut + other.lut,
            self.lutram + other.lutram,
            self.dsp + other.dsp,
            self.bram18 + other.bram18,
            self.uram + other.uram,
            self.ddr_bits + other.ddr_bits,
        )

    def times(self, count: int) -> Usage:
        return Usage(
            self.lut * count,
            self.lutram * count,
            self.dsp * count,
            self.bram18 * count,
            self.uram * count,
            self.ddr_bits * count,
        )

    @property
    def bram36(self) -> int:
        return ceil_div(self.bram18, 2)


NOTHING = Usage()


def style(bits: int, depth: int, ram: str) -> str:
    """What "auto" is: LUTs where they are few."""
    return ram if ram != "auto" else "lutram" if depth <= SHALLOW or bits * depth <= SHIFT_BITS else "bram"


@lru_cache(maxsize=1 << 16)
def memory(bits: int, depth: int, ram: str, family: str, constant: bool = False) -> Usage:
    """A memory of ``depth`` words of ``bits`` in ``ram``: lutram, bram, uram or auto. constant: never written."""
    kind = style(bits, depth, ram)
    if kind == "bram":
        return Usage(bram18=bram18(bits, depth))
    if kind == "uram":
        return Usage(uram=uram(bits, depth))
    if constant:
        return Usage(lut=constant_luts(bits, depth, family))
    luts = distributed_luts(bits, depth, family)
    return Usage(lut=luts, lutram=luts)


@lru_cache(maxsize=1 << 16)
def fifo(bits: int, depth: int) -> Usage:
    """A stream of ``depth`` words: shift registers of 32 bits a LUT, or BRAM."""
    if bits * depth <= SHIFT_BITS or depth <= 2:
        luts = shift_luts(bits, depth)
        return Usage(lut=luts + FIFO_LOGIC, lutram=luts)
    return Usage(lut=2 * FIFO_LOGIC, bram18=bram18(bits, depth))
