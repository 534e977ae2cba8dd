"""The search's result computed by brute force for small spaces: every array with every combination of tilings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.placement import place, placed_area
from scheduler.systolic.array import Array
from scheduler.systolic.model.cost import layer_cost
from scheduler.systolic.needs import SEARCHED, fits_depths
from scheduler.systolic.search.problem import Problem
from scheduler.systolic.search.space import Goal
from scheduler.systolic.search.task import (
    Task,
    arrays_of,
    map_depths,
    stays_at,
    tilings_of,
)
from scheduler.systolic.shape import LayerShape, steps_after, with_maps_on_chip
from scheduler.systolic.tiling import BufferNeeds


def brute_force(problem: Problem, ddr: DdrTiming, goal: Goal) -> tuple[int, ...] | None:
    """Return the least key over every array and every combination of tilings, or None if nothing fits."""
    board, space, goal = problem.board, problem.space, goal.per_batch(problem.workload.batch)
    best: tuple[int, ...] | None = None
    for geometry in problem.geometries:
        task = Task(geometry, problem.networks[geometry.width], board, ddr, goal, space)
        for bare, map_depth in product(arrays_of(task), map_depths(task)):
            shapes = with_maps_on_chip(task.network.shapes, stays_at(task, map_depth))
            costs = [_costs(task, bare, shapes, index) for index in range(len(shapes))]
            for depths in product(*map(space.depths, SEARCHED)):
                numbers: dict[str, Any] = dict(zip(SEARCHED, depths, strict=True))
                array = replace(bare, map_depth=map_depth, **numbers)
                placement, usage = place(array, board)
                if usage.fits(board):
                    keys = list(_keys(task, array, costs, placed_area(array, board, placement)))
                    best = min([*keys, best] if best else keys, default=best)
    return best


def _keys(task: Task, array: Array, costs: Sequence[Sequence[_TilingCost]], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the key of every combination of tilings that fits the array's buffers. ``size`` is the array's area."""
    budget = task.goal.cycle_budget(task.ddr)
    depths = [getattr(array, name) for name in SEARCHED]
    fitting = ([tiling for tiling in layer if fits_depths(tiling.needs, depths)] for layer in costs)
    for combination in product(*fitting):
        cycles, traffic = sum(tiling.cycles for tiling in combination), sum(tiling.bytes for tiling in combination)
        if cycles <= budget:
            yield _key(task.goal, cycles, traffic, size)


@dataclass(frozen=True)
class _TilingCost:
    cycles: int
    bytes: int
    needs: BufferNeeds


def _costs(task: Task, array: Array, shapes: Sequence[LayerShape], index: int) -> list[_TilingCost]:
    """Return every tiling of one layer with its cost, which does not depend on the depth of the buffers."""
    next_steps = steps_after(shapes, index)
    tilings = tilings_of(task, shapes[index], task.network.cuts[index], next_steps)[0]
    costs = [layer_cost(array, shapes[index], tiling, next_steps, task.ddr, index == 0) for tiling in tilings]
    return [_TilingCost(layer.total, layer.traffic.total, layer.needs) for layer in costs]


def _key(goal: Goal, cycles: int, traffic: int, size: int) -> tuple[int, ...]:
    if goal.objective == "ddr":
        return (traffic, cycles, size)
    return (size, cycles, traffic) if goal.objective == "resources" else (cycles, size, traffic)
