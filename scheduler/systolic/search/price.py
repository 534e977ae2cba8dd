"""One geometry priced whole: every knob, every size of the buffers and every way of every layer in numpy grids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boards.board import Board
from scheduler.systolic.area.placement import least_areas
from scheduler.systolic.array import Array
from scheduler.systolic.model.cost import layer_cycles
from scheduler.systolic.model.knobs import Knobs, Numbers
from scheduler.systolic.search.bounds import least_bytes, least_cycles
from scheduler.systolic.search.space import NEVER, Space
from scheduler.systolic.search.task import Task, arrays_of, map_depths, moved_bytes, stays_at, ways_of
from scheduler.systolic.work import Needs, Way, Work, following_steps, staying

KNOBS = ("save_rows", "chunk", "map_ports", "weight_ports", "weight_words")
"""Numbers that arrays of one geometry differ in, beside the depths."""

_BYTES = 32  # bits of the byte count in a combined key: cycles first, bytes where they tie
_MOST_BYTES = (1 << _BYTES) - 1


@dataclass(frozen=True)
class Candidate:
    """A frozen answer: key (least is best), array, and each layer's way."""

    key: tuple[int, ...]
    array: Array
    ways: tuple[Way, ...]


@dataclass(frozen=True, eq=False)
class _Layer:
    """One layer's ways on one geometry, [knobs, ways] and [ways]."""

    ways: tuple[Way, ...]
    needs: tuple[Needs, ...]
    cycles: Numbers
    bytes: Numbers


@dataclass(frozen=True, eq=False)
class _Grid:
    """Prices layers on all arrays of a geometry; each once, wherever the layer's maps lie."""

    task: Task
    knobs: Knobs
    count: int
    priced: dict[tuple[int, bool, bool], _Layer]

    def layers(self, stays: tuple[bool, ...], best: tuple[int, ...] | None) -> list[_Layer]:
        """Every layer where these maps stay on chip; none where no way of a layer fits, or where they cannot beat
        ``best``. That often shows after the layers of few ways: the others count with what they cannot go below."""
        task, layers = replace(self.task, best=best), replace(self.task.layers, stays=stays)
        works = staying(layers.works, stays)
        cycles = least_cycles(task.geometry, layers, task.ddr, task.space)
        moved = least_bytes(task.geometry, layers)
        found: dict[int, _Layer] = {}
        for index in sorted(range(len(works)), key=lambda index: (len(layers.cuts[index]), -cycles[index])):
            layer = self._layer(index, works[index])
            if not layer.ways:
                return []
            cycles[index], moved[index] = int(layer.cycles.min()), int(layer.bytes.min())
            if _cannot_beat(task, sum(cycles), sum(moved)):
                return []
            found[index] = layer
        return [found[index] for index in range(len(works))]

    def _layer(self, index: int, work: Work) -> _Layer:
        key = (index, work.from_chip, work.to_chip)
        if key not in self.priced:
            self.priced[key] = self._price(index, work)
        return self.priced[key]

    def _price(self, index: int, work: Work) -> _Layer:
        task, works = self.task, self.task.layers.works
        following = following_steps(works, index)
        found, need = ways_of(task, work, task.layers.cuts[index], following)
        if not found:
            return _Layer((), (), np.zeros((self.count, 0), np.int64), np.zeros(0, np.int64))
        cycles = layer_cycles(self.knobs, work, found, following, task.ddr, index == 0).total
        grid = np.broadcast_to(cycles, (self.count, len(found)))
        moved = np.array([moved_bytes(task.geometry, task.layers.bits, work, way) for way in found], np.int64)
        return _Layer(found, need, grid, moved)


def _grid(task: Task, arrays: Sequence[Array]) -> _Grid:
    def column(name: str) -> Numbers:
        return np.array([[getattr(a, name)] for a in arrays], np.int64)

    g = task.geometry
    knobs = Knobs(g.rows, g.columns, g.lanes, arrays[0].word_bytes, *map(column, KNOBS))
    return _Grid(task, knobs, len(arrays), {})


@dataclass(frozen=True, eq=False)
class _Depths:
    """Depths that can matter: up to the first that holds every way."""

    rows: tuple[int, ...]
    weights: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.rows), len(self.weights), len(self.kept)


def _depths(space: Space, layers: Sequence[_Layer]) -> _Depths:
    def upto(depths: tuple[int, ...], name: str) -> tuple[int, ...]:
        most = max(getattr(need, name) for layer in layers for need in layer.needs)
        enough = next((i for i, d in enumerate(depths) if d >= most), len(depths) - 1)
        return depths[: enough + 1]

    return _Depths(
        upto(space.row_depths, "row_depth"),
        upto(space.weight_depths, "weight_depth"),
        upto(space.kept_depths, "kept_depth"),
    )


