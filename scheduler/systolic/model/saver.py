"""pool, requantise and arrange (include/pool.h, requantise.h, save.h): one channel tile of one row tile, by chunks.

arrange takes a chunk of results while the chunk before leaves, in one loop of max(fills, leaves) iterations: where more
leaves than comes, the excess runs after the last result. The array is ahead of it by what the FIFOs and the pipelines
between them hold, then it waits. Pipelines that get nothing hold results back: what stands in them when the array
pauses comes when it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from scheduler.hardware.ddr import BURST_WORDS, OUTSTANDING
from scheduler.systolic.model.grid import PART_BUBBLE, PassGrid, Times, most, up
from scheduler.systolic.model.state import State

ARRAY_STAGES = 11
"""pe_array: from an iteration to the write of its sums, before the skew of the rows."""

SAVER_STAGES = 24
"""From the last row's sum to its result in arrange: pe_array 12, pool 4, requantise 8, less grid."""

FROZEN_GROUPS = 10
"""Groups that stand in the pipelines of pool (3) and requantise (7) where nothing follows."""

HELD_GROUPS = 17
"""Groups between pool's reads and arrange's: those, and two FIFOs of 4, less the one that waits."""

WAIT = 4
"""Depth of the FIFOs between processes in step (systolic.generate); sums have ``rows`` more."""

CHUNK_BUBBLE = 4
"""arrange: between two chunks its pipeline (depth 4) drains and the next one is entered."""


@dataclass(frozen=True, eq=False)
class Saver:
    """One channel tile of one row tile. groups: of rows, a column; position: iterations of pool a column; leaves:
    words a column and port. lag: from a position of the array to its last result in arrange."""

    groups: Times
    position: Times
    leaves: Times
    lag: Times
    stuck: Times


@dataclass(frozen=True, eq=False)
class _Flow:
    """The State's part that a chunk changes. came: when arrange has taken the last result of the chunk before."""

    array: Times
    arrange: Times
    came: Times
    excess: Times
    left: Times
    filled: Times
    gap: Times
    taken: Times
    pooled: Times
    pool: Times
    wait_saver: Times


_NAMES = tuple(f.name for f in fields(_Flow))
_SAME = ("excess", "left", "filled", "gap")


def saver_of(grid: PassGrid, saved: int, blocks: int, last: bool) -> Saver:
    """``last``: of the pass, after which all pipelines drain."""
    arrays, shape = grid.arrays, grid.shape
    groups = up(saved / arrays.save_rows)
    position = groups + (shape.pool_stride - 1)
    frozen = 0 if last else np.minimum(up(FROZEN_GROUPS / groups) * grid.column_cycles, grid.feeds)
    skew = arrays.rows - 1
    held = (skew + ARRAY_STAGES) / shape.steps * shape.positions / shape.pool_stride + FROZEN_GROUPS / groups
    return Saver(
        groups,
        position,
        up(saved / _together(grid)) * blocks * shape.value_words,
        skew + SAVER_STAGES + groups + frozen,
        np.minimum(held, grid.columns) * position,
    )


def _together(grid: PassGrid) -> Times:
    """include/save.h, leave_together: rows of a chunk that leave in an iteration."""
    arrays = grid.arrays
    both = np.maximum(arrays.save_rows, arrays.map_ports) if grid.shape.to_chip else arrays.map_ports
    return np.asarray(both, np.float64)


def save(grid: PassGrid, state: State, start: Times, saver: Saver) -> State:
    """The array takes the positions of a tile from ``start`` on, as far as the Saver lets it."""
    chunk = np.asarray(grid.arrays.chunk, np.float64)
    count = up(grid.columns / chunk)
    full = chunk * grid.column_cycles
    resumed = most(state.arrange, start + most(saver.lag, WAIT + saver.stuck))
    came = np.where(state.taken > 0, resumed, state.arrange)
    flow = _Flow(start, came=came, **{n: getattr(state, n) for n in _NAMES if n not in ("array", "came")})
    flow = _chunk(grid, saver, flow, np.minimum(grid.columns, chunk), np.where(count == 1, grid.feeds, full))
    for at in (2, 3):
        flow = _next(grid, saver, flow, count > at, chunk, full)
    before = flow
    flow = _next(grid, saver, flow, count > 4, chunk, full)
    if (count > 5).any():
        flow = _grown(before, flow, most(0, count - 5))
    tail = grid.columns - (count - 1) * chunk
    flow = _next(grid, saver, flow, count > 1, tail, grid.feeds - (count - 1) * full)
    return replace(state, **{n: getattr(flow, n) for n in _NAMES if n != "came"})


