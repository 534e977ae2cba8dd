"""Cycles of one pass: a recurrence over its tiles, of the processes that the engine runs, in their order.

    read_rows ── load ──┐
                        ├── pe_row ─── pool ── requantise ── arrange ── write_rows
    read_weights ─ feed ┘

A pass is: its first rows arrive; then tile after tile computes, while the next rows, the next weights and the results
of the tile before move; at the end the last results drain.

    read_rows, load    fill │ next tile's rows   │ next tile's rows   │
    pe_row                  │ tile 0             │ tile 1             │ …  │
    pool … write_rows               │ results 0          │ results 1       │ drain

A tile begins when three processes are through with what comes before: the array with the tile before, load with this
tile's rows, feed_weights with its weights (state.py). Tiles that are alike are taken together, so that a pass costs a
few steps of each kind, whatever the layer's size.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, REQUEST_STAGES, DdrTiming
from scheduler.systolic.model.arrays import ArrayGrid
from scheduler.systolic.model.cycles import PARTS, Cycles
from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, shares_of
from scheduler.systolic.model.grid import (
    ASK_PIECES,
    ENTER_READ,
    HELD_WORDS,
    REQUANTISER_BYTES,
    PassGrid,
    PassTilings,
    Times,
    ceiling,
    latest,
    rows_by_port,
)
from scheduler.systolic.model.leaving import CHUNK_BUBBLE, arrange_stages, chunk_bubble, leaving
from scheduler.systolic.model.rtl.passes import rtl_pass
from scheduler.systolic.model.saver import (
    REQUANTISE_STAGES,
    SAVER_STAGES,
    chunk_begin,
    drained,
    save,
    skew_of,
    tail_columns,
    tile_save,
)
from scheduler.systolic.model.state import FEED_STAGES, LOAD_STAGES, State, sweep
from scheduler.systolic.model.transfers import RowPhase, TileTraffic, load_rows, load_weights, move
from scheduler.systolic.network.layer import PASS_WORDS
from scheduler.systolic.shape import LayerShape, alike_rows, moved_together

REGION = 4
"""Hand-shakes around a DATAFLOW region (the trace's Fabric: region_start + region_stop)."""

READ_STAGES = 4
"""From a beat of the memory to the loop that loads: the reader's pipeline and a FIFO."""

FIRST_WEIGHTS = 1
"""read_weights asks in this cycle."""

ANSWER = 8
"""From arrange's first word to the memory's buffer, and from its answer to the end of write_rows, at least."""


def pass_cycles(arrays: ArrayGrid, shape: LayerShape, tilings: PassTilings, ddr: DdrTiming, first: bool) -> Cycles:
    """One pass, [arrays, tilings]. first: of the frame, so that its own first weights have to arrive too."""
    resident = tilings.inputs_resident > 0
    if resident.all() or not resident.any():
        return _pass(PassGrid(arrays, shape, tilings, ddr, first), bool(resident.all()))
    parts = [
        _pass(PassGrid(arrays, shape, tilings.pick(picked), ddr, first), bool(resident[picked].any()))
        for picked in (resident, ~resident)
    ]
    order = np.argsort(np.concatenate([np.flatnonzero(resident), np.flatnonzero(~resident)]))
    return Cycles(*(np.concatenate([getattr(part, name) for part in parts], axis=-1)[..., order] for name in PARTS))


ROUNDED = (len(PARTS) - 2) // 2
"""Cycles by which rounding may make a pass shorter: half a cycle for each part but two, which are whole numbers."""


def least_fill(shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
    """Cycles before the array's first step, at least: see ``_first_rows``. map_ports: at most; row_words: at least, of
    all column tiles together."""
    groups = ceil_div(rows + shape.ahead, moved_together(shape, rows) if shape.from_chip else map_ports)
    loaded = groups * shape.phases * row_words + 2 * LOAD_STAGES
    if shape.from_chip:
        return loaded
    return 1 + ddr.read_latency + READ_STAGES + loaded


def least_drain(shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
    """Cycles after the array's last step, at least: see ``_end``."""
    drained = skew_of(rows) + SAVER_STAGES + CHUNK_BUBBLE + REGION
    return drained if shape.to_chip else drained + 1 + ddr.write_latency + ANSWER


def least_weights(cycles: int, ddr: DdrTiming) -> int:
    """Cycles before the array can take the last of the weights that arrive in so many, at least: see
    ``_first_weight``, ``load_weights``."""
    return 1 + ddr.read_latency + READ_STAGES + cycles + 2 * FEED_STAGES


def program_cycles(ddr: DdrTiming, words: int = PASS_WORDS) -> int:
    """fetch_pass: the words of a pass and their latency."""
    return words + max(ddr.read_latency, REQUEST_STAGES + 1) + 2


def _pass(grid: PassGrid, inputs_resident: bool) -> Cycles:
    if grid.arrays.stages is not None:
        return rtl_pass(grid, inputs_resident)
    state = _start(grid)
    fill = state.rows_ready
    state = _channel_tiles(grid, state) if inputs_resident else _row_tiles(grid, state)
    compute = grid.flat(float(grid.row_tiles * grid.channel_tiles) * grid.feeds)
    return _cycles(
        fill=fill,
        compute=compute,
        rows=state.wait_rows - fill,
        weights=state.wait_weights,
        saver=state.wait_saver,
        ddr=state.wait_ddr,
        drain=_end(grid, state) - state.array,
        program=grid.flat(program_cycles(grid.ddr, grid.shape.pass_words)),
    )


def _cycles(**parts: Times) -> Cycles:
    return Cycles(**{name: np.rint(parts[name]).astype(np.int64) for name in PARTS})


# --- before the first tile ----------------------------------------------------------------------------------------


def _start(grid: PassGrid) -> State:
    """read_rows asks and waits; load puts the rows of the first tile into the banks."""
    ddr, zero = grid.ddr, grid.flat(0.0)
    tile = grid.shape.steps * grid.step_words
    request, rows = _first_rows(grid)
    weights = _first_weight(grid) + (tile * grid.weight_pace if grid.first else 0)
    looked_up = grid.shape.table_depth
    requantisers = float(grid.channel_tiles * grid.arrays.columns + looked_up)
    fetched = grid.first_bytes + requantisers * REQUANTISER_BYTES
    fetched = fetched + (tile * grid.weight_bytes if grid.first else 0)
    requests = 2 if looked_up else 1
    loaded = grid.flat(requests * ddr.read_latency + requantisers + 5)  # requantise takes nothing before
    first_result = loaded + REQUANTISE_STAGES - 2  # of which arrange begins a chunk
    entered = 2 * FEED_STAGES + 1
    return State(
        **{
            **dict.fromkeys((f.name for f in fields(State)), zero),
            "rows_ready": grid.flat(rows + 2 * LOAD_STAGES),
            "rows_arrived": grid.flat(rows),
            "weights_ready": grid.flat(weights + entered - 1 if grid.first else entered),
            "weights_arrived": grid.flat(weights),
            "ddr_done": grid.flat(request + fetched / grid.rate),
            "arrange_done": first_result - chunk_bubble(grid),
        }
    )


def _first_word(grid: PassGrid) -> tuple[Times, Times]:
    """When the first row is requested, and when load has its first word.

    read_rows asks for two groups of pieces, if there are so many, and then reads the first. Rows of padding are pieces
    too, which it steps over.
    """
    arrays, shape = grid.arrays, grid.shape
    request = 1 + np.floor(shape.pad_top / arrays.map_ports) * np.asarray(grid.tilings.bursts, np.float64)
    loops = np.where(grid.pieces > OUTSTANDING, 2.0, 1.0) * (ASK_PIECES + 1)
    return request, latest(loops, request + grid.ddr.read_latency) + READ_STAGES


def _first_rows(grid: PassGrid) -> tuple[Times, Times]:
    """When the first row is requested, and when load has the last word of the first tile."""
    iterations = grid.loads_of(grid.arrays.rows + grid.shape.ahead)
    if grid.shape.from_chip:
        return grid.flat(0.0), iterations
    request, first_word = _first_word(grid)
    return request, _rows_from_ddr(grid, request, first_word, iterations)


def _rows_from_ddr(grid: PassGrid, request: Times, first_word: Times, iterations: Times) -> Times:
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


def _weights_left(grid: PassGrid, start: Times) -> Times:
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


def _first_weight(grid: PassGrid) -> Times:
    """When feed_weights has the first word of what the pass loads; two tiles are requested at once."""
    tiles = grid.tiles_loaded + (grid.tilings.next_steps > 0)
    loop = np.minimum(tiles, 2) * (REQUEST_STAGES + 2)
    return latest(loop, 1 + grid.ddr.read_latency) + READ_STAGES


# --- tiles --------------------------------------------------------------------------------------------------------


def _row_tiles(grid: PassGrid, state: State) -> State:
    """All channel tiles over one row tile, then over the next."""
    blocks = ceil_div(grid.shape.filters, grid.arrays.lanes)
    tile_words = grid.flat(grid.shape.steps * grid.step_words)

    def row_tile(state: State, index: int) -> State:
        last_row = index == grid.row_tiles - 1
        rows = grid.rows_after(index)
        # Where loading takes longer than the array, it goes on behind the last channel tile.
        meanwhile = np.minimum(1 / grid.channel_tiles, grid.feeds / latest(1, rows.loads))

        def channel_tile(state: State, tile: int) -> State:
            last = tile == grid.channel_tiles - 1
            loads = np.where(grid.streams | (index == 0 and not last), tile_words, 0)
            if last and last_row:
                loads = grid.flat(grid.tilings.next_steps * grid.step_words)
            start = state.weights_ready
            traffic = TileTraffic(
                grid.saved(index), grid.blocks(tile), rows.bytes * meanwhile, loads * grid.weight_bytes
            )
            state = _tile(grid, state, traffic, last and last_row)
            return load_weights(grid, state, start, grid.feeds, loads, last and last_row)

        start, pending = state.rows_ready, state.pending_bytes
        first_write = np.where(state.results <= state.chunk_results, state.writes_done, 0)  # after the first chunk
        state = sweep(state, grid.channel_tiles, 1, channel_tile)
        left = rows.bytes * (1 - meanwhile * grid.channel_tiles)
        state = replace(state, ddr_done=state.ddr_done + left / grid.rate)
        tiles = np.where(grid.streams, grid.channel_tiles, (grid.channel_tiles - 1) * (index == 0))
        saved_bytes = grid.columns * grid.column_bytes(grid.saved(index), blocks) + pending - state.pending_bytes
        weights = tiles * tile_words
        if index == 0:
            weights = latest(weights, _weights_left(grid, start))
        feeds = grid.channel_tiles * grid.feeds
        phase = RowPhase(start, feeds, rows, saved_bytes, weights * grid.weight_bytes, first_write)
        return load_rows(grid, state, phase)

    return sweep(state, grid.row_tiles, alike_rows(grid.shape, grid.arrays.rows), row_tile)


def _channel_tiles(grid: PassGrid, state: State) -> State:
    """All row tiles under one channel tile, then under the next; rows come once."""

    def channel_tile(state: State, tile: int) -> State:
        last = tile == grid.channel_tiles - 1
        words = grid.flat((grid.tilings.next_steps if last else grid.shape.steps) * grid.step_words)

        def row_tile(state: State, index: int) -> State:
            rows = grid.rows_after(index) if tile == 0 else grid.no_rows
            phase_words = np.minimum(words / grid.row_tiles, latest(grid.feeds, rows.loads) / grid.weight_pace)
            traffic = TileTraffic(grid.saved(index), grid.blocks(tile), rows.bytes, phase_words * grid.weight_bytes)
            start, pending = state.rows_ready, state.pending_bytes
            state = _tile(grid, state, traffic, last and index == grid.row_tiles - 1)
            column_bytes = grid.column_bytes(traffic.saved_rows, traffic.blocks)
            saved_bytes = grid.columns * column_bytes + pending - state.pending_bytes
            return load_rows(grid, state, RowPhase(start, grid.feeds, rows, saved_bytes, traffic.weight_bytes))

        start = state.weights_ready
        state = sweep(state, grid.row_tiles, alike_rows(grid.shape, grid.arrays.rows), row_tile)
        return load_weights(grid, state, start, grid.feeds * grid.row_tiles, words, last)

    return sweep(state, grid.channel_tiles, 1, channel_tile)


def _tile(grid: PassGrid, state: State, traffic: TileTraffic, last: bool) -> State:
    """One channel tile of one row tile. last: of the pass."""
    loaded = latest(state.array, state.rows_ready)
    start = latest(loaded, state.weights_ready)
    late_rows = np.minimum(loaded - state.array, state.rows_late)
    late_weights = np.minimum(start - loaded, state.weights_late)
    waited = replace(
        state,
        wait_rows=state.wait_rows + (loaded - state.array) - late_rows,
        wait_weights=state.wait_weights + (start - loaded) - late_weights,
        wait_ddr=state.wait_ddr + late_rows + late_weights,
    )
    saved = save(grid, waited, start, tile_save(grid, traffic.saved_rows, traffic.blocks, last))
    return move(grid, state, saved, start, traffic)


# --- after the last tile ------------------------------------------------------------------------------------------


def _end(grid: PassGrid, state: State) -> Times:
    """The skew of the rows, the Saver's pipelines, what arrange still holds, and the last burst's answer; or what is
    not there yet of the next pass's first weights."""
    shape, ddr = grid.shape, grid.ddr
    state, last_result = drained(grid, state)
    begin = chunk_begin(grid, state, last_result)
    last = leaving(grid, state, begin, begin, grid.flat(0.0))
    if shape.to_chip:
        return latest(last.left + arrange_stages(grid) - 1, state.weights_ready) + REGION
    burst = np.minimum(tail_columns(grid) * shape.value_words, BURST_WORDS)
    transferred = latest(state.ddr_done, begin) + state.pending_bytes / grid.rate + ddr.write_latency + burst
    return latest(last.answered + 1, transferred, state.weights_ready) + REGION
