"""The best array and tilings for a network on a board: every candidate of a space is priced or ruled out.

before             after
problem, goal      the schedule with the smallest key of the whole space, and the counts of the proof

A geometry M × N × L is priced as one numpy grid of (arrays × tilings) per layer. For fixed buffer depths the layers are
independent. The best tiling of each layer is therefore found for all depths at once. Geometries are visited in the
order of a lower bound of their keys. The bound counts what a pass needs to begin, compute and drain, the DSPs of the
PEs, and the bytes that have to be moved once. When the next bound is above the best key, the best candidate is proven.
The tests compare the search with one that prices every candidate one by one (tests/support/brute_force.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

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
from scheduler.systolic.search.space import AT_A_RATE, FASTEST, TOLERANCE, Geometry, Goal, bare_array
from scheduler.systolic.search.task import Task
from scheduler.systolic.search.workers import ALONE, Visit, Workers, visit_all
from scheduler.systolic.workload import workload_of


@dataclass(frozen=True)
class Proof:
    """The counts of a schedule search that prove its result: how many geometries were priced, and how many ruled out by
    a bound.

    Attributes:
        geometries: Geometries of the space.
        priced: Geometries that were priced.
        ruled_out: Geometries that a lower bound ruled out.
        arrays: Arrays, with buffer depths, that were priced.
        tolerance: The share above the fewest cycles within which the schedule with the smallest area was taken.
    """

    geometries: int
    priced: int
    ruled_out: int
    arrays: int
    tolerance: float = 0.0

    def __add__(self, clock: Proof) -> Proof:
        """Return the sum of the counts of this search and of a search at another clock."""
        return Proof(
            self.geometries + clock.geometries,
            self.priced + clock.priced,
            self.ruled_out + clock.ruled_out,
            self.arrays + clock.arrays,
        )


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best schedule that a search found, with its clock and the counts that prove it.

    Attributes:
        schedule: The schedule.
        ddr: The DDR's timing at the schedule's clock.
        goal: The goal of the search.
        proof: The counts of the search.
        key: The numbers that the search minimised, the most important first.
    """

    schedule: SystolicSchedule
    ddr: DdrTiming
    goal: Goal
    proof: Proof
    key: tuple[int, ...] = field(repr=False)


def search(
    problem: Problem, ddr: DdrTiming | None = None, goal: Goal = FASTEST, workers: Workers = ALONE
) -> SearchResult:
    """Return the best schedule for the goal at one clock, proven by pricing or bounding every geometry of the space.

    Args:
        problem: The problem.
        ddr: The DDR's timing at a clock, or None for the board's target clock.
        goal: The goal.
        workers: The processes that price the geometries.

    Raises:
        DoesNotFitError: No candidate fits the board, or none reaches the frame rate.
        SeveralFaultsError: No array of the space holds the network, see ``nothing_fits``.
    """
    fastest = _search(problem, ddr or ddr_timing(problem.board, problem.clocks[-1].mhz), goal, workers)
    return _cheapest_near(problem, fastest, workers)


def _cheapest_near(problem: Problem, fastest: SearchResult, workers: Workers) -> SearchResult:
    """Return the schedule of smallest area whose cycles are within the goal's tolerance of ``fastest``, at the same
    clock."""
    goal = fastest.goal
    if goal.objective in AT_A_RATE or not goal.tolerance:
        return fastest
    cycles, size, transferred = fastest.key
    budget = int(cycles * (1 + goal.tolerance))
    rate = fastest.ddr.clock_mhz * 1e6 / (budget + 0.5)  # half a cycle more, so that rounding cannot lower the budget
    part = workers.for_part("cheapest of the fastest")
    cheapest, second = _solve(problem, fastest.ddr, Goal("resources", rate), (size, cycles, transferred), part)
    proof = replace(fastest.proof, arrays=fastest.proof.arrays + second.arrays, tolerance=goal.tolerance)
    if cheapest is None:
        return replace(fastest, proof=proof)
    size, cycles, transferred = cheapest.key
    schedule = schedule_workload(problem.workload, cheapest.array, cheapest.tilings)
    return replace(fastest, schedule=schedule, proof=proof, key=(cycles, size, transferred))


def _search(problem: Problem, ddr: DdrTiming, goal: Goal, workers: Workers) -> SearchResult:
    best, proof = _solve(problem, ddr, goal.per_batch(problem.workload.batch), None, workers)
    if best is None:
        raise _too_slow(problem, ddr, goal) or nothing_fits(problem)
    return _result(problem, best, ddr, goal, proof)


