"""Cycles and bytes of every tiling of every layer, on all arrays of one geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

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

    def on(self, picked: npt.NDArray[np.bool_]) -> LayerCosts:
        """Return the costs on the arrays that are ``picked``."""
        return replace(self, cycles=self.cycles[picked])


@dataclass(frozen=True, eq=False)
class GeometryCosts:
    """The modelled costs of all layers on the arrays of one geometry, for any choice of maps on chip.

    Attributes:
        task: The geometry and its network.
        arrays: The arrays.
    """

    task: Task
    arrays: tuple[Array, ...]

    def layers(
        self, on_chip: tuple[bool, ...], best: tuple[int, ...] | None, progress: Progress = silent
    ) -> tuple[list[Array], list[LayerCosts]]:
        """Return the arrays that can meet the goal and beat the best schedule, and the costs of all layers on them.

        Both lists are empty if the geometry cannot win: no tiling of a layer fits, or no array is left. An array is
        dropped as soon as the cycles of the priced layers and the lower bounds of the others are too many. The layers
        with the fewest column cuts are priced first, because a few layers often show that most arrays cannot win.

        Args:
            on_chip: Whether the output map of each layer stays on chip.
            best: The key to beat, or None. Only its first number counts here: the cycles, or the bytes for the
                objective "ddr".
            progress: Called with the number of layers that are priced.
        """
        task, network = replace(self.task, best=best), replace(self.task.network, may_stay=on_chip)
        shapes = with_maps_on_chip(network.shapes, on_chip)
        bounds = least_cycles(task.geometry, network, task.ddr, task.space)
        traffic = least_bytes(task.geometry, network)
        arrays, cycles = list(self.arrays), np.full(len(self.arrays), sum(bounds), np.int64)
        costs: dict[int, LayerCosts] = {}
        order = sorted(range(len(shapes)), key=lambda index: (len(network.cuts[index]), -bounds[index]))
        for number, index in enumerate(order):
            progress(f"{number} of {len(shapes)} layers")
            layer = self._price(arrays, index, shapes[index])
            if not layer.tilings:
                return [], []
            traffic[index] = int(layer.bytes.min())
            cycles += layer.cycles.min(axis=1) - bounds[index]
            costs[index] = layer
            alive = _can_beat(task, cycles, sum(traffic))
            if not alive.all():
                arrays = [array for array, lives in zip(arrays, alive, strict=True) if lives]
                cycles, costs = cycles[alive], {index: layer.on(alive) for index, layer in costs.items()}
            if not arrays:
                return [], []
        return arrays, [costs[index] for index in range(len(shapes))]

    def _price(self, arrays: Sequence[Array], index: int, shape: LayerShape) -> LayerCosts:
        task = self.task
        next_steps = steps_after(task.network.shapes, index)
        tilings, needs = tilings_of(task, shape, task.network.cuts[index], next_steps)
        if not tilings:
            return LayerCosts((), (), np.zeros((len(arrays), 0), np.int64), np.zeros(0, np.int64))
        alike = replace(shape, name="", reads=-1, adds=-1)  # equal layers share a cache entry
        cycles = _cycles(arrays, alike, tilings, next_steps, task.ddr, index == 0)
        traffic = [moved_bytes(task.geometry, task.network.bits, shape, tiling) for tiling in tilings]
        return LayerCosts(tilings, needs, cycles, np.array(traffic, np.int64))


def _cycles(
    arrays: Sequence[Array],
    shape: LayerShape,
    tilings: tuple[Tiling, ...],
    next_steps: int,
    ddr: DdrTiming,
    first: bool,
) -> Numbers:
    """Return a layer's modelled cycles under each array and tiling, (arrays, tilings), from a cache.

    Many networks have equal layers. The search for the smallest area among the fastest schedules prices the same layers
    as the search before it. Arrays whose chunks all hold a whole row of the layer's output take the same cycles.
    """
    known = _known_cycles(shape, tilings, next_steps, ddr, first)
    widest = shape.saved_width
    different = [array if array.chunk <= widest else replace(array, chunk=widest) for array in arrays]
    missing = tuple(dict.fromkeys(array for array in different if array not in known))
    if missing:
        cycles = layer_cycles(array_column(missing), shape, tilings, next_steps, ddr, first).total
        known.update(zip(missing, np.broadcast_to(cycles, (len(missing), len(tilings))), strict=True))
    return np.stack([known[array] for array in different])


@lru_cache(maxsize=1024)
def _known_cycles(
    shape: LayerShape, tilings: tuple[Tiling, ...], next_steps: int, ddr: DdrTiming, first: bool
) -> dict[Array, Numbers]:
    """Return the cache of a layer's modelled cycles per array, (tilings,), which ``_cycles`` fills."""
    return {}


def geometry_costs(task: Task, arrays: Sequence[Array]) -> GeometryCosts:
    """Return an empty cache for the layers' costs on ``arrays`` of the task's geometry. No layer is priced yet."""
    return GeometryCosts(task, tuple(arrays))


def _can_beat(task: Task, cycles: Numbers, traffic: int) -> npt.NDArray[np.bool_]:
    """Return for each array whether a schedule of at least these cycles and DDR bytes can meet the goal, and is not
    worse than the best so far."""
    in_time = cycles <= task.goal.cycle_budget(task.ddr)
    if task.best is None or task.goal.objective == "resources":
        return in_time
    return in_time & ((traffic if task.goal.objective == "ddr" else cycles) <= task.best[0])
