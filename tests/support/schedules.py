"""Schedules for tests that need any schedule: each layer has the first tiling that fits the array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boards.errors import UnsupportedError
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array, check
from scheduler.systolic.layers import lower
from scheduler.systolic.map_buffers import Room, choose_maps_on_chip, stays_of
from scheduler.systolic.needs import fits, least_units
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from scheduler.systolic.shape import (
    LayerShape,
    avoided_ddr_words,
    shape_of,
    shapes_of,
    steps_after,
    with_maps_on_chip,
)
from scheduler.systolic.tiling import (
    MAX_COLUMN_TILES,
    ORDERS,
    Tiling,
    buffer_needs,
    column_cuts,
    map_words,
    tilings,
)

MOST_COLUMN_TILES = 64
"""The most column tiles. They exceed the search's limit, because the arrays of tests have small row buffers."""


def first_fit(network: QuantizedNetwork, array: Array, batch: int = 1) -> SystolicSchedule:
    """Return the schedule with the fewest column tiles, overlapped if possible, in the order that streams least.

    Raises:
        UnsupportedError: A layer has no tiling that fits.
        SeveralFaultsError: The array or the format is invalid.
    """
    check(array)
    layers = lower(network, batch, array.added_maps > 0)
    chosen = []
    for layer, fitting in zip(layers, legal_tilings(network, array, batch, MOST_COLUMN_TILES), strict=True):
        if not fitting:
            raise UnsupportedError(layer.name, f"it has no tiling on the array {array}", where=network.name)
        chosen.append(_first(fitting, array.rows < shape_of(network, layer, array).out_height))
    return check_schedule(schedule_of(network, array, chosen, batch))


def legal_tilings(
    network: QuantizedNetwork,
    array: Array,
    batch: int = 1,
    most_columns: int = MAX_COLUMN_TILES,
    on_chip: Sequence[bool] = (),
) -> list[list[Tiling]]:
    """Return every tiling of each layer that fits the array's buffers, with the maps of ``on_chip`` on chip."""
    layers = lower(network, batch, array.added_maps > 0)
    shapes = with_maps_on_chip(shapes_of(network, layers, array), on_chip or [False] * len(layers))
    legal = []
    for index, (layer, shape) in enumerate(zip(layers, shapes, strict=True)):
        fitting = []
        for tiling in tilings(shape, array.rows, column_cuts(network, layer, array, most_columns)):
            needs = buffer_needs(shape, array.rows, array.columns, tiling, steps_after(shapes, index))
            if fits(needs, array):
                fitting.append(tiling)
        legal.append(fitting)
    return legal


def _first(fitting: Sequence[Tiling], several_row_tiles: bool) -> Tiling:
    """Return the first tiling: overlapped if possible, with few column tiles, in the order that streams least.

    An order with resident inputs may have up to twice the fewest column tiles.
    """
    overlapped = [tiling for tiling in fitting if tiling.overlap == several_row_tiles] or list(fitting)
    fewest = min(tiling.columns.count for tiling in overlapped)
    few = [tiling for tiling in overlapped if tiling.columns.count <= 2 * fewest]
    return min(few, key=lambda tiling: (ORDERS.index(tiling.order), tiling.columns.count))


def with_on_chip(schedule: SystolicSchedule, on_chip: Sequence[bool]) -> SystolicSchedule:
    """Return the schedule with the same tilings, and with these maps on chip."""
    pairs = zip(schedule.tilings, on_chip, strict=True)
    chosen = [replace(tiling, on_chip=stays) for tiling, stays in pairs]
    return schedule_of(schedule.network, schedule.array, chosen, schedule.batch)


def staying(network: QuantizedNetwork, layers: Sequence[Layer], array: Array) -> tuple[bool, ...]:
    """Return for each layer whether its map stays in the map buffers of ``array``.

    All maps stay that may, up to the capacity of two buffers.
    """
    shapes = shapes_of(network, layers, array)
    sizes = tuple(
        map_words(shape, array.rows) if _read_stride(shapes, shape) <= array.map_stride else array.map_depth + 1
        for shape in shapes
    )
    return choose_maps_on_chip(stays_of(network, layers), Room(sizes, array.map_depth), avoided_ddr_words(shapes))


def _read_stride(shapes: Sequence[LayerShape], written: LayerShape) -> int:
    """Return the largest stride in which the map of a layer is read."""
    alone = [shape is written for shape in shapes]
    return least_units(with_maps_on_chip(shapes, alone))["map_stride"]