def _least(layer: _Layer, depths: _Depths, keys: Numbers) -> Numbers:
    """[knobs, row depth, weight depth, kept depth]: the least key of the ways that fit; NEVER where none does."""
    table = np.full((keys.shape[0], *depths.shape), NEVER, np.int64)
    for way, need in enumerate(layer.needs):
        at = (
            int(np.searchsorted(depths.rows, need.row_depth)),
            int(np.searchsorted(depths.weights, need.weight_depth)),
            int(np.searchsorted(depths.kept, need.kept_depth)),
        )
        cell = table[:, at[0], at[1], at[2]]
        np.minimum(cell, keys[:, way], out=cell)
    for axis in (1, 2, 3):
        np.minimum.accumulate(table, axis=axis, out=table)
    return table


def _areas(arrays: Sequence[Array], depths: _Depths, board: Board) -> Numbers:
    """[knobs, depths…]: the least area of any placement, NEVER where the board holds none."""

    def axis(numbers: Iterable[int], at: int) -> Any:
        return np.array(list(numbers), np.int64).reshape([-1 if axis == at else 1 for axis in range(4)])

    knobs = {name: axis((getattr(a, name) for a in arrays), 0) for name in KNOBS}
    grid = replace(
        arrays[0],
        **knobs,
        row_depth=axis(depths.rows, 1),
        weight_depth=axis(depths.weights, 2),
        kept_depth=axis(depths.kept, 3),
    )
    return least_areas(grid, board)


def _sized(array: Array, depths: _Depths, at: tuple[int, ...]) -> Array:
    return replace(
        array, row_depth=depths.rows[at[0]], weight_depth=depths.weights[at[1]], kept_depth=depths.kept[at[2]]
    )


def solve(task: Task) -> tuple[Candidate | None, int]:
    """The best candidate of one geometry that beats ``task.best``, and how many arrays were priced."""
    arrays = _small_enough(task, arrays_of(task))
    if not arrays:
        return None, 0
    grid = _grid(task, arrays)
    best, count = None, 0
    for depth in map_depths(task):
        layers = grid.layers(stays_at(task, depth), task.best)
        if not layers:
            continue
        found, priced = _solve_with(task, [replace(array, map_depth=depth) for array in arrays], layers)
        count += priced
        if found is not None:
            best, task = found, replace(task, best=found.key)
    return best, count


def _small_enough(task: Task, arrays: list[Array]) -> list[Array]:
    """Those that the board holds with the least buffers in which every layer runs; for least resources, those that
    take no more than the best then."""
    if not arrays:
        return []
    most = task.best[0] if task.best is not None and task.goal.objective == "resources" else NEVER - 1
    least = np.full(len(arrays), NEVER, np.int64)
    for depth in map_depths(task):
        depths = _least_depths(task, stays_at(task, depth))
        if depths is not None:
            sized = [replace(array, map_depth=depth) for array in arrays]
            least = np.minimum(least, _areas(sized, depths, task.board).reshape(-1))
    return [array for array, area in zip(arrays, least, strict=True) if area <= most]


def _least_depths(task: Task, stays: Sequence[bool]) -> _Depths | None:
    """Of each buffer the least depth of the space that holds some way of every layer; None where a layer has none."""
    works, space = staying(task.layers.works, stays), task.space
    every = []
    for index, (work, choices) in enumerate(zip(works, task.layers.cuts, strict=True)):
        _, found = ways_of(task, work, choices, following_steps(works, index))
        if not found:
            return None
        every.append(found)

    def least(depths: tuple[int, ...], name: str) -> tuple[int, ...]:
        need = max(min(getattr(one, name) for one in found) for found in every)
        return (next(depth for depth in depths if depth >= need),)

    return _Depths(
        least(space.row_depths, "row_depth"),
        least(space.weight_depths, "weight_depth"),
        least(space.kept_depths, "kept_depth"),
    )


def _cannot_beat(task: Task, cycles: int, moved: int) -> bool:
    """Not where every layer by itself takes the fewest cycles, or moves the fewest bytes."""
    if cycles > task.goal.most_cycles(task.ddr):
        return True
    if task.best is None or task.goal.objective == "resources":
        return False
    return (moved if task.goal.objective == "ddr" else cycles) > task.best[0]


def _solve_with(task: Task, arrays: Sequence[Array], layers: Sequence[_Layer]) -> tuple[Candidate | None, int]:
    """The same for arrays that differ in nothing but ``KNOBS``."""
    depths = _depths(task.space, layers)
    areas = _areas(arrays, depths, task.board)
    count = int((areas < NEVER).sum())
    if count == 0:
        return None, 0
    chooser = _fewest_bytes if task.goal.objective == "ddr" else _fewest_cycles
    return chooser(task, arrays, layers, depths, areas), count


