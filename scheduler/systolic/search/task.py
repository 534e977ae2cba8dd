"""One geometry as the search gets it: its network in numbers, its arrays, and the tilings of its layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from boards.board import Board
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.placement import holds_maps
from scheduler.systolic.array import Array
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.map_buffers import Room, Stay, maps_that_stay, stays_of
from scheduler.systolic.model.cost import layer_traffic
from scheduler.systolic.needs import SEARCHED, fits_depths, least_units
from scheduler.systolic.search.space import Geometry, Goal, Space, legal, weight_words
from scheduler.systolic.shape import LayerShape, shapes_of, spared_words, with_maps_on_chip
from scheduler.systolic.tiling import BufferNeeds, ColumnTiles, Tiling, buffer_needs, column_cuts, map_words, tilings
from scheduler.systolic.workload import Workload


@dataclass(frozen=True)
class NetworkShapes:
    """A network on arrays of one width: numbers alone, so that it is cheap to send to another process.

    shapes, cuts: of each layer, and into which column tiles it may be cut. may_stay: of each layer's map whether it may
    stay on chip. stays: what that depends on. bits: of a value in a lane.
    """

    shapes: tuple[LayerShape, ...]
    cuts: tuple[tuple[ColumnTiles, ...], ...]
    may_stay: tuple[bool, ...]
    stays: tuple[Stay, ...]
    bits: int = 8


@dataclass(frozen=True, eq=False)
class Task:
    """One geometry to price. best: the key to beat."""

    geometry: Geometry
    network: NetworkShapes
    board: Board
    ddr: DdrTiming
    goal: Goal
    space: Space
    best: tuple[int, ...] | None = None


def network_shapes(workload: Workload, width: tuple[int, int], space: Space) -> NetworkShapes:
    """Return the numbers of ``workload`` on arrays of these columns and lanes."""
    network, layers = workload.network, workload.layers
    array, stays = Array(2, *width, bits=space.bits), stays_of(network, layers)
    return NetworkShapes(
        shapes_of(network, layers, array),
        tuple(column_cuts(network, layer, array, space.column_tiles) for layer in layers),
        tuple(stay.may for stay in stays),
        stays,
        space.bits,
    )


def arrays_of(task: Task) -> list[Array]:
    """Legal arrays of the geometry in all but the buffers' depths, within the board's DSPs and ports."""
    arrays = different_arrays(task.geometry, task.network, task.board, task.space)
    return [array for array in arrays if legal(array, task.board)]


def different_arrays(geometry: Geometry, network: NetworkShapes, board: Board, space: Space) -> Iterator[Array]:
    """Yield the arrays of the geometry that differ in PERIPHERALS, with the units that the network needs."""
    shapes = network.shapes
    units: dict[str, Any] = {
        **least_units(with_maps_on_chip(shapes, network.may_stay)),
        "sum_bits": ENGINE_NAMED[space.engine].sum_bits(shapes),
    }
    tiles = max(ceil_div(shape.filters, geometry.columns) for shape in shapes)
    for save_rows, map_ports, weight_ports, chunk in product(
        space.save_rows, space.map_ports, space.weight_ports, space.chunks
    ):
        yield Array(
            geometry.rows,
            geometry.columns,
            geometry.lanes,
            save_rows,
            map_ports,
            weight_ports,
            chunk=chunk,
            channel_tiles=tiles,
            dsp=board.dsp.kind,
            bits=network.bits,
            weight_words=weight_words(geometry, space, weight_ports),
            **units,
            **space.of_all,
        )


def map_depths(task: Task) -> tuple[int, ...]:
    """Depths of a map buffer: none, and each that holds one map more, where the board has the memory for it alone."""
    if task.space.map_depths is not None:
        return task.space.map_depths
    geometry, network = task.geometry, task.network
    sizes = {map_words(s, geometry.rows) for s, may in zip(network.shapes, network.may_stay, strict=True) if may}
    array = Array(geometry.rows, geometry.columns, geometry.lanes, bits=network.bits)
    return (0, *(size for size in sorted(sizes) if holds_maps(replace(array, map_depth=size), task.board)))


def stays_at(task: Task, map_depth: int) -> tuple[bool, ...]:
    """Of each layer's map whether it stays in map buffers of this depth: all that may and fit, as far as two buffers
    hold them."""
    network, rows = task.network, task.geometry.rows
    sizes = tuple(map_words(shape, rows) for shape in network.shapes)
    return maps_that_stay(network.stays, Room(sizes, map_depth), spared_words(network.shapes))


def tilings_of(
    task: Task, shape: LayerShape, cuts: tuple[ColumnTiles, ...], next_steps: int
) -> tuple[tuple[Tiling, ...], tuple[BufferNeeds, ...]]:
    """The tilings that the largest buffers of the space hold, and what each needs."""
    geometry, space = task.geometry, task.space
    deepest = [space.depths(name)[-1] for name in SEARCHED]
    fitting = []
    for tiling in ordered_tilings(space, shape, geometry.rows, cuts):
        needs = buffer_needs(shape, geometry.rows, geometry.columns, tiling, next_steps)
        if fits_depths(needs, deepest):
            fitting.append((replace(tiling, on_chip=shape.to_chip), needs))
    return tuple(tiling for tiling, _ in fitting), tuple(needs for _, needs in fitting)


def ordered_tilings(space: Space, shape: LayerShape, rows: int, cuts: tuple[ColumnTiles, ...]) -> tuple[Tiling, ...]:
    """Return the tilings of a layer that keep the rules, in the orders of the space."""
    return in_orders(space, shape, rows, tilings(shape, rows, cuts))


def in_orders(space: Space, shape: LayerShape, rows: int, every: Sequence[Tiling]) -> tuple[Tiling, ...]:
    """Return the tilings that have an order of the space; with one row tile all orders are one."""
    return tuple(tiling for tiling in every if tiling.order in space.orders or shape.out_height <= rows)


def moved_bytes(geometry: Geometry, bits: int, shape: LayerShape, tiling: Tiling) -> int:
    """DDR bytes of one layer's tiling."""
    word_bytes = geometry.lanes * bits // 8
    return layer_traffic(geometry.rows, geometry.columns, word_bytes, shape, tiling).total
