"""Cycles of one pass: a recurrence over its tiles, the same for both engines.

A pass is: its first rows arrive; then tile after tile computes, while the next rows, the next weights and the results
of the tile before move; at the end the last results drain.

    read_rows, load    fill │ next tile's rows   │ next tile's rows   │
    pe_row                  │ tile 0             │ tile 1             │ …  │
    pool … write_rows               │ results 0          │ results 1       │ drain

A tile begins when three processes are through with what comes before: the array with the tile before, load with this
tile's rows, feed_weights with its weights (state.py). Tiles that are alike are taken together, so that a pass costs a
few steps of each kind, whatever the layer's size. What a step takes is the engine's (scheduler/systolic/engines).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.engines.engine import Engine, S
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.model.arrays import ArrayGrid, PassTilings
from scheduler.systolic.model.cycles import PARTS, Cycles
from scheduler.systolic.model.grid import PassGrid, latest
from scheduler.systolic.model.phases import RowPhase, TileTraffic, WeightPhase
from scheduler.systolic.model.progress import changed, sweep
from scheduler.systolic.shape import LayerShape, alike_rows


def pass_cycles(arrays: ArrayGrid, shape: LayerShape, tilings: PassTilings, ddr: DdrTiming, first: bool) -> Cycles:
    """One pass, [arrays, tilings]. first: of the frame, so that its own first weights have to arrive too."""
    engine, resident = ENGINE_NAMED[arrays.array.engine], tilings.inputs_resident > 0
    if resident.all() or not resident.any():
        return _pass(engine, PassGrid(arrays, shape, tilings, ddr, first), bool(resident.all()))
    parts = [
        _pass(engine, PassGrid(arrays, shape, tilings.pick(picked), ddr, first), bool(resident[picked].any()))
        for picked in (resident, ~resident)
    ]
    order = np.argsort(np.concatenate([np.flatnonzero(resident), np.flatnonzero(~resident)]))
    return Cycles(*(np.concatenate([getattr(part, name) for part in parts], axis=-1)[..., order] for name in PARTS))


ROUNDED = (len(PARTS) - 2) // 2
"""Cycles by which rounding may make a pass shorter: half a cycle for each part but two, which are whole numbers."""


def _pass(engine: Engine[Any], grid: PassGrid, inputs_resident: bool) -> Cycles:
    """One pass. inputs_resident: of all its tilings."""
    state = engine.begin(grid)
    fill = state.rows_ready
    state = (_channel_tiles if inputs_resident else _row_tiles)(engine, grid, state)
    parts = {
        "fill": fill,
        "compute": grid.flat(float(grid.row_tiles * grid.channel_tiles) * grid.feeds),
        "rows": state.wait_rows - fill,
        "weights": state.wait_weights,
        "saver": state.wait_saver,
        "ddr": state.wait_ddr,
        "drain": engine.end(grid, state) - state.array,
        "program": engine.program(grid),
    }
    return Cycles(**{name: np.rint(parts[name]).astype(np.int64) for name in PARTS})


def _row_tiles(engine: Engine[S], grid: PassGrid, state: S) -> S:
    """All channel tiles over one row tile, then over the next."""
    tile_words = grid.flat(grid.shape.steps * grid.step_words)

    def row_tile(state: S, index: int) -> S:
        ends = index == grid.row_tiles - 1
        loaded = np.where(grid.streams, grid.channel_tiles, (grid.channel_tiles - 1) * (index == 0))
        feeds, rows = grid.channel_tiles * grid.feeds, engine.rows(grid, index)
        phase = RowPhase(index, None, state.rows_ready, feeds, rows, loaded * tile_words)
        expected = engine.expect(grid, state, phase)

        def channel_tile(state: S, tile: int) -> S:
            last = tile == grid.channel_tiles - 1
            words = np.where(grid.streams | (index == 0 and not last), tile_words, 0)
            if last and ends:
                words = grid.flat(grid.tilings.next_steps * grid.step_words)
            read = expected.row_bytes, words * grid.weight_bytes
            traffic = TileTraffic(grid.saved(index), grid.blocks(tile), *read, expected.word_cycles, last and ends)
            fed = range(index, index + 1), tile, state.weights_ready, grid.feeds
            weights = WeightPhase(*fed, words, last and ends, expected.row_bytes)
            return engine.load_weights(grid, _tile(engine, grid, state, traffic), weights)

        after = sweep(state, grid.channel_tiles, 1, channel_tile)
        return engine.load_rows(grid, state, after, phase, expected)

    return sweep(state, grid.row_tiles, alike_rows(grid.shape, grid.arrays.rows), row_tile)


def _channel_tiles(engine: Engine[S], grid: PassGrid, state: S) -> S:
    """All row tiles under one channel tile, then under the next; rows come once."""

    def channel_tile(state: S, tile: int) -> S:
        last = tile == grid.channel_tiles - 1
        words = grid.flat((grid.tilings.next_steps if last else grid.shape.steps) * grid.step_words)

        def row_tile(state: S, index: int) -> S:
            ends = last and index == grid.row_tiles - 1
            rows = engine.rows(grid, index) if tile == 0 else grid.no_rows
            phase = RowPhase(index, tile, state.rows_ready, grid.feeds, rows, words / grid.row_tiles)
            expected = engine.expect(grid, state, phase)
            read = expected.row_bytes, expected.weight_words * grid.weight_bytes
            traffic = TileTraffic(grid.saved(index), grid.blocks(tile), *read, expected.word_cycles, ends)
            return engine.load_rows(grid, state, _tile(engine, grid, state, traffic), phase, expected)

        after = sweep(state, grid.row_tiles, alike_rows(grid.shape, grid.arrays.rows), row_tile)
        row_bytes = grid.flat(grid.later_bytes if tile == 0 else 0.0)
        fed = range(grid.row_tiles), tile, state.weights_ready, grid.feeds * grid.row_tiles
        return engine.load_weights(grid, after, WeightPhase(*fed, words, last, row_bytes))

    return sweep(state, grid.channel_tiles, 1, channel_tile)


def _tile(engine: Engine[S], grid: PassGrid, state: S, traffic: TileTraffic) -> S:
    """The array takes a tile when it is through with the one before, and rows and weights are there."""
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
    return engine.tile(grid, waited, start, traffic)