def _fewest_cycles(
    task: Task, arrays: Sequence[Array], layers: Sequence[_Layer], depths: _Depths, areas: Numbers
) -> Candidate | None:
    """fps, latency, resources: in every cell each layer takes its fewest cycles."""
    total = np.zeros(areas.shape, np.int64)
    moved = np.zeros(areas.shape, np.int64)
    possible = areas < NEVER
    for layer in layers:
        best = _least(layer, depths, (layer.cycles << _BYTES) | np.minimum(layer.bytes, _MOST_BYTES)[None, :])
        possible &= best < NEVER
        total += best >> _BYTES
        moved += best & _MOST_BYTES
    possible &= total <= task.goal.most_cycles(task.ddr)
    if not possible.any():
        return None
    order = (areas, total, moved) if task.goal.objective == "resources" else (total, areas, moved)
    at = _first(possible, order)
    key = tuple(int(part[at]) for part in order)
    if task.best is not None and key >= task.best:
        return None
    return Candidate(key, _sized(arrays[at[0]], depths, at[1:]), _chosen(layers, depths, at))


def _first(possible: np.typing.NDArray[np.bool_], order: Sequence[Numbers]) -> tuple[int, ...]:
    """Where the parts of the key are least, one after the other."""
    mask = possible
    for part in order:
        mask = mask & (part == part[mask].min())
    return tuple(int(i) for i in np.argwhere(mask)[0])


def _chosen(layers: Sequence[_Layer], depths: _Depths, at: tuple[int, ...]) -> tuple[Way, ...]:
    chosen = []
    for layer in layers:
        fitting = _fitting(layer, depths, at)
        chosen.append(layer.ways[min(fitting, key=lambda w: (int(layer.cycles[at[0], w]), int(layer.bytes[w])))])
    return tuple(chosen)


def _fitting(layer: _Layer, depths: _Depths, at: tuple[int, ...]) -> list[int]:
    room = (depths.rows[at[1]], depths.weights[at[2]], depths.kept[at[3]])
    return [
        way
        for way, need in enumerate(layer.needs)
        if need.row_depth <= room[0] and need.weight_depth <= room[1] and need.kept_depth <= room[2]
    ]


# --- least bytes at a frame rate: layers trade cycles against bytes -----------------------------------------------


def _fewest_bytes(
    task: Task, arrays: Sequence[Array], layers: Sequence[_Layer], depths: _Depths, areas: Numbers
) -> Candidate | None:
    """Cells in the order of the bytes that they cannot go below; in each the exact front of (cycles, bytes)."""
    least = np.zeros(areas.shape, np.int64)
    fastest = np.zeros(areas.shape, np.int64)
    for layer in layers:
        least = np.minimum(NEVER, least + _least(layer, depths, np.broadcast_to(layer.bytes, layer.cycles.shape)))
        fastest = np.minimum(NEVER, fastest + _least(layer, depths, layer.cycles))
    budget = task.goal.most_cycles(task.ddr)
    possible = (areas < NEVER) & (least < NEVER) & (fastest <= budget)
    best: Candidate | None = None
    bound = task.best
    for at in sorted(map(tuple, np.argwhere(possible).tolist()), key=lambda c: (int(least[c]), int(fastest[c]))):
        if bound is not None and (int(least[at]), int(fastest[at])) > bound[:2]:
            break
        point = _front_point(layers, depths, at, budget)
        if point is None:
            continue
        key = (point[0], point[1], int(areas[at]))
        if bound is None or key < bound:
            bound, best = key, Candidate(key, _sized(arrays[at[0]], depths, at[1:]), point[2])
    return best


def _front_point(
    layers: Sequence[_Layer], depths: _Depths, at: tuple[int, ...], budget: int
) -> tuple[int, int, tuple[Way, ...]] | None:
    """The least (bytes, cycles) within the budget: fronts of the layers, merged one after the other."""
    front: list[tuple[int, int, tuple[Way, ...]]] = [(0, 0, ())]
    for layer in layers:
        points = [
            (b + int(layer.bytes[w]), c + int(layer.cycles[at[0], w]), (*chosen, layer.ways[w]))
            for b, c, chosen in front
            for w in _undominated(layer, _fitting(layer, depths, at), at[0])
        ]
        front = []
        for point in sorted(points, key=lambda p: p[:2]):
            if point[1] <= budget and (not front or point[1] < front[-1][1]):
                front.append(point)
    return front[0] if front else None


def _undominated(layer: _Layer, fitting: Sequence[int], knob: int) -> list[int]:
    kept: list[int] = []
    for way in sorted(fitting, key=lambda w: (int(layer.bytes[w]), int(layer.cycles[knob, w]))):
        if not kept or layer.cycles[knob, way] < layer.cycles[knob, kept[-1]]:
            kept.append(way)
    return kept
