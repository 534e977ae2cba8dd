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

from dataclasses import fields

import numpy as np

from contract.program import PASS_WORDS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, REQUEST_STAGES, DdrTiming
from scheduler.systolic.model.arrays import (
    LEAST_STAGES,
    ArrayGrid,
    PassTilings,
    frozen_groups,
    requantise_stages,
    saver_stages,
    skew_of,
)
from scheduler.systolic.model.cycles import PARTS, Cycles
from scheduler.systolic.model.ddr_shares import ROWS, WEIGHTS
from scheduler.systolic.model.grid import REQUANTISER_BYTES, PassGrid, Times, ceiling, latest
from scheduler.systolic.model.leaving import (
    CHUNK_BUBBLE,
    arrange_stages,
    chunk_bubble,
    leaving,
    sent,
    uses_ports,
)
from scheduler.systolic.model.rtl.passes import rtl_pass
from scheduler.systolic.model.saver import chunk_begin, save, tile_save
from scheduler.systolic.model.state import FEED_STAGES, LOAD_STAGES, State, changed, sweep
from scheduler.systolic.model.transfers import (
    FIRST_WEIGHTS,
    READ_STAGES,
    RowPhase,
    TileTraffic,
    bytes_before_writes,
    first_row_word,
    load_rows,
    load_weights,
    move,
    rows_from_ddr,
    save_pace,
    weights_left,
)
from scheduler.systolic.shape import LayerShape, alike_rows, moved_together

REGION = 4
"""Hand-shakes around a DATAFLOW region (the trace's Fabric: region_start + region_stop)."""

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
    drained = skew_of(rows) + LEAST_STAGES + CHUNK_BUBBLE + REGION
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
    first_result = loaded + requantise_stages(grid.arrays) - 2  # of which arrange begins a chunk
    entered = 2 * FEED_STAGES + 1
    asking = REQUEST_STAGES + 2
    return State(
        **{
            **dict.fromkeys((f.name for f in fields(State)), zero),
            "rows_ready": grid.flat(rows + 2 * LOAD_STAGES),
            "rows_arrived": grid.flat(rows),
            "weights_ready": grid.flat(weights + entered - 1 if grid.first else entered),
            "weights_arrived": grid.flat(weights),
            "weights_asked": grid.flat(FIRST_WEIGHTS + asking if grid.first else FIRST_WEIGHTS),
            "weights_read": grid.flat(weights if grid.first else asking),
            "ddr_done": grid.flat(request + fetched / grid.rate),
            "arrange_done": first_result - chunk_bubble(grid),
        }
    )


def _first_rows(grid: PassGrid) -> tuple[Times, Times]:
    """When the first row is requested, and when load has the last word of the first tile."""
    iterations = grid.loads_of(grid.arrays.rows + grid.shape.ahead)
    if grid.shape.from_chip:
        return grid.flat(0.0), iterations
    request, first_word = first_row_word(grid)
    return request, rows_from_ddr(grid, request, first_word, iterations)


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
        pending = state.pending_bytes
        tiles = np.where(grid.streams, grid.channel_tiles, (grid.channel_tiles - 1) * (index == 0))
        alone = bytes_before_writes(grid, state) if index == 0 else 0
        read = {ROWS: latest(0, rows.bytes - alone), WEIGHTS: tiles * tile_words * grid.weight_bytes}
        word_cycles = save_pace(grid, state, grid.saved(index), read)
        # Where loading takes longer than the array, it goes on behind the last channel tile.
        meanwhile = np.minimum(1 / grid.channel_tiles, grid.feeds / latest(1, rows.loads))

        def channel_tile(state: State, tile: int) -> State:
            last = tile == grid.channel_tiles - 1
            loads = np.where(grid.streams | (index == 0 and not last), tile_words, 0)
            if last and last_row:
                loads = grid.flat(grid.tilings.next_steps * grid.step_words)
            start = state.weights_ready
            moved = rows.bytes * meanwhile, loads * grid.weight_bytes
            traffic = TileTraffic(grid.saved(index), grid.blocks(tile), *moved, word_cycles, last and last_row)
            state = _tile(grid, state, traffic)
            return load_weights(grid, state, start, grid.feeds, loads, last and last_row)

        rows_ready = state.rows_ready
        state = sweep(state, grid.channel_tiles, 1, channel_tile)
        left = rows.bytes * (1 - meanwhile * grid.channel_tiles)
        state = changed(state, ddr_done=state.ddr_done + left / grid.rate)
        saved_bytes = grid.columns * grid.column_bytes(grid.saved(index), blocks) + pending - state.pending_bytes
        weights = tiles * tile_words
        if index == 0:
            weights = latest(weights, weights_left(grid, rows_ready))
        feeds = grid.channel_tiles * grid.feeds
        phase = RowPhase(rows_ready, feeds, rows, saved_bytes, weights * grid.weight_bytes)
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
            weight_bytes = phase_words * grid.weight_bytes
            word_cycles = save_pace(grid, state, grid.saved(index), {ROWS: rows.bytes, WEIGHTS: weight_bytes})
            ends = last and index == grid.row_tiles - 1
            traffic = TileTraffic(grid.saved(index), grid.blocks(tile), rows.bytes, weight_bytes, word_cycles, ends)
            start, pending = state.rows_ready, state.pending_bytes
            state = _tile(grid, state, traffic)
            column_bytes = grid.column_bytes(traffic.saved_rows, traffic.blocks)
            saved_bytes = grid.columns * column_bytes + pending - state.pending_bytes
            return load_rows(grid, state, RowPhase(start, grid.feeds, rows, saved_bytes, traffic.weight_bytes))

        start = state.weights_ready
        state = sweep(state, grid.row_tiles, alike_rows(grid.shape, grid.arrays.rows), row_tile)
        return load_weights(grid, state, start, grid.feeds * grid.row_tiles, words, last)

    return sweep(state, grid.channel_tiles, 1, channel_tile)


