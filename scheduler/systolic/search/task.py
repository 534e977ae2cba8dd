"""One geometry of a search: the layers as numbers, the arrays of the geometry, and the tilings of the layers."""

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
from scheduler.systolic.map_buffers import Room, Stay, choose_maps_on_chip, stays_of
from scheduler.systolic.model.cost import layer_traffic
from scheduler.systolic.needs import SEARCHED, fits_depths, least_units
from scheduler.systolic.search.space import Geometry, Goal, Space, legal, weight_words
from scheduler.systolic.shape import LayerShape, avoided_ddr_words, shapes_of, with_maps_on_chip
from scheduler.systolic.tiling import BufferNeeds, ColumnTiles, Tiling, buffer_needs, column_cuts, map_words, tilings
from scheduler.systolic.workload import Workload


@dataclass(frozen=True)
class NetworkShapes:
    """The sizes and possible column cuts of a network's layers on arrays with equal columns and lanes.

    It consists of numbers only, so that it is cheap to send to another process.

    Attributes:
        shapes: The sizes of the layers.
        cuts: The ways to cut each layer into column tiles.
        may_stay: Whether each layer's output map may stay on chip.
        stays: The conditions per layer under which its map can stay on chip.
        bits: Bits of a value in a lane.
    """

    shapes: tuple[LayerShape, ...]
    cuts: tuple[tuple[ColumnTiles, ...], ...]
    may_stay: tuple[bool, ...]
    stays: tuple[Stay, ...]
    bits: int = 8


@dataclass(frozen=True, eq=False)
class Task:
    """The pricing of one geometry (rows × columns × lanes) in a search: all that a worker process needs for it.

    Attributes:
        geometry: The numbers of rows, columns and lanes.
        network: The layers on arrays of its columns and lanes.
        board: The board.
        ddr: The DDR's timing at the clock of the search.
        goal: The goal of the search, with frame rates in whole batches.
        space: The space of the search.
        best: The key that a candidate must beat, or None.
    """

    geometry: Geometry
    network: NetworkShapes
    board: Board
    ddr: DdrTiming
    goal: Goal
    space: Space
    best: tuple[int, ...] | None = None


def network_shapes(workload: Workload, width: tuple[int, int], space: Space) -> NetworkShapes:
    """Return the sizes and column cuts of the layers of ``workload`` on arrays of ``width``, which is (columns,
    lanes)."""
    network, layers = workload.network, workload.layers
    array, stays = Array(2, *width, bits=space.bits), stays_of(network, layers)
    return NetworkShapes(
        shapes_of(network, layers, array),
        tuple(column_cuts(network, layer, array, space.column_tiles) for layer in layers),
        tuple(stay.is_allowed for stay in stays),
        stays,
        space.bits,
    )


def arrays_of(task: Task) -> list[Array]:
    """Return the legal arrays of the task's geometry that the board has the DSPs and ports for, without buffer depths.

    The depths of their buffers are not chosen yet.
    """
    arrays = different_arrays(task.geometry, task.network, task.board, task.space)
    return [array for array in arrays if legal(array, task.board)]


def different_arrays(geometry: Geometry, network: NetworkShapes, board: Board, space: Space) -> Iterator[Array]:
    """Yield the arrays of a geometry, which differ in their ports and output stage. All have the units that the network
    needs."""
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
            **space.shared,
        )


def map_depths(task: Task) -> tuple[int, ...]:
    """Return the depths of the on-chip map buffers to try.

    They are 0, and the size of each map that may stay on chip, if the board has enough memory for such buffers alone.
    """
    if task.space.map_depths is not None:
        return task.space.map_depths
    geometry, network = task.geometry, task.network
    sizes = {map_words(s, geometry.rows) for s, may in zip(network.shapes, network.may_stay, strict=True) if may}
    array = Array(geometry.rows, geometry.columns, geometry.lanes, bits=network.bits)
    return (0, *(size for size in sorted(sizes) if holds_maps(replace(array, map_depth=size), task.board)))


def stays_at(task: Task, map_depth: int) -> tuple[bool, ...]:
    """Return for each layer whether its output map stays on chip, if the map buffers have depth ``map_depth``.

    If the two buffers cannot hold all maps that may stay, the maps that spare the most DDR words stay.
    """
    network, rows = task.network, task.geometry.rows
    sizes = tuple(map_words(shape, rows) for shape in network.shapes)
    return choose_maps_on_chip(network.stays, Room(sizes, map_depth), avoided_ddr_words(network.shapes))


def tilings_of(
    task: Task, shape: LayerShape, cuts: tuple[ColumnTiles, ...], next_steps: int
) -> tuple[tuple[Tiling, ...], tuple[BufferNeeds, ...]]:
    """Return the tilings of a layer that fit the deepest buffers of the search space, and the buffer depths that each
    needs."""
    geometry, space = task.geometry, task.space
    deepest = [space.depths(name)[-1] for name in SEARCHED]
    fitting = []
    for tiling in ordered_tilings(space, shape, geometry.rows, cuts):
        needs = buffer_needs(shape, geometry.rows, geometry.columns, tiling, next_steps)
        if fits_depths(needs, deepest):
            fitting.append((replace(tiling, on_chip=shape.to_chip), needs))
    return tuple(tiling for tiling, _ in fitting), tuple(needs for _, needs in fitting)


def ordered_tilings(space: Space, shape: LayerShape, rows: int, cuts: tuple[ColumnTiles, ...]) -> tuple[Tiling, ...]:
    """Return the legal tilings of a layer that have one of the loop orders of the search space."""
    return in_orders(space, shape, rows, tilings(shape, rows, cuts))


def in_orders(space: Space, shape: LayerShape, rows: int, every: Sequence[Tiling]) -> tuple[Tiling, ...]:
    """Return the tilings of a layer, out of ``every``, that have one of the loop orders of the search space.

    A layer of one row tile has a single order, which every space allows.
    """
    return tuple(tiling for tiling in every if tiling.order in space.orders or shape.out_height <= rows)


def moved_bytes(geometry: Geometry, bits: int, shape: LayerShape, tiling: Tiling) -> int:
    """Return the DDR bytes that one layer moves under a tiling."""
    word_bytes = geometry.lanes * bits // 8
    return layer_traffic(geometry.rows, geometry.columns, word_bytes, shape, tiling).total
