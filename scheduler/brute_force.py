"""The search's answer the slow way: every array and every combination of ways priced by itself, for small spaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.array import Array
from scheduler.cost import Link, layer_cost
from scheduler.lower import lower
from scheduler.price import Task, arrays_of, layers_of, ways_of
from scheduler.resources import usage
from scheduler.space import Goal, Space, area, geometries
from scheduler.work import needs


def brute_force(
    network: QuantizedNetwork, board: Board, link: Link, goal: Goal, space: Space
) -> tuple[int, ...] | None:
    """The least key over every array and every combination of ways; None where nothing fits."""
    jobs = lower(network)
    best: tuple[int, ...] | None = None
    for geometry in geometries(space, board):
        layers = layers_of(network, jobs, geometry.columns, geometry.lanes, space.strips, space.bits)
        task = Task(geometry, layers, board, link, goal, space)
        for bare, *depths in product(arrays_of(task), space.row_depths, space.weight_depths, space.kept_depths):
            array = replace(bare, row_depth=depths[0], weight_depth=depths[1], kept_depth=depths[2])
            used = usage(array, board)
            if used.fits(board):
                keys = list(_keys(task, array, area(used, board)))
                best = min([*keys, best] if best else keys, default=best)
    return best


def _keys(task: Task, array: Array, size: int) -> Iterator[tuple[int, ...]]:
    budget = task.goal.most_cycles(task.link)
    for picked in product(*(_prices(task, array, index) for index in range(len(task.layers.works)))):
        cycles, moved = sum(p[0] for p in picked), sum(p[1] for p in picked)
        if cycles <= budget:
            yield _key(task.goal, cycles, moved, size)


def _prices(task: Task, array: Array, index: int) -> list[tuple[int, int]]:
    """(cycles, bytes) of every way in which one layer fits the array."""
    works = task.layers.works
    following = works[index + 1].steps if index + 1 < len(works) else 0
    found = []
    for way in ways_of(task, works[index], task.layers.cuts[index], following)[0]:
        need = needs(works[index], array.rows, array.columns, way, following)
        room = (array.row_depth, array.weight_depth, array.kept_depth)
        if all(n <= r for n, r in zip((need.row_depth, need.weight_depth, need.kept_depth), room, strict=True)):
            one = layer_cost(array, works[index], way, following, task.link, index == 0)
            found.append((one.total, one.traffic.total))
    return found


def _key(goal: Goal, cycles: int, moved: int, size: int) -> tuple[int, ...]:
    if goal.objective == "ddr":
        return (moved, cycles, size)
    return (size, cycles, moved) if goal.objective == "resources" else (cycles, size, moved)
