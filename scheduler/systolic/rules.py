"""Legality of a schedule, written as data: every rule with the sentence that a hand edit which breaks it gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boards.errors import ScheduleError, faults
from scheduler.systolic.formats import check_blocks, check_format
from scheduler.systolic.map_buffers import crowded, stays_of
from scheduler.systolic.on_chip import Handover, handovers, hindrances
from scheduler.systolic.schedule import ScheduledLayer, SystolicSchedule
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import ORDERS, BufferNeeds, Tiling, buffer_needs


@dataclass(frozen=True)
class TilingRule:
    """sentence: what is required of a layer and of what its tiling needs; actual: what came instead."""

    sentence: str
    holds: Callable[[ScheduledLayer, BufferNeeds], bool]
    actual: Callable[[ScheduledLayer, BufferNeeds], str]


TILING_RULES = (
    TilingRule(
        f"order is one of {', '.join(ORDERS)}",
        lambda s, _: s.tiling.order in ORDERS,
        lambda s, _: repr(s.tiling.order),
    ),
    TilingRule(
        "a layer of one row tile is streamed and not overlapped, because there is no next tile",
        lambda s, _: s.row_tiles > 1 or (s.tiling.order == "streamed" and not s.tiling.overlap),
        lambda s, _: f"{s.tiling.order}{' with overlap' if s.tiling.overlap else ''}",
    ),
    TilingRule(
        "tile_columns is a multiple of the pool's stride, so that no window is cut",
        lambda s, _: s.tiling.columns.count == 1 or s.tiling.columns.width % s.layer.pool_stride == 0,
        lambda s, _: f"{s.tiling.columns.width} columns with stride {s.layer.pool_stride}",
    ),
    TilingRule(
        "a layer with a pool of stride 1 is one column tile, because every column needs its right neighbour",
        lambda s, _: s.tiling.columns.count == 1 or not (s.layer.pool_size == 2 and s.layer.pool_stride == 1),
        lambda s, _: f"{s.tiling.columns.count} column tiles",
    ),
    TilingRule(
        "the row buffer holds the rows of a tile, of the next one where they overlap, or all where inputs stay",
        lambda s, needs: needs.row_depth <= s.array.row_depth,
        lambda s, needs: f"{needs.row_depth} words a bank of row_depth={s.array.row_depth}",
    ),
    TilingRule(
        "the weight buffer holds a tile and the one that follows, or all tiles where weights stay",
        lambda s, needs: needs.weight_depth <= s.array.weight_depth,
        lambda s, needs: f"{needs.weight_depth} steps of weight_depth={s.array.weight_depth}",
    ),
    TilingRule(
        "the Saver keeps the sums that wait for the tile below",
        lambda s, needs: needs.kept_depth <= s.array.kept_depth,
        lambda s, needs: f"{needs.kept_depth} sums of kept_depth={s.array.kept_depth}",
    ),
    TilingRule(
        "the array's upscale is that of the layers that upsample",
        lambda s, _: s.layer.upscale <= s.array.upscale,
        lambda s, _: f"the array's upscale is {s.array.upscale}, the layer's {s.layer.upscale}",
    ),
    TilingRule(
        "the array has a table where the layer's function is looked up",
        lambda s, _: s.shape.table_depth <= s.array.table_depth,
        lambda s, _: f"the array's table_depth is {s.array.table_depth}, the layer's {s.shape.table_depth}",
    ),
    TilingRule(
        "the array has slopes where the layer's table is pieces of lines",
        lambda s, _: not s.shape.table_slopes or s.array.table_slopes == 1,
        lambda s, _: f"the array's table_slopes is {s.array.table_slopes}",
    ),
    TilingRule(
        "the array has late offsets where a layer's requantisers add behind their multiplication",
        lambda s, _: not s.shape.late_offsets or s.array.late_offsets == 1,
        lambda s, _: f"the array's late_offsets is {s.array.late_offsets}",
    ),
    TilingRule(
        "the array's sums have the bits that the layer's may need",
        lambda s, _: s.shape.sum_bits <= s.array.sum_bits,
        lambda s, _: f"the array's sum_bits is {s.array.sum_bits}, the layer's {s.shape.sum_bits}",
    ),
    TilingRule(
        "the array has windows where a max pool is a layer of its own",
        lambda s, _: s.shape.places == 1 or s.shape.multiplied or s.array.windows == 1,
        lambda s, _: f"the array's windows is {s.array.windows}, the layer compares {s.shape.places} places",
    ),
    TilingRule(
        "the array has products of maps where a layer multiplies two",
        lambda s, _: not s.shape.multiplied or s.array.map_products == 1,
        lambda s, _: f"the array's map_products is {s.array.map_products}",
    ),
    TilingRule(
        "the array adds maps where a layer's Saver adds one",
        lambda s, _: not s.shape.added or s.array.added_maps == 1,
        lambda s, _: f"the array's added_maps is {s.array.added_maps}",
    ),
    TilingRule(
        "the array's map_stride is the largest stride with which a layer reads a map on chip",
        lambda s, _: not s.shape.from_chip or s.shape.stride <= s.array.map_stride,
        lambda s, _: f"the array's map_stride is {s.array.map_stride}, the layer's stride {s.shape.stride}",
    ),
    TilingRule(
        "a bank of a map buffer holds its rows of a map that stays on chip",
        lambda s, needs: needs.map_depth <= s.array.map_depth,
        lambda s, needs: f"{needs.map_depth} words of map_depth={s.array.map_depth}",
    ),
    TilingRule(
        "the Saver keeps the requantisers of all channel tiles",
        lambda s, needs: needs.channel_tiles <= s.array.channel_tiles,
        lambda s, needs: f"{needs.channel_tiles} tiles of channel_tiles={s.array.channel_tiles}",
    ),
)


def broken_rules(schedule: SystolicSchedule) -> tuple[str, ...]:
    """``layer: sentence`` for every rule that a layer breaks; empty where the schedule is legal."""
    shapes = [scheduled.shape for scheduled in schedule.layers]
    maps = handovers(schedule.network, [scheduled.layer for scheduled in schedule.layers])
    problems = []
    for index, (scheduled, handover) in enumerate(zip(schedule.layers, maps, strict=True)):
        rows, columns = schedule.array.rows, schedule.array.columns
        needs = buffer_needs(scheduled.shape, rows, columns, scheduled.tiling, steps_after(shapes, index))
        sentences = [
            f"{rule.sentence} ({rule.actual(scheduled, needs)})"
            for rule in TILING_RULES
            if not rule.holds(scheduled, needs)
        ]
        if scheduled.tiling.on_chip:
            sentences += hindrances(handover)
        if len({schedule.tilings[number].on_chip for number, _ in handover.writers}) > 1:
            sentences += ["maps that lie side by side stay on chip together"]
        problems += [f"{scheduled.shape.name}: {sentence}" for sentence in sentences]
    return tuple(problems) or _crowded_buffers(schedule)


def _crowded_buffers(schedule: SystolicSchedule) -> tuple[str, ...]:
    """A sentence where each map might stay, but not all of them."""
    stays = stays_of(schedule.network, [scheduled.layer for scheduled in schedule.layers])
    number = crowded(stays, [tiling.on_chip for tiling in schedule.tilings], schedule.room)
    if number is None:
        return ()
    return (
        f"{schedule.layers[number].shape.name}: a map has its place in one of two map buffers until its last reader is "
        "through, and a layer writes the buffer that it does not read, a sum over the map that is added or beside it",
    )


def why_in_ddr(schedule: SystolicSchedule) -> tuple[str, ...]:
    """Of each layer why its map does not stay on chip; "" where it does, where no layer reads it, and where the array
    has no map buffers."""
    maps, room = handovers(schedule.network, [scheduled.layer for scheduled in schedule.layers]), schedule.room

    def why(handover: Handover, size: int, tiling: Tiling) -> str:
        if tiling.on_chip or not room.depth or not (handover.readers or handover.adders):
            return ""
        if problems := hindrances(handover):
            return "; ".join(problems)
        if size > room.depth:
            return f"it and those beside it take {size} words of a bank, a map buffer has {room.depth}"
        return "the buffers hold maps that spare more, or a layer would write the one that it reads"

    return tuple(map(why, maps, room.sizes, schedule.tilings))


def check_schedule(schedule: SystolicSchedule) -> SystolicSchedule:
    """The schedule itself, or ScheduleError with every rule that a layer breaks."""
    check_format(schedule.network, [scheduled.layer for scheduled in schedule.layers], schedule.array)
    layers = [scheduled.layer for scheduled in schedule.layers]
    check_blocks(layers, schedule.array.columns, schedule.array.lanes)
    problems = broken_rules(schedule)
    if problems:
        raise ScheduleError(f"the schedule of {schedule.network.name} is not legal:\n  " + faults(problems, "\n  "))
    return schedule
