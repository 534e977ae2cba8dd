"""Lower bounds of a geometry's cycles and DDR bytes, so that the search skips geometries that cannot win."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, DdrTiming, milli_cycles
from scheduler.systolic.engines.engine import Engine
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.model.passes import ROUNDED
from scheduler.systolic.search.space import Geometry, Space, weight_words
from scheduler.systolic.search.task import NetworkShapes, moved_bytes
from scheduler.systolic.shape import LayerShape, steps_after, with_maps_on_chip
from scheduler.systolic.tiling import Tiling


def least_cycles(geometry: Geometry, network: NetworkShapes, ddr: DdrTiming, space: Space) -> list[int]:
    """Return, per layer, a lower bound of its cycles on any array of the geometry under any tiling, in all frames of a
    batch.

    The first weight tile of a layer arrives during the layer before. The first weight tile of a frame arrives before
    the frame's first step.
    """
    shapes = with_maps_on_chip(network.shapes, network.may_stay)
    step_pace, engine = _step_pace(geometry, network, ddr, space), ENGINE_NAMED[space.engine]
    bounds = []
    for index, (shape, cuts) in enumerate(zip(shapes, network.cuts, strict=True)):
        row_words = min(cut.total_words for cut in cuts)
        fill = engine.least_fill(shape, geometry.rows, max(space.map_ports), row_words, ddr)
        bound = _PassBound(geometry, shape, engine, fill, step_pace, ddr)
        first, next_steps = index == 0, steps_after(shapes, index)
        if shape.repeats == 1:
            bounds.append(bound.cycles(first, next_steps))
        else:
            middle = (shape.repeats - 2) * bound.cycles(False, shape.steps)
            bounds.append(bound.cycles(first, shape.steps) + middle + bound.cycles(False, next_steps))
    return bounds


def _step_pace(geometry: Geometry, network: NetworkShapes, ddr: DdrTiming, space: Space) -> int:
    """Return the least 1/1000 cycles in which the weights of one array step arrive, over the port counts that are
    searched."""
    word_bytes = geometry.lanes * network.bits // 8

    def pace(ports: int) -> int:
        words = weight_words(geometry, space, ports)
        (milli,) = milli_cycles(((ports, words * word_bytes, BURST_WORDS),), ddr.milli_bytes)
        return geometry.columns // (ports * words) * milli

    return min(pace(ports) for ports in space.weight_ports)


@dataclass(frozen=True)
class _PassBound:
    """The lower bound of a layer's cycles on a geometry, computed as one pass over the whole layer.

    Attributes:
        geometry: The geometry.
        shape: The sizes of the layer.
        engine: The engine, which has the least cycles of each part of a pass.
        fill: The least cycles before the array's first step.
        step_pace: 1/1000 cycles in which the weights of one array step arrive.
        ddr: The DDR's timing.
    """

    geometry: Geometry
    shape: LayerShape
    engine: Engine[Any]
    fill: int
    step_pace: int
    ddr: DdrTiming

    def cycles(self, first: bool, next_steps: int) -> int:
        """Return the least cycles of a pass over the whole layer.

        After the first rows have arrived, the array computes positions × steps × tiles. It cannot begin the last weight
        tile before that tile has arrived. Meanwhile all weight tiles except the first arrive, and the first tile of the
        next pass. The pass begins and drains once.

        Args:
            first: Whether the pass is the first of the frame, and so also waits for its own first weights.
            next_steps: Steps of the next pass's first weight tile.
        """
        geometry, shape = self.geometry, self.shape
        tiles = ceil_div(shape.filters, geometry.columns)
        positions = ceil_div(shape.out_width, shape.positions)
        compute = ceil_div(shape.out_height, geometry.rows) * tiles * positions * shape.position_steps
        loaded = (tiles - 1 + first) * shape.steps
        start = max(self.fill, self._arrival(shape.steps)) if first else self.fill
        drain = self.engine.least_drain(shape, geometry.rows, self.ddr)
        end = max(start + compute, self._arrival(loaded) + shape.steps) + drain
        prefetched = self._arrival(loaded + next_steps) if next_steps else 0
        return self.engine.least_program(self.ddr) + max(end, prefetched) - ROUNDED

    def _arrival(self, steps: int) -> int:
        """Return the least cycles until the weights of ``steps`` array steps have arrived from DDR."""
        return self.engine.least_weights(steps * self.step_pace // 1000, self.ddr) if steps else 0


def least_bytes(geometry: Geometry, network: NetworkShapes) -> list[int]:
    """Return, per layer, a lower bound of its DDR bytes on any array of the geometry under any tiling.

    Every weight, every requantiser and every map that cannot stay on chip is moved once.
    """
    shapes = with_maps_on_chip(network.shapes, network.may_stay)
    return [
        min(moved_bytes(geometry, network.bits, shape, Tiling(cut, "weights-resident", True)) for cut in cuts)
        for shape, cuts in zip(shapes, network.cuts, strict=True)
    ]