def _tile(grid: PassGrid, state: State, traffic: TileTraffic) -> State:
    """One channel tile of one row tile."""
    loaded = latest(state.array, state.rows_ready)
    start = latest(loaded, state.weights_ready)
    late_rows = np.minimum(loaded - state.array, state.rows_late)
    late_weights = np.minimum(start - loaded, state.weights_late)
    waited = changed(
        state,
        wait_rows=state.wait_rows + (loaded - state.array) - late_rows,
        wait_weights=state.wait_weights + (start - loaded) - late_weights,
        wait_ddr=state.wait_ddr + late_rows + late_weights,
    )
    tile = tile_save(grid, traffic)
    return move(grid, state, save(grid, waited, start, tile), start, traffic, tile)


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
    burst = np.minimum(grid.tail_columns * shape.value_words, BURST_WORDS)
    moving = latest(latest(state.ddr_done, begin) + burst, state.stored)
    transferred = moving + state.pending_bytes / grid.rate + ddr.write_latency
    return latest(last.answered + 1, transferred, state.weights_ready) + REGION


def standing_chunks(grid: PassGrid, end: State) -> Times:
    """Chunks whose results stand in the pipelines when the array ends, beside the last two: where a chunk has few
    results. Of a tile of several chunks only the last one may be so short."""
    tail, chunk = grid.tail_columns, np.asarray(grid.arrays.chunk, np.float64)
    results_before = np.where(grid.columns > chunk, end.chunk_results * chunk / tail, end.chunk_results)
    standing = np.floor((frozen_groups(grid.arrays) - end.chunk_results) / results_before)
    return np.clip(standing, 0, latest(0, np.ceil(end.results / end.chunk_results) - 2))


def drained(grid: PassGrid, end: State) -> tuple[State, Times]:
    """``end`` when arrange has taken all chunks but the last one, and when it has its last result. Those that stand in
    the pipelines come one behind the other, and each is sent before the next one is."""
    groups = ceiling(grid.saved(grid.row_tiles - 1) / grid.arrays.save_rows)
    flushed = end.array + skew_of(grid.arrays.rows) + saver_stages(grid.arrays) + groups - 1
    chunks = standing_chunks(grid, end)
    phases = chunks * (latest(end.chunk_results, end.chunk_leaves) + chunk_bubble(grid))
    if not uses_ports(grid.shape):
        return end, latest(end.arrange_done, flushed + phases)
    chunk = sent(grid, end.chunk_columns, end.column_words)
    first_word = flushed - (chunks + 1) * end.chunk_results + chunk_bubble(grid) + arrange_stages(grid)
    free = np.where(chunks > 0, first_word + (chunks + 1) * chunk.interval, 0)
    held_up = np.where(chunks > 0, free - chunk.held, 0)
    return changed(end, ports_free=latest(end.ports_free, free)), latest(end.arrange_done, flushed + phases, held_up)
