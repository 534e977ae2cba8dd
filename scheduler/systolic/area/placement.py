"""Which primitive holds which buffer: of all choices among BRAM36, URAM and LUTRAM the one of least area that fits.

The area of a design is the sum of its parts' (``area`` of scheduler/systolic/area/resources.py), and the buffers meet
only in the board's budget. So where every buffer's own least fits the board, that is the least of all choices, and only
where it does not are choices enumerated, the most demanding buffer first; what already exceeds the board or the least
found is left. ``place`` is the same by every choice, for one array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.board import Board
from scheduler.hardware.arithmetic import NEVER
from scheduler.systolic.area.fabric import fabric
from scheduler.systolic.area.resources import (
    BUFFERS,
    FIFOS,
    MAP_BUFFERS,
    PORT_BUFFERS,
    Buffer,
    Usage,
    area,
    fixed_usage,
    unit_areas,
    units,
    used_by,
)
from scheduler.systolic.array import Array

Numbers = npt.NDArray[np.int64]

Placement = Mapping[str, str]
"""bram, uram or lutram by the name of each of ``scheduler.resources.BUFFERS``: the impl of its BIND_STORAGE."""


# --- one array -----------------------------------------------------------------------------------------------------


def impls(buffer: Buffer, board: Board) -> tuple[str, ...]:
    """What a board has the primitives for, the usual first where two take the same area."""
    return tuple(impl for impl in buffer.impls if impl != "uram" or board.resources.uram)


def placements(board: Board) -> Iterator[Placement]:
    """Every choice."""
    names = [buffer.name for buffer in BUFFERS]
    for choice in product(*(impls(buffer, board) for buffer in BUFFERS)):
        yield dict(zip(names, choice, strict=True))


def placed_usage(array: Array, board: Board, placement: Placement) -> Usage:
    """All that ``array`` takes with its buffers where ``placement`` has them."""
    parts = (used_by(buffer, array, placement[buffer.name], board) for buffer in BUFFERS)
    return sum(parts, fixed_usage(array, board))


def place(array: Array, board: Board) -> tuple[Placement, Usage]:
    """The placement of least area that fits; where none does, the one that exceeds the board least."""
    every: list[tuple[tuple[str, ...], Usage]] = [((), fixed_usage(array, board))]
    for buffer in BUFFERS:
        made = [(impl, used_by(buffer, array, impl, board)) for impl in impls(buffer, board)]
        every = [((*chosen, impl), used + more) for chosen, used in every for impl, more in made]
    fitting = [one for one in every if one[1].fits(board)]
    best = min(fitting, key=lambda one: area(one[1], board), default=None) or min(
        every, key=lambda one: (excess(one[1], board), area(one[1], board))
    )
    return {buffer.name: impl for buffer, impl in zip(BUFFERS, best[0], strict=True)}, best[1]


def holds_maps(array: Array, board: Board) -> bool:
    """Whether the board has the memory for the map buffers of ``array``, with nothing beside them."""
    return any(used_by(MAP_BUFFERS, array, impl, board).fits(board) for impl in impls(MAP_BUFFERS, board))


def excess(used: Usage, board: Board) -> float:
    """The largest share of a resource, above 1 where a board does not hold it."""
    have = board.resources
    pairs = ((used.dsp, have.dsp), (used.bram36, have.bram36), (used.uram, have.uram), (used.lut, have.lut))
    return max(need / max(1, got) for need, got in (*pairs, (used.lutram, have.lutram)))


# --- a grid of arrays ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Choice:
    """One primitive for one buffer. taken: units of each of ``resources``; area: of them."""

    resources: tuple[str, ...]
    taken: Numbers
    area: Numbers


_RESOURCES = {"bram": ("bram36",), "uram": ("uram",), "lutram": ("lut", "lutram"), "srl": ("lut", "lutram")}


def _choice(buffer: Buffer, grid: Array, impl: str, board: Board) -> _Choice:
    resources = _RESOURCES[impl]
    size = np.frompyfunc(lambda bits, depth: units(impl, int(bits), int(depth), board.family), 2, 1)
    taken = np.asarray(size(buffer.bits(grid), buffer.depth(grid)) * np.asarray(buffer.count(grid)), np.int64)
    return _Choice(resources, taken, taken * getattr(unit_areas(board), resources[0]))


def _choices(buffer: Buffer, grid: Array, board: Board) -> list[_Choice]:
    return [_choice(buffer, grid, impl, board) for impl in impls(buffer, board)]


def least_areas(grid: Array, board: Board) -> Numbers:
    """The least area of any placement, NEVER where the board holds none. grid: an array whose numbers are integers or
    grids of them that broadcast together."""
    room = _fixed_room(grid, board)
    one = unit_areas(board)
    fixed = np.asarray(grid.dsps * one.dsp + fabric(grid).lut * one.lut, np.int64)
    for buffer in PORT_BUFFERS + FIFOS:
        fixed = fixed + _choice(buffer, grid, buffer.impls[0], board).area
    options = [_choices(buffer, grid, board) for buffer in BUFFERS]
    least = [np.minimum.reduce(np.broadcast_arrays(*(c.area for c in choices))) for choices in options]
    total = np.asarray(sum(least, fixed), np.int64)
    left = {name: np.broadcast_to(n, total.shape) for name, n in _after_least(room, options).items()}
    fits = np.logical_and.reduce([n >= 0 for n in left.values()])
    best = np.where(fits, total, NEVER)
    _enumerate(options, {name: np.broadcast_to(n, total.shape) for name, n in room.items()}, fixed, best)
    return best


def _fixed_room(grid: Array, board: Board) -> dict[str, Numbers]:
    """What of each resource the buffers may take."""
    have = board.resources
    room: dict[str, Any] = {"dsp": have.dsp - grid.dsps, "lut": have.lut - fabric(grid).lut}
    room |= {"bram36": have.bram36, "uram": have.uram, "lutram": have.lutram}
    for buffer in PORT_BUFFERS + FIFOS:
        choice = _choice(buffer, grid, buffer.impls[0], board)
        room |= {name: room[name] - choice.taken for name in choice.resources}
    return {name: np.asarray(n, np.int64) for name, n in room.items()}


def _after_least(room: Mapping[str, Numbers], options: Sequence[Sequence[_Choice]]) -> dict[str, Numbers]:
    """What is left of each resource where every buffer takes the least area of its own."""
    left = dict(room)
    for choices in options:
        areas = np.stack(np.broadcast_arrays(*(c.area for c in choices)))
        chosen = areas.argmin(axis=0)
        for index, choice in enumerate(choices):
            for name in choice.resources:
                left[name] = left[name] - np.where(chosen == index, choice.taken, 0)
    return left


def _enumerate(
    options: Sequence[Sequence[_Choice]], room: Mapping[str, Numbers], fixed: Numbers, best: Numbers
) -> None:
    """Into ``best``: the least of all choices where the least of every buffer by itself does not fit."""
    cells = np.nonzero((best == NEVER) & np.logical_and.reduce([n >= 0 for n in room.values()]))
    if not cells[0].size:
        return

    def flat(numbers: Numbers) -> Numbers:
        return np.asarray(np.broadcast_to(numbers, best.shape)[cells], np.int64)

    here = [[_Choice(c.resources, flat(c.taken), flat(c.area)) for c in choices] for choices in options]
    here.sort(key=lambda choices: -int(min(c.area.sum() for c in choices)))
    least = [np.minimum.reduce([c.area for c in choices]) for choices in here]
    beyond = [np.asarray(sum(least[index + 1 :], np.int64(0)) + np.zeros_like(least[0])) for index in range(len(least))]
    found = np.full(cells[0].size, NEVER, np.int64)
    left = {name: flat(n) for name, n in room.items()}
    _branch(list(zip(here, beyond, strict=True)), left, flat(fixed), np.arange(found.size), found)
    best[cells] = found


def _branch(
    options: Sequence[tuple[Sequence[_Choice], Numbers]],
    room: Mapping[str, Numbers],
    spent: Numbers,
    at: npt.NDArray[np.intp],
    found: Numbers,
) -> None:
    """Cells ``at`` have ``room`` left and ``spent`` so much; each of options stands beside the least of those after."""
    if not options:
        found[at] = np.minimum(found[at], spent)
        return
    (choices, beyond), *others = options
    for choice in sorted(choices, key=lambda c: int(c.area[at].sum())):
        taken, area_ = choice.taken[at], spent + choice.area[at]
        kept = area_ + beyond[at] < found[at]
        for name in choice.resources:
            kept &= taken <= room[name]
        if kept.any():
            left = {name: (n - taken if name in choice.resources else n)[kept] for name, n in room.items()}
            _branch(others, left, area_[kept], at[kept], found)
