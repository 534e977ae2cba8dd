"""The output stage: pool, requantise and arrange (saver/pool.h, requantise.h, save.h), chunk by chunk of a tile.

arrange is one loop. It takes the results of a chunk (*fills*) and outputs the words of the chunk before (*words*). It
runs max(fills, words) iterations. If there are more words than results, the excess words are output after the last
result, and no results are taken meanwhile:

    chunk k       ├── fills ──┤
    chunk k−1     ├────── words ───────┤
    arrange       takes results        │ excess │ bubble │ chunk k+1 …

The array is ahead of arrange by the results in the FIFOs and pipelines between them, and waits when these are full. A
pipeline without input does not move. Results that are in it when the array pauses are output when the array resumes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from scheduler.systolic.engines.hls.fifos import buffered_positions
from scheduler.systolic.engines.hls.output_timing import (
    ChunkWrite,
    arrange_stages,
    chunk_bubble,
    chunk_write,
    output_chunk,
    output_rows_per_cycle,
    uses_ports,
)
from scheduler.systolic.engines.hls.stages import (
    ARRAY_STAGES,
    FIFO_WORDS,
    frozen_groups,
    full_pipeline_groups,
    saver_stages,
    skew_of,
)
from scheduler.systolic.engines.hls.state import State
from scheduler.systolic.model.grid import PassGrid, Times, ceiling, latest
from scheduler.systolic.model.phases import TileTraffic
from scheduler.systolic.model.progress import changed

RESUME_CYCLES = 3
"""The pipelines after the array that resume, each one cycle after the one before: pool, requantise, arrange."""

LEAD = 2
"""Cycles by which a loop that feeds the array is ahead: a FIFO of 4 words, less the cycles to enter the next phase."""


@dataclass(frozen=True, eq=False)
class TileSave:
    """The output stage's work per output column and its lags, in cycles, for one tile (a channel tile of a row tile).

    Attributes:
        groups: Groups of rows that are requantised together, per column.
        pool_cycles: Iterations of pool per column.
        port_words: Words per column and port.
        word_cycles: Cycles in which the DDR moves a word of each port.
        lag: Cycles from a position (output pixel) in the array to its last result in arrange.
        frozen_columns: Columns in the array's pipelines when the tile begins.
        pushed_cycles: Cycles in which the groups in the pipelines after pool reach arrange at the end of a chunk.
    """

    groups: Times
    pool_cycles: Times
    port_words: Times
    word_cycles: Times
    lag: Times
    frozen_columns: Times
    pushed_cycles: Times


@dataclass(frozen=True, eq=False)
class _Flow:
    """The fields of the cycle model's ``State`` that change when the output stage processes a chunk of columns, and
    ``last_result``.

    ``last_result`` is the time at which arrange has taken the last result of the chunk before.
    """

    array: Times
    arrange_done: Times
    last_result: Times
    excess: Times
    chunk_columns: Times
    column_words: Times
    word_cycles: Times
    rows_lead: Times
    weights_lead: Times
    chunk_results: Times
    gap: Times
    results: Times
    output_done: Times
    port_lag: Times
    last_response: Times
    ports_free: Times
    pool_free: Times
    pool_done: Times
    wait_saver: Times


_NAMES = tuple(f.name for f in fields(_Flow))

# Fields with the same value after each of several equal chunks. All other fields grow by the same amount per chunk.
_LEVELS = (
    "excess",
    "port_lag",
    "chunk_columns",
    "column_words",
    "word_cycles",
    "rows_lead",
    "weights_lead",
    "chunk_results",
    "gap",
)


def tile_save(grid: PassGrid, traffic: TileTraffic) -> TileSave:
    """Return the output stage's work and lags for one tile, with the DDR pace of ``traffic``."""
    kind = np.asarray([traffic.saved_rows, traffic.blocks, traffic.last], np.float64)
    return changed(grid.cached(_tile_save, kind), word_cycles=traffic.word_cycles)


