"""Where the processes of a pass stand after a tile, and how tiles that are alike are taken in one step.

A pass is priced by carrying a Progress from tile to tile. Most tiles of a pass do the same work, so only a few are
stepped through and the rest follow from how much one turn of them adds:

    tile     0  1  2  3  4 │ 5 … n−3              │ n−2  n−1
             stepped       │ one jump: n−7 turns   │ stepped
                           │ like the last one     │

The tiles before the jump are stepped until two turns take the array equally long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, TypeVar

import numpy as np

from scheduler.systolic.model.grid import Times


@dataclass(frozen=True, eq=False)
class Progress:
    """Cycles from the start of the pass, [arrays, tilings]: what is carried of either engine.

    array: when the array has taken its last element.
    rows_ready, weights_ready: when load and feed_weights can give the first element of the phase that comes.
    rows_late, weights_late: the part of that which is due to late words, and not to the loops.
    rows_arrived, weights_arrived: when the last word that was asked for is there.
    ddr_done: when the memory has moved what was asked for.
    arrange_done: when arrange has taken the last result. pool_done: when pool has.

    wait_rows, wait_weights, wait_saver, wait_ddr: what the array waited for so far.
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
    """From a phase's last word to the first element of the next phase, at least: of rows, and of weights."""


S = TypeVar("S", bound=Progress)
V = TypeVar("V")


def changed(value: V, **numbers: Times) -> V:
    """``dataclasses.replace`` of a value of many fields, which the search does hundreds of thousands of times: no field
    is looked up or set one by one."""
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
    "port_behind",
    "excess",
    "gap",
    "pending_bytes",
    "requantised",
)
"""Fields that are the same after each of equal tiles. All others are times or counts, and grow by the same amount with
each of them."""

BLOCKED = {"array", "weights_ready", "weights_asked", "weights_read", "wait_saver"}
"""Times that an array which the Saver blocks puts off, of either engine."""

SETTLED = 3
"""Tiles of a row that are stepped through before the rest is taken by their growth."""

LAST = 2
"""Tiles at the end that are stepped through too: the one before the last loads the map's last rows, fewer."""

UNEQUAL = 16
"""Turns that are stepped through at most until two of them grow alike."""


def sweep(state: S, count: int, period: int, step: Callable[[S, int], S]) -> S:
    """``step`` for tiles 0 … count − 1. Tiles between the first ones and the last are alike, in turns of ``period``."""
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
    """Whether the array took as long for the last turn as for the one before."""
    first, middle, last = (states[-1 - period * turns].array for turns in (2, 1, 0))
    return bool(np.all(np.abs(last - 2 * middle + first) < 1))


def extrapolated(start: S, end: S, turns: float) -> S:
    """``end``, and so many more turns like the one from ``start`` to ``end``.

    Two things do not go on as they were. An array that the Saver blocked while it worked off a backlog is blocked no
    longer when the backlog is gone: it goes on at its own pace, or at the Saver's. And words that were far ahead of
    their loop come no faster than their ports give them.
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
