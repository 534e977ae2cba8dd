"""The choice of a primitive for each buffer and for the requantisers' multipliers: the least area that fits the board.

Buffers are built from BRAM36, URAM or LUTRAM, multipliers from DSPs or LUTs. A memory deeper than ``DEEPEST_LUTRAM`` is
built from LUTs only if the board's blocks do not hold it: such a memory counts a whole board more (``placed_area``).

The area of a design is the sum of the areas of its parts (``area`` in scheduler/systolic/area/resources.py), so the
choices interact only through the board's limits. If the smallest choice of every buffer fits together, it is therefore
the optimum. Otherwise ``least_areas`` runs a branch and bound over all choices, starting with the buffer of the largest
area. It abandons a partial choice that exceeds the board or the least area so far. ``place`` enumerates every choice,
for one array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.board import Board
from scheduler.hardware.arithmetic import NEVER
from scheduler.systolic.area.memories import MAP_BUFFERS, RESOURCES, Buffer, units
from scheduler.systolic.area.resources import (
    PLACED,
    WHOLE,
    Usage,
    area,
    fabric,
    fixed,
    fixed_usage,
    limit_lut_products,
    unit_areas,
    used_by,
)
from scheduler.systolic.array import Array

Numbers = npt.NDArray[np.int64]

Placement = Mapping[str, str]
"""The impl of each buffer of PLACED, by the buffer's name: bram, uram or lutram, and dsp or fabric for products."""

DEEPEST_LUTRAM = 256
"""The most words of a memory that is built from LUTs while blocks are free. A dual port memory of 256 words takes the
eight LUTs of a CLB for each bit, and F7, F8 and F9 multiplexers of the CLB join them (UG574, "Distributed RAM"). More
words need several CLBs for each bit, and multiplexers of LUTs. Every address line then drives each LUT of the memory:
560 words of 128 bits have 9 banks, so an address line reaches about 9 × 128 LUTs. The area does not contain this
fan-out."""


# --- one array -----------------------------------------------------------------------------------------------------


def impls(buffer: Buffer, board: Board) -> tuple[str, ...]:
    """Return the names of the primitives that a memory can be built from on the board. The first one is preferred at
    equal area."""
    return tuple(impl for impl in buffer.impls if impl != "uram" or board.resources.uram)


def placements(board: Board) -> Iterator[Placement]:
    """Yield every assignment of a primitive (BRAM, URAM, LUTRAM, or DSP and LUTs for products) to each buffer."""
    names = [buffer.name for buffer in PLACED]
    for choice in product(*(impls(buffer, board) for buffer in PLACED)):
        yield dict(zip(names, choice, strict=True))


def placed_usage(array: Array, board: Board, placement: Placement) -> Usage:
    """Return the board resources of the whole engine if each buffer is built from the primitive in ``placement``."""
    parts = (used_by(buffer, array, placement[buffer.name], board) for buffer in PLACED)
    return sum(parts, fixed_usage(array, board))


def placed_area(array: Array, board: Board, placement: Placement) -> int:
    """Return the number that ``place`` and ``least_areas`` minimise.

    It is the area of the whole engine, plus a whole board for each buffer of LUTs that is deeper than
    ``DEEPEST_LUTRAM``. So a placement without such a buffer is preferred if one fits.
    """
    penalties = (_penalty(placement[buffer.name], buffer.depth(array)) for buffer in PLACED)
    return area(placed_usage(array, board, placement), board) + int(sum(penalties))


def _penalty(impl: str, depth: Any) -> Any:
    """Return a whole board if ``impl`` is LUTs and ``depth`` exceeds ``DEEPEST_LUTRAM``, else 0. ``depth`` may be a
    grid."""
    return WHOLE * (impl == "lutram") * (depth > DEEPEST_LUTRAM)