def _tile_save(grid: PassGrid, kind: Times) -> TileSave:
    """Return the output stage's work and lags for one kind of tile, without the DDR pace ``word_cycles``.

    Args:
        grid: The pass.
        kind: The tile's output rows, its channel blocks per position, and whether all pipelines drain after the tile.
    """
    arrays, shape, (saved_rows, blocks, last) = grid.arrays, grid.shape, kind.tolist()
    groups = ceiling(saved_rows / arrays.save_rows)
    pool_cycles = groups + (shape.separate_taps * shape.pool_stride - 1)
    last_chunk = np.where(grid.columns > arrays.chunk, grid.tail_columns * grid.column_cycles, grid.feeds)
    limit = last_chunk + saver_stages(grid.arrays) - ARRAY_STAGES if last else grid.feeds
    frozen = np.minimum(ceiling(frozen_groups(grid.arrays) / groups) * grid.column_cycles, limit)
    skew = skew_of(arrays.rows)  # results in the pipelines move only with later results that push them out
    standing = ARRAY_STAGES / shape.steps * shape.positions / shape.column_positions
    return TileSave(
        groups,
        pool_cycles,
        ceiling(saved_rows / output_rows_per_cycle(grid)) * blocks * shape.value_words,
        grid.flat(0.0),
        skew + ARRAY_STAGES + groups + latest(saver_stages(grid.arrays) - ARRAY_STAGES, frozen),
        np.minimum(standing, grid.columns),
        grid.flat(frozen_groups(grid.arrays)) if last else frozen_groups(grid.arrays) * pool_cycles / groups,
    )


def save(grid: PassGrid, state: State, start: Times, tile: TileSave) -> State:
    """Return the cycle model's state after the output stage has saved a tile that the array starts at ``start``, with
    back-pressure."""
    chunk = np.asarray(grid.arrays.chunk, np.float64)
    count, full_cycles = ceiling(grid.columns / chunk), chunk * grid.column_cycles
    flow = _resume(grid, state, start, tile)
    first_columns, first_cycles = np.minimum(grid.columns, chunk), np.where(count == 1, grid.feeds, full_cycles)
    flow = _chunk(grid, tile, flow, (first_columns, first_cycles), bool((count == 1).any()))
    # Chunks 2 to 5 are computed one by one. Further ones repeat the last two, because of two successive chunks one may
    # wait for responses and the other may not. The last chunk may be shorter.
    for number in (2, 3):
        flow = _next_chunk(grid, tile, flow, count > number, (chunk, full_cycles))
    third = flow
    for number in (4, 5):
        flow = _next_chunk(grid, tile, flow, count > number, (chunk, full_cycles))
    if (count > 6).any():
        flow = _repeated(third, flow, latest(0, count - 6) / 2)
    tail = grid.columns - (count - 1) * chunk
    flow = _next_chunk(grid, tile, flow, count > 1, (tail, grid.feeds - (count - 1) * full_cycles), True)
    return changed(state, **{name: getattr(flow, name) for name in _NAMES if name != "last_result"})


