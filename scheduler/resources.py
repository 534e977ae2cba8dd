"""On-chip memory and DSPs of an array, by primitive. Block counts follow from aspect ratios; nothing is placed.

BRAM36: 512×72, 1024×36, 2048×18, 4096×9 as simple dual port (UG573, table 1-1; UG473 for 7 series).
URAM: 4096×72 only (UG573, chapter 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from boards.board import Board
from scheduler.array import Array
from scheduler.tile import ceil_div

BRAM36_SHAPES = ((72, 512), (36, 1024), (18, 2048), (9, 4096))
FIFO_DEPTH = 16
"""Words of the FIFOs between DDR ports and buffers: shift registers. The trace shows that no more is gained, because
the ports' own buffers hide the DDR."""

BURST_WORDS = 64
OUTSTANDING = 8
"""Bursts on their way at a port, of at most BURST_WORDS words: their buffer of 512 words hides 512 cycles of latency
and takes one row of BRAM36. Traced on tiny-YOLOv2, 16 bursts of 256 words are not faster."""


@dataclass(frozen=True)
class Usage:
    """Estimate from primitive shapes, before any vendor tool."""

    dsp: int
    bram36: int
    uram: int

    def fits(self, board: Board) -> bool:
        have = board.resources
        return self.dsp <= have.dsp and self.bram36 <= have.bram36 and self.uram <= have.uram


def bram36(bits: int, depth: int) -> int:
    """Blocks for a memory of ``depth`` words of ``bits``, at the best aspect ratio."""
    return min(ceil_div(bits, width) * ceil_div(depth, words) for width, words in BRAM36_SHAPES)


def uram(bits: int, depth: int) -> int:
    return ceil_div(bits, 72) * ceil_div(depth, 4096)


def weights_in_uram(board: Board) -> bool:
    return board.resources.uram > 0


def usage(array: Array, board: Board) -> Usage:
    word = 8 * array.word_bytes
    rows = array.rows * 2 * bram36(word, array.row_depth // 2)
    in_uram = weights_in_uram(board)
    weights = array.columns * (uram if in_uram else bram36)(word, array.weight_depth)
    kept = bram36(32 * array.columns, array.kept_depth)
    requantisers = array.columns * bram36(72, array.channel_tiles)
    held = BURST_WORDS * OUTSTANDING
    ports = 2 * array.map_ports * bram36(word, held) + array.weight_ports * bram36(word * array.weight_words, held)
    banks = max(array.save_rows, array.map_ports)
    half = ceil_div(array.rows + 1, banks) * array.chunk
    arranged = banks * array.tile_blocks * array.result_words * bram36(word, 2 * half)
    blocks = rows + kept + requantisers + ports + arranged
    return Usage(array.dsps, blocks + (0 if in_uram else weights), weights if in_uram else 0)
