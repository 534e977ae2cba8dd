"""The data that move while the array computes: rows of the next tile, weights and results.

The processes are in loader/read.h, loader/load.h, loader/feed.h and saver/save.h. load is one loop that does two
things. It feeds the array with the rows of this tile, and stores the rows of the next tile in free slots of the row
buffer. If loading takes more iterations than feeding, the array waits at the end:

    cycles           0 ─────────── feeds ──────── iterations = max(feeds, loads)
    array            takes this tile's elements │ waits
    load             ├──── loads the next tile's words, spread over the phase ────┤
    words from DDR   ─ ─ ─ a late word stalls the loop, and the array with it ─ ─ ─

feed_weights does the same with weights, one weight tile at a time. The DDR serves bytes in the order of their requests.
If the ports request more than it moves, they share it (ddr_shares.py). A port that is never idle cannot catch up.
"""

from __future__ import annotations

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import OUTSTANDING
from scheduler.systolic.engines.hls.fifos import FIFO_DEPTH, ROW_FIFO_DEPTH
from scheduler.systolic.engines.hls.output_timing import (
    PORT_TO_MEMORY,
    arrange_stages,
    chunk_bubble,
    save_bytes,
    uses_ports,
)
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
"""Cycles from a beat of the memory to the loop that loads: the reader's pipeline and a FIFO."""

FIRST_WEIGHTS = 1
"""The cycle of the first request of read_weights."""


def first_row_word(grid: PassGrid) -> tuple[Times, Times]:
    """Return the cycle of a pass's first row request, and the cycle at which load has its first word.

    read_rows requests two groups of pieces, if there are two, and then reads the first. Padding rows are pieces too,
    and read_rows steps over them.
    """
    arrays, shape = grid.arrays, grid.shape
    request = 1 + np.floor(shape.pad_top / arrays.map_ports) * np.asarray(grid.tilings.bursts, np.float64)
    loops = np.where(grid.pieces > OUTSTANDING, 2.0, 1.0) * (ASK_PIECES + 1)
    return request, latest(loops, request + grid.ddr.read_latency) + READ_STAGES


def rows_from_ddr(grid: PassGrid, request: Times, first_word: Times, iterations: Times) -> Times:
    """Return the cycle at which the first row tile's input rows are in the row buffer.

    The first weights and requantisers are read from the same DDR in the same time.

    Args:
        grid: The pass.
        request: Time of the first row's request.
        first_word: Time at which load has the first word.
        iterations: Iterations of load for the first tile.
    """
    arrays, shape = grid.arrays, grid.shape
    words = ceiling(grid.first_rows / arrays.map_ports) * grid.tilings.words
    head_start = (request - FIRST_WEIGHTS) * np.minimum(grid.rate, grid.weight_bytes)
    weights = latest(0, np.minimum(HELD_WORDS, _requested_words(grid)) * grid.weight_bytes - head_start)
    requantisers = np.minimum(grid.channel_tiles * arrays.columns, words) * REQUANTISER_BYTES
    answer = request + grid.ddr.read_latency + READ_STAGES
    lost = shares_of(grid).lost_cycles(ROWS, words, {WEIGHTS: weights, SAVES: grid.flat(0.0)})
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


def _requested_words(grid: PassGrid) -> Times:
    """Return the words that read_weights requests per weight port before the array begins.

    They are the words of two tiles. In the first pass of a frame, a third tile is requested when the first has arrived.
    """
    tile, tiles, ahead = grid.shape.steps * grid.step_words, grid.tiles_loaded, 3 if grid.first else 2
    return np.minimum(ahead, tiles) * tile + np.where(tiles < ahead, grid.tilings.next_steps * grid.step_words, 0)


def unread_weights(grid: PassGrid, start: Times) -> Times:
    """Return the requested words that a weight port has not read yet at cycle ``start``, when the first rows have
    arrived."""
    pace = shares_of(grid).paces(ROWS, WEIGHTS)[WEIGHTS]
    requested = np.minimum(HELD_WORDS, _requested_words(grid))
    return latest(0, requested - (start - grid.ddr.read_latency) / pace)


def _slowest_port(grid: PassGrid, other_bytes: Times) -> Times:
    """Return the cycles until the map port with the most rows of the first row tile has read them.

    0 if the DDR moves all that the ports request. Otherwise the ports with fewer rows read rows of the next tile in the
    same time, as many as they can hold, and take a share of the DDR.

    Args:
        grid: The pass.
        other_bytes: Bytes of weights and requantisers that the DDR moves in the same time.
    """
    ahead = grid.prefetched_words if grid.row_tiles > 1 else 0.0

    def moved_words(ports: int) -> Times:
        rows = rows_by_port(grid.shape, grid.arrays.rows, 1, ports)
        words = [np.minimum(max(rows) * grid.tilings.words, count * grid.tilings.words + ahead) for count in rows]
        return np.asarray(sum(words), np.float64)

    cycles = (grid.by_ports(moved_words) * grid.arrays.word_bytes + other_bytes) / grid.rate
    return np.where(grid.map_bytes > grid.rate, cycles, 0)


