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

PASS_START = 3
"""Cycles of control/sequence_passes.sv before a pass: its states TAKE, PLAN and BEGIN."""

PASS_END = 1
"""The cycle in which control/sequence_passes.sv sees that all modules are done."""

FETCH = 3
"""Cycles of control/read_program.sv per pass: its state REQUEST, the burst's request, and the FIFO of the words.

The DDR's read latency and one cycle per word of the pass are not included."""

UNCOUNTED_START = 4
"""Cycles of a frame that are not counted: from its start in the control registers to the response to the host's write.

The cycles of a frame are counted from this response on."""

# --- ports --------------------------------------------------------------------------------------------------------

COMMAND_CYCLES = 1
"""Cycles in which common/axi_bursts.sv takes a command. It requests the command's burst from the next cycle on."""

READ_FIFO_LATENCY = 1
"""Cycles of common/axi_read.sv from a beat at the port to the word at the output of its FIFO."""

READ_WORDS = 32
"""Words that the FIFO of common/axi_read.sv holds (DEPTH). If it is full, requested bursts wait in the memory."""

RESPONSE_TO_REQUEST = 2
"""Cycles of axi_read.sv and axi_write.sv from a response to the request that it allows.

``open_bursts`` counts the response in the first cycle, and the request is sent in the second."""

# --- rows ---------------------------------------------------------------------------------------------------------

LOAD_GAP = 3
"""Cycles of loader/load.sv between two phases: its states REWIND, NEXT and BEGIN."""

LOAD_TO_STEP = 9
"""Cycles from the one after a phase's last word to the first step of the next phase.

They are the LOAD_GAP, the first feed, and the feed's five stages (LATENCY of loader/load.sv). Words of a map buffer
need no further cycle: they are stored two cycles after the request, and that is before they are read."""

FEED_TO_STEP = 6
"""Cycles from a feed of loader/load.sv to its step: five stages, and the FIFO."""

ROW_LEAD = 9
"""Steps by which load is ahead of an array that waits.

load stops feeding when its FIFO holds seven steps (``room``). With the steps that are still in its pipeline the FIFO
then holds up to twelve. The value is between the two."""

# --- weights ------------------------------------------------------------------------------------------------------

FEED_GAP = 1
"""Cycles of loader/feed_weights.sv between two tiles: its state BEGIN."""

TILE_TO_STEP = 3
"""Cycles from the one after a weight tile's last word to the tile's first step.

``stored`` is compared in BEGIN, the first step is fed, and its bank is read."""

FIRST_FEED = 3
"""Cycles from the start of a pass to its first step if the weights are already in the buffer: as for STORED."""

WEIGHT_LEAD = 5
"""Steps by which feed_weights is ahead of an array that waits. They are four to six (see ROWS_HELD)."""

# --- the Saver ----------------------------------------------------------------------------------------------------

POOL_REGISTER = 1
"""Cycles in which saver/pool.sv holds a group in the register after the window."""

LINE_STAGES = 5
"""Cycles of saver/look_up_segment.sv from a value to the piecewise-linear table's output for it."""

RESUME_CYCLES = 13
"""Cycles from the one in which a half of arrange's buffer is free again until the array can continue.

saver/arrange.sv takes nine results from their FIFO before the FIFO accepts more. Then pool's register is taken, pool
takes a position, and the FIFO of sums has room."""

OUTPUT_LATENCY = 2
"""Cycles of saver/arrange.sv from the address of a word to the word in the port's FIFO, or in the map buffer."""

SUM_OUTPUT_LATENCY = 10
"""The same cycles for a word with a residual add. They include SUM_LATENCY and the FIFO after the sum."""


@dataclass(frozen=True)
class Stages:
    """The pipeline depths and FIFO levels of the SystemVerilog engine that depend on its array.

    Attributes:
        sums: Cycles from the array's last step for an output pixel until pool can take the sums of all rows.
        row_wait: Positions in the FIFOs of sums at which the array stops and waits.
        in_flight: Steps that the array has taken and whose sums are not in the FIFOs yet.
        results: Cycles from a group in pool to its results in arrange.
        computed: The cycles of ``results`` in the pipelines of requantise and multiply.
        result_limit: Results in the FIFO after these pipelines at which no further group is taken. Further results may
            still be in the pipelines.
    """

    sums: int
    row_wait: int
    in_flight: int
    results: int
    computed: int
    result_limit: int


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
        row_wait=-(-(array.rows - 1) // array.dsp_clock) + 5,
        in_flight=latency + 2,
        results=POOL_REGISTER + requantised + 1 + multiplied,
        computed=requantised + multiplied,
        result_limit=requantised + 2,
    )


def _array_latency(array: Array) -> int:
    """Return LATENCY of array/pe_array.sv: the pipeline depth of the PE array, in cycles of the fabric's clock."""
    if array.dsp_products:
        return 6 + levels_of(array.lanes // 2)
    return array.pack_chain + 4 if array.dsp_clock == 1 else array.pack_chain // 2 + 5
