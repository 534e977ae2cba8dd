"""Cycles of one pass: a recurrence over its tiles, of the same processes and in the same order as the engine runs them.

A pass is: its first rows arrive; then tile after tile computes while the next rows, the next weights and the results
before it move; at the end the last results drain. Each tile begins when the array, the loop that loads rows and the one
that loads weights are through with what comes before (scheduler/systolic/model/state.py). Tiles that are alike are
taken together: a pass costs a few steps of each kind, whatever the layer's size.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING, DdrTiming
from scheduler.systolic.model.arrays import ArrayGrid
from scheduler.systolic.model.cycles import PARTS, Cycles
from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, Shares
from scheduler.systolic.model.grid import (
    HELD_WORDS,
    PASS_BYTES,
    REQUANTISER_BYTES,
    REQUEST_STAGES,
    PassGrid,
    PassTilings,
    Times,
    most,
    rows_by_port,
    up,
)
from scheduler.systolic.model.saver import CHUNK_BUBBLE, SAVER_STAGES, save, saver_of
from scheduler.systolic.model.state import FEED_STAGES, LOAD_STAGES, State, sweep
from scheduler.systolic.model.transfers import load_rows, load_weights, move
from scheduler.systolic.shape import LayerShape

REGION = 4
"""Hand-shakes around a DATAFLOW region (the trace's Fabric: region_start + region_stop)."""

ENTER_READER = 6
"""read_rows, read_weights: the loop that asks is entered and drained, the one that loads is entered."""

READ_STAGES = 4
"""From a beat of the memory to the loop that loads: the reader's pipeline and a FIFO."""

FIRST_WEIGHTS = 2
"""read_weights asks in this cycle; rows are counted before they are asked for."""

ANSWER = 8
"""write_rows: entered, drained, and its last responses collected, beside the latency of the write."""


def pass_cycles(arrays: ArrayGrid, shape: LayerShape, tilings: PassTilings, ddr: DdrTiming, first: bool) -> Cycles:
    """One pass, [arrays, tilings]. ``first``: of the frame, so that its own first weights have to arrive too."""
    inside = tilings.inputs_resident > 0
    if inside.all() or not inside.any():
        return _pass(PassGrid(arrays, shape, tilings, ddr, first), bool(inside.all()))
    parts = [
        _pass(PassGrid(arrays, shape, tilings.pick(chosen), ddr, first), bool(chosen[inside].any()))
        for chosen in (inside, ~inside)
    ]
    order = np.argsort(np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]))
    return Cycles(*(np.concatenate([getattr(part, n) for part in parts], axis=-1)[..., order] for n in PARTS))


ROUNDED = (len(PARTS) - 2) // 2
"""Cycles by which a pass may come out shorter than it is: half a one for each part but two, which are whole."""


