"""What leaves the Saver (saver/save.h): arrange gives the words of a chunk while it takes the results of the next one,
and write_rows sends them round by round.

A word and a result move in the same iteration of arrange. Where the ports hold words up, results wait with them:

    words of chunk k−1      w w w · · w w w · · w w w          · the FIFO is full
    results of chunk k      r r r · · r r r · · r r r r r r    those that are more come behind

A port requests some bursts, sends their words and awaits the answers to those of the round before, each in a loop of
its own. The last round of a chunk has the bursts that are left, and may be over before these answers come:

    round k−1   requests │ words of 4 bursts │ answers before │
    round k                                                   requests │ words of 1 │ … awaits 4 answers │
    memory                      └─ last burst moves ─┴────────── write latency ────────────┘
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from scheduler.systolic.engines.hls.fifos import FIFO_DEPTH
from scheduler.systolic.model.ddr_shares import save_ports
from scheduler.systolic.model.grid import BURSTS_TOGETHER, PassGrid, Times, ceiling, latest
from scheduler.systolic.shape import LayerShape, adds_from_ddr

ARRANGE_STAGES = 7
"""Depth of its pipeline; a test compares it with the code."""

ADD_STAGES = 8
"""Stages more of arrange in engines that add maps (systolic/save.h)."""

CHUNK_BUBBLE = ARRANGE_STAGES + 1
"""arrange: between two chunks its pipeline drains, what the next one is comes, and it is entered. In engines that add
maps it has ADD_STAGES more."""

ROUND_CYCLES = 10
"""The loops that request, send and await answers are entered and drained."""

NEXT_CHUNK = 1
"""What the next chunk is comes."""

REQUESTS = 4
"""From the end of a chunk to the first word of the next one, beside a cycle for each burst that is requested first."""

STORED = 2
"""From a word that a port takes to the memory's buffer: stages of the loop that sends."""

AWAITS = 6
"""From a round's last word in that buffer to its end, beside a cycle for each answer that it awaits."""


ENTERED = 2
"""From that word to the end of a round that has no answers to await: the first one of a pass."""


def arrange_stages(grid: PassGrid) -> int:
    """Depth of arrange's pipeline."""
    return ARRANGE_STAGES + ADD_STAGES * grid.arrays.added_maps


def chunk_bubble(grid: PassGrid) -> int:
    """CHUNK_BUBBLE in the engine of these arrays."""
    return CHUNK_BUBBLE + ADD_STAGES * grid.arrays.added_maps


def uses_ports(shape: LayerShape) -> bool:
    """Whether the Saver waits for DDR: it writes a map there, or reads one that it adds."""
    return not shape.to_chip or adds_from_ddr(shape)


def leaving_rows(grid: PassGrid) -> Times:
    """saver/save.h, leave_together: rows of a chunk that leave in an iteration."""
    arrays = grid.arrays
    if grid.shape.added:
        return grid.flat(1.0)
    rows = np.maximum(arrays.save_rows, arrays.map_ports) if grid.shape.to_chip else arrays.map_ports
    return np.asarray(rows, np.float64)


def save_bytes(grid: PassGrid) -> Times:
    """Return the bytes that the ports which results keep busy move in a cycle."""
    return np.asarray(save_ports(grid) * grid.arrays.word_bytes, np.float64)


@dataclass(frozen=True, eq=False)
class Sent:
    """A chunk on its way through a port.

    words: of a port; burst: those of one. first: cycles of its first round; cycles: of all of them, with what those
    behind the first wait for answers. after: from its last word in the memory's buffer to its end. requests: before
    its first word; awaits: of the first round, for answers to the chunk before. held: between arrange being rid of its
    last word and that one's being in the buffer, where the FIFO between them is full. last_words: of its last round,
    before which it takes none for ``pause`` cycles. interval: cycles of each of several such chunks. single: whether
    it is one round.
    """

    words: Times
    burst: Times
    first: Times
    cycles: Times
    after: Times
    requests: Times
    awaits: Times
    held: Times
    last_words: Times
    pause: Times
    interval: Times
    single: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Port:
    """free: when write_rows is through with a chunk. answered: when DDR has answered its last burst. rid: when arrange
    was rid of its last word at the latest."""

    free: Times
    answered: Times
    rid: Times


def sent(grid: PassGrid, columns: Times, port_words: Times) -> Sent:
    """A chunk of ``columns``, each of ``port_words`` words a port."""
    return grid.once(_sent, columns, port_words)


