"""A tiled systolic schedule: an array, and how each layer of the network is tiled on it.

This is the seam between choosing and emitting: the search, a schedule file or a test states tilings; ``schedule_of``
makes the schedule; the model prices it, the rules check it, and scheduler/systolic/program turns it into the numbers
that the engine reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.map_buffers import Room
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.shape import LayerShape, shapes_of, with_maps_on_chip
from scheduler.systolic.tiling import Tiling, map_words
from scheduler.systolic.workload import Workload, workload_of


@dataclass(frozen=True, eq=False)
class ScheduledLayer:
    """One layer on an array: what it computes, its numbers there, and how it is tiled."""

    layer: Layer
    shape: LayerShape
    tiling: Tiling
    array: Array

    @property
    def row_tiles(self) -> int:
        return ceil_div(self.shape.out_height, self.array.rows)

    @property
    def channel_tiles(self) -> int:
        return ceil_div(self.shape.filters, self.array.columns)

    @property
    def cycles(self) -> int:
        """Cycles of the array alone, with no stall, fill or drain: positions × steps × tiles."""
        positions = sum(ceil_div(tile.columns, self.shape.positions) for tile in self.tiling.columns.tiles)
        return self.row_tiles * self.channel_tiles * positions * self.shape.position_steps * self.shape.repeats

    def reasons(self) -> tuple[str, ...]:
        """Why it is tiled so, one line each, for the generated comments."""
        layer, shape, tiling = self.layer, self.shape, self.tiling
        lanes = "kernel columns × channels unrolled" if layer.reads_pixels else "input channels"
        joins = layer.joined > 1 and not layer.row_step
        rows = "next rows load during compute" if tiling.overlap else "rows of a tile load before it is computed"
        return (
            f"{layer.name}: {shape.filters}×{shape.out_height}×{shape.out_width} in {self.row_tiles} row tile(s) × "
            f"{self.channel_tiles} channel tile(s) × {tiling.columns.count} column tile(s), "
            f"{shape.position_steps} cycles a position",
            f"{lanes} over the lanes; {self._order()}; {rows}"
            + (f"; max pool {layer.pool_size}/{layer.pool_stride} fused" if layer.pool_size > 1 else "")
            + self._places()
            + ("; its results are looked up in a table" if layer.table is not None else "")
            + (f"; upsample by {layer.upscale} fused" if layer.upscale > 1 else "")
            + ("; its result stays on chip" if tiling.on_chip else "")
            + (f"; {layer.stacked} frames as one map" if layer.stacked > 1 else "")
            + (f" of {layer.stacked} rows, {layer.joined} rows of a frame being one" if joins else "")
            + (f"; {layer.joined} rows, {layer.row_step} rows apart, are read as one" if layer.row_step else "")
            + (f"; {layer.column_step} columns from one of the kernel to the next" if layer.column_step > 1 else "")
            + (f"; {layer.repeats} frames one after the other" if layer.repeats > 1 else ""),
        )

    def _places(self) -> str:
        """What becomes of places that are handed through."""
        if self.shape.multiplied:
            return f"; {self.shape.places} maps are multiplied"
        return f"; the {self.shape.places} places of a window are compared" if self.shape.places > 1 else ""

    def _order(self) -> str:
        weights = self.channel_tiles * self.shape.steps
        if self.tiling.weights_resident:
            return f"weights resident: {weights} steps in the buffer, read once a pass"
        if self.tiling.inputs_resident:
            return f"inputs resident: all rows in the buffer, {weights} steps of weights streamed once a column tile"
        return (
            f"weights streamed: {weights} steps, read once a row tile ({self.row_tiles} of them) through a buffer of "
            f"{self.array.weight_depth}"
        )


@dataclass(frozen=True, eq=False)
class SystolicSchedule:
    """Every layer of ``network`` tiled on ``array``, in execution order."""

    network: QuantizedNetwork
    array: Array
    layers: tuple[ScheduledLayer, ...]

    @property
    def batch(self) -> int:
        """Frames that go through each layer before the next one starts."""
        return max((scheduled.layer.frames for scheduled in self.layers), default=1)

    @property
    def workload(self) -> Workload:
        """The network and its layers."""
        layers = tuple(scheduled.layer for scheduled in self.layers)
        return Workload(self.network, layers, self.batch, self.array.added_maps)

    @property
    def tilings(self) -> tuple[Tiling, ...]:
        return tuple(scheduled.tiling for scheduled in self.layers)

    @property
    def room(self) -> Room:
        """What the maps take in the map buffers of the array."""
        sizes = tuple(map_words(scheduled.shape, self.array.rows) for scheduled in self.layers)
        return Room(sizes, self.array.map_depth)

    @property
    def cycles(self) -> int:
        """Of the array alone, as of ScheduledLayer."""
        return sum(scheduled.cycles for scheduled in self.layers)


def schedule_of(network: QuantizedNetwork, array: Array, tilings: Sequence[Tiling], batch: int = 1) -> SystolicSchedule:
    """``network`` with these tilings, one for each of its layers. Raises as ``lower`` does.

    Whether the tilings are legal is not looked at: scheduler/systolic/rules.py does.
    """
    return schedule_workload(workload_of(network, batch, array.added_maps), array, tilings)


def schedule_workload(workload: Workload, array: Array, tilings: Sequence[Tiling]) -> SystolicSchedule:
    """Return the schedule of a network that is lowered; see ``schedule_of``."""
    network, layers = workload.network, workload.layers
    shapes = with_maps_on_chip(shapes_of(network, layers, array), [tiling.on_chip for tiling in tilings])
    scheduled = (ScheduledLayer(*parts, array) for parts in zip(layers, shapes, tilings, strict=True))
    return SystolicSchedule(network, array, tuple(scheduled))


def array_in(schedule: SystolicSchedule, engine: str) -> Array:
    """The schedule's array, its modules in this language: with the registers and the sums that it has there."""
    array, shapes, built = schedule.array, [scheduled.shape for scheduled in schedule.layers], ENGINE_NAMED[engine]
    bits = array.sum_bits if engine == array.engine else built.sum_bits(shapes)
    registers = built.language.dsp_registers(array.dsp_products)
    return replace(array, engine=engine, dsp_registers=registers, sum_bits=bits)
