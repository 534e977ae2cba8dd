"""The rules of a finished schedule, whether a file states it or a search returns it.

Each layer must obey the TILING_RULES of tiling.py, and the array must meet the NEEDS of needs.py. The search reads both
tables. This module adds the rules for several layers at once: which maps can stay on chip together.
"""

from __future__ import annotations

from boards.errors import SeveralFaultsError, SystolicError, UnsupportedError
from scheduler.systolic.formats import check_blocks, check_format
from scheduler.systolic.map_buffers import first_unplaced, stays_of
from scheduler.systolic.needs import unmet_needs
from scheduler.systolic.on_chip import Handover, broken_stay_rules, handovers
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import Tiling, broken_tiling_rules, buffer_needs


def broken_rules(schedule: SystolicSchedule) -> tuple[SystolicError, ...]:
    """Return an error for every rule of a legal schedule that a layer breaks, with the layer's name as its place.

    The result is empty for a legal schedule.
    """
    shapes = [scheduled.shape for scheduled in schedule.layers]
    maps = handovers(schedule.network, [scheduled.layer for scheduled in schedule.layers])
    errors: list[SystolicError] = []
    for index, (scheduled, handover) in enumerate(zip(schedule.layers, maps, strict=True)):
        rows, columns = schedule.array.rows, schedule.array.columns
        needs = buffer_needs(scheduled.shape, rows, columns, scheduled.tiling, steps_after(shapes, index))
        broken = broken_tiling_rules(scheduled.shape, scheduled.tiling, rows)
        broken += unmet_needs(scheduled.shape, needs, schedule.array)
        if scheduled.tiling.on_chip:
            broken += [UnsupportedError("on_chip", reason) for reason in broken_stay_rules(handover)]
        if len({schedule.tilings[number].on_chip for number, _ in handover.writers}) > 1:
            broken += [UnsupportedError("on_chip", "maps that are stored side by side must stay on chip together")]
        errors += [error.at(scheduled.shape.name) for error in broken]
    return tuple(errors) or _overfull_buffers(schedule)


def _overfull_buffers(schedule: SystolicSchedule) -> tuple[SystolicError, ...]:
    """Return an error if the two map buffers cannot hold all maps that the schedule keeps on chip, although each alone
    may stay."""
    stays = stays_of(schedule.network, [scheduled.layer for scheduled in schedule.layers])
    number = first_unplaced(stays, [tiling.on_chip for tiling in schedule.tilings], schedule.room)
    if number is None:
        return ()
    return (
        UnsupportedError(
            "on_chip",
            "the two map buffers cannot hold this map and all others on chip, because a layer cannot write the buffer "
            "that it reads; set on_chip to false for some maps",
            where=schedule.layers[number].shape.name,
        ),
    )


def why_in_ddr(schedule: SystolicSchedule) -> tuple[str, ...]:
    """Return for each layer the reason why its output map is stored in DDR and not on chip, or "".

    The reason is "" if the map stays on chip, if no layer reads it, or if the array has no map buffers.
    """
    maps, room = handovers(schedule.network, [scheduled.layer for scheduled in schedule.layers]), schedule.room

    def why(handover: Handover, size: int, tiling: Tiling) -> str:
        if tiling.on_chip or not room.depth or not (handover.readers or handover.adders):
            return ""
        if problems := broken_stay_rules(handover):
            return "; ".join(problems)
        if size > room.depth:
            return f"it takes {size} words of a bank, with the maps next to it, and a map buffer has {room.depth}"
        return "the map buffers hold maps that save more DDR traffic, or its layer reads the only buffer with room"

    return tuple(map(why, maps, room.sizes, schedule.tilings))


def check_schedule(schedule: SystolicSchedule) -> SystolicSchedule:
    """Return the schedule unchanged if it is legal; else raise an error with every broken rule.

    Raises:
        SeveralFaultsError: Layers do not fit the array's format, or break rules; one fault per layer and rule.
        InvalidValueError: Layers join two maps, and the array's channel tiles cut channel blocks.
    """
    check_format(schedule.network, [scheduled.layer for scheduled in schedule.layers], schedule.array)
    layers = [scheduled.layer for scheduled in schedule.layers]
    check_blocks(layers, schedule.array.columns, schedule.array.lanes)
    errors = broken_rules(schedule)
    if errors:
        raise SeveralFaultsError(errors, f"the schedule of {schedule.network.name} is not legal")
    return schedule
