"""The FIFOs of the engine in SystemVerilog, with the depths that its modules set."""

from __future__ import annotations

from contract.geometry import RESULT_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import OUTSTANDING
from scheduler.hardware.fifos import IN_STEP, LUT_MEMORY
from scheduler.systolic.area.logic import levels_of
from scheduler.systolic.area.memories import Buffer, Number, column_sums, word
from scheduler.systolic.array import SIX, Array
from scheduler.systolic.engines.rtl.stages import READ_WORDS

ROW_WORD_BITS = 2
"""Further bits per word in saver/arrange.sv, which say which halves of the word are written."""

CHUNK_WORD_BITS = 7 * 32 + 1
"""Bits of a chunk_t (package systolic_geometry)."""

TILE_BITS = 6 * 32 + 1
"""Bits of a pool_tile_t (package systolic_geometry)."""

PASS_BITS = 64 * 32
"""Bits of a pass of the layer program. The FIFO holds the next pass while one is executed."""


ON_THE_WAY = "words that were requested before the reader stops"
PIPELINED = "results in a pipeline that cannot stall, when the next process stops"
AHEAD = "the next value waits while one is used"


def _queue(name: str, count: Number, bits: Number, depth: Number, reason: str) -> Buffer:
    """Return the description of ``count`` instances of common/fifo.sv, whose memory is built in LUTs."""
    return Buffer(name, "", count, bits, depth, (LUT_MEMORY,), reason)


def _in_flight(array: Array) -> int:
    """Return IN_FLIGHT of array/pe_array.sv: the output pixels of a row between the array's input and the row's FIFO of
    sums."""
    if array.packing is SIX:
        return 8 + levels_of(array.lanes // 2)
    return array.pack_chain + 6 if array.dsp_clock == 1 else array.pack_chain // 2 + 7


QUEUES = (
    _queue("program", lambda a: 1, lambda a: 32, lambda a: READ_WORDS, ON_THE_WAY),
    _queue("passes", lambda a: 1, lambda a: PASS_BITS, lambda a: 2, AHEAD),
    _queue("rows", lambda a: a.map_ports + a.added_maps, word, lambda a: READ_WORDS, ON_THE_WAY),
    _queue("beats", lambda a: a.weight_ports, lambda a: word(a) * a.weight_words, lambda a: READ_WORDS, ON_THE_WAY),
    _queue("constants", lambda a: 1, lambda a: 128, lambda a: READ_WORDS, ON_THE_WAY),
    _queue("lengths", lambda a: a.map_ports + a.added_maps, lambda a: 8, lambda a: OUTSTANDING, ON_THE_WAY),
    _queue("activations", lambda a: 1, lambda a: a.rows * a.packing.positions * word(a), lambda a: 12, PIPELINED),
    _queue("weights", lambda a: 1, lambda a: a.columns * word(a), lambda a: 6, PIPELINED),
    _queue(
        "sums",
        lambda a: a.rows,
        lambda a: column_sums(a) * a.packing.positions,
        lambda a: _in_flight(a) + ceil_div(a.rows - 1, a.dsp_clock) + 5,
        PIPELINED,
    ),
    _queue("tiles", lambda a: 1, lambda a: TILE_BITS, lambda a: 2, AHEAD),
    _queue("products", lambda a: a.map_products, lambda a: a.save_rows * column_sums(a) + 33, lambda a: 7, PIPELINED),
    _queue("results", lambda a: 1, lambda a: a.save_rows * RESULT_BITS * a.columns, lambda a: 18, PIPELINED),
    _queue("chunks", lambda a: 1 + a.map_ports + 2 * a.added_maps, lambda a: CHUNK_WORD_BITS, lambda a: 4, IN_STEP),
    _queue("words", lambda a: a.map_ports, lambda a: word(a) + ROW_WORD_BITS, lambda a: 6, PIPELINED),
    _queue("added", lambda a: a.added_maps, word, lambda a: 13, PIPELINED),
)
