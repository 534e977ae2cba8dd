"""Where the processes of a pass stand after a tile, and how many equal tiles are taken in one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from scheduler.systolic.model.grid import Times


@dataclass(frozen=True, eq=False)
class State:
    """Cycles from the start of the pass, [arrays, tilings].

    array: when it has taken its last element. rows, weights: when the first element of the phase that comes can be
    taken from load and from feed_weights; rows_late, weights_late: of these, by how much words and not loops are late.
    rows_at, weights_at: when the last word asked for is there. ddr, wrote: when the memory, and a port that writes,
    have moved what was asked for.

    arrange: when the Saver alone would have taken the last result. pooled: the same of pool with its FIFOs, pool of
    pool alone. taken: groups of results so far; filled: of the last chunk; left: iterations in which that chunk leaves;
    excess: of these, more than were hidden when it was filled; gap: the excess before it; pending: its bytes.
    wait_…: what the array waited for so far.
    """

    array: Times
    rows: Times
    weights: Times
    rows_late: Times
    weights_late: Times
    rows_at: Times
    weights_at: Times
    ddr: Times
    wrote: Times
    arrange: Times
    pooled: Times
    pool: Times
    taken: Times
    filled: Times
    left: Times
    excess: Times
    gap: Times
    pending: Times
    wait_rows: Times
    wait_weights: Times
    wait_saver: Times
    wait_ddr: Times


HELD = ("rows_late", "weights_late", "filled", "left", "excess", "gap", "pending")
"""What equal tiles leave as it is; all else grows by the same each."""

LOAD_STAGES, FEED_STAGES = 8, 4
"""Depths of the pipelines of load and of feed_weights, which drain between two row tiles, two weight tiles."""

ROWS_TAKEN, WEIGHTS_TAKEN = 2 * LOAD_STAGES, 2 * FEED_STAGES + 1
"""From a phase's last word to the first element of the next phase, at least."""

SETTLED = 3
"""Tiles of a row that are stepped through before the rest is taken by their growth."""

LAST = 2
"""Tiles at its end that are, too: the one before the last brings what is left of the map."""

UNEQUAL = 16
"""Turns that are stepped through at most until two of them grow alike."""


def sweep(state: State, count: int, period: int, step: Callable[[State, int], State]) -> State:
    """``step`` for 0 … count − 1. Tiles between the first ones and the last are alike, in turns of ``period``."""
    states, least = [state], SETTLED + 2 * period
    for index in range(count - LAST):
        turns, begun = divmod(index - least, period)
        if turns >= 0 and begun == 0 and (turns >= UNEQUAL or _alike(states, period)):
            states.append(grown(states[-1 - period], states[-1], (count - LAST - index) / period))
            break
        states.append(step(states[-1], index))
    state = states[-1]
    for index in range(max(0, count - LAST), count):
        state = step(state, index)
    return state


def _alike(states: list[State], period: int) -> bool:
    """Whether the array took as long for the last turn as for the one before."""
    first, middle, last = (states[-1 - period * turns].array for turns in (2, 1, 0))
    return bool(np.all(np.abs(last - 2 * middle + first) < 1))


def grown(before: State, after: State, times: float) -> State:
    """``after``, and so many turns like the one from ``before`` more.

    An array that shapes off a backlog of the Saver was blocked for longer than it will be: it goes on at its own pace,
    or at the Saver's.
    """
    more = {f.name: getattr(after, f.name) - getattr(before, f.name) for f in fields(State) if f.name not in HELD}
    free = more["array"] - more["wait_saver"]
    over = np.maximum(0, more["array"] - np.maximum(free, more["arrange"]))
    for name in ("array", "weights", "wait_saver"):
        more[name] = np.maximum(0, more[name] - over)
    far = replace(after, **{name: getattr(after, name) + value * times for name, value in more.items()})
    # Words come no faster than their ports give them, however far ahead of its loop they were at first.
    return replace(
        far,
        rows=np.maximum(far.rows, far.rows_at + np.minimum(after.rows - after.rows_at, ROWS_TAKEN)),
        weights=np.maximum(far.weights, far.weights_at + np.minimum(after.weights - after.weights_at, WEIGHTS_TAKEN)),
    )
