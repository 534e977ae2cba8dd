"""The best array and tilings for a network on a board: every candidate of a stated space is priced or ruled out.

before                      after
network, board, request     the schedule whose key is least over the whole space, and what was proven on the way

A geometry M × N × L is priced as one numpy grid of (arrays × tilings) a layer. Layers are independent once the buffers
are fixed, so the best tiling of each layer is taken for every size of the buffers at once. Geometries are visited in
the order of a bound that no candidate of theirs can beat (what a pass takes to begin, compute and end, DSPs of the PEs,
bytes that have to cross once); when the bound of the next one is above the best candidate, the search has proven it
best. ``brute_force`` prices every candidate one by one; the tests hold the two against each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from boards.board import Board
from boards.errors import DoesNotFitError, SeveralFaultsError
from boards.facts import Clock
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.systolic.area.resources import area, fixed_usage
from scheduler.systolic.layers import lower
from scheduler.systolic.model.clock import IDEAL_DDR, highest_mhz
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.schedule import SystolicSchedule, schedule_layers
from scheduler.systolic.search.bounds import least_bytes, least_cycles
from scheduler.systolic.search.infeasible import nothing_fits
from scheduler.systolic.search.solve import Candidate
from scheduler.systolic.search.space import (
    AT_A_RATE,
    FASTEST,
    TOLERANCE,
    Geometry,
    Goal,
    Request,
    Space,
    bare_array,
    geometries,
    space_for,
)
from scheduler.systolic.search.task import NetworkShapes, Task, network_shapes
from scheduler.systolic.search.workers import ALONE, Visit, Workers, visit_all


@dataclass(frozen=True)
class Proof:
    """geometries: of the space. priced: in full; ruled_out: by a bound. arrays: that were priced. tolerance: of the
    fewest cycles, within which the schedule is the one of least area."""

    geometries: int
    priced: int
    ruled_out: int
    arrays: int
    tolerance: float = 0.0

    def __add__(self, clock: Proof) -> Proof:
        """With that of another clock."""
        return Proof(
            self.geometries + clock.geometries,
            self.priced + clock.priced,
            self.ruled_out + clock.ruled_out,
            self.arrays + clock.arrays,
        )


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best schedule of a space. ddr: the memory at the schedule's clock. key: what was least."""

    schedule: SystolicSchedule
    ddr: DdrTiming
    goal: Goal
    proof: Proof
    key: tuple[int, ...] = field(repr=False)


def search(
    network: QuantizedNetwork,
    board: Board,
    ddr: DdrTiming | None = None,
    request: Request = FASTEST,
    workers: Workers = ALONE,
) -> SearchResult:
    """The schedule with the least key over the space, proven by pricing or bounding every geometry.

    ddr: the memory at a clock; the board's highest clock where it is None. If no candidate fits, raises the error
    of ``nothing_fits``, or DoesNotFitError with the rate of the fastest array if only the frame rate is too high.
    """
    problem = _problem(network, board, request)
    fastest = _search(problem, ddr or ddr_timing(board, problem.clocks()[-1].mhz), workers)
    return _cheapest_near(problem, fastest, workers)


def _cheapest_near(problem: _Problem, fastest: SearchResult, workers: Workers) -> SearchResult:
    """Of the schedules within the goal's tolerance of the fewest cycles the one of least area, at the same clock."""
    goal = problem.request.goal
    if goal.objective in AT_A_RATE or not goal.tolerance:
        return fastest
    cycles, size, transferred = fastest.key
    budget = int(cycles * (1 + goal.tolerance))
    rate = fastest.ddr.clock_mhz * 1e6 / (budget + 0.5)  # half a cycle, so that no rounding takes one away
    near = replace(problem, goal=Goal("resources", rate))
    cheapest, second = _solve(
        near, fastest.ddr, (size, cycles, transferred), workers.of_part("cheapest of the fastest")
    )
    proof = replace(fastest.proof, arrays=fastest.proof.arrays + second.arrays, tolerance=goal.tolerance)
    if cheapest is None:
        return replace(fastest, proof=proof)
    size, cycles, transferred = cheapest.key
    return replace(problem.result(cheapest, fastest.ddr, proof), key=(cycles, size, transferred))


def _search(problem: _Problem, ddr: DdrTiming, workers: Workers) -> SearchResult:
    best, proof = _solve(problem, ddr, None, workers)
    if best is None:
        too_slow = _too_slow(problem, ddr)
        raise too_slow or nothing_fits(problem.network, problem.board, problem.space, problem.networks)
    return problem.result(best, ddr, proof)


