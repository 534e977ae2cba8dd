"""The state of a pass after a tile, and the extrapolation over tiles that do the same work.

The model prices a pass by carrying a Progress from tile to tile. Most tiles of a pass do the same work. The model
therefore steps through a few of them, and takes the rest in one jump, by the growth per period of tiles:

    tile     0  1  2  3  4 │ 5 … n−3              │ n−2  n−1
             stepped       │ one jump: n−7 periods │ stepped
                           │ like the last one     │

The tiles before the jump are stepped through until two successive periods take the array the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, TypeVar

import numpy as np

from scheduler.systolic.model.grid import Times


@dataclass(frozen=True, eq=False)
class Progress:
    """The state that the cycle model of either engine carries from tile to tile: when each process is done, and the
    waits so far.

    Times are cycles since the start of the pass, with shape (arrays, tilings).

    Attributes:
        array: Time at which the array has taken its last input.
        rows_ready: Time at which load can feed the first input of the next phase.
        weights_ready: Time at which feed_weights can feed the first weights of the next phase.
        rows_late: The part of the wait for ``rows_ready`` that late words cause, and not the loop.
        weights_late: The part of the wait for ``weights_ready`` that late words cause, and not the loop.
        rows_arrived: Time at which the last requested word of rows has arrived.
        weights_arrived: Time at which the last requested word of weights has arrived.
        ddr_done: Time at which the DDR has moved everything that was requested.
        arrange_done: Time at which arrange has taken the last result.
        pool_done: Time at which pool has taken the last sum.
        wait_rows: Cycles in which the array has waited for load so far.
        wait_weights: Cycles in which the array has waited for feed_weights so far.
        wait_saver: Cycles in which the array has waited for the Saver so far.
        wait_ddr: Cycles in which the array has waited for late words so far.
    """

    array: Times
    rows_ready: Times
    weights_ready: Times
    rows_late: Times
    weights_late: Times
    rows_arrived: Times
    weights_arrived: Times
    ddr_done: Times
    arrange_done: Times
    pool_done: Times
    wait_rows: Times
    wait_weights: Times
    wait_saver: Times
    wait_ddr: Times

    word_to_step: ClassVar[tuple[int, int]]
    """The least cycles from a phase's last word to the next phase's first element, for rows and for weights."""


S = TypeVar("S", bound=Progress)
V = TypeVar("V")


def changed(value: V, **numbers: Times) -> V:
    """Return a copy of a dataclass value with some fields replaced, as a fast ``dataclasses.replace``.

    It is a faster ``dataclasses.replace`` without ``__init__``. The search copies values of many fields hundreds of
    thousands of times.
    """
    result = object.__new__(type(value))
    vars(result).update(vars(value), **numbers)
    return result


LEVELS = (
    "rows_late",
    "weights_late",
    "chunk_results",
    "chunk_columns",
    "column_words",
    "word_cycles",
    "rows_lead",
    "weights_lead",
    "port_lag",
    "excess",
    "gap",
    "pending_bytes",
    "requantised",
)
"""Fields that have the same value after each of several equal tiles. All other fields are times or counts, and grow by
the same amount per tile."""

BLOCKED = {"array", "weights_ready", "weights_asked", "weights_read", "wait_saver"}
"""Fields of either engine's state that are delayed while the Saver blocks the array."""

SETTLED = 3
"""Tiles that are stepped through before the first two periods that are compared."""

LAST = 2
"""Tiles at the end that are stepped through. The last but one loads the map's last rows, which are fewer."""

UNEQUAL = 16
"""Further periods after which the jump is made, even if no two successive periods take the same time."""


def sweep(state: S, count: int, period: int, step: Callable[[S, int], S]) -> S:
    """Return the cycle model's state after tiles 0 … count − 1. Tiles that do the same work are skipped in one jump.

    Args:
        state: The state before the first tile.
        count: The number of tiles.
        period: The number of tiles after which the work repeats.
        step: The function from a state and a tile's number to the state after the tile.
    """
    states, settled, following = [state], SETTLED + 2 * period, count
    for index in range(count - LAST):
        turns, offset = divmod(index - settled, period)
        if turns >= 0 and offset == 0 and (turns >= UNEQUAL or _alike(states, period)):
            left = (count - LAST - index) // period
            states.append(extrapolated(states[-1 - period], states[-1], left))
            following = index + left * period
            break
        states.append(step(states[-1], index))
    state = states[-1]
    for index in range(min(following, max(0, count - LAST)), count):
        state = step(state, index)
    return state


def _alike(states: Sequence[Progress], period: int) -> bool:
    """Return whether the last two periods of tiles took the array the same time, within a cycle."""
    first, middle, last = (states[-1 - period * turns].array for turns in (2, 1, 0))
    return bool(np.all(np.abs(last - 2 * middle + first) < 1))


def extrapolated(start: S, end: S, turns: float) -> S:
    """Return the cycle model's state after ``turns`` further periods of tiles, each like the one from ``start`` to
    ``end``.

    Two effects are corrected. If the Saver blocked the array to work off a backlog, the blocking ends with the backlog.
    The array then runs at its own pace or at the Saver's. If words arrived well before their loop needed them, the
    loop is still limited by the rate of its ports.

    Args:
        start: The state one period before ``end``.
        end: The last state that was stepped to.
        turns: The number of further periods.
    """
    growth = {f.name: getattr(end, f.name) - getattr(start, f.name) for f in fields(end) if f.name not in LEVELS}
    unblocked = growth["array"] - growth["wait_saver"]
    backlog = np.maximum(0, growth["array"] - np.maximum(unblocked, growth["arrange_done"]))
    for name in BLOCKED & growth.keys():
        growth[name] = np.maximum(0, growth[name] - backlog)
    far = changed(end, **{name: getattr(end, name) + value * turns for name, value in growth.items()})
    rows_lead = np.minimum(end.rows_ready - end.rows_arrived, end.word_to_step[0])
    weights_lead = np.minimum(end.weights_ready - end.weights_arrived, end.word_to_step[1])
    return changed(
        far,
        rows_ready=np.maximum(far.rows_ready, far.rows_arrived + rows_lead),
        weights_ready=np.maximum(far.weights_ready, far.weights_arrived + weights_lead),
    )