def _resume(grid: PassGrid, state: State, start: Times, tile: TileSave) -> _Flow:
    """Return the output stage's state at the start of a tile, when results that waited in stopped pipelines move again.

    Results that were in the pipelines reach arrange first. If they belong to more than the last chunk, arrange must
    output the chunk before it first.
    """
    woken = start + skew_of(grid.arrays.rows) + 2
    standing = frozen_groups(grid.arrays) + tile.frozen_columns * state.chunk_results / latest(1, state.chunk_columns)
    iterations, words = _pending_output(grid, state, standing)
    of_last_chunk = np.minimum(standing, state.chunk_results) * tile.pool_cycles / tile.groups
    columns = np.minimum(grid.columns, np.asarray(grid.arrays.chunk, np.float64))
    first = chunk_write(grid, columns, tile.port_words)
    pace = latest(1, first.cycles / (columns * tile.port_words))  # cycles per word of a port
    last_result = np.where(iterations > 0, woken + iterations * pace + chunk_bubble(grid) + state.chunk_results, 0)
    standing_words = (words > 0) & uses_ports(grid.shape)
    answered = response_after_pause(grid, first, woken + arrange_stages(grid), words, tile.word_cycles)
    ports_free = np.where(
        standing_words,
        latest(woken + arrange_stages(grid) + words * pace, answered - first.last_words * tile.word_cycles + 1),
        0,
    )
    pool_done = latest(state.pool_done, woken + tile.frozen_columns * tile.pool_cycles)
    resumed = {
        "last_result": latest(state.arrange_done, start + tile.lag, woken + RESUME_CYCLES + of_last_chunk, last_result),
        "ports_free": latest(state.ports_free, ports_free),
        "output_done": latest(state.output_done, ports_free - first.full_fifo_cycles),
        "last_response": latest(state.last_response, np.where(standing_words, answered, 0)),
        "pool_done": pool_done,
        "pool_free": latest(state.pool_free, pool_done),
    }
    unchanged = {name: getattr(state, name) for name in _NAMES if name not in ("array", "last_result")}
    unchanged["word_cycles"] = tile.word_cycles  # for all words that are output from now on
    stood = {"last_result": state.arrange_done, **unchanged}
    begun = state.results > 0
    return _Flow(start, **{**stood, **{name: np.where(begun, times, stood[name]) for name, times in resumed.items()}})


def response_after_pause(grid: PassGrid, chunk: ChunkWrite, begin: Times, words: Times, pace: Times) -> Times:
    """Return the cycle of the DDR's response to a chunk of which some words were written before a pause of the array.

    If the pause was in the middle of a burst, the DDR moves this burst when its remaining words have arrived.

    Args:
        grid: The pass.
        chunk: The times of the chunk.
        begin: Time at which arrange outputs the first of the remaining words.
        words: The number of remaining words.
        pace: Cycles in which the DDR moves a word.
    """
    sent_before = np.mod(latest(0, chunk.words - words), chunk.burst)
    moved = begin + chunk.burst - sent_before + (words + sent_before) * pace
    return np.asarray(moved + grid.ddr.write_latency, np.float64)


def _pending_output(grid: PassGrid, state: State, results: Times) -> tuple[Times, Times]:
    """Return the iterations and words that arrange still had to process when the array paused before a tile.

    Args:
        grid: The pass.
        state: The state before the tile.
        results: The number of results in the pipelines.

    Returns:
        The iterations until arrange has taken the results of the chunk before the last one. They are 0 if none of these
        results are in the pipelines.

        The words that arrange still has to output, in the same loop.
    """
    chunk, tail = np.asarray(grid.arrays.chunk, np.float64), grid.tail_columns
    larger = np.where(grid.columns > chunk, chunk / tail, 1)
    results_before, leaves_before = state.chunk_results * larger, state.chunk_words * larger
    leaves_meanwhile = np.where(grid.columns > 2 * chunk, leaves_before, state.chunk_words)
    pending_before = np.clip(np.minimum(results, state.results) - state.chunk_results, 0, results_before)
    leaves_meanwhile = np.where(state.results > state.chunk_results + results_before, leaves_meanwhile, 0)
    excess = latest(0, leaves_meanwhile - results_before)
    iterations = np.where(pending_before > 0, pending_before + excess, 0)
    last_results = np.minimum(results, state.chunk_results)
    words = np.where(excess > 0, iterations, 0) + leaves_before
    return iterations, np.where(pending_before > 0, words, np.where(state.excess > 0, state.excess + last_results, 0))


