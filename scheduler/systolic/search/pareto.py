"""The Pareto front of frames/s and DSPs: the schedules that no other schedule beats in both."""

from __future__ import annotations

from dataclasses import dataclass, replace

from boards.board import Board
from boards.progress import Progress, silent
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.placement import place
from scheduler.systolic.array import Array
from scheduler.systolic.schedule import SystolicSchedule, schedule_workload
from scheduler.systolic.search.bounds import least_cycles
from scheduler.systolic.search.problem import Problem
from scheduler.systolic.search.solve import Candidate, solve
from scheduler.systolic.search.space import Goal, Space, bare_array, ports_fit
from scheduler.systolic.search.task import Task


def pareto_front(problem: Problem, ddr: DdrTiming, progress: Progress = silent) -> tuple[SystolicSchedule, ...]:
    """Return the schedules that no other one beats in both frames/s and DSPs, the fastest first.

    Only a few arrays per geometry are searched, so that all geometries together take seconds. A search of all arrays
    may find a faster schedule.

    Args:
        problem: The problem.
        ddr: The DDR's timing.
        progress: Called with the number of geometries that were visited.
    """
    board, added = problem.board, any(layer.added for layer in problem.workload.layers)
    coarse = replace(problem, space=_coarse(problem.space, board, added))
    space, networks = coarse.space, coarse.networks
    bounds = {
        geometry: sum(least_cycles(geometry, networks[geometry.width], ddr, space)) for geometry in coarse.geometries
    }
    front: list[_Point] = []
    for number, (geometry, bound) in enumerate(sorted(bounds.items(), key=lambda entry: entry[1])):
        # Without a percentage, because the last geometries take no time.
        progress(f"searching the front, {number} of {len(bounds)} geometries")
        cycles = _cycles_to_beat(front, bare_array(geometry, board, space).mac_dsps)
        if cycles is None or cycles > bound:
            key_to_beat = None if cycles is None else (cycles,)
            task = Task(geometry, networks[geometry.width], board, ddr, Goal(), space, key_to_beat)
            best = solve(task)[0]
            if best is not None:
                front = _with_point(front, _Point(best, place(best.array, board)[1].dsp))
    schedules = [point.candidate for point in sorted(front, key=lambda point: point.cycles)]
    return tuple(schedule_workload(problem.workload, best.array, best.tilings) for best in schedules)


@dataclass(frozen=True)
class _Point:
    """A point of the Pareto front: the best schedule of one geometry, with its DSPs.

    Attributes:
        candidate: The candidate.
        dsps: DSPs of the whole array, including the requantisers.
    """

    candidate: Candidate
    dsps: int

    @property
    def cycles(self) -> int:
        return self.candidate.key[0]


def _cycles_to_beat(front: list[_Point], dsps: int) -> int | None:
    """Return the fewest cycles of the front's points with at most ``dsps`` DSPs, or None without such a point."""
    return min((point.cycles for point in front if point.dsps <= dsps), default=None)


def _with_point(front: list[_Point], best: _Point) -> list[_Point]:
    """Return the Pareto front with ``best`` added, without the points that it beats in both frames/s and DSPs.

    If a point of the front dominates the further point, the front is returned unchanged.
    """
    if any(_dominates(point, best) for point in front):
        return front
    return [*(point for point in front if not _dominates(best, point)), best]


def _coarse(space: Space, board: Board, added: bool = False) -> Space:
    """Return the search space with few values per array parameter. Parameters that the user pinned stay.

    Maps and weights have two ports each, or one each if the board has few ports.

    Args:
        space: The space.
        board: The board.
        added: Whether the Saver needs a port for maps that it adds.
    """
    ports = (2,) if ports_fit(Array(2, 4, 4, map_ports=2, weight_ports=2, added_maps=added), board) else (1,)

    def few(numbers: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number for number in numbers if number in wanted) or numbers

    return replace(
        space,
        save_rows=few(space.save_rows, (1, 2, 4)),
        chunks=space.chunks[-1:],
        map_ports=few(space.map_ports, ports),
        weight_ports=few(space.weight_ports, ports),
        column_tiles=4,
    )


def _dominates(point: _Point, rival: _Point) -> bool:
    """Return whether ``point`` is at least as good as ``rival`` in both frames/s and DSPs."""
    return point.cycles <= rival.cycles and point.dsps <= rival.dsps