def _sent(grid: PassGrid, columns: Times, port_words: Times) -> Sent:
    latency = grid.ddr.write_latency
    burst, bursts = columns * grid.shape.value_words, port_words / grid.shape.value_words
    words, rounds = columns * port_words, ceiling(bursts / BURSTS_TOGETHER)
    last, single = bursts - BURSTS_TOGETHER * (rounds - 1), rounds == 1
    requested = np.minimum(bursts, BURSTS_TOGETHER)
    answers = np.where(single, bursts, BURSTS_TOGETHER)
    # From the end of a round to the answers to its last burst; the round behind it takes as long at least.
    answered = burst + latency + 1 - AWAITS - answers
    full_round, last_round = BURSTS_TOGETHER * (burst + 2) + ROUND_CYCLES, last * (burst + 1) + answers + ROUND_CYCLES
    late_last = np.where(single, 0, latest(0, answered - last_round))
    # Of full rounds each second one waits: the one behind it has had the time.
    late = late_last + latest(0, rounds - 2) * latest(0, answered - full_round) / 2
    cycles = words + 2 * bursts + ROUND_CYCLES * rounds + NEXT_CHUNK + late
    first = requested * (burst + 1) + answers + ROUND_CYCLES + NEXT_CHUNK
    one_by_one = latest(cycles, (words + bursts + burst + latency + AWAITS) / 2 * single)
    return Sent(
        words=words,
        burst=burst,
        first=first,
        cycles=cycles,
        after=AWAITS + answers + late_last,
        requests=requested + REQUESTS,
        awaits=AWAITS - ENTERED + answers,
        held=_held(burst, bursts, late_last, one_by_one) + arrange_stages(grid) - 1,
        last_words=last * burst,
        pause=np.where(single, 0, answers + last + ROUND_CYCLES - 1),
        interval=one_by_one,
        single=single,
    )


def _held(burst: Times, bursts: Times, late: Times, interval: Times) -> Times:
    """Cycles in which a port takes the words of a full FIFO, with the rounds that begin among them."""
    rounds = ceiling(bursts / BURSTS_TOGETHER)
    last, words = bursts - BURSTS_TOGETHER * (rounds - 1), burst * bursts
    begun = np.clip(np.floor((FIFO_DEPTH - last * burst) / (BURSTS_TOGETHER * burst)) + 1, 0, rounds - 1)
    held = FIFO_DEPTH + begun * (ROUND_CYCLES + BURSTS_TOGETHER + last) + np.minimum(begun, 1) * late
    return np.where(words <= FIFO_DEPTH, interval * FIFO_DEPTH / words, held)


def behind_last_word(chunk: Sent, together: Times) -> Times:
    """Cycles from the last word that comes to the end of the chunk, where the port waits for words. together: words
    that come last in as many cycles; those of a last round stand in the FIFO, which has filled in the pause before."""
    return STORED + chunk.after + np.where(together >= chunk.last_words, np.minimum(chunk.pause, FIFO_DEPTH), 0)


def send(grid: PassGrid, before: Port, chunk: Sent, first_word: Times, pace: Times) -> Port:
    """The port when it has sent a chunk. first_word: when arrange gives the first one; pace: cycles in which the DDR
    moves a word. It moves a burst when all of it is there, and those of the chunk before first."""
    latency = grid.ddr.write_latency
    begin = latest(before.free, first_word - chunk.requests)
    late = latest(0, before.answered + 1 - begin - chunk.first)
    spared = np.where(before.answered > 0, 0, chunk.awaits)
    through = begin + chunk.cycles + late - spared
    moved = (
        latest(before.answered - latency, begin + chunk.requests + chunk.burst)
        + (chunk.words - chunk.last_words) * pace
    )
    unanswered = np.where(chunk.single, 0, latest(0, moved + latency + 1 - through))
    free = through + unanswered
    stored = through - chunk.after + np.where(chunk.single, spared - late, 0)
    answered = latest(stored + chunk.burst * pace, moved + chunk.last_words * pace) + latency
    return Port(free, answered, stored - chunk.held)


class Chunk(Protocol):
    """The last chunk that was taken, as in a State."""

    @property
    def chunk_columns(self) -> Times: ...
    @property
    def column_words(self) -> Times: ...
    @property
    def word_cycles(self) -> Times: ...
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
    chunk = sent(grid, np.where(exists, before.chunk_columns, 1), np.where(exists, before.column_words, 1))
    port = Port(latest(before.ports_free, free), before.answered, left)
    port = send(grid, port, chunk, begin + stages, before.word_cycles)
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
