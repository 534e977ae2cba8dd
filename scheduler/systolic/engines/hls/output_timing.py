"""The output timing of the Saver (saver/save.h): the words that arrange outputs and that write_rows writes.

arrange outputs the words of a chunk while it takes the results of the next one. A word and a result move in the same
iteration of its loop. If the ports delay words, results wait with them:

    words of chunk k−1      w w w · · w w w · · w w w          · the FIFO is full
    results of chunk k      r r r · · r r r · · r r r r r r    further results follow

write_rows works in rounds. In a round it requests some bursts, then writes their words, then awaits the responses to
the bursts of the round before, each in a separate loop. The last round of a chunk has the remaining bursts. Its words
may be written before the responses arrive:

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
from scheduler.systolic.model.grid import BURSTS_PER_GROUP, PassGrid, Times, ceiling, latest
from scheduler.systolic.shape import LayerShape, adds_from_ddr

ARRANGE_STAGES = 7
"""Depth of arrange's pipeline. A test compares it with the code."""

ADD_STAGES = 8
"""Further stages of arrange in engines that add maps (saver/add.h)."""

CHUNK_BUBBLE = ARRANGE_STAGES + 1
"""Cycles of arrange between two chunks: its pipeline drains, it reads the next chunk's description, and it starts.

In engines that add maps there are ADD_STAGES more."""

ROUND_CYCLES = 10
"""Cycles per round in which the pipelines of the loops that request, write and await responses fill and drain."""

NEXT_CHUNK = 1
"""Cycles in which write_rows reads the next chunk's description."""

REQUESTS = 4
"""Cycles from the end of a chunk to the first word of the next one, plus one per burst that is requested first."""

PORT_TO_MEMORY = 2
"""Cycles from the port's FIFO to the memory's buffer: the stages of the loop that writes words."""

ROUND_END = 6
"""Cycles from a round's last word in the memory's buffer to the round's end, plus one per response that it awaits."""


FIRST_ROUND_END = 2
"""Cycles from that word to the round's end in the first round of a pass, which awaits no responses."""


def arrange_stages(grid: PassGrid) -> int:
    """Return the pipeline depth, in cycles, of arrange: the output stage's process that reorders results into DDR
    words."""
    return ARRANGE_STAGES + ADD_STAGES * grid.arrays.added_maps


def chunk_bubble(grid: PassGrid) -> int:
    """Return the cycles that arrange (the output stage's reordering) loses between two chunks of columns on these
    arrays."""
    return CHUNK_BUBBLE + ADD_STAGES * grid.arrays.added_maps


def uses_ports(shape: LayerShape) -> bool:
    """Return whether the output stage depends on DDR in a layer: it writes the map to DDR, or adds a map from DDR."""
    return not shape.to_chip or adds_from_ddr(shape)


def output_rows_per_cycle(grid: PassGrid) -> Times:
    """Return how many rows of output words arrange writes per iteration (saver/save.h, output_rows_per_cycle)."""
    arrays = grid.arrays
    if grid.shape.added:
        return grid.flat(1.0)
    rows = np.maximum(arrays.save_rows, arrays.map_ports) if grid.shape.to_chip else arrays.map_ports
    return np.asarray(rows, np.float64)


def save_bytes(grid: PassGrid) -> Times:
    """Return the bytes per cycle of all DDR ports that write results together."""
    return np.asarray(save_ports(grid) * grid.arrays.word_bytes, np.float64)


@dataclass(frozen=True, eq=False)
class ChunkWrite:
    """The cycles that a DDR port takes to write one chunk (a group of output columns), split into its causes.

    Attributes:
        words: Words of the chunk that each port writes.
        burst: Words per DDR burst.
        first: Cycles of the first round, which is a group of bursts that are requested together.
        cycles: Cycles of all rounds, with the waits of later rounds for responses.
        after: Cycles from the last word in the memory's buffer to the end of the chunk.
        requests: Cycles before the first word.
        awaits: Cycles in which the first round awaits the responses to the chunk before.
        full_fifo_cycles: Cycles from the time at which arrange outputs the last word until that word is in the memory's
            buffer, if the FIFO between them is full.
        last_words: Words of the last round of bursts.
        pause: Cycles before the last round's words in which the port takes no words from its FIFO.
        interval: Cycles per chunk if several such chunks follow each other.
        single: Whether the port writes the chunk in one round of bursts.
    """

    words: Times
    burst: Times
    first: Times
    cycles: Times
    after: Times
    requests: Times
    awaits: Times
    full_fifo_cycles: Times
    last_words: Times
    pause: Times
    interval: Times
    single: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Port:
    """The times at which a writing DDR port is done with a chunk (a group of output columns), in cycles of the pass.

    Attributes:
        free: Time at which write_rows has finished the chunk.
        last_response: Time of the DDR's response to the chunk's last burst.
        output_done: Latest time at which arrange has output the chunk's last word.
    """

    free: Times
    last_response: Times
    output_done: Times


