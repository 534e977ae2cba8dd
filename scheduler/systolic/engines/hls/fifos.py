"""FIFOs of the engine in C++: the streams between its processes."""

from __future__ import annotations

from contract.geometry import RESULT_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.fifos import IN_STEP, MEMORY_LATENCY, SHIFT_LATENCY, SHIFT_REGISTER
from scheduler.hardware.primitives import SHIFT_WORDS
from scheduler.systolic.area.memories import Buffer, Number, column_sums, word
from scheduler.systolic.array import GROUP_BITS, Array

FIFO_DEPTH = 16
"""Words of the FIFOs between DDR ports and buffers: shift registers. The trace shows that no more is gained, because
the ports' own buffers hide the DDR."""

ROW_FIFO_DEPTH = 32
"""The same of the readers of rows, which ask for pieces between those that they read, each at another time: meanwhile
the others go on."""

WAIT_DEPTH = 4
"""FIFO depth between processes that run in step; the cycle trace tells whether more would help."""

BEFORE_BUFFER = "words that a burst brings while the buffer is not ready for them"
WHILE_ASKED = "words that wait while the port asks for the next piece"
LAGS = "the last row of PEs is that many cycles behind the first"

POOL_TILE_BITS, CHUNK_BITS = 5 * 16 + 1 + 32, 4 * 16 + 3 * 32
"""saver/pool.h, pool_tile_t, and saver/save.h, chunk_t."""

ROW_LAG = 1 + SHIFT_LATENCY
"""array/pe_array.h: cycles by which a row of PEs is behind the one above; weights are read, written a cycle later, and
then pass a FIFO."""


def _fifo(name: str, count: Number, bits: Number, depth: Number, reason: str = IN_STEP) -> Buffer:
    """A stream of the generated top function, by its name there: ``count`` FIFOs. Shallow and wide, they are bound to
    shift registers; of those of more than 1,024 bits the tool would make memories."""
    return Buffer(name, "", count, bits, depth, (SHIFT_REGISTER,), reason)


def _wait(_: Array) -> int:
    return WAIT_DEPTH


def row_fifo_words(rows: int, positions: int) -> int:
    """Return the depth of the FIFOs before and after the rows of PEs.

    It covers the lag of the last row even if the tool builds these FIFOs as memories, so that such a tool costs no
    cycle. A bit of more than 32 words takes a second LUT, that is from 11 rows on. Where two positions share a row,
    its words are twice as wide, and the depth is kept to what the LUTs hold that the lag of shift registers needs.
    """
    covered = (1 + MEMORY_LATENCY) * (rows - 1) + WAIT_DEPTH
    if positions == 1:
        return covered
    needed = ROW_LAG * (rows - 1) + WAIT_DEPTH
    return min(covered, SHIFT_WORDS * ceil_div(needed, SHIFT_WORDS))


def held_positions(array: Array) -> int:
    """Return the positions that the FIFOs before and after each row of PEs hold."""
    return row_fifo_words(array.rows, array.packing.positions)


FIFOS = (
    _fifo("rows", lambda a: a.map_ports, word, lambda a: ROW_FIFO_DEPTH, WHILE_ASKED),
    _fifo("beats", lambda a: a.weight_ports, lambda a: word(a) * a.weight_words, lambda a: FIFO_DEPTH, BEFORE_BUFFER),
    _fifo("saved", lambda a: a.map_ports + a.added_maps, word, lambda a: FIFO_DEPTH, BEFORE_BUFFER),
    # Row m takes a step ROW_LAG · m cycles after row 0. load gives all rows theirs at once, and the Saver takes the
    # sums of all at once: a shallower FIFO makes the rows wait for each other, or deadlocks at one step a position.
    _fifo("activations", lambda a: a.rows, lambda a: word(a) * a.packing.positions, held_positions, LAGS),
    _fifo("weights", lambda a: a.rows, lambda a: word(a) * a.columns, _wait),
    _fifo("sums", lambda a: a.rows, lambda a: column_sums(a) * a.packing.positions, held_positions, LAGS),
    _fifo("tiles", lambda a: 1, lambda a: POOL_TILE_BITS, lambda a: WAIT_DEPTH),
    _fifo("chunks", lambda a: 1, lambda a: CHUNK_BITS, lambda a: WAIT_DEPTH),
    _fifo("port_chunks", lambda a: a.map_ports + 2 * a.added_maps, lambda a: CHUNK_BITS, lambda a: WAIT_DEPTH),
    _fifo("groups", lambda a: 1, lambda a: a.save_rows * column_sums(a) + GROUP_BITS, lambda a: WAIT_DEPTH),
    _fifo("results", lambda a: 1, lambda a: a.save_rows * RESULT_BITS * a.columns, lambda a: WAIT_DEPTH),
    _fifo("added", lambda a: a.added_maps, word, lambda a: ROW_FIFO_DEPTH, WHILE_ASKED),
)
