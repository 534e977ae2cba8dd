"""Legality of a finished schedule: that of a file, or the one that a search returns.

Each layer keeps the TILING_RULES of tiling.py, and the array has what the layers need by needs.py. The search reads
both tables. The rules of this module are those of several layers at once: which maps stay on chip together.
"""

from __future__ import annotations

from boards.errors import SeveralFaultsError, SystolicError, UnsupportedError
from scheduler.systolic.formats import check_blocks, check_format
from scheduler.systolic.map_buffers import crowded, stays_of
from scheduler.systolic.needs import unmet_needs
from scheduler.systolic.on_chip import Handover, handovers, hindrances
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import Tiling, broken_tiling_rules, buffer_needs


def broken_rules(schedule: SystolicSchedule) -> tuple[SystolicError, ...]:
    """Return an error for every rule that a layer breaks, its place the layer's name; empty for a legal schedule."""
    shapes = [scheduled.shape for scheduled in schedule.layers]
    maps = handovers(schedule.network, [scheduled.layer for scheduled in schedule.layers])
    errors: list[SystolicError] = []
    for index, (scheduled, handover) in enumerate(zip(schedule.layers, maps, strict=True)):
        rows, columns = schedule.array.rows, schedule.array.columns
        needs = buffer_needs(scheduled.shape, rows, columns, scheduled.tiling, steps_after(shapes, index))
        broken = broken_tiling_rules(scheduled.shape, scheduled.tiling, rows)
        broken += unmet_needs(scheduled.shape, needs, schedule.array)
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
