"""The cost of a schedule on an array: cycles by their cause, and DDR bytes by kind.

All functions are pure. One call prices one tiling or a whole grid of arrays × tilings, and the search and the report
use the same code. A layer takes one pass per column tile. scheduler/systolic/model/passes.py computes the cycles of a
pass. benchmarks/schedule.py compares the model with the trace of generated code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.array import Array
from scheduler.systolic.model.arrays import ArrayGrid, Numbers, PassTilings, array_grid
from scheduler.systolic.model.cycles import Cycles, Overhead, Traffic
from scheduler.systolic.model.grid import PROGRAM_WORD_BYTES, REQUANTISER_BYTES
from scheduler.systolic.model.passes import pass_cycles
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import LayerShape, adds_from_ddr, rows_in, steps_after
from scheduler.systolic.tiling import BufferNeeds, Tiling, buffer_needs


def layer_cycles(
    arrays: ArrayGrid, shape: LayerShape, tilings: tuple[Tiling, ...], next_steps: int, ddr: DdrTiming, first: bool
) -> Cycles:
    """Return one layer's modelled cycles under each array and tiling, by their cause, with shape (arrays, tilings).

    If the layer computes a batch frame by frame, the layer itself follows after each frame except the last.

    Args:
        arrays: The arrays.
        shape: The layer.
        tilings: The candidate tilings.
        next_steps: Steps of the next layer's first weight tile, which is loaded during this layer.
        ddr: The DDR's timing.
        first: Whether the layer is the first of the frame.
    """
    if shape.repeats == 1:
        return _frame_cycles(arrays, shape, tilings, next_steps, ddr, first)
    head = _frame_cycles(arrays, shape, tilings, shape.steps, ddr, first)
    middle = _frame_cycles(arrays, shape, tilings, shape.steps, ddr, False)
    tail = _frame_cycles(arrays, shape, tilings, next_steps, ddr, False)
    return head + middle.times(np.int64(shape.repeats - 2)) + tail


def _frame_cycles(
    arrays: ArrayGrid, shape: LayerShape, tilings: tuple[Tiling, ...], next_steps: int, ddr: DdrTiming, first: bool
) -> Cycles:
    head, middle, tail, count = _passes_of(shape, tilings, next_steps)
    cycles = pass_cycles(arrays, shape, head, ddr, first)
    if int(count.max()) == 1:
        return cycles
    cycles = cycles + pass_cycles(arrays, shape, tail, ddr, False).times(np.minimum(count - 1, 1))
    return cycles + pass_cycles(arrays, shape, middle, ddr, False).times(np.maximum(count - 2, 0))


def _passes_of(
    shape: LayerShape, tilings: tuple[Tiling, ...], next_steps: int
) -> tuple[PassTilings, PassTilings, PassTilings, Numbers]:
    """Return the numbers of the passes over a layer's first, middle and last column tile under every tiling, and their
    count.

    After each pass except the last, the next pass belongs to the same layer.
    """

    def column(values: list[int]) -> Numbers:
        return np.array(values, np.int64)

    flags = (
        column([int(tiling.weights_resident) for tiling in tilings]),
        column([int(tiling.inputs_resident) for tiling in tilings]),
        column([int(tiling.overlap) for tiling in tilings]),
    )
    count = column([tiling.columns.count for tiling in tilings])
    words = np.array([tiling.columns.words for tiling in tilings], np.int64)
    width = column([tiling.columns.width for tiling in tilings])
    last_width = column([tiling.columns.last_width for tiling in tilings])
    bursts = np.where(count > 1, shape.blocks, shape.pieces)
    same_layer = np.full(len(tilings), shape.steps, np.int64)
    after_layer = np.full(len(tilings), next_steps, np.int64)
    head = PassTilings(width, words[:, 0], bursts, np.where(count > 1, same_layer, next_steps), *flags)
    middle = PassTilings(width, words[:, 1], bursts, same_layer, *flags)
    tail = PassTilings(last_width, words[:, 2], bursts, after_layer, *flags)
    return head, middle, tail, count


def layer_traffic(rows: int, columns: int, word_bytes: int, shape: LayerShape, tiling: Tiling) -> Traffic:
    """Return the DDR bytes that one layer reads and writes under a tiling, by kind.

    Every column tile and every frame reads the weights again. Columns that the kernels of two neighbouring column tiles
    share are read twice.

    Args:
        rows: Rows of PEs.
        columns: Columns of PEs.
        word_bytes: Bytes per word of a feature map.
        shape: The layer.
        tiling: Its tiling.
    """
    row_tiles, channel_tiles = ceil_div(shape.out_height, rows), ceil_div(shape.filters, columns)
    passes = tiling.columns.count * shape.repeats
    loads = channel_tiles * (row_tiles if tiling.order == "streamed" else 1) * passes
    read = shape.repeats * rows_in(shape, rows, row_tiles) * tiling.columns.total_words
    written = shape.repeats * shape.saved_height * shape.saved_width * shape.out_blocks * shape.value_words
    added = written * word_bytes if adds_from_ddr(shape) else 0
    return Traffic(
        maps_read=(0 if shape.from_chip else read * word_bytes) + added,
        maps_written=0 if shape.to_chip else written * word_bytes,
        weights=loads * shape.steps * columns * word_bytes,
        requantisers=passes * (channel_tiles * columns + shape.table_depth) * REQUANTISER_BYTES,
        program=passes * shape.pass_words * PROGRAM_WORD_BYTES,
    )


@dataclass(frozen=True, eq=False)
class LayerCost:
    """The modelled cost of one layer under its tiling: cycles by cause, DDR bytes by kind, and buffers.

    Attributes:
        shape: The sizes of the layer.
        tiling: Its tiling.
        cycles: Cycles of all passes of the layer, by their cause.
        traffic: DDR bytes by kind.
        needs: The smallest buffer depths that the tiling can run with.
        ddr_cycles: Cycles in which the DDR moves the bytes of ``traffic``.
    """

    shape: LayerShape
    tiling: Tiling
    cycles: Cycles
    traffic: Traffic
    needs: BufferNeeds
    ddr_cycles: int

    @property
    def total(self) -> int:
        """The modelled cycles of the layer."""
        return int(self.cycles.total)

    @property
    def running(self) -> int:
        """The modelled cycles of the layer without those in which the engine only fetches the layer's program words."""
        return self.total - int(self.cycles.program)

    @property
    def bound_by(self) -> str:
        """The name of the cause that limits the layer's speed, such as "compute" or "ddr"; see ``Cycles.bound_by``."""
        return self.cycles.bound_by(self.ddr_cycles)

    @property
    def overhead(self) -> Overhead:
        """The largest cause of the layer's cycles other than compute."""
        return self.cycles.overhead


