"""Cycles and bytes of every tiling of every layer, on all arrays of one geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from boards.progress import Progress, silent
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.array import Array
from scheduler.systolic.model.arrays import Numbers, array_column
from scheduler.systolic.model.cost import layer_cycles
from scheduler.systolic.search.bounds import least_bytes, least_cycles
from scheduler.systolic.search.task import Task, moved_bytes, tilings_of
from scheduler.systolic.shape import LayerShape, steps_after, with_maps_on_chip
from scheduler.systolic.tiling import BufferNeeds, Tiling


@dataclass(frozen=True, eq=False)
class LayerCosts:
    """The modelled cycles and DDR bytes of one layer for all arrays of one geometry and all tilings.

    Attributes:
        tilings: The tilings that fit the deepest buffers of the search space.
        needs: The buffer depths that each tiling needs.
        cycles: The layer's cycles, (arrays, tilings).
        bytes: The layer's DDR bytes, (tilings,).
    """

    tilings: tuple[Tiling, ...]
    needs: tuple[BufferNeeds, ...]
    cycles: Numbers
    bytes: Numbers


@dataclass(frozen=True, eq=False)
class GeometryCosts:
    """The modelled costs of all layers on the arrays of one geometry, cached per choice of maps on chip.

    Attributes:
        task: The geometry and its network.
        arrays: The arrays.
        priced: The costs so far, per layer index and whether the maps that it reads, writes and adds are on chip.
    """

    task: Task
    arrays: tuple[Array, ...]
    priced: dict[tuple[int, bool, bool, bool], LayerCosts]

    def layers(
        self, on_chip: tuple[bool, ...], best: tuple[int, ...] | None, progress: Progress = silent
    ) -> list[LayerCosts]:
        """Return the costs of all layers, or an empty list if no array of the geometry can meet the goal and beat the
        best schedule.

        It cannot win if no tiling of a layer fits, if no candidate can beat ``best``, or if the lower bounds exceed the
        cycles that the goal allows. The layers with the fewest
        column cuts are priced first, and the others count with their lower bounds. A few layers often show that the
        geometry cannot win.

        Args:
            on_chip: Whether the output map of each layer stays on chip.
            best: The key to beat, or None. Only its first number counts here: the cycles, or the bytes for the
                objective "ddr".
            progress: Called with the number of layers that are priced.
        """
        task, network = replace(self.task, best=best), replace(self.task.network, may_stay=on_chip)
        shapes = with_maps_on_chip(network.shapes, on_chip)
        cycles = least_cycles(task.geometry, network, task.ddr, task.space)
        traffic = least_bytes(task.geometry, network)
        costs: dict[int, LayerCosts] = {}
        order = sorted(range(len(shapes)), key=lambda index: (len(network.cuts[index]), -cycles[index]))
        for number, index in enumerate(order):
            progress(f"{number} of {len(shapes)} layers")
            layer = self._layer(index, shapes[index])
            if not layer.tilings:
                return []
            cycles[index], traffic[index] = int(layer.cycles.min()), int(layer.bytes.min())
            if _cannot_beat(task, sum(cycles), sum(traffic)):
                return []
            costs[index] = layer
        return [costs[index] for index in range(len(shapes))]

    def _layer(self, index: int, shape: LayerShape) -> LayerCosts:
        key = (index, shape.from_chip, shape.to_chip, shape.added_from_chip)
        if key not in self.priced:
            self.priced[key] = self._price(index, shape)
        return self.priced[key]

    def _price(self, index: int, shape: LayerShape) -> LayerCosts:
        task = self.task
        next_steps = steps_after(task.network.shapes, index)
        tilings, needs = tilings_of(task, shape, task.network.cuts[index], next_steps)
        if not tilings:
            return LayerCosts((), (), np.zeros((len(self.arrays), 0), np.int64), np.zeros(0, np.int64))
        alike = replace(shape, name="", reads=-1, adds=-1)  # equal layers share a cache entry
        grid = _cycles(self.arrays, alike, tilings, next_steps, task.ddr, index == 0)
        traffic = [moved_bytes(task.geometry, task.network.bits, shape, tiling) for tiling in tilings]
        return LayerCosts(tilings, needs, grid, np.array(traffic, np.int64))


@lru_cache(maxsize=1024)
def _cycles(
    arrays: tuple[Array, ...],
    shape: LayerShape,
    tilings: tuple[Tiling, ...],
    next_steps: int,
    ddr: DdrTiming,
    first: bool,
) -> Numbers:
    """Return a layer's modelled cycles under each array and tiling, (arrays, tilings), from a cache.

    Many networks have equal layers. The search for the smallest area among the fastest schedules prices the same layers
    as the search before it.
    """
    cycles = layer_cycles(array_column(arrays), shape, tilings, next_steps, ddr, first).total
    return np.broadcast_to(cycles, (len(arrays), len(tilings)))


def geometry_costs(task: Task, arrays: Sequence[Array]) -> GeometryCosts:
    """Return an empty cache for the layers' costs on ``arrays`` of the task's geometry. No layer is priced yet."""
    return GeometryCosts(task, tuple(arrays), {})


def _cannot_beat(task: Task, cycles: int, traffic: int) -> bool:
    """Return whether a schedule of at least these cycles and DDR bytes misses the goal or is worse than the best so
    far."""
    if cycles > task.goal.cycle_budget(task.ddr):
        return True
    if task.best is None or task.goal.objective == "resources":
        return False
    return (traffic if task.goal.objective == "ddr" else cycles) > task.best[0]