def place(array: Array, board: Board) -> tuple[Placement, Usage]:
    """Return the assignment of primitives to buffers with the least ``placed_area`` that fits the board, and the
    engine's resources with it.

    If no placement fits, return the one that exceeds the board least (see ``excess``).
    """
    choices: list[tuple[tuple[str, ...], Usage]] = [((), fixed_usage(array, board))]
    for buffer in PLACED:
        usages = [(impl, used_by(buffer, array, impl, board)) for impl in impls(buffer, board)]
        choices = [((*chosen, impl), total + usage) for chosen, total in choices for impl, usage in usages]
    depths = [int(buffer.depth(array)) for buffer in PLACED]

    def size(choice: tuple[tuple[str, ...], Usage]) -> int:
        return area(choice[1], board) + int(sum(map(_penalty, choice[0], depths)))

    fitting = [choice for choice in choices if choice[1].fits(board)]
    if fitting:
        chosen, usage = min(fitting, key=size)
    else:
        chosen, usage = min(choices, key=lambda choice: (excess(choice[1], board), size(choice)))
    return {buffer.name: impl for buffer, impl in zip(PLACED, chosen, strict=True)}, usage


def holds_maps(array: Array, board: Board) -> bool:
    """Return whether the map buffers of ``array`` alone, without the rest of the design, fit the board."""
    return any(used_by(MAP_BUFFERS, array, impl, board).fits(board) for impl in impls(MAP_BUFFERS, board))


def excess(usage: Usage, board: Board) -> float:
    """Return the largest used share of any board resource. It is above 1 if the design does not fit."""
    resources = board.resources
    pairs = (
        (usage.dsp, resources.dsp),
        (usage.bram36, resources.bram36),
        (usage.uram, resources.uram),
        (usage.lut, resources.lut),
        (usage.lutram, resources.lutram),
    )
    return max(count / max(1, limit) for count, limit in pairs)


# --- a grid of arrays ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Choice:
    """One primitive for one buffer, with its number of units and area for each array of a grid.

    Attributes:
        resources: The names of the board's resources that one unit takes.
        count: The number of units of the primitive; above the board's total if the choice is not allowed.
        area: Area of these units, in the unit of ``area``; with the penalty if the buffer has other choices.
    """

    resources: tuple[str, ...]
    count: Numbers
    area: Numbers


def _choice(buffer: Buffer, grid: Array, impl: str, board: Board) -> _Choice:
    resources = RESOURCES[impl]
    size = np.frompyfunc(lambda bits, depth: units(impl, int(bits), int(depth), board.family), 2, 1)
    count = np.asarray(size(buffer.bits(grid), buffer.depth(grid)) * np.asarray(buffer.count(grid)), np.int64)
    count = np.asarray(limit_lut_products(impl, count, grid, board), np.int64)
    return _Choice(resources, count, count * getattr(unit_areas(board), resources[0]))


def _choices(buffer: Buffer, grid: Array, board: Board) -> list[_Choice]:
    choices = [_choice(buffer, grid, impl, board) for impl in impls(buffer, board)]
    penalties = [_penalty(impl, np.asarray(buffer.depth(grid))) for impl in impls(buffer, board)]
    return [replace(one, area=one.area + penalty) for one, penalty in zip(choices, penalties, strict=True)]


def least_areas(grid: Array, board: Board) -> Numbers:
    """Return, per array of a grid, the least ``placed_area`` of any assignment of primitives that fits the board, or
    NEVER if none fits.

    Args:
        grid: An array whose numbers are integers, or numpy grids of integers that broadcast together.
        board: The board that must hold the array.
    """
    room = _fixed_room(grid, board)
    unit = unit_areas(board)
    no_choice = np.asarray(grid.mac_dsps * unit.dsp + fabric(grid).lut * unit.lut, np.int64)
    for buffer in fixed(grid):
        no_choice = no_choice + _choice(buffer, grid, buffer.impls[0], board).area
    options = [_choices(buffer, grid, board) for buffer in PLACED]
    smallest = [np.minimum.reduce(np.broadcast_arrays(*(c.area for c in choices))) for choices in options]
    total = np.asarray(sum(smallest, no_choice), np.int64)
    remaining = {name: np.broadcast_to(n, total.shape) for name, n in _room_after_smallest(room, options).items()}
    fits = np.logical_and.reduce([n >= 0 for n in remaining.values()])
    best = np.where(fits, total, NEVER)
    _enumerate(options, {name: np.broadcast_to(n, total.shape) for name, n in room.items()}, no_choice, best)
    return best