def load_rows(grid: PassGrid, state: State, phase: RowPhase, saved_bytes: Times, weight_bytes: Times) -> State:
    """Return the cycle model's state when the rows of a row tile have been fed and the next tile's rows are loaded.

    Without overlap, loading begins when the array has taken the phase's last element.

    Args:
        grid: The pass.
        state: The state after the phase's last tile.
        phase: The phase.
        saved_bytes: Bytes of results that the DDR moves during the phase.
        weight_bytes: Bytes of weights that the DDR moves during the phase.
    """
    start, feeds, loads, words = phase.start, phase.feeds, phase.rows.loads, phase.rows.words
    overlapped = grid.tilings.overlap > 0
    any_words = words > 0
    # The transfer of the words: a port's own pace, and the cycles that it loses to other busy ports. Rows that were
    # requested before the pass writes do not share the DDR with results.
    unshared = np.minimum((state.first_write - state.rows_arrived) / grid.row_pace, grid.prefetched_words)
    shared = np.clip(words - latest(0, unshared), 0, None)
    lost = shares_of(grid).lost_cycles(ROWS, shared, {SAVES: saved_bytes, WEIGHTS: weight_bytes})
    transfer = latest(words * grid.row_pace, words * grid.burst_pace + lost)
    iterations = np.where(overlapped, latest(feeds, loads), feeds)
    prefetched = HELD_WORDS * latest(grid.row_pace, transfer / latest(1, words))
    last_word = latest(state.rows_arrived + transfer, np.where(overlapped, start, state.array) + transfer - prefetched)
    arrived = np.where(any_words, latest(last_word, state.ddr_done), state.rows_arrived)
    # The array: with overlap it waits for words that arrive while it still takes elements.
    waited_for = np.where(any_words & overlapped, arrived - _after_feeds(transfer, iterations, feeds), 0)
    array = latest(state.array, waited_for)
    # The loop: its iterations and its pipeline. Without overlap, the loads follow the feeds.
    remaining = latest(iterations - feeds, _cycles_after_block(grid, state, phase, iterations))
    loop = latest(start + iterations, array - LEAD - state.rows_lead + remaining) + LOAD_STAGES
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


def _cycles_after_block(grid: PassGrid, state: State, phase: RowPhase, iterations: Times) -> Times:
    """Return the cycles of read_rows for the row words that are loaded after the array has taken its last input of a
    phase.

    0 unless the Saver has blocked the array. While the array is blocked, read_rows stalls as soon as its FIFO is full.
    Afterwards it alternates between requests and reads, even if the memory has further words ready.
    """
    words = np.where(phase.rows.words > 0, phase.rows.loads - phase.rows.padding, 0)
    blocked = (state.array > phase.start + phase.feeds + LEAD) & (grid.tilings.overlap > 0)
    late_words = words * (iterations - phase.feeds) / iterations
    return np.where(blocked, late_words * grid.request_pace - ROW_FIFO_DEPTH, 0)


def load_weights(grid: PassGrid, state: State, phase: WeightPhase) -> State:
    """Return the cycle model's state when a weight tile has been fed and the next weight tile is loaded.

    feed_weights loads the next weight tile while the array computes with this one. A port may have words long before
    the loop needs them. But read_weights passes them on in order, ahead of the loop by one FIFO at most. Between two
    tiles it requests the tile after them:

        read_weights   tile k │ requests k + 2 │ tile k + 1 │ requests k + 3
        the port                └ latency ─ k + 2 …
        feed_weights   └ FIFO ┤ tile k │ tile k + 1, as far as read_weights has passed it on
    """
    start, feeds, words = phase.start, phase.feeds, phase.words
    any_words = words > 0
    transfer = words * grid.weight_pace
    iterations = latest(feeds, words)
    answer = state.weights_asked + grid.ddr.read_latency + READ_STAGES
    first_word = latest(state.weights_arrived, answer, start - grid.weight_lead)
    arrived = np.where(any_words, latest(first_word + transfer, state.ddr_done), state.weights_arrived)
    begun = state.weights_read + (ENTER_READ if phase.next_pass else ASK_TILE)
    read = np.where(any_words, latest(arrived, begun + words), state.weights_read)
    # One loop feeds and loads. Therefore it feeds no elements while it waits for the first word.
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
    """Return the part of a transfer, in cycles, that follows the array's last input if its words are spread evenly over
    the phase."""
    return transfer * (iterations - feeds) / iterations


def _first_word(grid: PassGrid, start: Times, lag: Times | float) -> Times:
    """Return the cycle at which arrange outputs the first result word of the pass.

    Args:
        grid: The pass.
        start: Time of the array's first element.
        lag: Cycles from an element of the array to its result in arrange.
    """
    chunk = np.minimum(grid.columns, grid.arrays.chunk) * grid.column_cycles
    return np.asarray(start + lag + chunk + chunk_bubble(grid) + arrange_stages(grid), np.float64)


