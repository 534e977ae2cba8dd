"""The state of the C++ engine's cycle model, which is carried from tile to tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.systolic.model.grid import Times
from scheduler.systolic.model.progress import Progress

LOAD_STAGES, FEED_STAGES = 8, 4
"""Depths of the pipelines of load and feed_weights, which drain between row tiles and between weight tiles."""

ROWS_TAKEN, WEIGHTS_TAKEN = 2 * LOAD_STAGES, 2 * FEED_STAGES + 1
"""The lowest number of cycles from a phase's last word to the first element of the next phase, for rows and weights."""


@dataclass(frozen=True, eq=False)
class State(Progress):
    """The state of the C++ engine's cycle model after a tile: the cycles at which its processes and DDR ports are done.

    arrange outputs a chunk while it takes the results of the next one (saver.py). The *last chunk* is the last one that
    arrange has taken. Its words are not output yet.

    Attributes:
        writes_done: Time at which a writing port has moved all requested words.
        stored: Time at which the DDR has moved all written words. It cannot start before ``first_write``.
        first_write: Time at which the first burst of the pass is in the memory's buffer.
        pool_free: Time at which pool can begin the next chunk. It may be later than ``pool_done``, if results fill the
            FIFOs after pool.
        results: Groups that arrange has taken so far.
        chunk_results: Groups of the last chunk.
        chunk_columns: Output columns of the last chunk.
        column_words: Words per column and port of the last chunk.
        word_cycles: Cycles in which the DDR moves a word of each writing port.
        rows_lead: Further cycles by which load ends before the array, because a blocked array takes the last elements
            from its FIFO late.
        weights_lead: The same number for feed_weights.
        output_done: Time at which arrange has output the last word of the chunk before the last one.
        port_lag: Cycles from ``output_done`` until write_rows has finished that chunk, if the port waits for words.
        last_response: Time of the response to that chunk's last burst.
        ports_free: Time at which write_rows has finished that chunk.
        weights_asked: Time at which read_weights requests the weight tile that the next phase loads.
        weights_read: Time at which read_weights has passed on the last word so far.
        excess: Iterations in which arrange only output words, after it had taken all results of the last chunk.
        gap: Cycles before the last chunk in which arrange took no results.
        pending_bytes: Bytes of the last chunk, which are not written yet.
    """

    writes_done: Times
    stored: Times
    first_write: Times
    pool_free: Times
    results: Times
    chunk_results: Times
    chunk_columns: Times
    column_words: Times
    word_cycles: Times
    rows_lead: Times
    weights_lead: Times
    output_done: Times
    port_lag: Times
    last_response: Times
    ports_free: Times
    weights_asked: Times
    weights_read: Times
    excess: Times
    gap: Times
    pending_bytes: Times

    word_to_step: ClassVar[tuple[int, int]] = (ROWS_TAKEN, WEIGHTS_TAKEN)

    @property
    def chunk_words(self) -> Times:
        """The iterations in which arrange outputs the words of the last chunk that it has taken."""
        return self.chunk_columns * self.column_words