def chunk_write(grid: PassGrid, columns: Times, port_words: Times) -> ChunkWrite:
    """Return the cycles in which a port writes a chunk of ``columns`` columns with ``port_words`` words per column and
    port."""
    return grid.cached(_chunk_write, columns, port_words)


def _chunk_write(grid: PassGrid, columns: Times, port_words: Times) -> ChunkWrite:
    latency = grid.ddr.write_latency
    burst, bursts = columns * grid.shape.value_words, port_words / grid.shape.value_words
    words, rounds = columns * port_words, ceiling(bursts / BURSTS_PER_GROUP)
    last, single = bursts - BURSTS_PER_GROUP * (rounds - 1), rounds == 1
    requested = np.minimum(bursts, BURSTS_PER_GROUP)
    responses = np.where(single, bursts, BURSTS_PER_GROUP)
    # Cycles from the end of a round to the response to its last burst. The next round takes at least this long.
    response = burst + latency + 1 - ROUND_END - responses
    full_round, last_round = (
        BURSTS_PER_GROUP * (burst + 2) + ROUND_CYCLES,
        last * (burst + 1) + responses + ROUND_CYCLES,
    )
    late_last = np.where(single, 0, latest(0, response - last_round))
    # Every second full round waits for responses. During this wait, the responses for the round after it arrive too.
    late = late_last + latest(0, rounds - 2) * latest(0, response - full_round) / 2
    cycles = words + 2 * bursts + ROUND_CYCLES * rounds + NEXT_CHUNK + late
    first = requested * (burst + 1) + responses + ROUND_CYCLES + NEXT_CHUNK
    one_by_one = latest(cycles, (words + bursts + burst + latency + ROUND_END) / 2 * single)
    return ChunkWrite(
        words=words,
        burst=burst,
        first=first,
        cycles=cycles,
        after=ROUND_END + responses + late_last,
        requests=requested + REQUESTS,
        awaits=ROUND_END - FIRST_ROUND_END + responses,
        full_fifo_cycles=_full_fifo_cycles(burst, bursts, late_last, one_by_one) + arrange_stages(grid) - 1,
        last_words=last * burst,
        pause=np.where(single, 0, responses + last + ROUND_CYCLES - 1),
        interval=one_by_one,
        single=single,
    )


def _full_fifo_cycles(burst: Times, bursts: Times, late: Times, interval: Times) -> Times:
    """Return the cycles in which a writing port empties its full FIFO, including the starts of rounds of bursts
    meanwhile."""
    rounds = ceiling(bursts / BURSTS_PER_GROUP)
    last, words = bursts - BURSTS_PER_GROUP * (rounds - 1), burst * bursts
    started = np.clip(np.floor((FIFO_DEPTH - last * burst) / (BURSTS_PER_GROUP * burst)) + 1, 0, rounds - 1)
    cycles = FIFO_DEPTH + started * (ROUND_CYCLES + BURSTS_PER_GROUP + last) + np.minimum(started, 1) * late
    return np.where(words <= FIFO_DEPTH, interval * FIFO_DEPTH / words, cycles)


def cycles_after_last_word(chunk: ChunkWrite, late_words: Times) -> Times:
    """Return the cycles from the last word in a writing port's FIFO to the chunk's end, if the port waits for words.

    Args:
        chunk: The times of the chunk.
        late_words: The number of last words that arrive in successive cycles. If they include the last round, they
            have filled the FIFO during the pause before that round.
    """
    return (
        PORT_TO_MEMORY + chunk.after + np.where(late_words >= chunk.last_words, np.minimum(chunk.pause, FIFO_DEPTH), 0)
    )


