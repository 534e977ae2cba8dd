"""What moves beside the array: rows of the next tile (loader/read.h, load.h), weights (feed.h), results (save.h).

load is one loop that does two things: it feeds the array with the rows of this tile, and puts those of the next tile
into free slots of the row buffer. Where loading takes more iterations than feeding, the array waits at the end:

    cycles           0 ─────────── feeds ──────── iterations = max(feeds, loads)
    array            takes this tile's elements │ waits
    load             ├──── loads the next tile's words, spread over the phase ────┤
    words from DDR   ─ ─ ─ a late word stalls the loop, and the array with it ─ ─ ─

feed_weights is the same for weights, a weight tile at a time. The DDR serves bytes in the order of their requests;
where ports ask for more than it gives they share it (ddr_shares.py), and a port that is never idle falls behind for
good.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, shares_of
from scheduler.systolic.model.grid import HELD_WORDS, PassGrid, RowLoad, Times, latest
from scheduler.systolic.model.leaving import save_bytes, uses_ports
from scheduler.systolic.model.saver import LEAD, skew_of, tail_columns
from scheduler.systolic.model.state import FEED_STAGES, LOAD_STAGES, ROWS_TAKEN, WEIGHTS_TAKEN, State


@dataclass(frozen=True, eq=False)
class RowPhase:
    """A phase of load: the array takes the rows of one tile while those of the next one come.

    start: when load begins to feed. feeds: elements that the array takes. rows: what is loaded. saved_bytes,
    weight_bytes: what else the DDR moves meanwhile. first_write: when the first results of the pass leave; rows that
    were asked for before then have the DDR to themselves.
    """

    start: Times
    feeds: Times
    rows: RowLoad
    saved_bytes: Times
    weight_bytes: Times
    first_write: Times | float = 0.0


def load_rows(grid: PassGrid, state: State, phase: RowPhase) -> State:
    """The state when the phase is over. Without overlap loading begins when the array has taken its last element."""
    start, feeds, loads, words = phase.start, phase.feeds, phase.rows.loads, phase.rows.words
    overlapped = grid.tilings.overlap > 0
    any_words = words > 0
    # Words: a port's own pace, and what it loses to ports that are busy at the same time.
    unshared = np.minimum((phase.first_write - state.rows_arrived) / grid.row_pace, grid.read_ahead)
    shared = np.clip(words - latest(0, unshared), 0, None)
    lost = shares_of(grid).lost(ROWS, shared, {SAVES: phase.saved_bytes, WEIGHTS: phase.weight_bytes})
    transfer = latest(words * grid.row_pace, words * grid.burst_pace + lost)
    iterations = np.where(overlapped, latest(feeds, loads), feeds)
    prefetched = HELD_WORDS * grid.row_pace
    last_word = latest(state.rows_arrived + transfer, np.where(overlapped, start, state.array) + transfer - prefetched)
    arrived = np.where(any_words, latest(last_word, state.ddr_done), state.rows_arrived)
    # The array: with overlap it waits for words that come while it still takes elements.
    waited_for = np.where(any_words & overlapped, arrived - _after_feeds(transfer, iterations, feeds), 0)
    array = latest(state.array, waited_for)
    # The loop: its iterations and its pipeline; without overlap the loads come after the feeds.
    loop = latest(start + iterations, array - LEAD - state.rows_lead + iterations - feeds) + LOAD_STAGES
    loop = loop + np.where((loads > 0) & ~overlapped, loads + LOAD_STAGES, 0)
    padded = last_word + phase.rows.padding * np.where(overlapped, iterations / latest(1, loads), 1)
    next_element = latest(loop, np.where(any_words, latest(arrived, padded) + ROWS_TAKEN, 0))
    return replace(
        state,
        array=array,
        rows_ready=next_element,
        rows_late=next_element - loop,
        rows_arrived=arrived,
        wait_ddr=state.wait_ddr + array - state.array,
    )


def load_weights(grid: PassGrid, state: State, start: Times, feeds: Times, words: Times, last: bool) -> State:
    """The same of feed_weights, which loads ``words`` a port of the next tile while the array takes ``feeds`` elements
    with this one. last: the words are the next pass's first tile."""
    any_words = words > 0
    transfer = words * (grid.next_weight_pace if last else grid.weight_pace)
    ahead = grid.next_weights_ahead if last else grid.weights_ahead
    iterations = latest(feeds, words)
    last_word = latest(state.weights_arrived + transfer, start + transfer - ahead, state.ddr_done)
    arrived = np.where(any_words, last_word, state.weights_arrived)
    # One loop feeds and loads: until the first word is there it feeds nothing more.
    first_word = state.weights_arrived + feeds - iterations / latest(1, words)
    waited_for = latest(first_word, arrived - _after_feeds(transfer, iterations, feeds))
    array = latest(state.array, np.where(any_words, waited_for, 0))
    loop = latest(start + iterations, array - LEAD - state.weights_lead + iterations - feeds) + FEED_STAGES
    next_element = latest(loop, np.where(any_words, arrived + WEIGHTS_TAKEN, 0))
    return replace(
        state,
        array=array,
        weights_ready=next_element,
        weights_late=next_element - loop,
        weights_arrived=arrived,
        wait_ddr=state.wait_ddr + array - state.array,
    )


