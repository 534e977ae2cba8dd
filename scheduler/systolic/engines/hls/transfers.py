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

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import OUTSTANDING
from scheduler.systolic.engines.hls.fifos import FIFO_DEPTH, ROW_FIFO_DEPTH
from scheduler.systolic.engines.hls.leaving import STORED, arrange_stages, chunk_bubble, save_bytes, uses_ports
from scheduler.systolic.engines.hls.saver import LEAD, TileSave
from scheduler.systolic.engines.hls.stages import saver_stages, skew_of
from scheduler.systolic.engines.hls.state import FEED_STAGES, LOAD_STAGES, ROWS_TAKEN, WEIGHTS_TAKEN, State
from scheduler.systolic.model.arrays import Numbers
from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, shares_of
from scheduler.systolic.model.grid import (
    ASK_PIECES,
    ASK_TILE,
    ENTER_READ,
    HELD_WORDS,
    REQUANTISER_BYTES,
    PassGrid,
    Times,
    ceiling,
    latest,
)
from scheduler.systolic.model.phases import RowPhase, TileTraffic, WeightPhase
from scheduler.systolic.model.progress import changed
from scheduler.systolic.shape import rows_by_port

READ_STAGES = 4
"""From a beat of the memory to the loop that loads: the reader's pipeline and a FIFO."""

FIRST_WEIGHTS = 1
"""read_weights asks in this cycle."""


def first_row_word(grid: PassGrid) -> tuple[Times, Times]:
    """When the first row is requested, and when load has its first word.

    read_rows asks for two groups of pieces, if there are so many, and then reads the first. Rows of padding are pieces
    too, which it steps over.
    """
    arrays, shape = grid.arrays, grid.shape
    request = 1 + np.floor(shape.pad_top / arrays.map_ports) * np.asarray(grid.tilings.bursts, np.float64)
    loops = np.where(grid.pieces > OUTSTANDING, 2.0, 1.0) * (ASK_PIECES + 1)
    return request, latest(loops, request + grid.ddr.read_latency) + READ_STAGES


def rows_from_ddr(grid: PassGrid, request: Times, first_word: Times, iterations: Times) -> Times:
    """When the first tile's rows are there. The first weights and requantisers come meanwhile, from the same DDR."""
    arrays, shape = grid.arrays, grid.shape
    words = ceiling(grid.first_rows / arrays.map_ports) * grid.tilings.words
    head_start = (request - FIRST_WEIGHTS) * np.minimum(grid.rate, grid.weight_bytes)
    weights = latest(0, np.minimum(HELD_WORDS, _requested_weights(grid)) * grid.weight_bytes - head_start)
    requantisers = np.minimum(grid.channel_tiles * arrays.columns, words) * REQUANTISER_BYTES
    answer = request + grid.ddr.read_latency + READ_STAGES
    lost = shares_of(grid).lost(ROWS, words, {WEIGHTS: weights, SAVES: grid.flat(0.0)})
    lost = lost + np.where(lost > 0, requantisers / grid.rate, 0)
    transferred = answer + grid.first_bytes / grid.rate
    slowest = answer + _slowest_port(grid, np.minimum(weights, words * grid.weight_bytes) + requantisers)
    requests = np.floor(latest(0, words / grid.burst - 1) / OUTSTANDING) * (
        ASK_PIECES + ENTER_READ
    )  # but for the first
    last_word = latest(
        first_word + latest(words * grid.burst_pace, words + requests),
        answer + words * grid.row_pace + lost,
        transferred,
        slowest,
    )
    strides = min(arrays.rows + shape.ahead, ceil_div(shape.pad_top + shape.in_height, shape.stride))
    return latest(first_word + iterations, last_word + iterations - grid.loads_of(strides))


def _requested_weights(grid: PassGrid) -> Times:
    """Words of weights that a port is asked for before the array begins: two tiles, and a third when the first of a
    frame is there."""
    tile, tiles, ahead = grid.shape.steps * grid.step_words, grid.tiles_loaded, 3 if grid.first else 2
    return np.minimum(ahead, tiles) * tile + np.where(tiles < ahead, grid.tilings.next_steps * grid.step_words, 0)


def weights_left(grid: PassGrid, start: Times) -> Times:
    """Words of weights requested ahead that a port has not moved at ``start``, when the first rows are there."""
    pace = shares_of(grid).paces(ROWS, WEIGHTS)[WEIGHTS]
    requested = np.minimum(HELD_WORDS, _requested_weights(grid))
    return latest(0, requested - (start - grid.ddr.read_latency) / pace)


def _slowest_port(grid: PassGrid, other_bytes: Times) -> Times:
    """Cycles until the port with most rows of the first tile has them, where the ports ask for more than the DDR gives:
    the other ports, which need fewer, meanwhile take their share for rows of the next tile, as many as they hold."""
    ahead = grid.read_ahead if grid.row_tiles > 1 else 0.0

    def moved_words(ports: int) -> Times:
        rows = rows_by_port(grid.shape, grid.arrays.rows, 1, ports)
        words = [np.minimum(max(rows) * grid.tilings.words, count * grid.tilings.words + ahead) for count in rows]
        return np.asarray(sum(words), np.float64)

    cycles = (grid.by_ports(moved_words) * grid.arrays.word_bytes + other_bytes) / grid.rate
    return np.where(grid.map_bytes > grid.rate, cycles, 0)


