"""The number of FPGA primitives that a memory, a FIFO or a multiplier takes. Counts follow from shapes; nothing is
placed.

BRAM   A BRAM36 is 512×72, 1024×36, 2048×18, 4096×9 … 32768×1 as simple dual port. A BRAM18 is half of it. (UG573,
       table 1-1; UG473 for the 7 series.)
URAM   4096×72 only (UG573, chapter 2).
LUTRAM Distributed RAM of SLICEMs, simple dual port. RAM32M16 and RAM64M8 hold 32×14 and 64×7 bits in eight LUTs (UG574,
       "Distributed RAM"). In the 7 series, RAM32M and RAM64M hold 32×6 and 64×3 bits in four LUTs (UG474, "Distributed
       RAM"). Deeper memories are banks of these, followed by 4:1 multiplexers of one LUT6 per bit. A board's ``lutram``
       is the number of LUTs that can be memory.
SRL    A shift register of 32 bits per LUT, SRLC32E (UG574, UG474).
ROM    Constants: 64 bits per LUT6. Multiplexers F7, F8 and F9 join LUTs up to 512 words in UltraScale+, F7 and F8 up to
       256 words in the 7 series.
"""

from __future__ import annotations

from scheduler.hardware.arithmetic import ceil_div

BRAM36_SHAPES = ((72, 512), (36, 1024), (18, 2048), (9, 4096), (4, 8192), (2, 16384), (1, 32768))
BRAM18_SHAPES = ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384))
"""The shapes (bits per word, words) that a block can have."""

BRAM36_BITS, URAM_BITS, LUT_BITS = 36 * 1024, 288 * 1024, 64
"""Capacity of a BRAM36, a URAM and a LUT, in bits. A BRAM36 counts with its parity bits."""

WIDE_PORT, NARROW_PORT = {"DSP48E1": 25, "DSP48E2": 27}, 18
"""Bits of the wide input of each kind of DSP, and of the narrow input of all. Both are signed (UG479, UG579)."""

WIDEST_WORD = 4096
"""Maximum bits of a FIFO word: the widest integer that Vitis HLS supports (UG1399, arbitrary precision types)."""

SHIFT_WORDS = 32
"""Words of a shift register in one LUT, which stores one bit of each word."""

MIN_FIFO_DEPTH = 2
"""The least FIFO depth at which both ends can work in every cycle (docs/explanation/cycles.md)."""

ULTRASCALE = "zynq-ultrascale+"
"""The board family whose LUTs are counted by UG574. The LUTs of all other families are counted by UG474."""


def bram36(bits: int, depth: int) -> int:
    """Return the number of BRAM36s for a memory of ``depth`` words of ``bits``, at the aspect ratio that needs the
    fewest."""
    return min(ceil_div(bits, width) * ceil_div(depth, words) for width, words in BRAM36_SHAPES)


def bram18(bits: int, depth: int) -> int:
    """Return the number of BRAM18s (halves of a BRAM36) for a memory of ``depth`` words of ``bits``, at the best aspect
    ratio."""
    return min(ceil_div(bits, width) * ceil_div(depth, words) for width, words in BRAM18_SHAPES)


def uram(bits: int, depth: int) -> int:
    """Return the number of URAMs for a memory of ``depth`` words of ``bits``."""
    return ceil_div(bits, 72) * ceil_div(depth, 4096)


def distributed_luts(bits: int, depth: int, family: str) -> int:
    """Return the number of LUTs of a writable LUTRAM of ``depth`` words of ``bits`` on a board of FPGA ``family``."""
    luts, shallow_bits, deep_bits = (8, 14, 7) if family == ULTRASCALE else (4, 6, 3)
    if depth <= 32:
        return luts * ceil_div(bits, shallow_bits) * min(depth, 1)
    banks = ceil_div(depth, 64)
    return banks * luts * ceil_div(bits, deep_bits) + bits * ceil_div(banks - 1, 3)


def constant_luts(bits: int, depth: int, family: str) -> int:
    """Return the number of LUTs of a ROM of ``depth`` words of ``bits`` on a board of FPGA ``family``."""
    multiplexed = 8 if family == ULTRASCALE else 4
    tables = ceil_div(depth, 64)
    return bits * (tables + ceil_div(ceil_div(tables, multiplexed) - 1, 3))


def shift_luts(bits: int, depth: int) -> int:
    """Return the number of LUTs of a FIFO of ``depth`` words of ``bits`` that is built from shift registers."""
    return bits * ceil_div(depth, SHIFT_WORDS)


def product_luts(a_bits: int, b_bits: int) -> int:
    """Return the number of LUTs of a multiplier of a_bits × b_bits that is built without DSPs.

    One carry chain adds the first two rows of partial products, and one further chain adds each further row. Each chain
    is one bit longer than the longer operand: (min − 1)(max + 1) LUTs. A factor of one bit only selects.

    Vivado builds 15 to 17 LUTs for 4 × 4 bits and 64 to 71 LUTs for 8 × 8 bits. The formula of FINN-R,
    (2⌈(a + b) / 6⌉ − 1)(a + b), gives 24 and 80 (Blott et al., ACM TRETS 11(3), 2018).
    """
    small, large = sorted((a_bits, b_bits))
    return 1 if large == 1 else max(1, small - 1) * (large + 1) if small > 1 else large


def product_dsps(a_bits: int, b_bits: int, dsp: str) -> int:
    """Return the number of DSPs of a multiplier of two signed factors of ``a_bits`` and ``b_bits`` bits.

    A factor that is wider than its port is cut into pieces. All pieces except the most significant one are unsigned and
    therefore have one bit less than the port.

    Args:
        a_bits: Bits of the first factor.
        b_bits: Bits of the second factor.
        dsp: The board's kind of DSP, "DSP48E1" or "DSP48E2".
    """

    def pieces(bits: int, port: int) -> int:
        return 1 + ceil_div(max(0, bits - port), port - 1)

    wide = WIDE_PORT[dsp]
    ways = ((a_bits, b_bits), (b_bits, a_bits))
    return min(pieces(first, wide) * pieces(second, NARROW_PORT) for first, second in ways)
