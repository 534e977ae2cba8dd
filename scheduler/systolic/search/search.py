"""The best array and tilings for a network on a board: every candidate of a stated space is priced or ruled out.

before             after
problem, goal      the schedule whose key is least over the whole space, and what was proven on the way

A geometry M × N × L is priced as one numpy grid of (arrays × tilings) a layer. Layers are independent once the buffers
are fixed, so the best tiling of each layer is taken for every size of the buffers at once. Geometries are visited in
the order of a bound that no candidate of theirs can beat (what a pass takes to begin, compute and end, DSPs of the PEs,
bytes that have to cross once); when the bound of the next one is above the best candidate, the search has proven it
best. The tests hold it against a search that prices every candidate one by one (tests/support/brute_force.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from boards.board import Board
from boards.errors import DoesNotFitError, SeveralFaultsError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DdrRate, DdrTiming, ddr_timing
from scheduler.systolic.area.resources import area, fixed_usage
from scheduler.systolic.model.clock import IDEAL_DDR
from scheduler.systolic.schedule import SystolicSchedule, schedule_workload
from scheduler.systolic.search.bounds import least_bytes, least_cycles
from scheduler.systolic.search.infeasible import nothing_fits
from scheduler.systolic.search.problem import Problem, problem_of
from scheduler.systolic.search.solve import Candidate
from scheduler.systolic.search.space import AT_A_RATE, FASTEST, TOLERANCE, Goal, bare_array
from scheduler.systolic.search.task import Task
from scheduler.systolic.search.workers import ALONE, Visit, Workers, visit_all
from scheduler.systolic.workload import workload_of


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
    problem: Problem, ddr: DdrTiming | None = None, goal: Goal = FASTEST, workers: Workers = ALONE
) -> SearchResult:
    """The schedule with the least key over the space, proven by pricing or bounding every geometry.

    ddr: the memory at a clock; the board's highest clock where it is None. If no candidate fits, raises the error
    of ``nothing_fits``, or DoesNotFitError with the rate of the fastest array if only the frame rate is too high.
    """
    fastest = _search(problem, ddr or ddr_timing(problem.board, problem.clocks[-1].mhz), goal, workers)
    return _cheapest_near(problem, fastest, workers)


def _cheapest_near(problem: Problem, fastest: SearchResult, workers: Workers) -> SearchResult:
    """Of the schedules within the goal's tolerance of the fewest cycles the one of least area, at the same clock."""
    goal = fastest.goal
    if goal.objective in AT_A_RATE or not goal.tolerance:
        return fastest
    cycles, size, transferred = fastest.key
    budget = int(cycles * (1 + goal.tolerance))
    rate = fastest.ddr.clock_mhz * 1e6 / (budget + 0.5)  # half a cycle, so that no rounding takes one away
    part = workers.of_part("cheapest of the fastest")
    cheapest, second = _solve(problem, fastest.ddr, Goal("resources", rate), (size, cycles, transferred), part)
    proof = replace(fastest.proof, arrays=fastest.proof.arrays + second.arrays, tolerance=goal.tolerance)
    if cheapest is None:
        return replace(fastest, proof=proof)
    size, cycles, transferred = cheapest.key
    schedule = schedule_workload(problem.workload, cheapest.array, cheapest.tilings)
    return replace(fastest, schedule=schedule, proof=proof, key=(cycles, size, transferred))


def _search(problem: Problem, ddr: DdrTiming, goal: Goal, workers: Workers) -> SearchResult:
    best, proof = _solve(problem, ddr, goal.of_batches(problem.workload.batch), None, workers)
    if best is None:
        raise _too_slow(problem, ddr, goal) or nothing_fits(problem)
    return _result(problem, best, ddr, goal, proof)


def _result(problem: Problem, best: Candidate, ddr: DdrTiming, goal: Goal, proof: Proof) -> SearchResult:
    """The candidate as a schedule."""
    return SearchResult(schedule_workload(problem.workload, best.array, best.tilings), ddr, goal, proof, best.key)