def search_clocks(
    network: QuantizedNetwork,
    board: Board,
    request: Request = FASTEST,
    workers: Workers = ALONE,
    rate: DdrRate | None = None,
) -> SearchResult:
    """``search`` over the clocks of the board too, for the least time a frame: docs/explanation/scheduler.md, *Clocks*.

    A clock is left out where the array alone would take longer than the best so far; of the others every geometry is
    priced or ruled out. Where a rate is to be held, the highest clock is taken. Raises as ``search`` does.
    """
    problem = _problem(network, board, request)
    highest, *lower_clocks = [ddr_timing(board, clock.mhz, rate) for clock in reversed(problem.clocks())]
    best = _search(problem, highest, workers)
    if request.goal.objective in AT_A_RATE:
        return best
    array_cycles = min(
        sum(least_cycles(geometry, problem.networks[geometry.width], IDEAL_DDR, problem.space))
        for geometry in geometries(problem.space, board)
    )
    for ddr in lower_clocks:
        same_time = math.ceil(best.key[0] * ddr.clock_mhz / best.ddr.clock_mhz)  # as many cycles of this clock
        if array_cycles >= same_time:
            break
        candidate, proof = _solve(problem, ddr, (same_time,), workers.of_part(f"at {ddr.clock_mhz:.4g} MHz"))
        proof = best.proof + proof
        if candidate is not None:
            best = problem.result(candidate, ddr, proof)
        best = replace(best, proof=proof)
    return _cheapest_near(problem, best, workers)


def choose(network: QuantizedNetwork, board: Board, clock_mhz: float | None = None, batch: int = 1) -> SearchResult:
    """The schedule that ``generate`` takes where the user gives none: the most frames a second, at ``clock_mhz``
    or, where it is None, at the best clock of the board. Raises as ``search`` does."""
    request = Request(Goal(tolerance=TOLERANCE), batch=batch)
    if clock_mhz is None:
        return search_clocks(network, board, request)
    return search(network, board, ddr_timing(board, clock_mhz), request)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is the same at every clock. goal: of whole batches. networks: by the width of an array."""

    network: QuantizedNetwork
    layers: tuple[Layer, ...]
    board: Board
    request: Request
    goal: Goal
    space: Space
    geometries: tuple[Geometry, ...]
    networks: dict[tuple[int, int], NetworkShapes]

    def clocks(self) -> tuple[Clock, ...]:
        """Of the board, those at which the DSPs may run too."""
        return self.board.clocks(highest_mhz(self.board, self.space.dsp_clock))

    def result(self, best: Candidate, ddr: DdrTiming, proof: Proof) -> SearchResult:
        """The candidate as a schedule."""
        schedule = schedule_layers(self.network, self.layers, best.array, best.tilings)
        return SearchResult(schedule, ddr, self.request.goal, proof, best.key)


def _problem(network: QuantizedNetwork, board: Board, request: Request) -> _Problem:
    layers = lower(network, request.batch, request.fused)
    space = request.space or space_for(network, layers, board)
    goal = replace(request.goal, frames_per_second=request.goal.frames_per_second / request.batch)
    networks = {width: network_shapes(network, layers, width, space) for width in space.shapes}
    return _Problem(network, layers, board, request, goal, space, tuple(geometries(space, board)), networks)


def _solve(
    problem: _Problem, ddr: DdrTiming, key_to_beat: tuple[int, ...] | None, workers: Workers
) -> tuple[Candidate | None, Proof]:
    """The best at one clock, None where no key is less than ``key_to_beat``."""
    visits = _visits(problem, ddr, key_to_beat)
    best, priced, arrays = visit_all(visits, key_to_beat, workers)
    return best, Proof(len(visits), priced, len(visits) - priced, arrays)


def _visits(problem: _Problem, ddr: DdrTiming, key_to_beat: tuple[int, ...] | None) -> list[Visit]:
    """The most promising geometry first; what the frame rate rules out is not visited."""
    visits = []
    for geometry in problem.geometries:
        network = problem.networks[geometry.width]
        cycles = sum(least_cycles(geometry, network, ddr, problem.space))
        if cycles <= problem.goal.cycle_budget(ddr):
            bound = _bound(geometry, network, problem, cycles)
            task = Task(geometry, network, problem.board, ddr, problem.goal, problem.space, key_to_beat)
            visits.append(Visit(bound, task))
    return sorted(visits, key=lambda visit: (visit.bound, visit.task.geometry.rows, visit.task.geometry.columns))


def _bound(geometry: Geometry, network: NetworkShapes, problem: _Problem, cycles: int) -> tuple[int, ...]:
    """The head of a key that no candidate of the geometry is below."""
    board, objective = problem.board, problem.goal.objective
    array_area = area(fixed_usage(bare_array(geometry, board, problem.space), board), board)
    if objective == "resources":
        return (array_area, cycles)
    if objective == "ddr":
        return (sum(least_bytes(geometry, network)), cycles)
    return (cycles, array_area)


def _too_slow(problem: _Problem, ddr: DdrTiming) -> DoesNotFitError | None:
    """Return the error if it is only the frame rate that nothing reaches."""
    network, board, batch = problem.network, problem.board, problem.request.batch
    asked_rate = problem.request.goal.frames_per_second
    if not asked_rate:
        return None
    try:
        fastest = search(network, board, ddr, Request(Goal(), problem.space, batch, problem.request.fused))
    except (DoesNotFitError, SeveralFaultsError):
        return None
    rate = ddr.clock_mhz * 1e6 * batch / fastest.key[0]
    return DoesNotFitError(
        f"{network.name} on {board.title} at {ddr.clock_mhz:g} MHz",
        "frames/s",
        asked_rate,
        round(rate, 1),
        nearest=f"the array {fastest.schedule.array}, modelled at {rate:.1f} frames/s",
        remedy="ask for a lower rate, or take a larger board or a higher clock",
    )