def _fixed_room(grid: Array, board: Board) -> dict[str, Numbers]:
    """Return the amount of each board resource that is left for buffers with a choice, after all parts without one."""
    resources = board.resources
    room: dict[str, Any] = {"dsp": resources.dsp - grid.mac_dsps, "lut": resources.lut - fabric(grid).lut}
    room |= {"bram36": resources.bram36, "uram": resources.uram, "lutram": resources.lutram}
    for buffer in fixed(grid):
        choice = _choice(buffer, grid, buffer.impls[0], board)
        room |= {name: room[name] - choice.count for name in choice.resources}
    return {name: np.asarray(n, np.int64) for name, n in room.items()}


def _room_after_smallest(room: Mapping[str, Numbers], options: Sequence[Sequence[_Choice]]) -> dict[str, Numbers]:
    """Return the amount of each board resource that is left if every buffer takes its primitive of least area."""
    remaining = dict(room)
    for choices in options:
        areas = np.stack(np.broadcast_arrays(*(c.area for c in choices)))
        smallest = areas.argmin(axis=0)
        for index, choice in enumerate(choices):
            for name in choice.resources:
                remaining[name] = remaining[name] - np.where(smallest == index, choice.count, 0)
    return remaining


# --- branch and bound where the smallest do not fit ----------------------------------------------------------------


def _enumerate(
    options: Sequence[Sequence[_Choice]], room: Mapping[str, Numbers], fixed: Numbers, best: Numbers
) -> None:
    """Search all assignments of primitives for the arrays that are still NEVER, and write their least area into
    ``best``.

    Cells in which the parts without a choice exceed the board are skipped.

    Args:
        options: The choices for each buffer.
        room: What the buffers may take of each resource.
        fixed: The area of everything that has no choice.
        best: The least area per cell, which is changed in place.
    """
    cells = np.nonzero((best == NEVER) & np.logical_and.reduce([n >= 0 for n in room.values()]))
    if not cells[0].size:
        return

    def flat(numbers: Numbers) -> Numbers:
        return np.asarray(np.broadcast_to(numbers, best.shape)[cells], np.int64)

    demands = [[_Choice(c.resources, flat(c.count), flat(c.area)) for c in choices] for choices in options]
    demands.sort(key=lambda choices: -int(min(c.area.sum() for c in choices)))
    smallest = [np.minimum.reduce([c.area for c in choices]) for choices in demands]
    areas_after = [sum(smallest[index + 1 :], np.zeros_like(smallest[0])) for index in range(len(smallest))]
    stages = [_Stage(choices, np.asarray(area)) for choices, area in zip(demands, areas_after, strict=True)]
    areas = np.full(cells[0].size, NEVER, np.int64)
    _branch(stages, {name: flat(n) for name, n in room.items()}, flat(fixed), np.arange(areas.size), areas)
    best[cells] = areas


@dataclass(frozen=True, eq=False)
class _Stage:
    """One level of the branch and bound: a buffer with its possible primitives.

    Attributes:
        choices: The primitives that the buffer can be built from.
        area_after: A lower bound of the area of all buffers that are decided later, from the smallest choice of each.
    """

    choices: Sequence[_Choice]
    area_after: Numbers


def _branch(
    stages: Sequence[_Stage],
    room: Mapping[str, Numbers],
    spent: Numbers,
    cells: npt.NDArray[np.intp],
    areas: Numbers,
) -> None:
    """Write the least area over all primitives of the remaining buffers into ``areas``, for the given arrays of the
    grid.

    Args:
        stages: The buffers that have no choice yet.
        room: The units of each resource left over, per cell of ``cells``.
        spent: The area so far, per cell of ``cells``.
        cells: Indices into ``areas``.
        areas: The least area so far, which is changed in place.
    """
    if not stages:
        areas[cells] = np.minimum(areas[cells], spent)
        return
    stage, *later = stages
    for choice in sorted(stage.choices, key=lambda c: int(c.area[cells].sum())):
        count, area_so_far = choice.count[cells], spent + choice.area[cells]
        promising = area_so_far + stage.area_after[cells] < areas[cells]
        for name in choice.resources:
            promising &= count <= room[name]
        if promising.any():
            remaining = {name: (n - count if name in choice.resources else n)[promising] for name, n in room.items()}
            _branch(later, remaining, area_so_far[promising], cells[promising], areas)
