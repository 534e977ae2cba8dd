"""Cycles of one pass of the engine in SystemVerilog, tile after tile."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.model.cycles import PARTS, Cycles
from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, shares_of
from scheduler.systolic.model.grid import REQUANTISER_BYTES, PassGrid, Times, latest
from scheduler.systolic.model.rtl.loader import (
    RowPhase,
    WeightPhase,
    first_beat,
    first_words,
    load_rows,
    load_weights,
    rows_of_tile,
    weight_pace,
    weights_at_once,
)
from scheduler.systolic.model.rtl.saver import save, tile_save
from scheduler.systolic.model.rtl.stages import (
    BEFORE_COUNTED,
    ENDED,
    FETCH,
    FIRST_FEED,
    LEFT,
    LOADED,
    PASS_TAKEN,
    READ_WORDS,
    STORED,
    SUMMED,
)
from scheduler.systolic.model.rtl.state import RtlState
from scheduler.systolic.model.state import sweep
from scheduler.systolic.shape import alike_rows


def rtl_pass(grid: PassGrid, inputs_resident: bool) -> Cycles:
    """One pass. inputs_resident: of all its tilings."""
    state = _start(grid)
    fill = state.rows_ready
    state = _channel_tiles(grid, state) if inputs_resident else _row_tiles(grid, state)
    compute = grid.flat(float(grid.row_tiles * grid.channel_tiles) * grid.feeds)
    parts = {
        "fill": fill,
        "compute": compute,
        "rows": state.wait_rows - fill,
        "weights": state.wait_weights,
        "saver": state.wait_saver,
        "ddr": state.wait_ddr,
        "drain": _end(grid, state) - state.array,
        "program": program_cycles(grid),
    }
    return Cycles(**{name: np.rint(parts[name]).astype(np.int64) for name in PARTS})


def program_cycles(grid: PassGrid) -> Times:
    """A pass is read while the one before runs, and taken in a few cycles. The frame's first one waits for itself, and
    for the one after, whose first weights it brings."""
    if not grid.first:
        return grid.flat(float(PASS_TAKEN))
    fetched = grid.shape.pass_words + grid.ddr.read_latency + FETCH
    read = np.where(grid.tilings.next_steps > 0, 2 * fetched, fetched + 1)
    return grid.flat(PASS_TAKEN + read - BEFORE_COUNTED)


def _start(grid: PassGrid) -> RtlState:
    """read_rows, read_weights and requantise ask at once."""
    shape, zero = grid.shape, grid.flat(0.0)
    tile = grid.shape.steps * grid.step_words
    beat = float(first_beat(grid))
    rows = _first_rows(grid)
    weights = beat + (tile * weight_pace(grid, tile) if grid.first else 0.0)
    constants = float(grid.channel_tiles * grid.arrays.columns)
    requantised = beat + constants + (beat + shape.table_depth if shape.table_depth else 0.0)
    fetched = rows_of_tile(grid, 0).bytes + (constants + shape.table_depth) * REQUANTISER_BYTES
    fetched = fetched + (tile * grid.weight_bytes if grid.first else 0.0)
    return RtlState(
        **{
            **dict.fromkeys((f.name for f in fields(RtlState)), zero),
            "rows_ready": grid.flat(rows + LOADED),
            "rows_arrived": grid.flat(rows),
            "rows_asked": rows_of_tile(grid, 0).words,
            "weights_ready": grid.flat(weights + STORED if grid.first else float(FIRST_FEED)),
            "weights_arrived": grid.flat(weights),
            "ddr_done": grid.flat(beat + fetched / grid.rate),
            "requantised": grid.flat(requantised - 1),
        }
    )


def _first_rows(grid: PassGrid) -> Times:
    """When the last word of the first tile is loaded. The first weights and requantisers come from the same DDR."""
    shape, rows = grid.shape, rows_of_tile(grid, 0)
    if shape.from_chip:
        return grid.flat(1 + rows.loads)
    stepped, padding = _rows_above(grid)
    first_word = stepped * np.asarray(grid.tilings.bursts, np.float64) + first_beat(grid)
    lost = shares_of(grid).lost(
        ROWS, rows.words, {WEIGHTS: weights_at_once(grid) * grid.weight_bytes, SAVES: grid.flat(0.0)}
    )
    return latest(
        1 + rows.loads,
        first_word + rows.loads - padding * grid.tilings.words,
        first_word + first_words(grid, rows.words) + lost,
        first_word + rows.bytes / grid.rate,
    )


def _rows_above(grid: PassGrid) -> tuple[Times, Times]:
    """Rows of padding that the port of the first row in the map steps over, a cycle a piece, and those whose place is
    filled before it comes: with a stride of 1 none, else of the first group of row strides what no port brings."""
    shape, ports = grid.shape, grid.arrays.map_ports
    if shape.stride == 1:
        return np.floor(shape.pad_top / ports), grid.flat(0.0)
    rows = np.clip(shape.pad_top - (ports - 1) * shape.stride, 0, shape.phases).astype(np.float64)
    return rows, rows


# --- tiles --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Tile:
    """A channel tile of a row tile. saved_rows: that leave it; blocks: words of a position. row_bytes, weight_bytes:
    that are read meanwhile."""

    saved_rows: int
    blocks: int
    row_bytes: Times
    weight_bytes: Times

    def rivals(self, grid: PassGrid) -> tuple[Times, Times]:
        """Bytes of rows, and of results."""
        return self.row_bytes, grid.columns * grid.column_bytes(self.saved_rows, self.blocks)


def _row_tiles(grid: PassGrid, state: RtlState) -> RtlState:
    """All channel tiles over one row tile, then over the next."""
    tile_words = grid.flat(grid.shape.steps * grid.step_words)

    def row_tile(state: RtlState, index: int) -> RtlState:
        last_row = index == grid.row_tiles - 1
        rows = rows_of_tile(grid, index + 1)

        def channel_tile(state: RtlState, tile: int) -> RtlState:
            last = tile == grid.channel_tiles - 1
            loads = np.where(grid.streams | (index == 0 and not last), tile_words, 0)
            if last and last_row:
                loads = grid.flat(grid.tilings.next_steps * grid.step_words)
            start = state.weights_ready
            traffic = _Tile(
                grid.saved(index), grid.blocks(tile), rows.bytes / grid.channel_tiles, loads * grid.weight_bytes
            )
            state = _tile(grid, state, traffic)
            return load_weights(
                grid, state, WeightPhase(start, grid.feeds, loads, last and last_row, traffic.rivals(grid))
            )

        start = state.rows_ready
        state = sweep(state, grid.channel_tiles, 1, channel_tile)
        tiles = np.where(grid.streams, grid.channel_tiles, (grid.channel_tiles - 1) * (index == 0))
        saved_bytes = grid.columns * grid.column_bytes(grid.saved(index), _all_blocks(grid))
        feeds = grid.channel_tiles * grid.feeds
        return load_rows(grid, state, RowPhase(start, feeds, rows, saved_bytes, tiles * tile_words * grid.weight_bytes))

    return sweep(state, grid.row_tiles, alike_rows(grid.shape, grid.arrays.rows), row_tile)


def _channel_tiles(grid: PassGrid, state: RtlState) -> RtlState:
    """All row tiles under one channel tile, then under the next; rows come once."""

    def channel_tile(state: RtlState, tile: int) -> RtlState:
        last = tile == grid.channel_tiles - 1
        words = grid.flat((grid.tilings.next_steps if last else grid.shape.steps) * grid.step_words)

        def row_tile(state: RtlState, index: int) -> RtlState:
            rows = rows_of_tile(grid, index + 1 if tile == 0 else grid.row_tiles)
            weight_bytes = words / grid.row_tiles * grid.weight_bytes
            traffic = _Tile(grid.saved(index), grid.blocks(tile), rows.bytes, weight_bytes)
            start = state.rows_ready
            state = _tile(grid, state, traffic)
            saved_bytes = grid.columns * grid.column_bytes(traffic.saved_rows, traffic.blocks)
            return load_rows(grid, state, RowPhase(start, grid.feeds, rows, saved_bytes, weight_bytes))

        start = state.weights_ready
        state = sweep(state, grid.row_tiles, alike_rows(grid.shape, grid.arrays.rows), row_tile)
        rows = sum(rows_of_tile(grid, index + 1).bytes for index in range(grid.row_tiles)) if tile == 0 else 0.0
        saves = grid.columns * sum(
            grid.column_bytes(grid.saved(index), grid.blocks(tile)) for index in range(grid.row_tiles)
        )
        feeds = grid.feeds * grid.row_tiles
        return load_weights(grid, state, WeightPhase(start, feeds, words, last, (grid.flat(rows), saves)))

    return sweep(state, grid.channel_tiles, 1, channel_tile)


def _all_blocks(grid: PassGrid) -> int:
    return ceil_div(grid.shape.filters, grid.arrays.lanes)


def _tile(grid: PassGrid, state: RtlState, tile: _Tile) -> RtlState:
    """The array takes a tile when it is through with the one before, and rows and weights are there."""
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
    saved_bytes = grid.columns * grid.column_bytes(tile.saved_rows, tile.blocks)
    words = grid.columns * tile_save(grid, tile.saved_rows, tile.blocks, grid.flat(1.0)).words
    to_ddr = not grid.shape.to_chip
    cycles = tile.weight_bytes / grid.weight_bytes
    late = np.clip((state.weights_arrived + cycles - start) / latest(1, cycles), 0, 1)  # others came before the tile
    rivals = {ROWS: tile.row_bytes, WEIGHTS: tile.weight_bytes * late}
    lost = shares_of(grid).lost(SAVES, words, rivals) if to_ddr else grid.flat(0.0)
    pace = 1 + lost / words
    saved = save(grid, waited, start, tile_save(grid, tile.saved_rows, tile.blocks, pace))
    read_bytes = grid.map_bytes * (not grid.shape.from_chip) + grid.weight_bytes
    earliest = start - READ_WORDS * read_bytes / grid.rate
    weight_bytes = np.where(grid.tilings.resident > 0, 0, tile.weight_bytes)  # which come whenever there is time
    busy = (tile.row_bytes + weight_bytes + saved_bytes) / grid.rate
    ddr_done = latest(state.ddr_done, earliest) + busy
    return replace(saved, ddr_done=ddr_done)


def _end(grid: PassGrid, state: RtlState) -> Times:
    """The last chunk leaves, its last burst is answered; and the next pass's first weights are there."""
    answered = 0 if grid.shape.to_chip else grid.ddr.write_latency
    return latest(state.emptied + (SUMMED if grid.shape.added else LEFT) + answered, state.weights_arrived) + ENDED
