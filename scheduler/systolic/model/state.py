"""Where the processes of a pass stand after a tile, and how tiles that are alike are taken in one step.

A pass is priced by carrying a State from tile to tile. Most tiles of a pass do the same work, so only a few are stepped
through and the rest follow from how much one turn of them adds:

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

LOAD_STAGES, FEED_STAGES = 8, 4
"""Depths of the pipelines of load and of feed_weights in C++, which drain between two row tiles, two weight tiles."""

ROWS_TAKEN, WEIGHTS_TAKEN = 2 * LOAD_STAGES, 2 * FEED_STAGES + 1
"""From a phase's last word to the first element of the next phase there, at least."""


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


@dataclass(frozen=True, eq=False)
class State(Progress):
    """Of the engine in C++.

    writes_done: when a port that writes has moved what was asked for. first_write: when the pass's first burst is in
    the memory's buffer; stored: when the memory has moved what was written, which it cannot begin before.
    pool_free: when pool can begin the next chunk, which may be later than pool_done because results stand in the FIFOs
    behind it.
    results: groups that arrange has taken so far. chunk_results: of the last chunk; chunk_leaves: iterations in which
    that chunk leaves; chunk_sent: cycles that a port needs for it; excess: iterations that did not hide behind
    the chunk that came meanwhile; gap: cycles in which arrange took nothing before the last chunk; pending_bytes: of
    the chunk that has yet to leave. ports_free: when the ports have sent the chunk before that one.
    """

    writes_done: Times
    stored: Times
    first_write: Times
    pool_free: Times
    results: Times
    chunk_results: Times
    chunk_columns: Times
    column_words: Times
    word_cycles: Times
    rows_lead: Times
    weights_lead: Times
    left: Times
    port_behind: Times
    answered: Times
    ports_free: Times
    weights_asked: Times
    weights_read: Times
    excess: Times
    gap: Times
    pending_bytes: Times

    word_to_step: ClassVar[tuple[int, int]] = (ROWS_TAKEN, WEIGHTS_TAKEN)

    @property
    def chunk_leaves(self) -> Times:
        """Iterations in which the last chunk leaves."""
        return self.chunk_columns * self.column_words


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
