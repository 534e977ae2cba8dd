"""The Pareto front of frames/s and DSPs: the best schedule of every geometry that no other beats in both."""

from __future__ import annotations

from dataclasses import replace

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.layers import lower
from scheduler.systolic.schedule import SystolicSchedule, schedule_layers
from scheduler.systolic.search.bounds import least_cycles
from scheduler.systolic.search.solve import Candidate, solve
from scheduler.systolic.search.space import FASTEST, Goal, Request, Space, bare_array, geometries, space_for
from scheduler.systolic.search.task import Task, network_shapes


def pareto_front(
    network: QuantizedNetwork, board: Board, ddr: DdrTiming, request: Request = FASTEST
) -> tuple[SystolicSchedule, ...]:
    """The front, the fastest first; the request's goal is not looked at.

    Few arrays of a geometry are searched, so that all geometries take seconds: three Savers, two ports of each kind.
    """
    layers = lower(network, request.batch)
    space = _coarse(request.space or space_for(network, layers, board))
    networks = {width: network_shapes(network, layers, width, space) for width in space.shapes}
    bounds = {
        geometry: sum(least_cycles(geometry, networks[geometry.width], ddr, space))
        for geometry in geometries(space, board)
    }
    front: list[Candidate] = []
    for geometry, bound in sorted(bounds.items(), key=lambda entry: entry[1]):
        cycles = _cycles_to_beat(front, bare_array(geometry, board, space.bits).mac_dsps)
        if cycles is None or cycles > bound:
            key_to_beat = None if cycles is None else (cycles,)
            task = Task(geometry, networks[geometry.width], board, ddr, Goal(), space, key_to_beat)
            front = _with_point(front, solve(task)[0])
    points = sorted(front, key=lambda point: point.key[0])
    return tuple(schedule_layers(network, layers, point.array, point.tilings) for point in points)


def _cycles_to_beat(front: list[Candidate], dsps: int) -> int | None:
    """The fewest cycles of the points of at most so many DSPs; None where there is none."""
    return min((point.key[0] for point in front if point.array.dsps <= dsps), default=None)


def _with_point(front: list[Candidate], best: Candidate | None) -> list[Candidate]:
    """The front with a point more, and without those that it dominates; as it was where it dominates the point."""
    if best is None or any(_dominates(point, best) for point in front):
        return front
    return [*(point for point in front if not _dominates(best, point)), best]


def _coarse(space: Space) -> Space:
    return replace(
        space, save_rows=(1, 2, 4), chunks=space.chunks[-1:], map_ports=(2,), weight_ports=(2,), column_tiles=4
    )


def _dominates(point: Candidate, rival: Candidate) -> bool:
    """Better in both frames/s and DSPs, or as good."""
    return point.key[0] <= rival.key[0] and point.array.dsps <= rival.array.dsps
