"""Legality of a schedule, written as data: every rule with the error for a hand edit that breaks it.

The rules judge a finished schedule: that of a file, or the one that a search returns. The search does not read them: it
leaves out the tilings and arrays that break one (search/task.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    SeveralFaultsError,
    SystolicError,
    UnsupportedError,
)
from scheduler.systolic.formats import check_blocks, check_format
from scheduler.systolic.map_buffers import crowded, stays_of
from scheduler.systolic.needs import NEEDS, BufferNeed, UnitNeed
from scheduler.systolic.on_chip import Handover, handovers, hindrances
from scheduler.systolic.schedule import ScheduledLayer, SystolicSchedule
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import ORDERS, BufferNeeds, Tiling, buffer_needs


@dataclass(frozen=True)
class TilingRule:
    """What the tiling of every layer keeps.

    Attributes:
        holds: Whether a layer, and what its tiling needs, keeps the rule.
        error: The error for one that breaks it.
    """

    holds: Callable[[ScheduledLayer, BufferNeeds], bool]
    error: Callable[[ScheduledLayer, BufferNeeds], SystolicError]


def _keeps(need: BufferNeed | UnitNeed) -> TilingRule:
    """Return the rule that the array has what a layer needs."""
    return TilingRule(
        lambda s, needs: need.of(s.shape, needs) <= getattr(s.array, need.name),
        lambda s, needs: need.error(need.of(s.shape, needs), s.array),
    )


def _whole_windows(s: ScheduledLayer) -> SystolicError:
    """Return the error for column tiles that cut a window of the pool."""
    width, stride = s.tiling.columns.width, s.layer.pool_stride
    below = width // stride * stride
    required = f"a multiple of the pool's stride ({stride}), so that no window is cut"
    return InvalidValueError("tile_columns", width, required, tuple(filter(None, (below, below + stride))))


TILING_RULES = (
    TilingRule(
        lambda s, _: s.tiling.order in ORDERS,
        lambda s, _: ChoiceError("order", s.tiling.order, ORDERS),
    ),
    TilingRule(
        lambda s, _: s.row_tiles > 1 or (s.tiling.order == "streamed" and not s.tiling.overlap),
        lambda s, _: InvalidValueError(
            "order",
            f"{s.tiling.order}{' with overlap' if s.tiling.overlap else ''}",
            "streamed without overlap, because the layer is one row tile and has no next one",
        ),
    ),
    TilingRule(
        lambda s, _: s.tiling.columns.count == 1 or s.tiling.columns.width % s.layer.pool_stride == 0,
        lambda s, _: _whole_windows(s),
    ),
    TilingRule(
        lambda s, _: s.tiling.columns.count == 1 or not (s.layer.pool_size == 2 and s.layer.pool_stride == 1),
        lambda s, _: InvalidValueError(
            "tile_columns",
            s.tiling.columns.width,
            "the whole width, because every column of a pool of stride 1 needs its right neighbour",
            (s.layer.out.width,),
        ),
    ),
    *map(_keeps, NEEDS),
)


def broken_rules(schedule: SystolicSchedule) -> tuple[SystolicError, ...]:
    """Return an error for every rule that a layer breaks, its place the layer's name; empty for a legal schedule."""
    shapes = [scheduled.shape for scheduled in schedule.layers]
    maps = handovers(schedule.network, [scheduled.layer for scheduled in schedule.layers])
    errors: list[SystolicError] = []
    for index, (scheduled, handover) in enumerate(zip(schedule.layers, maps, strict=True)):
        rows, columns = schedule.array.rows, schedule.array.columns
        needs = buffer_needs(scheduled.shape, rows, columns, scheduled.tiling, steps_after(shapes, index))
        broken = [rule.error(scheduled, needs) for rule in TILING_RULES if not rule.holds(scheduled, needs)]
        if scheduled.tiling.on_chip:
            broken += [UnsupportedError("on_chip", reason) for reason in hindrances(handover)]
        if len({schedule.tilings[number].on_chip for number, _ in handover.writers}) > 1:
            broken += [UnsupportedError("on_chip", "maps that are stored side by side stay on chip together")]
        errors += [error.at(scheduled.shape.name) for error in broken]
    return tuple(errors) or _crowded_buffers(schedule)


def _crowded_buffers(schedule: SystolicSchedule) -> tuple[SystolicError, ...]:
    """Return an error if each map might stay on chip, but not all of them."""
    stays = stays_of(schedule.network, [scheduled.layer for scheduled in schedule.layers])
    number = crowded(stays, [tiling.on_chip for tiling in schedule.tilings], schedule.room)
    if number is None:
        return ()
    return (
        UnsupportedError(
            "on_chip",
            "a map is kept in one of two map buffers until its last reader has finished, and a layer writes the buffer "
            "that it does not read; a sum is written over the map that is added, or next to it",
            where=schedule.layers[number].shape.name,
        ),
    )


def why_in_ddr(schedule: SystolicSchedule) -> tuple[str, ...]:
    """Return for each layer why its map does not stay on chip; the text is written into the sources of a design.

    "" if it does, if no layer reads it, and if the array has no map buffers.
    """
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
    """Return the schedule itself; raise SeveralFaultsError with an error for every rule that a layer breaks."""
    check_format(schedule.network, [scheduled.layer for scheduled in schedule.layers], schedule.array)
    layers = [scheduled.layer for scheduled in schedule.layers]
    check_blocks(layers, schedule.array.columns, schedule.array.lanes)
    errors = broken_rules(schedule)
    if errors:
        raise SeveralFaultsError(errors, f"the schedule of {schedule.network.name} is not legal")
    return schedule