def least_fill(shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
    """Cycles before the array's first step, at least: see ``_first_rows``. map_ports: at most; row_words: at least, of
    all strips together."""
    groups = ceil_div(rows + shape.ahead, rows if shape.from_chip else map_ports)
    loaded = groups * shape.phases * row_words + 2 * LOAD_STAGES
    if shape.from_chip:
        return loaded
    counted = ceil_div(ceil_div(shape.out_height, rows) * rows + shape.ahead, map_ports)
    return counted + 3 + ddr.read_latency + READ_STAGES + loaded


def least_drain(shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
    """Cycles after the array's last step, at least: see ``_end``."""
    out = rows + SAVER_STAGES - 1 + CHUNK_BUBBLE + REGION
    return out if shape.to_chip else out + 1 + ddr.write_latency + ANSWER


def least_weights(cycles: int, ddr: DdrTiming) -> int:
    """Cycles before the array can take the last of the weights that arrive in so many, at least: see
    ``_first_weight``, ``load_weights``."""
    return 1 + ddr.read_latency + READ_STAGES + cycles + 2 * FEED_STAGES


def program_cycles(ddr: DdrTiming) -> int:
    """fetch_pass: the words of a pass and their latency."""
    return PASS_BYTES // 4 + ddr.read_latency + 2


def _pass(grid: PassGrid, inputs_resident: bool) -> Cycles:
    state = _start(grid)
    fill = state.rows
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
        program=grid.flat(program_cycles(grid.ddr)),
    )


def _cycles(**parts: Times) -> Cycles:
    return Cycles(**{name: np.rint(parts[name]).astype(np.int64) for name in PARTS})


# --- before the first tile ----------------------------------------------------------------------------------------


def _start(grid: PassGrid) -> State:
    """read_rows counts its bursts, asks, and waits; load puts the rows of the first tile into the banks."""
    ddr, zero = grid.ddr, grid.flat(0.0)
    tile = grid.shape.steps * grid.step_words
    asked, rows = _first_rows(grid)
    weights = _first_weight(grid) + (tile * grid.weight_pace if grid.first else 0)
    requantisers = float(grid.channel_tiles * grid.arrays.columns)
    fetched = grid.first_bytes + requantisers * REQUANTISER_BYTES
    fetched = fetched + (tile * grid.weight_bytes if grid.first else 0)
    loaded = grid.flat(ddr.read_latency + requantisers + 5)  # requantise takes nothing before
    entered = 2 * FEED_STAGES + 1
    return State(
        **{
            **dict.fromkeys(State.__dataclass_fields__, zero),
            "rows": grid.flat(rows + 2 * LOAD_STAGES),
            "rows_at": grid.flat(rows),
            "weights": grid.flat(weights + entered - 1 if grid.first else entered),
            "weights_at": grid.flat(weights),
            "ddr": grid.flat(np.minimum(asked, REQUEST_STAGES / 2) + fetched / grid.rate),
            "arrange": loaded,
        }
    )


def _first_word(grid: PassGrid) -> tuple[Times, Times]:
    """When the first row is asked for, and when load has its first word. The loop that asks drains as deep as one that
    loads; where more bursts are asked for while words come, the loop that loads is as deep."""
    arrays, shape = grid.arrays, grid.shape
    counted = up((grid.row_tiles * arrays.rows + shape.ahead) / arrays.map_ports)
    bursts = up(grid.rows_read * grid.tilings.bursts / arrays.map_ports)
    skipped = np.floor(shape.pad_top / arrays.map_ports) * grid.tilings.bursts
    asked = counted + 3 + skipped
    loop = asked + np.minimum(bursts, OUTSTANDING) + REQUEST_STAGES + ENTER_READER - 3
    loop = loop + np.where(bursts > OUTSTANDING, REQUEST_STAGES, 0)
    return asked, most(loop, asked + grid.ddr.read_latency) + READ_STAGES


def _first_rows(grid: PassGrid) -> tuple[Times, Times]:
    """When the first row is asked for, and when load has the last word of the first tile."""
    iterations = grid.loads_of(grid.arrays.rows + grid.shape.ahead)
    if grid.shape.from_chip:
        return grid.flat(0.0), iterations
    asked, there = _first_word(grid)
    return asked, _rows_from_ddr(grid, asked, there, iterations)


def _rows_from_ddr(grid: PassGrid, asked: Times, there: Times, iterations: Times) -> Times:
    """The first weights and requantisers come meanwhile."""
    arrays = grid.arrays
    words = up(grid.first_rows / arrays.map_ports) * grid.tilings.words
    head = (asked - FIRST_WEIGHTS) * np.minimum(grid.rate, grid.weight_bytes)
    weights = most(0, np.minimum(HELD_WORDS, _weights_asked(grid)) * grid.weight_bytes - head)
    requantisers = np.minimum(grid.channel_tiles * arrays.columns, words) * REQUANTISER_BYTES
    begun = asked + grid.ddr.read_latency + READ_STAGES
    lost = Shares.of(grid).lost(ROWS, words, {WEIGHTS: weights, SAVES: grid.flat(0.0)})
    lost = lost + np.where(lost > 0, requantisers / grid.rate, 0)
    moved = begun + grid.first_bytes / grid.rate
    late = begun + _until_the_slowest(grid, np.minimum(weights, words * grid.weight_bytes) + requantisers)
    came = most(there + words * grid.row_pace, begun + words * grid.row_pace + lost, moved, late)
    inside = min(arrays.rows + grid.shape.ahead, ceil_div(grid.shape.pad_top + grid.shape.in_height, grid.shape.stride))
    return most(there + iterations, came + iterations - grid.loads_of(inside))


def _weights_asked(grid: PassGrid) -> Times:
    """Words of weights that a port is asked for before the array begins: two tiles, and a third when the first of a
    frame is there."""
    tile, own, asked = grid.shape.steps * grid.step_words, grid.tiles_loaded, 3 if grid.first else 2
    return np.minimum(asked, own) * tile + np.where(own < asked, grid.tilings.next_steps * grid.step_words, 0)


def _weights_left(grid: PassGrid, began: Times) -> Times:
    """Words of weights asked for ahead that a port has not moved when the first rows are there."""
    pace = Shares.of(grid).paces(ROWS, WEIGHTS)[WEIGHTS]
    held = np.minimum(HELD_WORDS, _weights_asked(grid))
    return most(0, held - (began - grid.ddr.read_latency) / pace)


def _until_the_slowest(grid: PassGrid, beside: Times) -> Times:
    """Cycles until the port with most rows of the first tile has them: the others, which need fewer, take their share
    of the DDR meanwhile for rows of the next tile, as far as they hold them."""
    ahead = grid.read_ahead if grid.row_tiles > 1 else 0.0

    def moved(ports: int) -> Times:
        rows = rows_by_port(grid.shape, grid.arrays.rows, 1, ports)
        words = [np.minimum(max(rows) * grid.tilings.words, its * grid.tilings.words + ahead) for its in rows]
        return np.asarray(sum(words), np.float64)

    return np.where(grid.map_bytes > grid.rate, (grid.by_ports(moved) * grid.arrays.word_bytes + beside) / grid.rate, 0)


def _first_weight(grid: PassGrid) -> Times:
    """When feed_weights has the first word of what the pass loads: two tiles are asked for at once."""
    tiles = grid.tiles_loaded + (grid.tilings.next_steps > 0)
    loop = np.minimum(tiles, 2) + REQUEST_STAGES + READ_STAGES + np.where(tiles > 2, REQUEST_STAGES, 0)
    return most(loop, 1 + grid.ddr.read_latency) + READ_STAGES


# --- tiles --------------------------------------------------------------------------------------------------------


def _row_tiles(grid: PassGrid, state: State) -> State:
    """All channel tiles over one row tile after the other."""
    blocks = ceil_div(grid.shape.filters, grid.arrays.lanes)
    tile_words = grid.flat(grid.shape.steps * grid.step_words)

    def row(state: State, index: int) -> State:
        more = index < grid.row_tiles - 1
        rows = grid.rows_after(index)
        read = rows.bytes / grid.channel_tiles

        def channel(state: State, tile: int) -> State:
            last = tile == grid.channel_tiles - 1
            loads = np.where(grid.streams | (index == 0 and not last), tile_words, 0)
            if last and not more:
                loads = grid.flat(grid.tilings.next_steps * grid.step_words)
            beside = loads * grid.weight_bytes
            began, size = state.weights, (grid.saved(index), grid.blocks(tile))
            state = _tile(grid, state, size, read, beside, last and not more)
            return load_weights(grid, state, began, grid.feeds, loads, last and not more)

        began, pending = state.rows, state.pending
        leaves = np.where(state.taken <= state.filled, state.wrote, 0)  # until the first chunk is filled none does
        state = sweep(state, grid.channel_tiles, 1, channel)
        tiles = np.where(grid.streams, grid.channel_tiles, (grid.channel_tiles - 1) * (index == 0))
        left = grid.columns * grid.column_bytes(grid.saved(index), blocks) + pending - state.pending
        weights = tiles * tile_words
        if index == 0:
            weights = most(weights, _weights_left(grid, began))
        others = left, weights * grid.weight_bytes
        return load_rows(grid, state, began, grid.channel_tiles * grid.feeds, rows, others, leaves)

    return sweep(state, grid.row_tiles, _period(grid), row)


def _channel_tiles(grid: PassGrid, state: State) -> State:
    """All row tiles under one channel tile after the other; rows come once."""

    def channel(state: State, tile: int) -> State:
        last = tile == grid.channel_tiles - 1
        words = grid.flat((grid.tilings.next_steps if last else grid.shape.steps) * grid.step_words)

        def row(state: State, index: int) -> State:
            rows = grid.rows_after(index) if tile == 0 else grid.no_rows
            beside = (
                np.minimum(words / grid.row_tiles, most(grid.feeds, rows.loads) / grid.weight_pace) * grid.weight_bytes
            )
            began, pending, size = state.rows, state.pending, (grid.saved(index), grid.blocks(tile))
            state = _tile(grid, state, size, rows.bytes, beside, last and index == grid.row_tiles - 1)
            others = grid.columns * grid.column_bytes(*size) + pending - state.pending, beside
            return load_rows(grid, state, began, grid.feeds, rows, others)

        began = state.weights
        state = sweep(state, grid.row_tiles, _period(grid), row)
        return load_weights(grid, state, began, grid.feeds * grid.row_tiles, words, last)

    return sweep(state, grid.channel_tiles, 1, channel)


def _period(grid: PassGrid) -> int:
    """Row tiles leave one row more every second time where a pool window straddles them."""
    return 2 if grid.shape.pool_size == 2 and grid.arrays.rows % 2 == 1 else 1


def _tile(grid: PassGrid, state: State, size: tuple[int, int], rows: Times, weights: Times, last: bool) -> State:
    """One channel tile of one row tile; bytes of rows and weights that are read meanwhile."""
    loaded = most(state.array, state.rows)
    start = most(loaded, state.weights)
    late_rows = np.minimum(loaded - state.array, state.rows_late)
    late_weights = np.minimum(start - loaded, state.weights_late)
    waited = replace(
        state,
        wait_rows=state.wait_rows + (loaded - state.array) - late_rows,
        wait_weights=state.wait_weights + (start - loaded) - late_weights,
        wait_ddr=state.wait_ddr + late_rows + late_weights,
    )
    after = save(grid, waited, start, saver_of(grid, *size, last))
    return move(grid, state, after, start, size, rows, weights)


# --- after the last tile ------------------------------------------------------------------------------------------


def _end(grid: PassGrid, state: State) -> Times:
    """The skew, the Saver's pipelines, what arrange still holds, the last burst's answer; or what is not there yet of
    the next pass's first weights."""
    arrays, shape, ddr = grid.arrays, grid.shape, grid.ddr
    groups = up(grid.saved(grid.row_tiles - 1) / arrays.save_rows)
    came = most(state.arrange, state.array + arrays.rows + SAVER_STAGES + groups - 2)
    begin = came + state.excess + CHUNK_BUBBLE
    if shape.to_chip:
        return most(begin + state.left, state.weights) + REGION
    burst = np.minimum(np.minimum(grid.columns, arrays.chunk) * shape.value_words, BURST_WORDS)
    answered = ddr.write_latency + ANSWER
    moved = most(state.ddr, begin) + state.pending / grid.rate
    return most(begin + state.left + burst + answered, moved + answered, state.weights) + REGION
