"""One geometry as the search gets it: its network in numbers, its arrays, and the ways of its layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.placement import holds_maps
from scheduler.systolic.array import Array
from scheduler.systolic.layers import Job
from scheduler.systolic.model.cost import layer_traffic
from scheduler.systolic.on_chip import may_stay
from scheduler.systolic.search.space import Geometry, Goal, Space, legal, weight_words
from scheduler.systolic.work import Cut, Needs, Way, Work, cuts, map_words, needs, ways, work_of


@dataclass(frozen=True)
class Layers:
    """A network on one width of array: numbers only, so that it is cheap to send to another process.

    bits: of a value in a lane. stays: of each layer's map whether it may stay on chip.
    """

    works: tuple[Work, ...]
    cuts: tuple[tuple[Cut, ...], ...]
    stays: tuple[bool, ...]
    bits: int = 8


@dataclass(frozen=True, eq=False)
class Task:
    """One geometry to price. best: the key to beat."""

    geometry: Geometry
    layers: Layers
    board: Board
    ddr: DdrTiming
    goal: Goal
    space: Space
    best: tuple[int, ...] | None = None


def layers_of(
    network: QuantizedNetwork, jobs: Sequence[Job], columns: int, lanes: int, strips: int, bits: int = 8
) -> Layers:
    """The network where an array has these columns and lanes. strips: the most that a map is cut into."""
    array = Array(2, columns, lanes, bits=bits)
    return Layers(
        tuple(work_of(network, job, array) for job in jobs),
        tuple(cuts(network, job, array, strips) for job in jobs),
        may_stay(network, jobs),
        bits,
    )


def arrays_of(task: Task) -> list[Array]:
    """Legal arrays of the geometry in all but the buffers' depths, within the board's DSPs and ports."""
    g, space = task.geometry, task.space
    tiles = max(ceil_div(w.filters, g.columns) for w in task.layers.works)
    made = (
        Array(
            g.rows,
            g.columns,
            g.lanes,
            save_rows,
            map_ports,
            weight_ports,
            chunk=chunk,
            channel_tiles=tiles,
            dsp=task.board.dsp.kind,
            bits=task.layers.bits,
            weight_words=weight_words(g, space, weight_ports),
        )
        for save_rows, map_ports, weight_ports, chunk in product(
            space.save_rows, space.map_ports, space.weight_ports, space.chunks
        )
    )
    return [a for a in made if legal(a, task.board)]


def map_depths(task: Task) -> tuple[int, ...]:
    """Depths of a map buffer: none, and each that holds one map more, where the board has the memory for it alone."""
    if task.space.map_depths is not None:
        return task.space.map_depths
    g = task.geometry
    sizes = {map_words(work, g.rows) for work, may in zip(task.layers.works, task.layers.stays, strict=True) if may}
    array = Array(g.rows, g.columns, g.lanes, bits=task.layers.bits)
    return (0, *(size for size in sorted(sizes) if holds_maps(replace(array, map_depth=size), task.board)))


def stays_at(task: Task, depth: int) -> tuple[bool, ...]:
    """Of each layer's map whether it stays in buffers of this depth: all that may and fit."""
    both = zip(task.layers.works, task.layers.stays, strict=True)
    return tuple(may and map_words(work, task.geometry.rows) <= depth for work, may in both)


def ways_of(
    task: Task, work: Work, choices: tuple[Cut, ...], following: int
) -> tuple[tuple[Way, ...], tuple[Needs, ...]]:
    """The ways that the largest buffers of the space hold."""
    g, space = task.geometry, task.space
    deepest = (space.row_depths[-1], space.weight_depths[-1], space.kept_depths[-1])
    kept = []
    for way in ways(work, g.rows, choices):
        if way.order not in space.orders and work.out_height > g.rows:
            continue
        need = needs(work, g.rows, g.columns, way, following)
        if all(n <= d for n, d in zip((need.row_depth, need.weight_depth, need.kept_depth), deepest, strict=True)):
            kept.append((replace(way, on_chip=work.to_chip), need))
    return tuple(way for way, _ in kept), tuple(need for _, need in kept)


def moved_bytes(geometry: Geometry, bits: int, work: Work, way: Way) -> int:
    """DDR bytes of one layer's way."""
    word = geometry.lanes * bits // 8
    return layer_traffic(geometry.rows, geometry.columns, word, work, way).total
