"""The best candidate of one geometry, over numpy grids of all arrays, buffer depths and tilings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.progress import Progress, silent
from scheduler.hardware.arithmetic import NEVER
from scheduler.systolic.array import Array
from scheduler.systolic.model.arrays import Numbers
from scheduler.systolic.search.costs import LayerCosts, geometry_costs
from scheduler.systolic.search.depths import Depths, areas, arrays_within, useful_depths
from scheduler.systolic.search.task import Task, arrays_of, map_depths, stays_at
from scheduler.systolic.tiling import Tiling

_BYTES = 32  # bits of the byte count in a combined key: cycles first, then bytes
_MAX_BYTES = (1 << _BYTES) - 1


@dataclass(frozen=True)
class Candidate:
    """The best array and tilings of one geometry, with the numbers that the search minimises.

    Attributes:
        key: The numbers that are minimised, the most important first.
        array: The array.
        tilings: The tiling of each layer.
    """

    key: tuple[int, ...]
    array: Array
    tilings: tuple[Tiling, ...]


@dataclass(frozen=True, eq=False)
class _Cells:
    """All arrays of one geometry with every combination of buffer depths (a *cell* is one of them), with their costs
    and areas.

    Attributes:
        task: The geometry to price.
        arrays: The arrays, which differ only in PERIPHERALS.
        layers: The modelled costs of the layers.
        depths: The depths of the buffers.
        areas: Area per cell, (arrays, depths per buffer…). NEVER if the cell does not fit the board.
    """

    task: Task
    arrays: Sequence[Array]
    layers: Sequence[LayerCosts]
    depths: Depths
    areas: Numbers

    def candidate(self, key: tuple[int, ...], cell: tuple[int, ...], tilings: tuple[Tiling, ...]) -> Candidate:
        """Return the array of ``cell`` with the given tilings as a candidate of the search."""
        return Candidate(key, self.depths.sized(self.arrays[cell[0]], cell), tilings)

    def least_keys(self, layer: LayerCosts, keys: Numbers) -> Numbers:
        """Return, per cell (array and buffer depths), the least of ``keys`` over the layer's tilings that fit it, or
        NEVER.

        Args:
            layer: The layer.
            keys: The key of each of its tilings, (arrays, tilings).
        """
        table = np.full((keys.shape[0], *self.depths.counts), NEVER, np.int64)
        for index, needs in enumerate(layer.needs):
            column: tuple[Any, ...] = (slice(None), *self.depths.cell_of(needs))
            cell = table[column]
            np.minimum(cell, keys[:, index], out=cell)
        for axis in range(1, table.ndim):
            np.minimum.accumulate(table, axis=axis, out=table)
        return table


def solve(task: Task, progress: Progress = silent) -> tuple[Candidate | None, int]:
    """Return the best array and tilings of one geometry that beat ``task.best``, or None, and the number of priced
    arrays.

    Args:
        task: The geometry.
        progress: Called with the number of layers that are priced. The count restarts at each depth of the map buffers.
    """
    arrays = arrays_within(task, arrays_of(task))
    if not arrays:
        return None, 0
    costs = geometry_costs(task, arrays)
    best, count = None, 0
    sizes = map_depths(task)
    # The deepest buffers keep the most maps on chip. Their schedules are the fastest, and rule out most of the others.
    for number, map_depth in enumerate(reversed(sizes), 1):
        buffers = f", size {number} of {len(sizes)} of map buffers" if len(sizes) > 1 else ""

        def report_layers(words: str, buffers: str = buffers) -> None:
            progress(words + buffers)

        left, layers = costs.layers(stays_at(task, map_depth), task.best, report_layers)
        if not left:
            continue
        candidate, priced = _solve_with(task, [replace(array, map_depth=map_depth) for array in left], layers)
        count += priced
        if candidate is not None:
            best, task = candidate, replace(task, best=_just_above(candidate.key))
    return best, count


def _just_above(key: tuple[int, ...]) -> tuple[int, ...]:
    """Return the smallest key that is worse than ``key``, so that shallower map buffers win if they are as good."""
    return (*key[:-1], key[-1] + 1)


def _solve_with(task: Task, arrays: Sequence[Array], layers: Sequence[LayerCosts]) -> tuple[Candidate | None, int]:
    """Return the best candidate and the number of priced arrays, for arrays whose map buffers have one given depth."""
    depths = useful_depths(task.space, layers)
    cells = _Cells(task, arrays, layers, depths, areas(arrays, depths, task.board))
    count = int((cells.areas < NEVER).sum())
    if count == 0:
        return None, 0
    return (_fewest_bytes if task.goal.objective == "ddr" else _fewest_cycles)(cells), count


def _fewest_cycles(cells: _Cells) -> Candidate | None:
    """Return the candidate with the fewest cycles or the smallest area: for the objectives "fps" and "resources".

    In each cell, each layer takes the tiling with its fewest cycles.
    """
    task = cells.task
    cycles, traffic = np.zeros(cells.areas.shape, np.int64), np.zeros(cells.areas.shape, np.int64)
    possible = cells.areas < NEVER
    for layer in cells.layers:
        best = cells.least_keys(layer, (layer.cycles << _BYTES) | np.minimum(layer.bytes, _MAX_BYTES)[None, :])
        possible &= best < NEVER
        cycles += best >> _BYTES
        traffic += best & _MAX_BYTES
    possible &= cycles <= task.goal.cycle_budget(task.ddr)
    if not possible.any():
        return None
    by_area = task.goal.objective == "resources"
    parts = (cells.areas, cycles, traffic) if by_area else (cycles, cells.areas, traffic)
    cell = _first(possible, parts)
    key = tuple(int(part[cell]) for part in parts)
    if task.best is not None and key >= task.best:
        return None
    return cells.candidate(key, cell, _fastest_tilings(cells, cell))


def _first(possible: npt.NDArray[np.bool_], parts: Sequence[Numbers]) -> tuple[int, ...]:
    """Return the cell among those in ``possible`` whose numbers ``parts`` are smallest, compared from the first on."""
    mask = possible
    for part in parts:
        mask = mask & (part == part[mask].min())
    return tuple(int(index) for index in np.argwhere(mask)[0])


def _fastest_tilings(cells: _Cells, cell: tuple[int, ...]) -> tuple[Tiling, ...]:
    """Return each layer's tiling with the fewest cycles in a cell (array and depths), and among equal ones the fewest
    DDR bytes."""
    chosen = []
    for layer in cells.layers:
        cycles = layer.cycles[cell[0]]
        fitting = cells.depths.fitting(layer, cell)
        chosen.append(layer.tilings[min(fitting, key=lambda index: (int(cycles[index]), int(layer.bytes[index])))])
    return tuple(chosen)


# --- least bytes at a frame rate: layers trade cycles against bytes -----------------------------------------------


def _fewest_bytes(cells: _Cells) -> Candidate | None:
    """Return the candidate with the fewest DDR bytes at the required frame rate: for the objective "ddr".

    Cells are visited in ascending order of a lower bound of their bytes. For each cell, the exact Pareto front of
    cycles and bytes is computed.
    """
    task, budget = cells.task, cells.task.goal.cycle_budget(cells.task.ddr)
    traffic, cycles = np.zeros(cells.areas.shape, np.int64), np.zeros(cells.areas.shape, np.int64)
    for layer in cells.layers:
        layer_bytes = np.broadcast_to(layer.bytes, layer.cycles.shape)
        traffic = np.minimum(NEVER, traffic + cells.least_keys(layer, layer_bytes))
        cycles = np.minimum(NEVER, cycles + cells.least_keys(layer, layer.cycles))
    possible = (cells.areas < NEVER) & (traffic < NEVER) & (cycles <= budget)
    best: Candidate | None = None
    bound = task.best
    order = sorted(map(tuple, np.argwhere(possible).tolist()), key=lambda cell: (int(traffic[cell]), int(cycles[cell])))
    for cell in order:
        if bound is not None and (int(traffic[cell]), int(cycles[cell])) > bound[:2]:
            break
        point = _front_point(cells, cell, budget)
        if point is None:
            continue
        key = (point.bytes, point.cycles, int(cells.areas[cell]))
        if bound is None or key < bound:
            bound, best = key, cells.candidate(key, cell, point.tilings)
    return best


@dataclass(frozen=True)
class _Point:
    """Tilings of the first layers of a network, with their total DDR bytes and cycles."""

    bytes: int
    cycles: int
    tilings: tuple[Tiling, ...]


def _front_point(cells: _Cells, cell: tuple[int, ...], budget: int) -> _Point | None:
    """Return the tilings of all layers in a cell with the fewest DDR bytes within ``budget`` cycles, or None.

    The Pareto fronts of the layers are merged one after the other.
    """
    front = [_Point(0, 0, ())]
    for layer in cells.layers:
        cycles = layer.cycles[cell[0]]
        undominated = _undominated(layer, cycles, cells.depths.fitting(layer, cell))
        points = [
            _Point(
                point.bytes + int(layer.bytes[index]),
                point.cycles + int(cycles[index]),
                (*point.tilings, layer.tilings[index]),
            )
            for point in front
            for index in undominated
        ]
        front = []
        for point in sorted(points, key=lambda point: (point.bytes, point.cycles)):
            if point.cycles <= budget and (not front or point.cycles < front[-1].cycles):
                front.append(point)
    return front[0] if front else None


def _undominated(layer: LayerCosts, cycles: Numbers, fitting: Sequence[int]) -> list[int]:
    """Return a layer's tilings, as indices, that no other tiling beats in both DDR bytes and cycles, the fewest bytes
    first."""
    front: list[int] = []
    for index in sorted(fitting, key=lambda index: (int(layer.bytes[index]), int(cycles[index]))):
        if not front or cycles[index] < cycles[front[-1]]:
            front.append(index)
    return front
