"""A phase of arrange (saver/save.h): it takes the results of a chunk while the chunk before leaves, in one loop.

A word and a result move in the same iteration. Where the ports hold words up, results wait with them:

    words of chunk k−1      w w w · · w w w · · w w w          · the FIFO is full
    results of chunk k      r r r · · r r r · · r r r r r r    those that are more come behind
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from scheduler.systolic.model.bursts import Port, behind_last_word, send, sent, uses_ports
from scheduler.systolic.model.grid import PassGrid, Times, latest

ARRANGE_STAGES = 7
"""Depth of its pipeline; a test compares it with the code."""

ADD_STAGES = 8
"""Stages more of arrange in engines that add maps (systolic/save.h)."""

CHUNK_BUBBLE = ARRANGE_STAGES + 1
"""arrange: between two chunks its pipeline drains, what the next one is comes, and it is entered. In engines that add
maps it has ADD_STAGES more."""


def arrange_stages(grid: PassGrid) -> int:
    """Depth of arrange's pipeline."""
    return ARRANGE_STAGES + ADD_STAGES * grid.arrays.added_maps


def chunk_bubble(grid: PassGrid) -> int:
    """CHUNK_BUBBLE in the engine of these arrays."""
    return CHUNK_BUBBLE + ADD_STAGES * grid.arrays.added_maps


class Chunk(Protocol):
    """The last chunk that was taken, as in a State."""

    @property
    def chunk_columns(self) -> Times: ...
    @property
    def column_words(self) -> Times: ...
    @property
    def column_bytes(self) -> Times: ...
    @property
    def excess(self) -> Times: ...
    @property
    def port_behind(self) -> Times: ...
    @property
    def ports_free(self) -> Times: ...
    @property
    def answered(self) -> Times: ...


@dataclass(frozen=True, eq=False)
class Leaving:
    """A phase of arrange. arrange_done: when it has taken the last result of the chunk that comes; held_up: the same,
    as far as ports hold it up. left: when it has let the last word of the one go that leaves; port_behind: cycles from
    then to write_rows being through, where words are late. ports_free, answered: of write_rows, and of its last burst.
    """

    arrange_done: Times
    held_up: Times
    left: Times
    port_behind: Times
    ports_free: Times
    answered: Times


def leaving(grid: PassGrid, before: Chunk, begin: Times, taken: Times, fills: Times) -> Leaving:
    """taken: when the last of ``fills`` results would come if no port held the phase up. A word and a result move in
    the same iteration: where the ports hold words up results wait with them, and those that are more come behind."""
    leaves = before.chunk_columns * before.column_words
    more = fills - leaves
    pace = latest(1, (taken - begin) / latest(1, fills))
    left = np.where(more > 0, latest(begin + leaves, taken - more * pace), taken - more)
    if not uses_ports(grid.shape):
        return Leaving(taken, taken * 0, left, taken * 0, before.ports_free, before.answered)
    stages, exists = arrange_stages(grid), leaves > 0
    # The chunk before: its last words left behind the last result.
    free = np.where(before.excess > 0, begin - chunk_bubble(grid) + before.port_behind, 0)
    chunk = sent(grid, np.where(exists, before.chunk_columns, 1), np.where(exists, before.column_words, 1), stages)
    word_cycles = before.column_bytes / latest(1, before.column_words) / grid.rate
    port = Port(latest(before.ports_free, free), before.answered, left)
    port = send(grid, port, chunk, begin + stages, leaves * word_cycles)
    # Where words come late the port is through soon behind the last one.
    behind = stages - 1 + behind_last_word(chunk, -more)
    answered = latest(port.answered, left + behind - chunk.after + chunk.burst + grid.ddr.write_latency)
    behind = behind - np.where(chunk.single & (before.answered == 0), chunk.awaits, 0)
    ports_free = latest(port.free, left + behind)
    port_pace = latest(1, chunk.cycles / latest(1, leaves))
    held_up = np.where(exists & (port.rid > left), port.rid + more * np.where(more > 0, 1, port_pace), 0)
    left = np.where(exists, latest(left, port.rid), left)
    return Leaving(
        latest(taken, held_up),
        held_up,
        left,
        np.where(exists, behind, 0),
        np.where(exists, ports_free, before.ports_free),
        np.where(exists, answered, before.answered),
    )
