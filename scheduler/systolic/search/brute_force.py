"""The search's answer the slow way: every array and every combination of ways priced by itself, for small spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.placement import place
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.model.cost import layer_cost
from scheduler.systolic.search.space import Goal, Space, area, geometries
from scheduler.systolic.search.task import Task, arrays_of, layers_of, map_depths, stays_at, ways_of
from scheduler.systolic.work import Needs, Work, following_steps, staying


def brute_force(
    network: QuantizedNetwork, board: Board, ddr: DdrTiming, goal: Goal, space: Space, batch: int = 1
) -> tuple[int, ...] | None:
    """The least key over every array and every combination of ways; None where nothing fits."""
    jobs = lower(network, batch)
    goal = replace(goal, frames_per_second=goal.frames_per_second / batch)
    best: tuple[int, ...] | None = None
    for geometry in geometries(space, board):
        layers = layers_of(network, jobs, geometry.columns, geometry.lanes, space.strips, space.bits)
        task = Task(geometry, layers, board, ddr, goal, space)
        for bare, map_depth in product(arrays_of(task), map_depths(task)):
            works = staying(layers.works, stays_at(task, map_depth))
            prices = [_prices(task, bare, works, index) for index in range(len(works))]
            for rows, weights, kept in product(space.row_depths, space.weight_depths, space.kept_depths):
                array = replace(bare, row_depth=rows, weight_depth=weights, kept_depth=kept, map_depth=map_depth)
                used = place(array, board)[1]
                if used.fits(board):
                    keys = list(_keys(task, array, prices, area(used, board)))
                    best = min([*keys, best] if best else keys, default=best)
    return best


def _keys(task: Task, array: Array, prices: Sequence[Sequence[_Price]], size: int) -> Iterator[tuple[int, ...]]:
    budget = task.goal.most_cycles(task.ddr)
    fitting = ([price for price in layer if _fits(price.needs, array)] for layer in prices)
    for picked in product(*fitting):
        cycles, moved = sum(p.cycles for p in picked), sum(p.bytes for p in picked)
        if cycles <= budget:
            yield _key(task.goal, cycles, moved, size)


@dataclass(frozen=True)
class _Price:
    cycles: int
    bytes: int
    needs: Needs


def _fits(need: Needs, array: Array) -> bool:
    room = (array.row_depth, array.weight_depth, array.kept_depth)
    return all(n <= r for n, r in zip((need.row_depth, need.weight_depth, need.kept_depth), room, strict=True))


def _prices(task: Task, array: Array, works: Sequence[Work], index: int) -> list[_Price]:
    """Every way of one layer, each priced by itself; how deep the buffers are does not change what it costs."""
    following = following_steps(works, index)
    ways = ways_of(task, works[index], task.layers.cuts[index], following)[0]
    costs = [layer_cost(array, works[index], way, following, task.ddr, index == 0) for way in ways]
    return [_Price(one.total, one.traffic.total, one.needs) for one in costs]


def _key(goal: Goal, cycles: int, moved: int, size: int) -> tuple[int, ...]:
    if goal.objective == "ddr":
        return (moved, cycles, size)
    return (size, cycles, moved) if goal.objective == "resources" else (cycles, size, moved)
