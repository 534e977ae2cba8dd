"""Depths of the engine in SystemVerilog, from its modules (rtl_templates/): cycles from register to register.

Time 0 is the cycle after ``pass_start``, in which every state machine has left its IDLE. The time of a step is that in
which the array takes it; "from … to" counts from one register to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from scheduler.systolic.array import Array

# --- a pass -------------------------------------------------------------------------------------------------------

PASS_TAKEN = 3
"""control/sequence_passes.sv: TAKE, PLAN and BEGIN, before a pass."""

ENDED = 1
"""The cycle in which it sees that all are done."""

FETCH = 3
"""control/read_program.sv: beside a pass's words and their latency, ASK, the burst's request, and the word's FIFO."""

BEFORE_COUNTED = 4
"""The start of a frame is counted from the answer to the host's write, so many cycles after the registers begin."""

# --- ports --------------------------------------------------------------------------------------------------------

ASKED = 1
"""common/axi_bursts.sv: a command is taken in one cycle, its burst asked for from the next one on."""

ANSWERED = 1
"""common/axi_read.sv: from a beat at the port to the word at the output of its FIFO."""

READ_WORDS = 32
"""Words that this FIFO holds (DEPTH). Further bursts are asked for, and wait in the memory."""

TIMES_BETWEEN = 2
"""axi_read.sv, axi_write.sv: from an answer to the request that takes its place: ``open`` is counted, then asked."""

# --- rows ---------------------------------------------------------------------------------------------------------

LOAD_GAP = 3
"""loader/load.sv: RETURN, NEXT and BEGIN between two phases."""

LOADED = 9
"""From the cycle after a phase's last word to the first step of the next one: these three, the first feed, its five
stages (LATENCY). A word of a map buffer is stored two cycles after it is asked for, before it is read."""

FED = 6
"""From a feed to its step: the five stages, and the FIFO."""

ROWS_HELD = 9
"""Steps that load is ahead of an array that waits: it stops to feed (``room``) with seven in its FIFO, which holds
twelve with those under way; between the two."""

# --- weights ------------------------------------------------------------------------------------------------------

FEED_GAP = 1
"""loader/feed_weights.sv: BEGIN between two tiles."""

STORED = 3
"""From the cycle after a tile's last word to its first step: ``held`` is compared in BEGIN, a feed, its bank."""

FIRST_FEED = 3
"""From the start of a pass to the first step with weights that are in the buffer: the same."""

WEIGHTS_HELD = 5
"""As ROWS_HELD, of feed_weights: four to six."""

# --- the Saver ----------------------------------------------------------------------------------------------------

POOLED = 1
"""saver/pool.sv: a group stands in a register behind the window."""

LINE_STAGES = 5
"""saver/look_up_piece.sv: from a value to what the line at its place is there."""

RESUMED = 13
"""saver/arrange.sv, when a half is free again: nine results leave their FIFO until it takes more, pool's register is
taken, pool takes a position, and the FIFO of sums has room."""

LEFT = 2
"""saver/arrange.sv: from the address of a word to the port's FIFO, or to the map buffer."""

SUMMED = 10
"""The same of a word to which that of another map is added: SUM_LATENCY and the FIFO behind it."""


@dataclass(frozen=True)
class Stages:
    """What depends on the array.

    sums: from the step that ends a position to the cycle in which pool can take the sums of all rows. waiting:
    positions in the FIFOs of sums with which the array waits; under_way: steps whose sums are not in them yet.
    results: from a group in pool to its results in arrange. computed: of these cycles those in a pipeline. held:
    results in the FIFO behind it with which no more groups are taken; some are under way.
    """

    sums: int
    waiting: int
    under_way: int
    results: int
    computed: int
    held: int


@lru_cache(maxsize=64)
def stages_of(array: Array) -> Stages:
    """array/pe_array.sv: a step's control is LATENCY cycles behind it, its sums are registered after another and in the
    first row's FIFO after a third; each row is a cycle of the DSPs' clock behind the one above. saver/requantise.sv:
    LATENCY is 8, with late offsets one more, with a table too, with pieces of lines five more; then the FIFO, which
    holds two results more than are under way. saver/multiply.sv: LATENCY is 3, then a FIFO."""
    latency = _array_latency(array)
    skew = array.rows // 2 if array.dsp_clock == 2 else array.rows - 1
    looked_up = LINE_STAGES if array.table_slopes else int(array.table_depth > 0)
    requantised = 8 + (array.late_offsets > 0) + looked_up
    multiplied = 3 + 1 if array.map_products else 0
    return Stages(
        sums=latency + 2 + skew,
        waiting=-(-(array.rows - 1) // array.dsp_clock) + 5,
        under_way=latency + 2,
        results=POOLED + requantised + 1 + multiplied,
        computed=requantised + multiplied,
        held=requantised + 2,
    )


def _array_latency(array: Array) -> int:
    """LATENCY of pe_array.sv."""
    if array.dsp_products:
        return 6 + _levels(array.lanes // 2)
    return array.pack_chain + 4 if array.dsp_clock == 1 else array.pack_chain // 2 + 5


def _levels(count: int) -> int:
    """levels_of: adders of three, one behind the other, until one number is left."""
    levels = 0
    while count > 1:
        count, levels = (count + 2) // 3, levels + 1
    return levels
