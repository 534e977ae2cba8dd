"""Primitives of the fabric: how many a memory, a FIFO or a product takes. Counts follow from shapes; nothing is placed.

BRAM   a BRAM36 is 512×72, 1024×36, 2048×18, 4096×9 … 32768×1 as simple dual port; its half, a BRAM18, has half of that
       (UG573, table 1-1; UG473 for 7 series)
URAM   4096×72 only (UG573, chapter 2)
LUTRAM distributed RAM of SLICEMs, simple dual port: RAM32M16 and RAM64M8 hold 32×14 and 64×7 bits in eight LUTs (UG574,
       "Distributed RAM"), RAM32M and RAM64M of the 7 series 32×6 and 64×3 in four (UG474, "Distributed RAM"). Deeper
       ones are banks of these behind 4:1 multiplexers, a LUT6 a bit each. How many LUTs can be memory is a board's
       ``lutram``.
SRL    a shift register of 32 bits a LUT, SRLC32E (UG574, UG474)
ROM    constants: 64 bits a LUT6; multiplexers F7, F8 and F9 reach 512 words in UltraScale+, F7 and F8 256 words in the
       7 series
"""

from __future__ import annotations

from scheduler.hardware.arithmetic import ceil_div

BRAM36_SHAPES = ((72, 512), (36, 1024), (18, 2048), (9, 4096), (4, 8192), (2, 16384), (1, 32768))
BRAM18_SHAPES = ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384))
"""(bits, words) of a block."""

BRAM36_BITS, URAM_BITS, LUT_BITS = 36 * 1024, 288 * 1024, 64
"""What a BRAM36, a URAM and a LUT hold."""

WIDE_PORT, NARROW_PORT = {"DSP48E1": 25, "DSP48E2": 27}, 18
"""Bits of the signed factors of a DSP (UG479, UG579)."""

WIDEST_WORD = 4096
"""Bits of a word of a FIFO: as many as the vendor's tool has in one number (UG1399, arbitrary precision types)."""

SHIFT_WORDS = 32
"""Bits of a shift register of one LUT."""

LEAST_FIFO_DEPTH = 2
"""FIFO depth that lets both ends work in every cycle (docs/explanation/cycles.md)."""

ULTRASCALE = "zynq-ultrascale+"
"""The family, as a board calls it, whose LUTs are counted by UG574; all others by UG474."""


def bram36(bits: int, depth: int) -> int:
    """Blocks for a memory of ``depth`` words of ``bits``, at the best aspect ratio."""
    return min(ceil_div(bits, width) * ceil_div(depth, words) for width, words in BRAM36_SHAPES)


def bram18(bits: int, depth: int) -> int:
    """Half blocks for a memory of ``depth`` words of ``bits``, at the best aspect ratio."""
    return min(ceil_div(bits, width) * ceil_div(depth, words) for width, words in BRAM18_SHAPES)


def uram(bits: int, depth: int) -> int:
    """Blocks for a memory of ``depth`` words of ``bits``."""
    return ceil_div(bits, 72) * ceil_div(depth, 4096)


def distributed_luts(bits: int, depth: int, family: str) -> int:
    """LUTs of a memory of ``depth`` words of ``bits`` that is written. family: of the board."""
    luts, shallow_bits, deep_bits = (8, 14, 7) if family == ULTRASCALE else (4, 6, 3)
    if depth <= 32:
        return luts * ceil_div(bits, shallow_bits) * min(depth, 1)
    banks = ceil_div(depth, 64)
    return banks * luts * ceil_div(bits, deep_bits) + bits * ceil_div(banks - 1, 3)


def constant_luts(bits: int, depth: int, family: str) -> int:
    """LUTs of a table of ``depth`` constants of ``bits``. family: of the board."""
    multiplexed = 8 if family == ULTRASCALE else 4
    tables = ceil_div(depth, 64)
    return bits * (tables + ceil_div(ceil_div(tables, multiplexed) - 1, 3))


def shift_luts(bits: int, depth: int) -> int:
    """LUTs of a FIFO of ``depth`` words of ``bits`` in shift registers."""
    return bits * ceil_div(depth, SHIFT_WORDS)


def product_luts(a_bits: int, b_bits: int) -> int:
    """LUTs of a multiplier of a_bits × b_bits. A carry chain adds the first two rows of partial products, one more each
    other row, each a bit longer than the longer operand: (min − 1)(max + 1). One bit selects.

    Vivado gives 15 to 17 LUTs for 4 × 4 bits and 64 to 71 for 8 × 8. FINN-R: (2⌈(a + b) / 6⌉ − 1)(a + b), 24 and 80
    (Blott et al., ACM TRETS 11(3), 2018).
    """
    small, large = sorted((a_bits, b_bits))
    return 1 if large == 1 else max(1, small - 1) * (large + 1) if small > 1 else large


def product_dsps(a_bits: int, b_bits: int, dsp: str) -> int:
    """DSPs of a multiplier of signed factors. dsp: their kind.

    A factor wider than its port is cut into pieces, of which all but the uppermost are without a sign.
    """

    def pieces(bits: int, port: int) -> int:
        return 1 + ceil_div(max(0, bits - port), port - 1)

    wide = WIDE_PORT[dsp]
    ways = ((a_bits, b_bits), (b_bits, a_bits))
    return min(pieces(first, wide) * pieces(second, NARROW_PORT) for first, second in ways)
