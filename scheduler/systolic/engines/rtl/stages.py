"""The depths and gaps of the SystemVerilog engine's modules (rtl_templates/), in cycles from register to register.

Time 0 of a pass is the cycle after ``pass_start``, in which every state machine has left its IDLE state. The time of a
step is the cycle in which the array takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from scheduler.systolic.area.logic import levels_of
from scheduler.systolic.array import Array

# --- a pass -------------------------------------------------------------------------------------------------------

PASS_TAKEN = 3
"""Cycles of control/sequence_passes.sv before a pass: its states TAKE, PLAN and BEGIN."""

ENDED = 1
"""The cycle in which control/sequence_passes.sv sees that all modules are done."""

FETCH = 3
"""Cycles of control/read_program.sv per pass: its state ASK, the burst's request, and the FIFO of the words.

The DDR's read latency and one cycle per word of the pass are not included."""

BEFORE_COUNTED = 4
"""Cycles of a frame that are not counted: from its start in the control registers to the response to the host's write.

The cycles of a frame are counted from this response on."""

# --- ports --------------------------------------------------------------------------------------------------------

ASKED = 1
"""Cycles in which common/axi_bursts.sv takes a command. It requests the command's burst from the next cycle on."""

ANSWERED = 1
"""Cycles of common/axi_read.sv from a beat at the port to the word at the output of its FIFO."""

READ_WORDS = 32
"""Words that the FIFO of common/axi_read.sv holds (DEPTH). If it is full, requested bursts wait in the memory."""

TIMES_BETWEEN = 2
"""Cycles of axi_read.sv and axi_write.sv from a response to the request that it allows.

``open`` counts the response in the first cycle, and the request is sent in the second."""

# --- rows ---------------------------------------------------------------------------------------------------------

LOAD_GAP = 3
"""Cycles of loader/load.sv between two phases: its states RETURN, NEXT and BEGIN."""

LOADED = 9
"""Cycles from the one after a phase's last word to the first step of the next phase.

They are the LOAD_GAP, the first feed, and the feed's five stages (LATENCY of loader/load.sv). Words of a map buffer
need no further cycle: they are stored two cycles after the request, and that is before they are read."""

FED = 6
"""Cycles from a feed of loader/load.sv to its step: five stages, and the FIFO."""

ROWS_HELD = 9
"""Steps by which load is ahead of an array that waits.

load stops feeding when its FIFO holds seven steps (``room``). With the steps that are still in its pipeline the FIFO
then holds up to twelve. The value is between the two."""

# --- weights ------------------------------------------------------------------------------------------------------

FEED_GAP = 1
"""Cycles of loader/feed_weights.sv between two tiles: its state BEGIN."""

STORED = 3
"""Cycles from the one after a weight tile's last word to the tile's first step.

``held`` is compared in BEGIN, the first step is fed, and its bank is read."""

FIRST_FEED = 3
"""Cycles from the start of a pass to its first step if the weights are already in the buffer: as for STORED."""

WEIGHTS_HELD = 5
"""Steps by which feed_weights is ahead of an array that waits. They are four to six (see ROWS_HELD)."""

# --- the Saver ----------------------------------------------------------------------------------------------------

POOLED = 1
"""Cycles in which saver/pool.sv holds a group in the register after the window."""

LINE_STAGES = 5
"""Cycles of saver/look_up_segment.sv from a value to the piecewise-linear table's output for it."""

RESUMED = 13
"""Cycles from the one in which a half of arrange's buffer is free again until the array can continue.

saver/arrange.sv takes nine results from their FIFO before the FIFO accepts more. Then pool's register is taken, pool
takes a position, and the FIFO of sums has room."""

LEFT = 2
"""Cycles of saver/arrange.sv from the address of a word to the word in the port's FIFO, or in the map buffer."""

SUMMED = 10
"""The same cycles for a word with a residual add. They include SUM_LATENCY and the FIFO after the sum."""


@dataclass(frozen=True)
class Stages:
    """The pipeline depths and FIFO levels of the SystemVerilog engine that depend on its array.

    Attributes:
        sums: Cycles from the array's last step for an output pixel until pool can take the sums of all rows.
        waiting: Positions in the FIFOs of sums at which the array stops and waits.
        under_way: Steps that the array has taken and whose sums are not in the FIFOs yet.
        results: Cycles from a group in pool to its results in arrange.
        computed: The cycles of ``results`` in the pipelines of requantise and multiply.
        held: Results in the FIFO after these pipelines at which no further group is taken. Further results may still be
            in the pipelines.
    """

    sums: int
    waiting: int
    under_way: int
    results: int
    computed: int
    held: int


@lru_cache(maxsize=64)
def stages_of(array: Array) -> Stages:
    """Return the pipeline depths and FIFO levels of the SystemVerilog engine for ``array``.

    These modules determine them:

    - array/pe_array.sv: The control of a step follows the step by LATENCY cycles. One cycle later the sums are in a
      register, and after another one in the first row's FIFO. Each row runs one cycle of the DSPs' clock after the row
      above.
    - saver/requantise.sv: LATENCY is 8. Late offsets and a table take one cycle more each, and a piecewise-linear table
      takes five. The FIFO after it holds two results more than the pipeline.
    - saver/multiply.sv: LATENCY is 3, and a FIFO follows.
    """
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
    """Return LATENCY of array/pe_array.sv: the pipeline depth of the PE array, in cycles of the fabric's clock."""
    if array.dsp_products:
        return 6 + levels_of(array.lanes // 2)
    return array.pack_chain + 4 if array.dsp_clock == 1 else array.pack_chain // 2 + 5
