"""The depths of buffers that matter for one geometry, and the area of arrays with these depths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boards.board import Board
from scheduler.hardware.arithmetic import NEVER
from scheduler.systolic.area.placement import least_areas
from scheduler.systolic.array import Array
from scheduler.systolic.model.arrays import PERIPHERALS, Numbers
from scheduler.systolic.needs import SEARCHED, fits_depths
from scheduler.systolic.search.costs import LayerCosts
from scheduler.systolic.search.space import Space
from scheduler.systolic.search.task import Task, map_depths, stays_at, tilings_of
from scheduler.systolic.shape import steps_after, with_maps_on_chip
from scheduler.systolic.tiling import BufferNeeds


@dataclass(frozen=True, eq=False)
class Depths:
    """The buffer depths that a search tries. A *cell* is one combination: the index of an array, and the index of a
    depth per buffer.

    Attributes:
        steps: The depths of each buffer of SEARCHED, in ascending order.
    """

    steps: tuple[tuple[int, ...], ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of depths that are tried per buffer."""
        return tuple(map(len, self.steps))

    def sized(self, array: Array, cell: tuple[int, ...]) -> Array:
        """Return the array with the buffer depths of ``cell``."""
        numbers: dict[str, Any] = dict(zip(SEARCHED, self._at(cell), strict=True))
        return replace(array, **numbers)

    def _at(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(steps[index] for steps, index in zip(self.steps, cell[1:], strict=True))

    def cell_of(self, needs: BufferNeeds) -> tuple[int, ...]:
        """Return, per buffer, the index of the smallest depth that is enough for ``needs``."""
        pairs = zip(self.steps, SEARCHED, strict=True)
        return tuple(int(np.searchsorted(steps, getattr(needs, name))) for steps, name in pairs)

    def fitting(self, layer: LayerCosts, cell: tuple[int, ...]) -> list[int]:
        """Return the indices of the layer's tilings for which the buffer depths of ``cell`` are enough."""
        depths = self._at(cell)
        return [index for index, needs in enumerate(layer.needs) if fits_depths(needs, depths)]


def useful_depths(space: Space, layers: Sequence[LayerCosts]) -> Depths:
    """Return the buffer depths to try: all of the space, but per buffer only up to the first that is enough for every
    tiling."""

    def up_to(name: str) -> tuple[int, ...]:
        depths = space.depths(name)
        deepest = max(getattr(needs, name) for layer in layers for needs in layer.needs)
        enough = next((index for index, depth in enumerate(depths) if depth >= deepest), len(depths) - 1)
        return depths[: enough + 1]

    return Depths(tuple(map(up_to, SEARCHED)))


def areas(arrays: Sequence[Array], depths: Depths, board: Board) -> Numbers:
    """Return the least board area of each array with each combination of depths, (arrays, depths per buffer…); NEVER if
    it does not fit.

    Args:
        arrays: Arrays that differ only in PERIPHERALS.
        depths: The depths of their buffers.
        board: The board.
    """

    def along(axis: int, numbers: Iterable[int]) -> Any:
        return np.array(list(numbers), np.int64).reshape([-1 if dimension == axis else 1 for dimension in range(4)])

    varied = {name: along(0, (getattr(array, name) for array in arrays)) for name in PERIPHERALS}
    varied |= {
        name: along(axis, steps) for axis, (name, steps) in enumerate(zip(SEARCHED, depths.steps, strict=True), 1)
    }
    return least_areas(replace(arrays[0], **varied), board)


def arrays_within(task: Task, arrays: list[Array]) -> list[Array]:
    """Return the arrays that fit the board with the smallest buffers in which every layer has a tiling.

    If the goal is the smallest area, an array with these buffers must also not exceed the area of the best candidate.
    """
    if not arrays:
        return []
    limit = task.best[0] if task.best is not None and task.goal.objective == "resources" else NEVER - 1
    smallest = np.full(len(arrays), NEVER, np.int64)
    for map_depth in map_depths(task):
        depths = _least_depths(task, stays_at(task, map_depth))
        if depths is not None:
            sized = [replace(array, map_depth=map_depth) for array in arrays]
            smallest = np.minimum(smallest, areas(sized, depths, task.board).reshape(-1))
    return [array for array, area in zip(arrays, smallest, strict=True) if area <= limit]


def _least_depths(task: Task, on_chip: Sequence[bool]) -> Depths | None:
    """Return, per buffer, the smallest depth that is enough for one tiling of every layer, or None if there is none.

    None means that no tiling of some layer fits the deepest buffers of the space.
    """
    shapes, space = with_maps_on_chip(task.network.shapes, on_chip), task.space
    layers = []
    for index, (shape, cuts) in enumerate(zip(shapes, task.network.cuts, strict=True)):
        _, needs = tilings_of(task, shape, cuts, steps_after(shapes, index))
        if not needs:
            return None
        layers.append(needs)

    def shallowest(name: str) -> tuple[int, ...]:
        required = max(min(getattr(needs, name) for needs in layer) for layer in layers)
        return (next(depth for depth in space.depths(name) if depth >= required),)

    return Depths(tuple(map(shallowest, SEARCHED)))
