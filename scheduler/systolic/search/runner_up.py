"""The next best tiling of each layer on the same array, and how much worse it is, as the reason for the chosen one."""

from __future__ import annotations

from dataclasses import replace

from scheduler.systolic.model.cost import Cost, LayerCost, cheapest
from scheduler.systolic.model.cycles import PARTS
from scheduler.systolic.needs import fits
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import buffer_needs, column_cuts, tilings


def runners_up(schedule: SystolicSchedule, costs: Cost) -> tuple[str, ...]:
    """Return one text line per layer that compares the chosen tiling with the next best one on the same array.

    Args:
        schedule: The schedule.
        costs: Its cost.
    """
    array, shapes = schedule.array, [scheduled.shape for scheduled in schedule.layers]
    lines = []
    for index, (scheduled, chosen) in enumerate(zip(schedule.layers, costs.layers, strict=True)):
        shape, next_steps = scheduled.shape, steps_after(shapes, index)
        rivals = [
            replace(tiling, on_chip=scheduled.tiling.on_chip)
            for tiling in tilings(shape, array.rows, column_cuts(schedule.network, scheduled.layer, array))
        ]
        rivals = [
            tiling
            for tiling in rivals
            if tiling != chosen.tiling
            and fits(buffer_needs(shape, array.rows, array.columns, tiling, next_steps), array)
        ]
        if rivals:
            lines.append(_comparison(chosen, cheapest(array, shape, rivals, next_steps, costs.ddr, index == 0)))
        else:
            lines.append("no other way fits the buffers")
    return tuple(lines)


def _comparison(chosen: LayerCost, rival: LayerCost) -> str:
    """Return the line that compares a layer's next best tiling with the chosen one: lost cycles with their main cause,
    and bytes."""
    lost = {name: int(getattr(rival.cycles, name)) - int(getattr(chosen.cycles, name)) for name in PARTS}
    worst = max(lost, key=lambda name: lost[name])
    overlap = "" if rival.tiling.overlap or not chosen.tiling.overlap else ", no overlap"
    tiling = f"{rival.tiling.order}, {rival.tiling.columns.count} column tile(s){overlap}"
    traffic = rival.traffic.total - chosen.traffic.total
    if rival.total == chosen.total:
        return f"{tiling}: as fast, {traffic:+,} bytes"
    return f"{tiling}: {rival.total - chosen.total:+,} cycles ({worst} {lost[worst]:+,}), {traffic:+,} bytes"
