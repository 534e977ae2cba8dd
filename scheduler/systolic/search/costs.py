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
    """One layer's tilings on one geometry. needs: of each tiling; cycles: [arrays, tilings]; bytes: [tilings]."""

    tilings: tuple[Tiling, ...]
    needs: tuple[BufferNeeds, ...]
    cycles: Numbers
    bytes: Numbers


@dataclass(frozen=True, eq=False)
class GeometryCosts:
    """Prices layers on arrays of a geometry; each once, wherever the layer's maps lie.

    priced: by the layer's index, and whether the maps that it reads, writes and adds are on chip.
    """

    task: Task
    arrays: tuple[Array, ...]
    priced: dict[tuple[int, bool, bool, bool], LayerCosts]

    def layers(
        self, on_chip: tuple[bool, ...], best: tuple[int, ...] | None, tell: Progress = silent
    ) -> list[LayerCosts]:
        """Every layer where these maps stay on chip; none where no tiling of a layer fits, or where they cannot beat
        ``best``. That often shows after the layers of few tilings: the others count with what they cannot go below."""
        task, network = replace(self.task, best=best), replace(self.task.network, may_stay=on_chip)
        shapes = with_maps_on_chip(network.shapes, on_chip)
        cycles = least_cycles(task.geometry, network, task.ddr, task.space)
        traffic = least_bytes(task.geometry, network)
        costs: dict[int, LayerCosts] = {}
        order = sorted(range(len(shapes)), key=lambda index: (len(network.cuts[index]), -cycles[index]))
        for number, index in enumerate(order):
            tell(f"{number} of {len(shapes)} layers")
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
        alike = replace(shape, name="", reads=-1, adds=-1)  # whatever it is called, and whoever writes what it reads
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
    """[arrays, tilings] of a layer. Many networks have layers that are alike, and a search for the least area among the
    fastest prices what the search before it has priced."""
    cycles = layer_cycles(array_column(arrays), shape, tilings, next_steps, ddr, first).total
    return np.broadcast_to(cycles, (len(arrays), len(tilings)))


def geometry_costs(task: Task, arrays: Sequence[Array]) -> GeometryCosts:
    """``arrays`` of the task's geometry, of which no layer is priced yet."""
    return GeometryCosts(task, tuple(arrays), {})


def _cannot_beat(task: Task, cycles: int, traffic: int) -> bool:
    """Return whether no schedule with at least so many cycles and bytes of traffic beats the best."""
    if cycles > task.goal.cycle_budget(task.ddr):
        return True
    if task.best is None or task.goal.objective == "resources":
        return False
    return (traffic if task.goal.objective == "ddr" else cycles) > task.best[0]
