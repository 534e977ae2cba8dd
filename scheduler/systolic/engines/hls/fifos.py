"""The FIFOs of the engine in C++: the streams between its processes."""

from __future__ import annotations

from contract.geometry import RESULT_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.fifos import IN_STEP, MEMORY_LATENCY, SHIFT_LATENCY, SHIFT_REGISTER
from scheduler.hardware.primitives import SHIFT_WORDS
from scheduler.systolic.area.memories import Buffer, Number, column_sums, word
from scheduler.systolic.array import GROUP_BITS, Array

FIFO_DEPTH = 16
"""Depth, in words, of the FIFOs between DDR ports and buffers, which are shift registers.

The cycle trace shows no gain from deeper FIFOs, because the ports' own buffers hide the DDR's latency."""

ROW_FIFO_DEPTH = 32
"""Depth, in words, of the FIFOs of the processes that read rows.

Such a process alternates between requests and reads, and each does so at other times. Its FIFO covers its requests."""

WAIT_DEPTH = 4
"""Depth, in words, of the FIFOs between processes that run in step. The cycle trace shows whether more would help."""

BEFORE_BUFFER = "words of a burst that arrive before the buffer is ready"
WHILE_ASKED = "words that wait while the port requests the next piece"
LAGS = "the last row of PEs runs this many cycles after the first"

POOL_TILE_BITS, CHUNK_BITS = 5 * 16 + 1 + 32, 4 * 16 + 3 * 32
"""Bits of a pool_tile_t (saver/pool.h) and of a chunk_t (saver/save.h)."""

ROW_LAG = 1 + SHIFT_LATENCY
"""Cycles by which a row of PEs runs after the row above (array/pe_array.h).

The row above reads weights, writes them one cycle later, and they then pass through a FIFO."""


def _fifo(name: str, count: Number, bits: Number, depth: Number, reason: str = IN_STEP) -> Buffer:
    """Return the description of the ``count`` FIFOs that implement the stream ``name`` of the generated top function.

    The FIFOs are shallow and wide. They are bound to shift registers, because the tool would build FIFOs of more than
    1,024 bits as memories.
    """
    return Buffer(name, "", count, bits, depth, (SHIFT_REGISTER,), reason)


def _wait(_: Array) -> int:
    return WAIT_DEPTH


def row_fifo_words(rows: int, positions: int) -> int:
    """Return the depth, in words, of the FIFOs of activations before the rows of PEs and of sums after them.

    The depth covers the lag of the last row even if the tool builds these FIFOs as memories, which have a longer
    latency. From 11 rows on this is more than 32 words, and each bit then takes a second LUT. If two positions share a
    row, its words are twice as wide. To save LUTs, the depth is then limited. The limit is the number of words in the
    LUTs that the lag needs if the FIFOs are shift registers.
    """
    covered = (1 + MEMORY_LATENCY) * (rows - 1) + WAIT_DEPTH
    if positions == 1:
        return covered
    needed = ROW_LAG * (rows - 1) + WAIT_DEPTH
    return min(covered, SHIFT_WORDS * ceil_div(needed, SHIFT_WORDS))


def buffered_positions(array: Array) -> int:
    """Return how many output pixels' data the FIFOs before and after each row of PEs can hold."""
    return row_fifo_words(array.rows, array.packing.positions)


FIFOS = (
    _fifo("rows", lambda a: a.map_ports, word, lambda a: ROW_FIFO_DEPTH, WHILE_ASKED),
    _fifo("beats", lambda a: a.weight_ports, lambda a: word(a) * a.weight_words, lambda a: FIFO_DEPTH, BEFORE_BUFFER),
    _fifo("saved", lambda a: a.map_ports + a.added_maps, word, lambda a: FIFO_DEPTH, BEFORE_BUFFER),
    # Row m takes a step ROW_LAG · m cycles after row 0. But load writes the activations of all rows in the same cycle,
    # and the Saver takes the sums of all rows in the same cycle. With a shallower FIFO the rows would wait for each
    # other, or deadlock if a position has one step.
    _fifo("activations", lambda a: a.rows, lambda a: word(a) * a.packing.positions, buffered_positions, LAGS),
    _fifo("weights", lambda a: a.rows, lambda a: word(a) * a.columns, _wait),
    _fifo("sums", lambda a: a.rows, lambda a: column_sums(a) * a.packing.positions, buffered_positions, LAGS),
    _fifo("tiles", lambda a: 1, lambda a: POOL_TILE_BITS, lambda a: WAIT_DEPTH),
    _fifo("chunks", lambda a: 1, lambda a: CHUNK_BITS, lambda a: WAIT_DEPTH),
    _fifo("port_chunks", lambda a: a.map_ports + 2 * a.added_maps, lambda a: CHUNK_BITS, lambda a: WAIT_DEPTH),
    _fifo("groups", lambda a: 1, lambda a: a.save_rows * column_sums(a) + GROUP_BITS, lambda a: WAIT_DEPTH),
    _fifo("results", lambda a: 1, lambda a: a.save_rows * RESULT_BITS * a.columns, lambda a: WAIT_DEPTH),
    _fifo("added", lambda a: a.added_maps, word, lambda a: ROW_FIFO_DEPTH, WHILE_ASKED),
)