def write_chunk(grid: PassGrid, before: Port, chunk: ChunkWrite, first_word: Times, pace: Times) -> Port:
    """Return the times of a writing port after it has written a further chunk of output columns.

    The DDR moves a burst when all its words are in the memory's buffer, after the bursts of the chunk before.

    Args:
        grid: The pass.
        before: The port after the chunk before.
        chunk: The times of the chunk.
        first_word: Time at which arrange outputs the chunk's first word.
        pace: Cycles in which the DDR moves a word.
    """
    latency = grid.ddr.write_latency
    begin = latest(before.free, first_word - chunk.requests)
    late = latest(0, before.last_response + 1 - begin - chunk.first)
    spared = np.where(before.last_response > 0, 0, chunk.awaits)
    through = begin + chunk.cycles + late - spared
    moved = (
        latest(before.last_response - latency, begin + chunk.requests + chunk.burst)
        + (chunk.words - chunk.last_words) * pace
    )
    unanswered = np.where(chunk.single, 0, latest(0, moved + latency + 1 - through))
    free = through + unanswered
    stored = through - chunk.after + np.where(chunk.single, spared - late, 0)
    last_response = latest(stored + chunk.burst * pace, moved + chunk.last_words * pace) + latency
    return Port(free, last_response, stored - chunk.full_fifo_cycles)


class Chunk(Protocol):
    """The fields of a ``State`` that describe the last chunk of output columns that arrange has taken."""

    @property
    def chunk_columns(self) -> Times: ...
    @property
    def column_words(self) -> Times: ...
    @property
    def word_cycles(self) -> Times: ...
    @property
    def excess(self) -> Times: ...
    @property
    def port_lag(self) -> Times: ...
    @property
    def ports_free(self) -> Times: ...
    @property
    def last_response(self) -> Times: ...


@dataclass(frozen=True, eq=False)
class OutputPhase:
    """The times of one phase of arrange, in which it takes the results of one chunk and outputs the words of the chunk
    before.

    Attributes:
        arrange_done: Time at which arrange has taken the last result of the chunk.
        port_limit: Lower limit of ``arrange_done`` that the ports cause; 0 if they cause no delay.
        output_done: Time at which arrange has output the last word of the chunk before.
        port_lag: Cycles from ``output_done`` until write_rows has finished that chunk, if the port waits for words.
        ports_free: Time at which write_rows has finished that chunk.
        last_response: Time of the response to that chunk's last burst.
    """

    arrange_done: Times
    port_limit: Times
    output_done: Times
    port_lag: Times
    ports_free: Times
    last_response: Times


def output_chunk(grid: PassGrid, before: Chunk, begin: Times, taken: Times, fills: Times) -> OutputPhase:
    """Return the times of one phase of arrange: it takes ``fills`` results of a chunk and outputs the chunk before.

    Args:
        grid: The pass.
        before: The chunk before, which arrange outputs in this phase.
        begin: Time at which the phase begins.
        taken: Time at which arrange would take the last result if the ports caused no delay.
        fills: The number of results that arrange takes.
    """
    words = before.chunk_columns * before.column_words
    more = fills - words
    pace = latest(1, (taken - begin) / latest(1, fills))
    output_done = np.where(more > 0, latest(begin + words, taken - more * pace), taken - more)
    if not uses_ports(grid.shape):
        return OutputPhase(taken, taken * 0, output_done, taken * 0, before.ports_free, before.last_response)
    stages, exists = arrange_stages(grid), words > 0
    # If the chunk before had more words than results were taken, its last words were output after the last result.
    free = np.where(before.excess > 0, begin - chunk_bubble(grid) + before.port_lag, 0)
    chunk = chunk_write(grid, np.where(exists, before.chunk_columns, 1), np.where(exists, before.column_words, 1))
    port = Port(latest(before.ports_free, free), before.last_response, output_done)
    port = write_chunk(grid, port, chunk, begin + stages, before.word_cycles)
    # If words arrive late, the port finishes soon after the last one.
    port_lag = stages - 1 + cycles_after_last_word(chunk, -more)
    last_response = latest(
        port.last_response, output_done + port_lag - chunk.after + chunk.burst + grid.ddr.write_latency
    )
    port_lag = port_lag - np.where(chunk.single & (before.last_response == 0), chunk.awaits, 0)
    ports_free = latest(port.free, output_done + port_lag)
    port_pace = latest(1, chunk.cycles / latest(1, words))
    port_limit = np.where(
        exists & (port.output_done > output_done), port.output_done + more * np.where(more > 0, 1, port_pace), 0
    )
    output_done = np.where(exists, latest(output_done, port.output_done), output_done)
    return OutputPhase(
        latest(taken, port_limit),
        port_limit,
        output_done,
        np.where(exists, port_lag, 0),
        np.where(exists, ports_free, before.ports_free),
        np.where(exists, last_response, before.last_response),
    )
