"""What a schedule costs on an array: cycles by what bounds them, and DDR bytes by kind. Pure functions of numbers.

One call prices one tiling or a whole grid of them; the search and the report use the same code. Cycles of a pass are
those of its tiles (scheduler/systolic/model/passes.py). The model against the trace of generated
code: benchmarks/schedule.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.array import Array
from scheduler.systolic.model.cycles import Cycles, Traffic
from scheduler.systolic.model.knobs import Knobs, Numbers, knobs_of
from scheduler.systolic.model.passes import pass_cycles
from scheduler.systolic.model.shape import PASS_BYTES, REQUANTISER_BYTES, Passes, rows_in
from scheduler.systolic.tiling import SystolicSchedule
from scheduler.systolic.work import Needs, Way, Work, following_steps, needs, staying, way_of, work_of


def passes_of(work: Work, choices: tuple[Way, ...], following: int) -> tuple[Passes, Passes, Passes, Numbers]:
    """First strips, middle strips and last strips of every way, and how many middle strips there are."""

    def column(values: list[int]) -> Numbers:
        return np.array(values, np.int64)

    flags = (
        column([int(w.weights_resident) for w in choices]),
        column([int(w.inputs_resident) for w in choices]),
        column([int(w.overlap) for w in choices]),
    )
    count = column([w.cut.count for w in choices])
    own = np.full(len(choices), work.steps, np.int64)
    words = np.array([w.cut.words for w in choices], np.int64)
    width, last_width = column([w.cut.width for w in choices]), column([w.cut.last_width for w in choices])
    bursts = np.where(count > 1, work.blocks, 1)
    first = Passes(width, words[:, 0], bursts, np.where(count > 1, own, following), *flags)
    middle = Passes(width, words[:, 1], bursts, own, *flags)
    last = Passes(last_width, words[:, 2], bursts, np.full(len(choices), following, np.int64), *flags)
    return first, middle, last, count


def layer_cycles(
    knobs: Knobs, work: Work, choices: tuple[Way, ...], following: int, ddr: DdrTiming, first_layer: bool
) -> Cycles:
    """All passes of one layer, [knobs, ways]. Frame by frame, each but the last is followed by the layer itself."""
    if work.repeats == 1:
        return _frame_cycles(knobs, work, choices, following, ddr, first_layer)
    first = _frame_cycles(knobs, work, choices, work.steps, ddr, first_layer)
    middle = _frame_cycles(knobs, work, choices, work.steps, ddr, False)
    last = _frame_cycles(knobs, work, choices, following, ddr, False)
    return first + middle.times(np.int64(work.repeats - 2)) + last


def _frame_cycles(
    knobs: Knobs, work: Work, choices: tuple[Way, ...], following: int, ddr: DdrTiming, first_layer: bool
) -> Cycles:
    first, middle, last, count = passes_of(work, choices, following)
    cycles = pass_cycles(knobs, work, first, ddr, first_layer)
    if int(count.max()) == 1:
        return cycles
    cycles = cycles + pass_cycles(knobs, work, last, ddr, False).times(np.minimum(count - 1, 1))
    return cycles + pass_cycles(knobs, work, middle, ddr, False).times(np.maximum(count - 2, 0))


def layer_traffic(rows: int, columns: int, word_bytes: int, work: Work, way: Way) -> Traffic:
    """DDR bytes of one layer: strips read the weights again, and the columns that their kernels share; so do frames."""
    row_tiles, channel_tiles = ceil_div(work.out_height, rows), ceil_div(work.filters, columns)
    passes = way.cut.count * work.repeats
    loads = channel_tiles * (row_tiles if way.order == "streamed" else 1) * passes
    rows_read, saved = rows_in(work, rows, row_tiles), work.saved_height * work.saved_width
    return Traffic(
        maps_read=0 if work.from_chip else work.repeats * rows_read * way.cut.total_words * word_bytes,
        maps_written=0 if work.to_chip else work.repeats * saved * work.out_blocks * work.value_words * word_bytes,
        weights=loads * work.steps * columns * word_bytes,
        requantisers=passes * channel_tiles * columns * REQUANTISER_BYTES,
        program=passes * PASS_BYTES,
    )


@dataclass(frozen=True, eq=False)
class LayerCost:
    """cycles: modelled, all passes. needs: the least buffers that the tiling runs in."""

    work: Work
    way: Way
    cycles: Cycles
    traffic: Traffic
    needs: Needs

    @property
    def total(self) -> int:
        return int(self.cycles.total)

    @property
    def running(self) -> int:
        """Cycles of the passes themselves, as the trace has them: fetching the program is no layer's there."""
        return self.total - int(self.cycles.program)

    @property
    def bound_by(self) -> str:
        return self.cycles.bound_by


@dataclass(frozen=True, eq=False)
class Cost:
    """A whole schedule: modelled, not traced. Cycles, traffic and MACs are those of all frames of a batch."""

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
        return sum(layer.work.macs for layer in self.layers)

    def efficiency(self, layer: LayerCost) -> float:
        """MACs that the network asks for / MACs that the array could do meanwhile."""
        return layer.work.macs / (self.array.macs_per_cycle * layer.total)


def cost(schedule: SystolicSchedule, ddr: DdrTiming) -> Cost:
    """What ``schedule`` costs, layer by layer."""
    network, array = schedule.network, schedule.array
    works = works_of(schedule)
    layers = []
    for index, (work, tiling) in enumerate(zip(works, schedule.tilings, strict=True)):
        following = following_steps(works, index)
        layers.append(layer_cost(array, work, way_of(network, tiling, array), following, ddr, index == 0))
    return Cost(array, ddr, tuple(layers), schedule.batch)


def works_of(schedule: SystolicSchedule) -> tuple[Work, ...]:
    """Every layer, its maps where the schedule has them."""
    tilings = schedule.tilings
    return staying(
        [work_of(schedule.network, tiling.job, schedule.array) for tiling in tilings],
        [tiling.on_chip for tiling in tilings],
    )


def layer_cost(array: Array, work: Work, way: Way, following: int, ddr: DdrTiming, first_layer: bool) -> LayerCost:
    """``following``: steps of the next layer's first weight tile, which arrives during this one."""
    knobs = knobs_of(array)
    grid = layer_cycles(knobs, work, (way,), following, ddr, first_layer)
    cycles = Cycles(*(np.asarray(getattr(grid, f.name)).reshape(-1)[0] for f in fields(grid)))
    traffic = layer_traffic(array.rows, array.columns, knobs.word_bytes, work, way)
    return LayerCost(work, way, cycles, traffic, needs(work, array.rows, array.columns, way, following))


def cheapest(
    array: Array, work: Work, choices: Sequence[Way], following: int, ddr: DdrTiming, first_layer: bool
) -> LayerCost:
    """The way of fewest cycles, of these the one of fewest bytes; all of them are priced at once."""
    knobs = knobs_of(array)
    cycles = layer_cycles(knobs, work, tuple(choices), following, ddr, first_layer).total.reshape(-1)
    moved = [layer_traffic(array.rows, array.columns, knobs.word_bytes, work, way).total for way in choices]
    best = min(range(len(choices)), key=lambda at: (int(cycles[at]), moved[at]))
    return layer_cost(array, work, choices[best], following, ddr, first_layer)
