"""What moves beside the array: rows of the next tile (include/read.h, load.h), weights (feed.h), results (save.h).

A loop loads while the array takes what came before, in max(feeds, loads) iterations; words are late where their port or
the DDR gives them more slowly. The DDR serves bytes in their order; where ports ask for more than it gives, they share
it (scheduler/systolic/model/ddr_shares.py), and a port without a pause falls behind for good.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scheduler.systolic.model.ddr_shares import ROWS, SAVES, WEIGHTS, Shares
from scheduler.systolic.model.grid import HELD_WORDS, PassGrid, Rows, Times, most
from scheduler.systolic.model.saver import tail_columns
from scheduler.systolic.model.state import FEED_STAGES, LOAD_STAGES, ROWS_TAKEN, WEIGHTS_TAKEN, State

LEAD = 2
"""Cycles by which a loop that waits for the array ends before it: a FIFO of 4, less entering the next grid."""


def load_rows(
    grid: PassGrid,
    state: State,
    began: Times,
    feeds: Times,
    rows: Rows,
    others: tuple[Times, Times],
    leaves: Times | float = 0.0,
) -> State:
    """The end of a phase of load that began to give at ``began``: the array took ``feeds`` elements, ``rows`` came.
    others: bytes of results and of weights that moved meanwhile; leaves: when the first results do, where these rows
    were asked for before."""
    loads, words = rows.loads, rows.words
    beside = grid.tilings.overlap > 0
    some = words > 0
    ahead = np.minimum((leaves - state.rows_at) / grid.row_pace, grid.read_ahead)  # nothing leaves yet
    shared = np.clip(words - most(0, ahead), 0, None)
    spent = words * grid.row_pace + Shares.of(grid).lost(ROWS, shared, {SAVES: others[0], WEIGHTS: others[1]})
    iterations = np.where(beside, most(feeds, loads), feeds)
    held = HELD_WORDS * grid.row_pace
    came = most(state.rows_at + spent, np.where(beside, began, state.array) + spent - held)
    there = np.where(some, most(came, state.ddr), state.rows_at)
    array = most(state.array, np.where(some & beside, there - _share(spent, iterations, feeds), 0))
    looped = most(began + iterations, array - LEAD + iterations - feeds) + LOAD_STAGES
    looped = looped + np.where((loads > 0) & ~beside, loads + LOAD_STAGES, 0)
    padded = came + rows.padding * np.where(beside, iterations / most(1, loads), 1)
    ready = most(looped, np.where(some, most(there, padded) + ROWS_TAKEN, 0))
    return replace(
        state,
        array=array,
        rows=ready,
        rows_late=ready - looped,
        rows_at=there,
        wait_ddr=state.wait_ddr + array - state.array,
    )


def load_weights(grid: PassGrid, state: State, began: Times, feeds: Times, words: Times, last: bool) -> State:
    """The same of feed_weights, which loads the next tile while this one is used. last: that of the next pass."""
    some = words > 0
    spent = words * (grid.next_weight_pace if last else grid.weight_pace)
    ahead = grid.next_weights_ahead if last else grid.weights_ahead
    iterations = most(feeds, words)
    there = most(state.weights_at + spent, began + spent - ahead, state.ddr)
    there = np.where(some, there, state.weights_at)
    # One loop feeds and loads: until the first word is there it feeds nothing more.
    first = state.weights_at + feeds - iterations / most(1, words)
    array = most(state.array, np.where(some, most(first, there - _share(spent, iterations, feeds)), 0))
    looped = most(began + iterations, array - LEAD + iterations - feeds) + FEED_STAGES
    ready = most(looped, np.where(some, there + WEIGHTS_TAKEN, 0))
    return replace(
        state,
        array=array,
        weights=ready,
        weights_late=ready - looped,
        weights_at=there,
        wait_ddr=state.wait_ddr + array - state.array,
    )


def _share(spent: Times, iterations: Times, feeds: Times) -> Times:
    """Loads are spread over a phase: the part of their time that is left when the array has taken its last element."""
    return spent * (iterations - feeds) / iterations


def move(
    grid: PassGrid, before: State, state: State, start: Times, size: tuple[int, int], rows: Times, weights: Times
) -> State:
    """The DDR during one tile: bytes of rows and of weights that are read, and the chunks that leave. start: of the
    array's first element; size: rows saved and blocks of the tile."""
    saved, blocks = size
    column = grid.column_bytes(saved, blocks)
    tail = tail_columns(grid)
    chunks = before.pending + (grid.columns - tail) * column
    read = grid.map_bytes * (not grid.shape.from_chip) + grid.weight_bytes
    earliest = start - HELD_WORDS * read / grid.rate
    ddr = most(before.ddr, earliest) + (rows + weights + chunks) / grid.rate
    words = before.left + np.ceil(saved / grid.arrays.map_ports) * blocks * grid.shape.value_words * (
        grid.columns - tail
    )
    words = words * (not grid.shape.to_chip)
    filled = start + grid.arrays.rows + np.minimum(grid.columns, grid.arrays.chunk) * grid.column_cycles
    begun = np.where(before.taken > 0, before.arrange, filled)  # nothing leaves before the first chunk is there
    wrote = most(before.wrote, begun) + words + Shares.of(grid).lost(SAVES, words, {ROWS: rows, WEIGHTS: weights})
    behind = most(wrote - grid.written_ahead, ddr - grid.written_ahead * grid.map_bytes / grid.rate)
    return replace(
        state,
        ddr=ddr,
        wrote=wrote,
        pending=grid.flat(tail * column),
        arrange=most(state.arrange, behind - state.excess),
    )