def _next_chunk(
    grid: PassGrid,
    tile: TileSave,
    flow: _Flow,
    exists: npt.NDArray[np.bool_],
    size: tuple[Times, Times],
    last: bool = False,
) -> _Flow:
    """Return the output stage's state after a further chunk of columns, for the arrays and tilings whose tile has one.

    Args:
        grid: The pass.
        tile: The numbers of the tile.
        flow: The flow after the chunk before.
        exists: Whether the tile has the chunk, at each point of the grid.
        size: The chunk's columns, and the array's cycles for them.
        last: Whether it is the tile's last chunk at any point of the grid.
    """
    if not exists.any():
        return flow
    begun = changed(flow, last_result=latest(flow.last_result, flow.array + tile.lag))
    chunk = _chunk(grid, tile, begun, size, last)
    if exists.all():
        return chunk
    return _Flow(*(np.where(exists, getattr(chunk, name), getattr(flow, name)) for name in _NAMES))


def _repeated(start: _Flow, end: _Flow, chunks: Times) -> _Flow:
    """Return the output stage's state after ``chunks`` further chunks, each with the same growth as from ``start`` to
    ``end``."""

    def repeat(name: str) -> Times:
        value: Times = getattr(end, name)
        return value if name in _LEVELS else value + (value - getattr(start, name)) * chunks

    return _Flow(*(repeat(name) for name in _NAMES))


def _chunk(grid: PassGrid, tile: TileSave, flow: _Flow, size: tuple[Times, Times], last: bool) -> _Flow:
    """Return the output stage's state after one chunk of output columns of a tile.

    Args:
        grid: The pass.
        tile: The numbers of the tile.
        flow: The flow before the chunk.
        size: The chunk's columns, and the array's cycles for them without back-pressure.
        last: Whether it is the tile's last chunk at any point of the grid. Only then are the leads of the feeding loops
            needed.
    """
    columns, cycles = size
    groups, skew = tile.groups, skew_of(grid.arrays.rows)
    fills = columns * groups
    begin = chunk_begin(grid, flow, flow.last_result)
    pool_begin = latest(flow.pool_free, flow.array + skew + ARRAY_STAGES + 2)
    begins = (begin, pool_begin)
    array, pool_done = _array_done(grid, tile, flow, begins, cycles), pool_begin + columns * tile.pool_cycles
    # Between chunks arrange takes no results, and pool is ahead by the groups that the FIFOs hold. Groups in the
    # pipelines reach arrange at the pace of further groups that follow, or when the pipelines drain.
    at_pool_pace = begin + (fills - full_pipeline_groups(grid.arrays)) * tile.pool_cycles / groups + tile.pushed_cycles
    taken = latest(begin + fills, pool_done + 2 * FIFO_WORDS, at_pool_pace)
    phase = output_chunk(grid, flow, begin, taken, fills)
    arrange_done, zero = phase.arrange_done, array * 0
    # pool finishes when arrange has taken all results except those in the FIFOs and pipelines between them.
    held_up = latest(begin + fills, phase.port_limit) - full_pipeline_groups(grid.arrays)
    released = latest(held_up, begin + (fills - full_pipeline_groups(grid.arrays)) * tile.pool_cycles / groups)
    released = np.where(
        fills > full_pipeline_groups(grid.arrays),
        released,
        flow.arrange_done + fills - full_pipeline_groups(grid.arrays),
    )
    return _Flow(
        array=array,
        arrange_done=arrange_done,
        last_result=arrange_done,
        excess=latest(0, flow.chunk_columns * flow.column_words - fills),
        chunk_columns=columns,
        column_words=tile.port_words,
        word_cycles=tile.word_cycles,
        **(_leads(grid, tile, flow, begins, (cycles, array)) if last else {"rows_lead": zero, "weights_lead": zero}),
        output_done=phase.output_done,
        port_lag=phase.port_lag,
        last_response=phase.last_response,
        chunk_results=fills,
        gap=begin - flow.last_result,
        results=flow.results + fills,
        ports_free=phase.ports_free,
        pool_free=latest(pool_done, array + skew + ARRAY_STAGES + 1, released),
        pool_done=pool_done,
        wait_saver=flow.wait_saver + array - flow.array - cycles,
    )