def search_clocks(
    problem: Problem, goal: Goal = FASTEST, workers: Workers = ALONE, rate: DdrRate | None = None
) -> SearchResult:
    """``search`` over the clocks of the board too, for the least time a frame: docs/explanation/scheduler.md, *Clocks*.

    A clock is left out where the array alone would take longer than the best so far; of the others every geometry is
    priced or ruled out. Where a rate is to be held, the highest clock is taken. Raises as ``search`` does.
    """
    highest, *lower_clocks = [ddr_timing(problem.board, clock.mhz, rate) for clock in reversed(problem.clocks)]
    best = _search(problem, highest, goal, workers)
    if goal.objective in AT_A_RATE:
        return best
    array_cycles = min(
        sum(least_cycles(geometry, problem.networks[geometry.width], IDEAL_DDR, problem.space))
        for geometry in problem.geometries
    )
    for ddr in lower_clocks:
        same_time = math.ceil(best.key[0] * ddr.clock_mhz / best.ddr.clock_mhz)  # as many cycles of this clock
        if array_cycles >= same_time:
            break
        part, in_batches = workers.of_part(f"at {ddr.clock_mhz:.4g} MHz"), goal.of_batches(problem.workload.batch)
        candidate, proof = _solve(problem, ddr, in_batches, (same_time,), part)
        proof = best.proof + proof
        if candidate is not None:
            best = _result(problem, candidate, ddr, goal, proof)
        best = replace(best, proof=proof)
    return _cheapest_near(problem, best, workers)


def choose(network: QuantizedNetwork, board: Board, clock_mhz: float | None = None, batch: int = 1) -> SearchResult:
    """The schedule that ``generate`` takes where the user gives none: the most frames a second, at ``clock_mhz``
    or, where it is None, at the best clock of the board. Raises as ``search`` does."""
    problem, goal = problem_of(workload_of(network, batch), board), Goal(tolerance=TOLERANCE)
    if clock_mhz is None:
        return search_clocks(problem, goal)
    return search(problem, ddr_timing(board, clock_mhz), goal)


def _solve(
    problem: Problem, ddr: DdrTiming, goal: Goal, key_to_beat: tuple[int, ...] | None, workers: Workers
) -> tuple[Candidate | None, Proof]:
    """The best at one clock, None where no key is less than ``key_to_beat``. goal: of whole batches."""
    visits = _visits(problem, ddr, goal, key_to_beat)
    best, priced, arrays = visit_all(visits, key_to_beat, workers)
    return best, Proof(len(visits), priced, len(visits) - priced, arrays)


def _visits(problem: Problem, ddr: DdrTiming, goal: Goal, key_to_beat: tuple[int, ...] | None) -> list[Visit]:
    """The most promising geometry first; what the frame rate rules out is not visited. goal: of whole batches."""
    visits = []
    for geometry in problem.geometries:
        network = problem.networks[geometry.width]
        cycles = sum(least_cycles(geometry, network, ddr, problem.space))
        if cycles <= goal.cycle_budget(ddr):
            task = Task(geometry, network, problem.board, ddr, goal, problem.space, key_to_beat)
            visits.append(Visit(_bound(task, cycles), task))
    return sorted(visits, key=lambda visit: (visit.bound, visit.task.geometry.rows, visit.task.geometry.columns))


def _bound(task: Task, cycles: int) -> tuple[int, ...]:
    """The head of a key that no candidate of the geometry is below."""
    array_area = area(fixed_usage(bare_array(task.geometry, task.board, task.space), task.board), task.board)
    if task.goal.objective == "resources":
        return (array_area, cycles)
    if task.goal.objective == "ddr":
        return (sum(least_bytes(task.geometry, task.network)), cycles)
    return (cycles, array_area)


def _too_slow(problem: Problem, ddr: DdrTiming, goal: Goal) -> DoesNotFitError | None:
    """Return the error if it is only the frame rate that nothing reaches."""
    if not goal.frames_per_second:
        return None
    try:
        fastest = search(problem, ddr)
    except (DoesNotFitError, SeveralFaultsError):
        return None
    workload, board = problem.workload, problem.board
    rate = ddr.clock_mhz * 1e6 * workload.batch / fastest.key[0]
    return DoesNotFitError(
        f"{workload.network.name} on {board.title} at {ddr.clock_mhz:g} MHz",
        "frames/s",
        goal.frames_per_second,
        round(rate, 1),
        nearest=f"the array {fastest.schedule.array}, modelled at {rate:.1f} frames/s",
        remedy="ask for a lower rate, or take a larger board or a higher clock",
    )