def bytes_before_writes(grid: PassGrid, state: State) -> Times:
    """Return the bytes of input rows that the DDR moves before the pass writes its first result.

    Args:
        grid: The pass.
        state: The state before the first tile.
    """
    lag = skew_of(grid.arrays.rows) + saver_stages(grid.arrays)
    alone = _first_word(grid, state.rows_ready, lag) - state.rows_arrived
    return np.asarray(np.minimum(alone / grid.row_pace, grid.prefetched_words) * grid.map_bytes, np.float64)


def save_pace(grid: PassGrid, state: State, saved_rows: int, reading: dict[str, Times]) -> Times:
    """Return the cycles per word at which the DDR moves the results of a row tile, per writing port.

    If the rows cannot be divided evenly among the ports, only some ports write one of the remaining rows.

    Args:
        grid: The pass.
        state: The state before the tile.
        saved_rows: Output rows of the row tile.
        reading: Bytes of rows and of weights that are read in the same time.
    """
    return grid.cached(_save_pace, state.chunk_words, np.asarray(saved_rows), reading[ROWS], reading[WEIGHTS])


def _save_pace(grid: PassGrid, pending: Times, saved_rows: Numbers, row_bytes: Times, weight_bytes: Times) -> Times:
    """Compute ``save_pace``, the cycles per result word of each writing port, from plain numbers as cache keys.

    Args:
        grid: The pass.
        pending: Words of the last chunk of the tile before, which may have more rows.
        saved_rows: Output rows of the row tile.
        row_bytes: Bytes of rows that are read in the same time.
        weight_bytes: Bytes of weights that are read in the same time.
    """
    arrays, shape, shares = grid.arrays, grid.shape, shares_of(grid)
    ports = np.asarray(1 if shape.added else arrays.map_ports, np.float64)
    rows, left = ceiling(saved_rows / ports), np.mod(saved_rows, ports)
    alone = shares.paces(SAVES)[SAVES]
    of_left = np.where(left > 0, latest(1, left * arrays.word_bytes / grid.rate), alone)
    own_words = rows * grid.columns * ceil_div(shape.filters, arrays.lanes) * shape.value_words
    words = latest(own_words, pending)
    by_rivals = shares.lost_cycles(SAVES, words, {ROWS: row_bytes, WEIGHTS: weight_bytes}) / words + 1 - alone
    return np.asarray(alone + (of_left - alone) / rows + by_rivals * saved_rows / (rows * ports), np.float64)


def move(grid: PassGrid, begun: State, saved: State, start: Times, traffic: TileTraffic, tile: TileSave) -> State:
    """Return the cycle model's state after the DDR transfers during a tile: input rows, weights, and written results.

    All chunks of the tile except the last one are written during the tile, and the last chunk of the tile before. If
    the writes are so late that ports and FIFOs are full, arrange waits for them.

    Args:
        grid: The pass.
        begun: The state at the start of the tile.
        saved: The state when the output stage has taken the tile's sums.
        start: Time of the array's first element.
        traffic: The data that move during the tile.
        tile: The numbers with which the output stage saves the tile.
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
    words = begun.chunk_words + column_words * (grid.columns - tail)
    words = words * uses_ports(shape)
    first_columns = np.minimum(grid.columns, grid.arrays.chunk)
    first_chunk = start + skew_of(grid.arrays.rows) + 1 + first_columns * grid.column_cycles
    begin = np.where(begun.results > 0, begun.arrange_done, first_chunk)  # no words before the first chunk is taken
    first_word = _first_word(grid, start, tile.lag)
    # The first chunk's words are output with the results of the next chunk, or after the last result.
    pace = np.where(grid.columns > first_columns, latest(1, grid.column_cycles / tile.groups), 1)
    first_burst = first_word + first_columns * shape.value_words * pace + PORT_TO_MEMORY
    first_write = np.where(begun.results == 0, first_burst, begun.first_write)
    waits = (begun.results == 0) & (not traffic.last)  # HlsEngine.end counts the words of the last tile
    stored = np.where(waits, latest(begun.stored, first_burst), begun.stored) + left_bytes / grid.rate
    writes_done = latest(begun.writes_done, begin) + words * traffic.word_cycles
    port_lag = writes_done - grid.accepted_words
    ddr_lag = ddr_done - grid.accepted_words * save_bytes(grid) / grid.rate
    return changed(
        saved,
        ddr_done=ddr_done,
        writes_done=writes_done,
        stored=stored,
        first_write=first_write,
        pending_bytes=grid.flat(tail * column_bytes),
        arrange_done=latest(saved.arrange_done, latest(port_lag, ddr_lag) - saved.excess),
    )