def _array_done(grid: PassGrid, tile: TileSave, flow: _Flow, begins: tuple[Times, Times], fed: Times) -> Times:
    """Return the cycle at which the array has taken ``fed`` inputs of a chunk, with back-pressure of the output stage.

    At that time pool must have read all columns except those in the FIFOs of sums and one that waits in the row. pool
    reads a column in the cycle in which it outputs the column's first group.

    Args:
        grid: The pass.
        tile: The numbers of the tile.
        flow: The flow before the chunk.
        begins: The times at which arrange and pool begin the chunk.
        fed: The number of elements.
    """
    shape, (begin, pool_begin) = grid.shape, begins
    positions_left = np.floor((fed - ARRAY_STAGES) / shape.steps) - buffered_positions(grid.arrays.array) - 1
    columns_left = positions_left * shape.positions / shape.column_positions
    groups_left = (np.floor(columns_left) - 1) * tile.groups + 1 - full_pipeline_groups(grid.arrays)
    arranged = _arrange_taken(grid, tile, flow, begin, groups_left)
    return latest(flow.array + fed, arranged, _pool_taken(tile, flow, pool_begin, columns_left))


def _leads(
    grid: PassGrid, tile: TileSave, flow: _Flow, begins: tuple[Times, Times], end: tuple[Times, Times]
) -> dict[str, Times]:
    """Return ``rows_lead`` and ``weights_lead``: how much back-pressure delays the array's reads of its last inputs
    from the FIFOs.

    A FIFO of rows may be full except for the words that it loses while load enters the next phase.

    Args:
        grid: The pass.
        tile: The numbers of the tile.
        flow: The flow before the chunk.
        begins: The times at which arrange and pool begin the chunk.
        end: The array's cycles for the chunk without back-pressure, and the time at which it has finished the chunk.
    """
    cycles, array = end
    held = {"rows_lead": buffered_positions(grid.arrays.array) - FIFO_WORDS, "weights_lead": FIFO_WORDS}
    if not (array > flow.array + cycles).any():
        return dict.fromkeys(held, array * 0)
    return {
        name: latest(0, array - _array_done(grid, tile, flow, begins, cycles - words) - words)
        for name, words in held.items()
    }


def _pool_taken(tile: TileSave, flow: _Flow, begin: Times, columns: Times) -> Times:
    """Return the cycle at which the pool process has taken ``columns`` columns of the chunk that it begins at
    ``begin``.

    A negative number counts back from the end of the chunk before. The time is 0 before the pass's first column.
    """
    end = np.where(columns > 0, begin, flow.pool_done) + columns * tile.pool_cycles
    return np.where(flow.results + columns * tile.groups > 0, end, 0)


def _arrange_taken(grid: PassGrid, tile: TileSave, flow: _Flow, begin: Times, groups: Times) -> Times:
    """Return the cycle at which arrange has taken ``groups`` groups of rows of the chunk that it begins at ``begin``.

    A negative number counts back from the end of the chunk before. The time is 0 before the pass's first group.
    """
    in_chunk = begin + groups * latest(tile.pool_cycles, grid.column_cycles) / tile.groups
    gap = np.where(-groups >= flow.chunk_results, flow.gap, 0)
    in_chunk_before = flow.arrange_done - gap + groups * tile.pool_cycles / tile.groups
    return np.where(flow.results + groups > 0, np.where(groups > 0, in_chunk, in_chunk_before) + 3, 0)


def chunk_begin(grid: PassGrid, after: State | _Flow, last_result: Times) -> Times:
    """Return the cycle at which arrange (the output stage's reordering) begins the next chunk of columns.

    By then it has taken the last result of the chunk before, and has output the last word of the chunk before that one.
    The words may take more iterations than the results, and the ports may delay them.
    """
    return latest(last_result + after.excess, after.output_done) + chunk_bubble(grid)
