"""What is carried from tile to tile of the engine in C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.systolic.model.grid import Times
from scheduler.systolic.model.progress import Progress

LOAD_STAGES, FEED_STAGES = 8, 4
"""Depths of the pipelines of load and of feed_weights in C++, which drain between two row tiles, two weight tiles."""

ROWS_TAKEN, WEIGHTS_TAKEN = 2 * LOAD_STAGES, 2 * FEED_STAGES + 1
"""From a phase's last word to the first element of the next phase there, at least."""


@dataclass(frozen=True, eq=False)
class State(Progress):
    """Of the engine in C++.

    writes_done: when a port that writes has moved what was asked for. first_write: when the pass's first burst is in
    the memory's buffer; stored: when the memory has moved what was written, which it cannot begin before.
    pool_free: when pool can begin the next chunk, which may be later than pool_done because results stand in the FIFOs
    behind it.
    results: groups that arrange has taken so far. chunk_results: of the last chunk; chunk_leaves: iterations in which
    that chunk leaves; chunk_sent: cycles that a port needs for it; excess: iterations that did not hide behind
    the chunk that came meanwhile; gap: cycles in which arrange took nothing before the last chunk; pending_bytes: of
    the chunk that has yet to leave. ports_free: when the ports have sent the chunk before that one.
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
    left: Times
    port_behind: Times
    answered: Times
    ports_free: Times
    weights_asked: Times
    weights_read: Times
    excess: Times
    gap: Times
    pending_bytes: Times

    word_to_step: ClassVar[tuple[int, int]] = (ROWS_TAKEN, WEIGHTS_TAKEN)

    @property
    def chunk_leaves(self) -> Times:
        """Iterations in which the last chunk leaves."""
        return self.chunk_columns * self.column_words