def load_rows(grid: PassGrid, state: State, phase: RowPhase, saved_bytes: Times, weight_bytes: Times) -> State:
    """The state when the phase is over. Without overlap loading begins when the array has taken its last element.

    saved_bytes, weight_bytes: what else the DDR moves meanwhile.
    """
    start, feeds, loads, words = phase.start, phase.feeds, phase.rows.loads, phase.rows.words
    overlapped = grid.tilings.overlap > 0
    any_words = words > 0
    # Words: a port's own pace, and what it loses to ports that are busy at the same time. Rows that were asked for
    # before the pass writes have the DDR to themselves.
    unshared = np.minimum((state.first_write - state.rows_arrived) / grid.row_pace, grid.read_ahead)
    shared = np.clip(words - latest(0, unshared), 0, None)
    lost = shares_of(grid).lost(ROWS, shared, {SAVES: saved_bytes, WEIGHTS: weight_bytes})
    transfer = latest(words * grid.row_pace, words * grid.burst_pace + lost)
    iterations = np.where(overlapped, latest(feeds, loads), feeds)
    prefetched = HELD_WORDS * latest(grid.row_pace, transfer / latest(1, words))
    last_word = latest(state.rows_arrived + transfer, np.where(overlapped, start, state.array) + transfer - prefetched)
    arrived = np.where(any_words, latest(last_word, state.ddr_done), state.rows_arrived)
    # The array: with overlap it waits for words that come while it still takes elements.
    waited_for = np.where(any_words & overlapped, arrived - _after_feeds(transfer, iterations, feeds), 0)
    array = latest(state.array, waited_for)
    # The loop: its iterations and its pipeline; without overlap the loads come after the feeds.
    behind = latest(iterations - feeds, _read_behind(grid, state, phase, iterations))
    loop = latest(start + iterations, array - LEAD - state.rows_lead + behind) + LOAD_STAGES
    loop = loop + np.where((loads > 0) & ~overlapped, loads + LOAD_STAGES, 0)
    padded = last_word + phase.rows.padding * np.where(overlapped, iterations / latest(1, loads), 1)
    next_element = latest(loop, np.where(any_words, latest(arrived, padded) + ROWS_TAKEN, 0))
    return changed(
        state,
        array=array,
        rows_ready=next_element,
        rows_late=next_element - loop,
        rows_arrived=arrived,
        wait_ddr=state.wait_ddr + array - state.array,
    )


def _read_behind(grid: PassGrid, state: State, phase: RowPhase, iterations: Times) -> Times:
    """Cycles in which read_rows gives the words that are loaded behind the array's last element, where the Saver has
    blocked the array: it stood meanwhile, with no more words given than a FIFO holds, and asks for pieces between those
    that it reads. That the memory has more of them ready does not help."""
    words = np.where(phase.rows.words > 0, phase.rows.loads - phase.rows.padding, 0)
    blocked = (state.array > phase.start + phase.feeds + LEAD) & (grid.tilings.overlap > 0)
    behind = words * (iterations - phase.feeds) / iterations
    return np.where(blocked, behind * grid.asked_pace - ROW_FIFO_DEPTH, 0)


def load_weights(grid: PassGrid, state: State, phase: WeightPhase) -> State:
    """The same of feed_weights, which loads the words of the next tile while the array takes elements with this one.

    A port may have words long before the loop wants them. But read_weights gives them in order, at most a FIFO of them
    ahead of the loop, and between two tiles it asks for the one behind them:

        read_weights   tile k │ asks for k + 2 │ tile k + 1 │ asks for k + 3
        the port                └ latency ─ k + 2 …
        feed_weights   └ FIFO ┤ tile k │ tile k + 1, as far as it was given
    """
    start, feeds, words = phase.start, phase.feeds, phase.words
    any_words = words > 0
    transfer = words * grid.weight_pace
    iterations = latest(feeds, words)
    answer = state.weights_asked + grid.ddr.read_latency + READ_STAGES
    first_word = latest(state.weights_arrived, answer, start - grid.weights_ahead)
    arrived = np.where(any_words, latest(first_word + transfer, state.ddr_done), state.weights_arrived)
    begun = state.weights_read + (ENTER_READ if phase.next_pass else ASK_TILE)
    read = np.where(any_words, latest(arrived, begun + words), state.weights_read)
    # One loop feeds and loads: until the first word is there it feeds nothing more.
    first_fed = latest(state.weights_arrived, begun) + feeds - iterations / latest(1, words)
    waited_for = latest(first_fed, read - _after_feeds(transfer, iterations, feeds))
    array = latest(state.array, np.where(any_words, waited_for, 0))
    loop = latest(start + iterations, array - LEAD - state.weights_lead + iterations - feeds) + FEED_STAGES
    next_element = latest(loop, np.where(any_words, read + WEIGHTS_TAKEN, 0))
    held = np.minimum(FIFO_DEPTH, words) * iterations / latest(1, words)
    return changed(
        state,
        array=array,
        weights_ready=next_element,
        weights_late=next_element - loop,
        weights_arrived=arrived,
        weights_asked=np.where(any_words, state.weights_read + FIRST_WEIGHTS, state.weights_asked),
        weights_read=np.where(any_words, latest(read, next_element - WEIGHTS_TAKEN - held), state.weights_read),
        wait_ddr=state.wait_ddr + array - state.array,
    )


