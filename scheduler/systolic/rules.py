"""Legality of a schedule, written as data: every rule with the sentence that a hand edit which breaks it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from scheduler.systolic.formats import check_format
from scheduler.systolic.layers import Job
from scheduler.systolic.on_chip import handovers, hindrances
from scheduler.systolic.tiling import SystolicSchedule
from scheduler.systolic.work import ORDERS, Needs, Way, Work, needs, way_of, work_of


@dataclass(frozen=True)
class Asked:
    """One layer as somebody wants it. order: any text, until a rule says otherwise."""

    work: Work
    array: Array
    way: Way
    needs: Needs


@dataclass(frozen=True)
class TilingRule:
    """sentence: what is required; came: what was asked for."""

    sentence: str
    holds: Callable[[Asked], bool]
    came: Callable[[Asked], str]


def _one_tile(asked: Asked) -> bool:
    return asked.work.out_height <= asked.array.rows


TILING_RULES = (
    TilingRule(f"order is one of {', '.join(ORDERS)}", lambda a: a.way.order in ORDERS, lambda a: repr(a.way.order)),
    TilingRule(
        "a layer of one row tile is streamed and not overlapped, because there is no next tile",
        lambda a: not _one_tile(a) or (a.way.order == "streamed" and not a.way.overlap),
        lambda a: f"{a.way.order}{' with overlap' if a.way.overlap else ''}",
    ),
    TilingRule(
        "strip_columns is a multiple of the pool's stride, so that no window is cut",
        lambda a: a.way.cut.count == 1 or a.way.cut.width % a.work.pool_stride == 0,
        lambda a: f"{a.way.cut.width} columns with stride {a.work.pool_stride}",
    ),
    TilingRule(
        "a layer with a pool of stride 1 is one strip, because every column needs its right neighbour",
        lambda a: a.way.cut.count == 1 or not (a.work.pool_size == 2 and a.work.pool_stride == 1),
        lambda a: f"{a.way.cut.count} strips",
    ),
    TilingRule(
        "the row buffer holds the rows of a tile, of the next one where they overlap, or all where inputs stay",
        lambda a: a.needs.row_depth <= a.array.row_depth,
        lambda a: f"{a.needs.row_depth} words a bank of row_depth={a.array.row_depth}",
    ),
    TilingRule(
        "the weight buffer holds a tile and the one that follows, or all tiles where weights stay",
        lambda a: a.needs.weight_depth <= a.array.weight_depth,
        lambda a: f"{a.needs.weight_depth} steps of weight_depth={a.array.weight_depth}",
    ),
    TilingRule(
        "the Saver keeps the sums that wait for the tile below",
        lambda a: a.needs.kept_depth <= a.array.kept_depth,
        lambda a: f"{a.needs.kept_depth} sums of kept_depth={a.array.kept_depth}",
    ),
    TilingRule(
        "a bank of a map buffer holds its rows of a map that stays on chip",
        lambda a: a.needs.map_depth <= a.array.map_depth,
        lambda a: f"{a.needs.map_depth} words of map_depth={a.array.map_depth}",
    ),
    TilingRule(
        "the Saver keeps the requantisers of all channel tiles",
        lambda a: a.needs.channel_tiles <= a.array.channel_tiles,
        lambda a: f"{a.needs.channel_tiles} tiles of channel_tiles={a.array.channel_tiles}",
    ),
)


def broken(asked: Asked) -> tuple[str, ...]:
    """A sentence for every rule that does not hold."""
    return tuple(f"{rule.sentence} ({rule.came(asked)})" for rule in TILING_RULES if not rule.holds(asked))


def ask(array: Array, work: Work, way: Way, following: int) -> Asked:
    return Asked(work, array, way, needs(work, array.rows, array.columns, way, following))


def broken_layers(
    network: QuantizedNetwork, jobs: Sequence[Job], array: Array, chosen: Sequence[Way]
) -> tuple[str, ...]:
    """``layer: sentence`` for every rule that a layer breaks. chosen: how each job is tiled."""
    works = [work_of(network, job, array) for job in jobs]
    following = [work.steps for work in works[1:]] + [0]
    problems = []
    for work, way, after, over in zip(works, chosen, following, handovers(network, jobs), strict=True):
        found = broken(ask(array, work, way, after)) + (hindrances(over) if way.on_chip else ())
        problems += [f"{work.name}: {sentence}" for sentence in found]
    return tuple(problems)


def check_schedule(schedule: SystolicSchedule) -> SystolicSchedule:
    """The schedule itself, or ScheduleError with every rule that a layer breaks."""
    network, array = schedule.network, schedule.array
    check_format(network, array)
    chosen = [way_of(network, tiling, array) for tiling in schedule.tilings]
    problems = broken_layers(network, [tiling.job for tiling in schedule.tilings], array, chosen)
    if problems:
        raise ScheduleError(f"the schedule of {schedule.network.name} is not legal:\n  " + "\n  ".join(problems))
    return schedule