def _result(problem: Problem, best: Candidate, ddr: DdrTiming, goal: Goal, proof: Proof) -> SearchResult:
    """Return a candidate (array and tilings) as the result of a search."""
    return SearchResult(schedule_workload(problem.workload, best.array, best.tilings), ddr, goal, proof, best.key)


def search_clocks(
    problem: Problem, goal: Goal = FASTEST, workers: Workers = ALONE, rate: DdrRate | None = None
) -> SearchResult:
    """Return the schedule with the shortest time per frame over all clocks of the board, with its proof.

    A clock is skipped if the array alone would take longer than the best schedule so far. At the other clocks every
    geometry is priced or ruled out. An objective with a required frame rate takes the highest clock.
    docs/explanation/scheduler.md, *Clocks*, has an example.

    Raises:
        DoesNotFitError: As ``search``.
        SeveralFaultsError: As ``search``.
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
        same_time = math.ceil(best.key[0] * ddr.clock_mhz / best.ddr.clock_mhz)  # in cycles of this clock
        if array_cycles >= same_time:
            break
        part, in_batches = workers.for_part(f"at {ddr.clock_mhz:.4g} MHz"), goal.per_batch(problem.workload.batch)
        candidate, proof = _solve(problem, ddr, in_batches, (same_time,), part)
        proof = best.proof + proof
        if candidate is not None:
            best = _result(problem, candidate, ddr, goal, proof)
        best = replace(best, proof=proof)
    return _cheapest_near(problem, best, workers)


def choose(network: QuantizedNetwork, board: Board, clock_mhz: float | None = None, batch: int = 1) -> SearchResult:
    """Return the schedule that ``systolic generate`` takes if the user gives none, which is the fastest one.

    Args:
        network: The network.
        board: The board.
        clock_mhz: The clock, or None for the best clock of the board.
        batch: Frames per batch.

    Raises:
        DoesNotFitError: As ``search``.
        SeveralFaultsError: As ``search``.
    """
    problem, goal = problem_of(workload_of(network, batch), board), Goal(tolerance=TOLERANCE)
    if clock_mhz is None:
        return search_clocks(problem, goal)
    return search(problem, ddr_timing(board, clock_mhz), goal)


def _solve(
    problem: Problem, ddr: DdrTiming, goal: Goal, key_to_beat: tuple[int, ...] | None, workers: Workers
) -> tuple[Candidate | None, Proof]:
    """Return the best candidate (array and tilings) at one clock, or None if none beats ``key_to_beat``, and the proof.

    ``goal`` counts batches, not frames.
    """
    visits = _visits(problem, ddr, goal, key_to_beat)
    best, priced, arrays = visit_all(visits, key_to_beat, workers)
    return best, Proof(len(visits), priced, len(visits) - priced, arrays)


def _visits(problem: Problem, ddr: DdrTiming, goal: Goal, key_to_beat: tuple[int, ...] | None) -> list[Visit]:
    """Return the geometries to price in ascending order of their lower bounds, without those that are too slow for the
    goal.

    ``goal`` counts batches, not frames.
    """
    visits = []
    for geometry, cycles in _least_cycles(problem, ddr):
        if cycles <= goal.cycle_budget(ddr):
            network = problem.networks[geometry.width]
            task = Task(geometry, network, problem.board, ddr, goal, problem.space, key_to_beat)
            visits.append(Visit(_bound(task, cycles), task))
    return sorted(visits, key=lambda visit: (visit.bound, visit.task.geometry.rows, visit.task.geometry.columns))


@lru_cache(maxsize=1)
def _least_cycles(problem: Problem, ddr: DdrTiming) -> tuple[tuple[Geometry, int], ...]:
    """Return each geometry with a lower bound of a frame's cycles, from a cache for the second search at a clock."""
    return tuple(
        (geometry, sum(least_cycles(geometry, problem.networks[geometry.width], ddr, problem.space)))
        for geometry in problem.geometries
    )


def _bound(task: Task, cycles: int) -> tuple[int, ...]:
    """Return a lower bound of the first numbers that the search minimises, for all candidates of the task's
    geometry."""
    array_area = area(fixed_usage(bare_array(task.geometry, task.board, task.space), task.board), task.board)
    if task.goal.objective == "resources":
        return (array_area, cycles)
    if task.goal.objective == "ddr":
        return (sum(least_bytes(task.geometry, task.network)), cycles)
    return (cycles, array_area)


def _too_slow(problem: Problem, ddr: DdrTiming, goal: Goal) -> DoesNotFitError | None:
    """Return the error if schedules fit the board but none reaches the required frame rate, else None."""
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