def _after_feeds(transfer: Times, iterations: Times, feeds: Times) -> Times:
    """Words are spread over a phase: the part of their transfer that comes after the array's last element."""
    return transfer * (iterations - feeds) / iterations


@dataclass(frozen=True, eq=False)
class TileTraffic:
    """What moves during one channel tile of one row tile. saved_rows: that leave it; blocks: words of a position that
    it writes. row_bytes, weight_bytes: that are read meanwhile."""

    saved_rows: int
    blocks: int
    row_bytes: Times
    weight_bytes: Times


def move(grid: PassGrid, begun: State, saved: State, start: Times, traffic: TileTraffic) -> State:
    """``saved``, with what the DDR has moved during the tile: rows, weights, and the chunks that leave. begun: the
    state when the tile began; start: of the array's first element.

    All chunks of the tile but the last leave during it, and the last one of the tile begun. Where writes are so far
    behind that the ports and FIFOs are full, arrange waits for them.
    """
    shape = grid.shape
    column_bytes = grid.column_bytes(traffic.saved_rows, traffic.blocks)
    tail = tail_columns(grid)
    left_bytes = begun.pending_bytes + (grid.columns - tail) * column_bytes
    read_bytes = grid.map_bytes * (not shape.from_chip) + grid.weight_bytes
    earliest = start - HELD_WORDS * read_bytes / grid.rate
    read_and_written = (traffic.row_bytes + traffic.weight_bytes + left_bytes) / grid.rate
    ddr_done = latest(begun.ddr_done, earliest) + read_and_written
    column_words = (
        np.ceil(traffic.saved_rows / (1 if shape.added else grid.arrays.map_ports)) * traffic.blocks * shape.value_words
    )
    words = begun.chunk_leaves + column_words * (grid.columns - tail)
    words = words * uses_ports(shape)
    first_chunk = (
        start + skew_of(grid.arrays.rows) + 1 + np.minimum(grid.columns, grid.arrays.chunk) * grid.column_cycles
    )
    begin = np.where(begun.results > 0, begun.arrange_done, first_chunk)  # nothing leaves before the first chunk
    lost = shares_of(grid).lost(SAVES, words, {ROWS: traffic.row_bytes, WEIGHTS: traffic.weight_bytes})
    writes_done = latest(begun.writes_done, begin) + words + lost
    port_behind = writes_done - grid.written_ahead
    ddr_behind = ddr_done - grid.written_ahead * save_bytes(grid) / grid.rate
    return replace(
        saved,
        ddr_done=ddr_done,
        writes_done=writes_done,
        pending_bytes=grid.flat(tail * column_bytes),
        arrange_done=latest(saved.arrange_done, latest(port_behind, ddr_behind) - saved.excess),
    )
