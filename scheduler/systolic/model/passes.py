"""Cycles of one pass: a recurrence over its tiles, which both engines share.

A pass begins with the arrival of its first rows. Then the array computes tile after tile. Meanwhile the next rows, the
next weights and the results of the previous tile move. At the end the last results drain.

    read_rows, load    fill │ next tile's rows   │ next tile's rows   │
    pe_row                  │ tile 0             │ tile 1             │ …  │
    pool … write_rows               │ results 0          │ results 1       │ drain

A tile begins when the array has finished the previous tile, load has this tile's rows, and feed_weights has its
weights. Tiles that do the same work are taken together (progress.py). The model therefore evaluates a few steps of each
kind per pass, for a layer of any size. The engine defines the cycles of a step (scheduler/systolic/engines).
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
    """Return the modelled cycles of one pass (a layer's run over one column tile) by cause, with shape (arrays,
    tilings).

    Args:
        arrays: The arrays.
        shape: The layer.
        tilings: The pass under each tiling.
        ddr: The DDR's timing.
        first: Whether it is the first pass of the frame, which also has to wait for its own first weights.
    """
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
"""The most cycles by which rounding can shorten a pass: half a cycle per part, except for two integer parts."""


def _pass(engine: Engine[Any], grid: PassGrid, inputs_resident: bool) -> Cycles:
    """Return the modelled cycles of one pass by cause. All its tilings must have the same ``inputs_resident``."""
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
    """Return the cycle model's state after a pass whose outer loop runs over row tiles, and whose inner loop over
    channel tiles."""
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
    """Return the cycle model's state after a pass whose outer loop runs over channel tiles, and whose inner loop over
    row tiles.

    The rows are loaded once, during the first channel tile.
    """

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
    """Return the cycle model's state after one channel tile of one row tile, with the array's waits for rows and
    weights.

    The tile starts when the array has finished the previous one and the tile's rows and weights can be fed.
    """
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
