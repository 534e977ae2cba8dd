"""A tiled systolic schedule: an array, and how each layer of the network is tiled on it.

A schedule separates the choice of tilings from their use. The search, a schedule file or a test states the tilings, and
``schedule_of`` makes a schedule of them. The model prices it, the rules check it, and scheduler/systolic/program turns
it into the numbers that the engine reads.
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
    """One layer of a schedule: its operation (``layer``), its sizes on this array (``shape``), and its tiling."""

    layer: Layer
    shape: LayerShape
    tiling: Tiling
    array: Array

    @property
    def row_tiles(self) -> int:
        """The number of row tiles into which the array's rows cut the layer's output."""
        return ceil_div(self.shape.out_height, self.array.rows)

    @property
    def channel_tiles(self) -> int:
        """The number of channel tiles into which the array's columns cut the layer's filters."""
        return ceil_div(self.shape.filters, self.array.columns)

    @property
    def cycles(self) -> int:
        """Compute cycles of the layer on the array, without stalls, fill and drain: positions × steps × tiles."""
        positions = sum(ceil_div(tile.columns, self.shape.positions) for tile in self.tiling.columns.tiles)
        return self.row_tiles * self.channel_tiles * positions * self.shape.position_steps * self.shape.repeats

    def reasons(self) -> tuple[str, ...]:
        """Return lines that describe the layer's tiling, for comments in the generated sources."""
        layer, shape, tiling = self.layer, self.shape, self.tiling
        lanes = "kernel columns × channels unrolled" if layer.reads_pixels else "input channels unrolled"
        joins = layer.joined > 1 and not layer.row_step
        rows = "the next rows are loaded during computation" if tiling.overlap else "rows are loaded before computation"
        return (
            f"{layer.name}: {shape.filters}×{shape.out_height}×{shape.out_width} in {self.row_tiles} row tile(s) × "
            f"{self.channel_tiles} channel tile(s) × {tiling.columns.count} column tile(s), "
            f"{shape.position_steps} cycles per position",
            f"{lanes} over the lanes; {self._order()}; {rows}"
            + (f"; max pool {layer.pool_size}/{layer.pool_stride} fused" if layer.pool_size > 1 else "")
            + self._places()
            + ("; results are looked up in a table" if layer.table is not None else "")
            + (f"; upsample by {layer.upscale} fused" if layer.upscale > 1 else "")
            + ("; the output stays on chip" if tiling.on_chip else "")
            + (f"; {layer.stacked} frames as one map" if layer.stacked > 1 else "")
            + (f" of {layer.stacked} rows, each made of {layer.joined} rows of a frame" if joins else "")
            + (f"; {layer.joined} rows, {layer.row_step} rows apart, are read as one" if layer.row_step else "")
            + (f"; kernel columns are {layer.column_step} input columns apart" if layer.column_step > 1 else "")
            + (f"; {layer.repeats} frames one after the other" if layer.repeats > 1 else ""),
        )

    def _places(self) -> str:
        """Return, as text, what the layer does with the pixels of a window if it compares or multiplies them; else
        ""."""
        if self.shape.multiplied:
            return f"; {self.shape.separate_taps} maps are multiplied"
        return (
            f"; the {self.shape.separate_taps} places of a window are compared" if self.shape.separate_taps > 1 else ""
        )

    def _order(self) -> str:
        """Return a text with the layer's loop order and how many steps of weights it keeps or streams."""
        weights = self.channel_tiles * self.shape.steps
        if self.tiling.weights_resident:
            return f"weights resident: {weights} steps in the buffer, read once per pass"
        if self.tiling.inputs_resident:
            return f"inputs resident: all rows in the buffer, {weights} steps of weights streamed once per column tile"
        return (
            f"weights streamed: {weights} steps, read once per row tile ({self.row_tiles} of them) through a buffer of "
            f"{self.array.weight_depth} steps"
        )


@dataclass(frozen=True, eq=False)
class SystolicSchedule:
    """A schedule: a network, a systolic array, and every layer tiled on this array, in execution order."""

    network: QuantizedNetwork
    array: Array
    layers: tuple[ScheduledLayer, ...]

    @property
    def batch(self) -> int:
        """The number of frames that go through each layer before the next layer starts."""
        return max((scheduled.layer.frames for scheduled in self.layers), default=1)

    @property
    def workload(self) -> Workload:
        """The network lowered to the layers of this schedule."""
        layers = tuple(scheduled.layer for scheduled in self.layers)
        return Workload(self.network, layers, self.batch, self.array.added_maps)

    @property
    def tilings(self) -> tuple[Tiling, ...]:
        """The tiling of each layer, in execution order."""
        return tuple(scheduled.tiling for scheduled in self.layers)

    @property
    def room(self) -> Room:
        """The words that each layer's map takes in a map buffer, and the depth of the map buffers."""
        sizes = tuple(map_words(scheduled.shape, self.array.rows) for scheduled in self.layers)
        return Room(sizes, self.array.map_depth)

    @property
    def cycles(self) -> int:
        """Compute cycles of all layers on the array, without stalls, fill and drain."""
        return sum(scheduled.cycles for scheduled in self.layers)


def schedule_of(network: QuantizedNetwork, array: Array, tilings: Sequence[Tiling], batch: int = 1) -> SystolicSchedule:
    """Return the schedule of ``network`` on ``array`` with these tilings, without a check that they are legal.

    scheduler/systolic/rules.py checks schedules. It raises the errors of ``lower``.

    Args:
        network: The network, which is lowered for this batch.
        array: The array; ``added_maps`` decides whether residual adds are fused.
        tilings: One tiling per layer of the lowered network, in execution order.
        batch: Frames that go through each layer before the next layer starts.
    """
    return schedule_workload(workload_of(network, batch, array.added_maps), array, tilings)


def schedule_workload(workload: Workload, array: Array, tilings: Sequence[Tiling]) -> SystolicSchedule:
    """Return the schedule of an already lowered network with one tiling per layer; see ``schedule_of``."""
    network, layers = workload.network, workload.layers
    shapes = with_maps_on_chip(shapes_of(network, layers, array), [tiling.on_chip for tiling in tilings])
    scheduled = (ScheduledLayer(*parts, array) for parts in zip(layers, shapes, tilings, strict=True))
    return SystolicSchedule(network, array, tuple(scheduled))


def array_in(schedule: SystolicSchedule, engine: str) -> Array:
    """Return the schedule's array for the engine ``engine``, with the fields adapted that depend on the engine.

    Args:
        schedule: The schedule; its layers decide how many bits the sums need.
        engine: The engine of the returned array: "hls" or "rtl".
    """
    array, shapes, built = schedule.array, [scheduled.shape for scheduled in schedule.layers], ENGINE_NAMED[engine]
    bits = array.sum_bits if engine == array.engine else built.sum_bits(shapes)
    registers = built.language.dsp_registers(array.dsp_products)
    return replace(array, engine=engine, dsp_registers=registers, sum_bits=bits)