def _after_feeds(transfer: Times, iterations: Times, feeds: Times) -> Times:
    """Words are spread over a phase: the part of their transfer that comes after the array's last element."""
    return transfer * (iterations - feeds) / iterations


def _first_word(grid: PassGrid, start: Times, lag: Times | float) -> Times:
    """When the first word of the pass leaves arrange. start: of the array; lag: from there to a result."""
    chunk = np.minimum(grid.columns, grid.arrays.chunk) * grid.column_cycles
    return np.asarray(start + lag + chunk + chunk_bubble(grid) + arrange_stages(grid), np.float64)


def bytes_before_writes(grid: PassGrid, state: State) -> Times:
    """Of rows, that the DDR gives before the pass writes. state: before the first tile."""
    lag = skew_of(grid.arrays.rows) + saver_stages(grid.arrays)
    alone = _first_word(grid, state.rows_ready, lag) - state.rows_arrived
    return np.asarray(np.minimum(alone / grid.row_pace, grid.read_ahead) * grid.map_bytes, np.float64)


def save_pace(grid: PassGrid, state: State, saved_rows: int, reading: dict[str, Times]) -> Times:
    """Cycles in which the DDR moves a word of each port that writes the results of a row tile. reading: bytes of rows
    and of weights that come meanwhile. Of rows that are left where each port has as many, only some ports have one."""
    return grid.once(_save_pace, state.chunk_leaves, np.asarray(saved_rows), reading[ROWS], reading[WEIGHTS])


def _save_pace(grid: PassGrid, pending: Times, saved_rows: Numbers, row_bytes: Times, weight_bytes: Times) -> Times:
    """pending: words of a chunk that is left of the tile before, which may be higher."""
    arrays, shape, shares = grid.arrays, grid.shape, shares_of(grid)
    ports = np.asarray(1 if shape.added else arrays.map_ports, np.float64)
    rows, left = ceiling(saved_rows / ports), np.mod(saved_rows, ports)
    alone = shares.paces(SAVES)[SAVES]
    of_left = np.where(left > 0, latest(1, left * arrays.word_bytes / grid.rate), alone)
    own_words = rows * grid.columns * ceil_div(shape.filters, arrays.lanes) * shape.value_words
    words = latest(own_words, pending)
    by_rivals = shares.lost(SAVES, words, {ROWS: row_bytes, WEIGHTS: weight_bytes}) / words + 1 - alone
    return np.asarray(alone + (of_left - alone) / rows + by_rivals * saved_rows / (rows * ports), np.float64)


def move(grid: PassGrid, begun: State, saved: State, start: Times, traffic: TileTraffic, tile: TileSave) -> State:
    """``saved``, with what the DDR has moved during the tile: rows, weights, and the chunks that leave. begun: the
    state when the tile began; start: of the array's first element.

    All chunks of the tile but the last leave during it, and the last one of the tile begun. Where writes are so far
    behind that the ports and FIFOs are full, arrange waits for them.
    """
    shape = grid.shape
    column_bytes = grid.column_bytes(traffic.saved_rows, traffic.blocks)
    tail = grid.tail_columns
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
    first_columns = np.minimum(grid.columns, grid.arrays.chunk)
    first_chunk = start + skew_of(grid.arrays.rows) + 1 + first_columns * grid.column_cycles
    begin = np.where(begun.results > 0, begun.arrange_done, first_chunk)  # nothing leaves before the first chunk
    first_word = _first_word(grid, start, tile.lag)
    # Its words leave with the results of the next chunk, or behind the last one.
    pace = np.where(grid.columns > first_columns, latest(1, grid.column_cycles / tile.groups), 1)
    first_burst = first_word + first_columns * shape.value_words * pace + STORED
    first_write = np.where(begun.results == 0, first_burst, begun.first_write)
    waits = (begun.results == 0) & (not traffic.last)  # what leaves of the last tile is counted at the end
    stored = np.where(waits, latest(begun.stored, first_burst), begun.stored) + left_bytes / grid.rate
    writes_done = latest(begun.writes_done, begin) + words * traffic.word_cycles
    port_behind = writes_done - grid.written_ahead
    ddr_behind = ddr_done - grid.written_ahead * save_bytes(grid) / grid.rate
    return changed(
        saved,
        ddr_done=ddr_done,
        writes_done=writes_done,
        stored=stored,
        first_write=first_write,
        pending_bytes=grid.flat(tail * column_bytes),
        arrange_done=latest(saved.arrange_done, latest(port_behind, ddr_behind) - saved.excess),
    )