def tail_columns(grid: PassGrid) -> Times:
    """Columns of the last chunk of a tile."""
    chunk = np.asarray(grid.arrays.chunk, np.float64)
    return grid.columns - (up(grid.columns / chunk) - 1) * chunk


def _next(
    grid: PassGrid, saver: Saver, flow: _Flow, there: npt.NDArray[np.bool_], columns: Times, cycles: Times
) -> _Flow:
    """Another chunk of the tile, where there is grid."""
    if not there.any():
        return flow
    after = _chunk(grid, saver, replace(flow, came=most(flow.came, flow.array + saver.lag)), columns, cycles)
    return _Flow(*(np.where(there, getattr(after, n), getattr(flow, n)) for n in _NAMES))


def _grown(before: _Flow, after: _Flow, times: Times) -> _Flow:
    """So many chunks like the last one more."""

    def more(name: str) -> Times:
        value: Times = getattr(after, name)
        return value if name in _SAME else value + (value - getattr(before, name)) * times

    return _Flow(*(more(name) for name in _NAMES))


def _chunk(grid: PassGrid, saver: Saver, flow: _Flow, columns: Times, cycles: Times) -> _Flow:
    groups, position, shape = saver.groups, saver.position, grid.shape
    fills = columns * groups
    begin = flow.came + flow.excess + CHUNK_BUBBLE
    unhindered = flow.array + cycles
    # The array takes the last element when all but this many columns of the chunk have left the sums' FIFOs.
    places = np.floor((cycles - ARRAY_STAGES) / shape.steps) - grid.arrays.rows - WAIT - 1
    ahead = places * shape.positions / shape.pool_stride
    pool_begins = most(flow.pooled, flow.array + grid.arrays.rows + ARRAY_STAGES + 1)
    stall = most(
        _behind_arrange(grid, saver, flow, begin, np.floor(ahead) * groups - HELD_GROUPS) - unhindered,
        np.where(flow.taken + ahead * groups > 0, np.where(ahead > 0, pool_begins, flow.pool) + ahead * position, 0)
        - unhindered,
        0,
    )
    array, pool = unhindered + stall, pool_begins + columns * position
    # Between chunks arrange takes nothing: pool is ahead of it by what is held, and what is frozen has to be followed.
    paced = begin + most(0, fills - HELD_GROUPS + FROZEN_GROUPS) * position / groups
    arrange = most(begin + fills, pool + 2 * WAIT, paced)
    held = np.where(fills > HELD_GROUPS, arrange, flow.arrange + fills) - HELD_GROUPS
    return _Flow(
        array=array,
        arrange=arrange,
        came=arrange,
        excess=most(0, flow.left - fills),
        left=_leaves(grid, saver, columns),
        filled=fills,
        gap=flow.excess + CHUNK_BUBBLE,
        taken=flow.taken + fills,
        pooled=most(pool, array + grid.arrays.rows + ARRAY_STAGES, held),
        pool=pool,
        wait_saver=flow.wait_saver + stall,
    )


def _behind_arrange(grid: PassGrid, saver: Saver, flow: _Flow, begin: Times, needed: Times) -> Times:
    """When arrange has taken ``needed`` groups of the chunk; of the one before where that is negative."""
    own = begin + needed * most(saver.position, grid.column_cycles) / saver.groups
    earlier = flow.arrange - np.where(-needed >= flow.filled, flow.gap, 0) + needed * saver.position / saver.groups
    return np.where(flow.taken + needed > 0, np.where(needed > 0, own, earlier) + 3, 0)


def _leaves(grid: PassGrid, saver: Saver, columns: Times) -> Times:
    """Iterations in which a chunk leaves: words a port; short bursts wait for the answer to the one before the last
    that may be open (include/save.h, write_rows)."""
    if grid.shape.to_chip:
        return columns * saver.leaves
    burst = columns * grid.shape.value_words
    bursts = saver.leaves / grid.shape.value_words * up(burst / BURST_WORDS)
    answered = (grid.ddr.write_latency + PART_BUBBLE + np.minimum(burst, BURST_WORDS)) / OUTSTANDING
    return most(columns * saver.leaves, (bursts - OUTSTANDING) * answered)
