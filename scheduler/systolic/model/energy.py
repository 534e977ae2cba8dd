"""The activity of a layer that costs energy: cycles of DSPs and LUTs, and bits moved in memory blocks and DDR."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.hardware.energy import Activity
from scheduler.systolic.area.memories import PRODUCT_DSPS
from scheduler.systolic.area.placement import Placement
from scheduler.systolic.area.resources import Usage
from scheduler.systolic.model.cost import LayerCost
from scheduler.systolic.schedule import ScheduledLayer
from scheduler.systolic.shape import rows_in

BLOCKS = ("bram", "uram")
"""Memory blocks whose moved bits are counted. Memories in LUTs are part of the LUT cycles instead."""


def layer_activity(scheduled: ScheduledLayer, priced: LayerCost, placement: Placement, usage: Usage) -> Activity:
    """Return the energy-consuming operations of one layer, in all frames of a batch: DSP, LUT, memory and DDR activity.

    Every PE is counted in every cycle in which the array computes, also if its operands are padding zeros.
    """
    array, cycles = scheduled.array, scheduled.cycles
    in_blocks = [(placement[name], bits) for name, bits in _bits(scheduled, priced) if placement[name] in BLOCKS]
    products = PRODUCT_DSPS * _results(scheduled) if placement["requantiser products"] == "dsp" else 0
    own = Activity(
        dsp=cycles * array.dsp_clock * array.mac_dsps + products,
        lut=cycles * usage.lut,
        ddr=8 * priced.traffic.total,
    )
    return sum((Activity(**{impl: bits}) for impl, bits in in_blocks), own)


def _bits(scheduled: ScheduledLayer, priced: LayerCost) -> Iterator[tuple[str, int]]:
    """Yield, per on-chip buffer of the layer, its name and the number of bits that are written to it and read from
    it."""
    array, shape, cycles = scheduled.array, scheduled.shape, scheduled.cycles
    word = 8 * array.word_bytes
    words_in = shape.repeats * rows_in(shape, array.rows, scheduled.row_tiles) * scheduled.tiling.columns.total_words
    saved = shape.repeats * shape.saved_height * shape.saved_width * shape.out_blocks * shape.value_words
    yield "rows", word * (words_in + cycles * array.rows * array.packing.positions)
    yield "weights", 8 * priced.traffic.weights + word * cycles * array.columns
    yield "arranged", 2 * word * saved
    if shape.from_chip or shape.to_chip or shape.added_from_chip:
        yield "map buffers", word * (words_in * shape.from_chip + saved * (shape.to_chip + shape.added_from_chip))


def _results(scheduled: ScheduledLayer) -> int:
    """Return the number of values that a layer requantises, which are the outputs of its pool."""
    shape = scheduled.shape
    return shape.repeats * shape.saved_height * shape.saved_width * shape.filters