@dataclass(frozen=True, eq=False)
class Cost:
    """The modelled (not simulated) cost of a whole schedule: cycles, DDR bytes and MACs, for all frames of a batch."""

    array: Array
    ddr: DdrTiming
    layers: tuple[LayerCost, ...]
    batch: int = 1

    @property
    def cycles(self) -> int:
        return sum(layer.total for layer in self.layers)

    @property
    def traffic(self) -> Traffic:
        return sum((layer.traffic for layer in self.layers), Traffic(0, 0, 0, 0, 0))

    @property
    def frames_per_second(self) -> float:
        return self.ddr.clock_mhz * 1e6 * self.batch / self.cycles

    @property
    def cycles_per_frame(self) -> int:
        return round(self.cycles / self.batch)

    @property
    def bytes_per_frame(self) -> int:
        return round(self.traffic.total / self.batch)

    @property
    def macs(self) -> int:
        return sum(layer.shape.macs for layer in self.layers)

    def efficiency(self, layer: LayerCost) -> float:
        """Return the utilisation of the array in a layer: its MACs divided by the MACs that the array could compute in
        its cycles."""
        return layer.shape.macs / (self.array.macs_per_cycle * layer.total)


def cost(schedule: SystolicSchedule, ddr: DdrTiming) -> Cost:
    """Return the modelled cost of a schedule, layer by layer."""
    shapes = [scheduled.shape for scheduled in schedule.layers]
    layers = tuple(
        layer_cost(schedule.array, shape, tiling, steps_after(shapes, index), ddr, index == 0)
        for index, (shape, tiling) in enumerate(zip(shapes, schedule.tilings, strict=True))
    )
    return Cost(schedule.array, ddr, layers, schedule.batch)


def layer_cost(
    array: Array, shape: LayerShape, tiling: Tiling, next_steps: int, ddr: DdrTiming, first: bool
) -> LayerCost:
    """Return the modelled cost of one layer on one array under one tiling. ``next_steps`` and ``first`` are as for
    ``layer_cycles``."""
    grid = layer_cycles(array_grid(array), shape, (tiling,), next_steps, ddr, first)
    cycles = Cycles(*(np.asarray(getattr(grid, f.name)).reshape(-1)[0] for f in fields(grid)))
    traffic = layer_traffic(array.rows, array.columns, array.word_bytes, shape, tiling)
    needs = buffer_needs(shape, array.rows, array.columns, tiling, next_steps)
    return LayerCost(shape, tiling, cycles, traffic, needs, ddr_cycles(traffic, ddr))


def ddr_cycles(traffic: Traffic, ddr: DdrTiming) -> int:
    """Return the cycles in which the DDR moves the bytes of ``traffic`` at its sustained rate."""
    return ceil_div(1000 * traffic.total, ddr.milli_bytes)


def cheapest(
    array: Array, shape: LayerShape, tilings: Sequence[Tiling], next_steps: int, ddr: DdrTiming, first: bool
) -> LayerCost:
    """Return a layer's cost under the tiling with the fewest cycles, and among equal ones with the fewest DDR bytes.

    All tilings are priced at once.
    """
    grid = layer_cycles(array_grid(array), shape, tuple(tilings), next_steps, ddr, first)
    cycles = grid.total.reshape(-1)
    traffic = [layer_traffic(array.rows, array.columns, array.word_bytes, shape, tiling).total for tiling in tilings]
    best = min(range(len(tilings)), key=lambda index: (int(cycles[index]), traffic[index]))
    return layer_cost(array, shape, tilings[best], next_steps, ddr, first)
