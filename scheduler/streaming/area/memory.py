"""Memories and FIFOs by primitive. Counts follow from aspect ratios; nothing is placed.

BRAM is counted in halves, RAMB18E2/E1: 512×36 (simple dual port), 1024×18, 2048×9, 4096×4, 8192×2, 16384×1 (UG573
table 1-1, UG473). URAM and distributed RAM: scheduler/systolic/area/resources.py. A constant table takes a LUT6 for 64
bits; multiplexers F7, F8 and F9 reach 512 words in UltraScale+, F7 and F8 256 words in the 7 series.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from scheduler.systolic.area.resources import distributed_luts, uram
from scheduler.systolic.tiling import ceil_div

BRAM18_SHAPES = ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384))
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


def bram18(bits: int, depth: int) -> int:
    """Halves of a BRAM36 for ``depth`` words of ``bits``, at the best aspect ratio."""
    return min(ceil_div(bits, width) * ceil_div(depth, words) for width, words in BRAM18_SHAPES)


def constant_luts(bits: int, depth: int, family: str) -> int:
    """A table of constants in LUTs. family: of the board."""
    free = 8 if family == "zynq-ultrascale+" else 4
    sixes = ceil_div(depth, 64)
    return bits * (sixes + ceil_div(ceil_div(sixes, free) - 1, 3))


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
        luts = bits * ceil_div(depth, 32)
        return Usage(lut=luts + FIFO_LOGIC, lutram=luts)
    return Usage(lut=2 * FIFO_LOGIC, bram18=bram18(bits, depth))
