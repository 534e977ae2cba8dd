"""The cycles of the output stage in SystemVerilog.

pool, requantise and arrange are pipelines that never stall, with FIFOs between them. arrange takes a chunk into one
half of its buffer while it outputs the other half. A chunk therefore waits until the chunk two before it is output:

    takes      chunk k    │ chunk k+1  │ waits │ chunk k+2 …
    outputs    chunk k−1  │ chunk k            │ chunk k+1 …

plan_chunks and write_rows request writes ahead of their data. A port therefore writes one word per cycle, unless
OUTSTANDING short bursts await their responses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from scheduler.hardware.ddr import OUTSTANDING
from scheduler.systolic.engines.rtl.stages import POOL_REGISTER, RESPONSE_TO_REQUEST, RESUME_CYCLES, stages_of
from scheduler.systolic.engines.rtl.state import RtlState
from scheduler.systolic.model.grid import PassGrid, Times, ceiling, latest


@dataclass(frozen=True, eq=False)
class TileSave:
    """The output stage's work for one channel tile of one row tile: its cycles and words per output column.

    Attributes:
        groups: Groups of rows that are requantised together, per column.
        pool_cycles: Cycles of pool per column.
        words: Words per column that each port writes, or each bank of a map buffer if the map stays on chip.
        pace: Cycles per word that is written.
    """

    groups: Times
    pool_cycles: Times
    words: Times
    pace: Times


def tile_save(grid: PassGrid, saved_rows: int, blocks: int, pace: Times) -> TileSave:
    """Return the output stage's work for a tile that writes ``saved_rows`` rows, with ``blocks`` words of channels per
    position."""
    arrays, shape = grid.arrays, grid.shape
    groups = ceiling(saved_rows / arrays.save_rows)
    rows_per_cycle = np.maximum(arrays.save_rows, arrays.map_ports) if shape.to_chip else arrays.map_ports
    rows = ceiling(saved_rows / np.asarray(1 if shape.added else rows_per_cycle, np.float64))
    words = rows * blocks * shape.value_words
    return TileSave(groups, groups + (shape.separate_taps * shape.pool_stride - 1), words, pace)


def _response_waits(grid: PassGrid, columns: Times, words: Times) -> Times:
    """Return the cycles in which a port waits for DDR responses while it writes the ``words`` words of a chunk of
    columns.

    A burst waits for the response to the burst OUTSTANDING before it. If the chunk has fewer bursts, that burst belongs
    to an earlier chunk. Only short bursts have to wait.
    """
    if grid.shape.to_chip:
        return grid.flat(0.0)
    burst, whole_burst = (
        width * grid.shape.value_words for width in (columns, np.minimum(grid.columns, grid.arrays.chunk))
    )
    bursts = words / burst
    own_bursts = np.minimum(bursts, OUTSTANDING)
    # Words from the end of a burst to the burst that needs its response.
    between = own_bursts * burst + (OUTSTANDING - own_bursts) * whole_burst - burst
    waited = latest(0, grid.ddr.write_latency + RESPONSE_TO_REQUEST - between)
    return np.asarray(bursts / OUTSTANDING * waited, np.float64)


def save(grid: PassGrid, state: RtlState, start: Times, tile: TileSave) -> RtlState:
    """Return the cycle model's state when the array has computed a tile, with the output stage's back-pressure.

    The array begins at ``start``, and stops while the output stage blocks it.
    """
    chunk = np.asarray(grid.arrays.chunk, np.float64)
    count = ceiling(grid.columns / chunk)
    full = chunk * grid.column_cycles
    begun = replace(state, array=start)
    state = _chunk(grid, tile, begun, np.minimum(grid.columns, chunk), np.where(count == 1, grid.feeds, full))
    for number in (2, 3):
        state = _next_chunk(grid, tile, state, count > number, (chunk, full))
    third = state
    state = _next_chunk(grid, tile, state, count > 4, (chunk, full))
    if (count > 5).any():
        state = _repeated(third, state, latest(0, count - 5))
    tail = grid.columns - (count - 1) * chunk
    return _next_chunk(grid, tile, state, count > 1, (tail, grid.feeds - (count - 1) * full))


_CHUNK_FIELDS = ("array", "arrange_done", "pool_done", "emptied", "emptied_before", "columns", "wait_saver")
"""Fields of the state that change with a chunk."""


def _next_chunk(
    grid: PassGrid, tile: TileSave, state: RtlState, exists: npt.NDArray[np.bool_], size: tuple[Times, Times]
) -> RtlState:
    """Return the cycle model's state after a further chunk of the tile's output columns, or the same state without such
    a chunk.

    Args:
        grid: The pass.
        tile: The tile.
        state: The state before the chunk.
        exists: Whether the tile has this chunk, at each point of the grid.
        size: The chunk's columns, and the array's cycles for them.
    """
    if not exists.any():
        return state
    chunk = _chunk(grid, tile, state, *size)
    return replace(state, **{n: np.where(exists, getattr(chunk, n), getattr(state, n)) for n in _CHUNK_FIELDS})


def _repeated(start: RtlState, end: RtlState, chunks: Times) -> RtlState:
    """Return the cycle model's state after ``chunks`` further chunks of output columns, each like the one from
    ``start`` to ``end``."""
    return replace(end, **{n: getattr(end, n) + (getattr(end, n) - getattr(start, n)) * chunks for n in _CHUNK_FIELDS})


def _chunk(grid: PassGrid, tile: TileSave, state: RtlState, columns: Times, cycles: Times) -> RtlState:
    """Return the cycle model's state after a chunk of ``columns`` output columns, for which the array takes ``cycles``
    if nothing blocks it."""
    stages, shape = stages_of(grid.arrays.array), grid.shape
    fills = columns * tile.groups
    begin = latest(state.arrange_done, state.emptied_before)
    pace = latest(tile.pool_cycles, grid.column_cycles)  # cycles in which the groups of a column arrive
    # Columns by which the array can be ahead of pool, and pool ahead of arrange. The FIFOs of sums hold the former, and
    # the stages and the FIFO after pool the latter.
    ahead = (stages.row_wait + np.floor(stages.in_flight / shape.steps)) * shape.positions / shape.column_positions
    standing = (stages.result_limit + POOL_REGISTER + stages.computed * np.minimum(1, tile.groups / pace)) / tile.groups
    unblocked = state.array + cycles
    pool_begin = latest(state.pool_done, state.requantised, state.array + stages.sums)
    columns_so_far = state.columns + columns

    def arranged(columns: Times) -> Times:
        """Return the cycle at which arrange has taken this number of columns of the chunk.

        A negative number counts back from the end of the chunk before.
        """
        return np.where(columns > 0, begin, state.arrange_done) + columns * tile.pool_cycles

    stops = state.array + (ahead + standing) * grid.column_cycles
    waits = (columns > ahead + standing) & (stops < begin) & (state.emptied_before > state.arrange_done)
    pooled = np.where(columns > ahead, pool_begin, state.pool_done) + (columns - ahead) * tile.pool_cycles
    blocked = latest(
        np.where(columns_so_far > ahead, pooled - unblocked, 0),
        np.where(waits, begin + RESUME_CYCLES - stops, 0),
        np.where(columns_so_far > ahead + standing, arranged(columns - ahead - standing) - unblocked, 0),
        0,
    )
    array = unblocked + blocked
    pool_done = latest(
        pool_begin + columns * tile.pool_cycles,
        array + stages.sums + tile.groups,
        np.where(columns_so_far > standing, arranged(columns - standing), 0),
    )
    arrange_done = latest(begin + fills, pool_done + stages.results)
    words = columns * tile.words
    moved_to = {"array": array, "pool_done": pool_done, "arrange_done": arrange_done, "columns": columns_so_far}
    emptied = latest(arrange_done, state.emptied) + words * tile.pace + _response_waits(grid, columns, words)
    saver = state.wait_saver + blocked
    return replace(state, **moved_to, emptied=emptied, emptied_before=state.emptied, wait_saver=saver)
