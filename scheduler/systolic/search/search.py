"""The best array and tilings for a network on a board: every candidate of a stated space is priced or ruled out.

before                      after
network, board, objective   the schedule whose key is least over the whole space, and what was proven on the way

A geometry M × N × L is priced as one numpy grid of (knobs × ways) a layer. Layers are independent once the buffers
are fixed, so the best way of each layer is taken for every size of the buffers at once. Geometries are visited in the
order of a bound that no candidate of theirs can beat (what a pass takes to begin, compute and end, DSPs of the PEs,
bytes that have to cross once); when the bound of the next one is above the best found, the search has proven it best.
``brute_force`` prices every candidate one by one; the tests hold the two against each other.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from boards.board import Board
from boards.errors import ScheduleError, SystolicError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DDR_EFFICIENCY, DdrTiming, ddr_timing
from scheduler.systolic.area.resources import fixed_usage
from scheduler.systolic.array import Array
from scheduler.systolic.infeasible import nothing_fits
from scheduler.systolic.layers import lower
from scheduler.systolic.model.clock import NO_WAIT
from scheduler.systolic.search.bounds import least_bytes, least_cycles
from scheduler.systolic.search.price import Candidate, solve
from scheduler.systolic.search.space import HELD, MOST_FRAMES, Geometry, Goal, Space, area, geometries, space_of
from scheduler.systolic.search.task import Layers, Task, layers_of
from scheduler.systolic.tiling import SystolicSchedule
from scheduler.systolic.work import Way, tiling_of

AT_ONCE = 64
"""Geometries that workers have at a time, at the most; an executor is not asked how many it has."""

TRIES = 3
"""Times that a geometry is given to workers before it is priced here."""

_Answer: TypeAlias = "Future[tuple[Candidate | None, int]]"


@dataclass(frozen=True)
class Proof:
    """geometries of the space; priced in full; ruled out by a bound. candidates: arrays × ways priced."""

    geometries: int
    priced: int
    ruled_out: int
    arrays: int

    def __add__(self, other: Proof) -> Proof:
        """Of another clock."""
        return Proof(
            self.geometries + other.geometries,
            self.priced + other.priced,
            self.ruled_out + other.ruled_out,
            self.arrays + other.arrays,
        )


@dataclass(frozen=True, eq=False)
class Found:
    schedule: SystolicSchedule
    ddr: DdrTiming
    goal: Goal
    proof: Proof
    key: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True)
class _Visit:
    """bound: no candidate of the geometry has a lesser key."""

    bound: tuple[int, ...]
    geometry: Geometry


def search(
    network: QuantizedNetwork,
    board: Board,
    ddr: DdrTiming | None = None,
    goal: Goal = MOST_FRAMES,
    space: Space | None = None,
    executor: Executor | None = None,
    tell: Callable[[str], None] = lambda _: None,
    batch: int = 1,
) -> Found:
    """The schedule with the least key over the space, proven by pricing or bounding every geometry.

    ddr: the memory at a clock; the board's highest clock where it is None. executor: any
    ``concurrent.futures.Executor``; geometries whose worker dies are given again. batch: frames that share the weights'
    passage. Raises ScheduleError where no candidate fits: with the least geometry that would, and what the board lacks
    for it.
    """
    ddr = ddr or ddr_timing(board, board.clocks()[-1].mhz)
    asked = _asked(network, board, goal, space, batch)
    best, proof = _solve(asked, ddr, None, executor, tell)
    if best is None:
        too_slow = _too_slow(network, board, ddr, goal, asked.space, batch)
        raise ScheduleError(too_slow or nothing_fits(network, board, asked.space, asked.made))
    return Found(schedule_of(network, best.array, best.ways, batch), ddr, goal, proof, best.key)


def search_clocks(
    network: QuantizedNetwork,
    board: Board,
    goal: Goal = MOST_FRAMES,
    space: Space | None = None,
    executor: Executor | None = None,
    tell: Callable[[str], None] = lambda _: None,
    batch: int = 1,
    efficiency: float = DDR_EFFICIENCY,
) -> Found:
    """``search`` over the clocks of the board too, for the least time a frame: docs/explanation/scheduler.md, *Clocks*.

    A clock is left out where the array alone would take longer than the best found; of the others every geometry is
    priced or ruled out. Where a rate is to be held, the highest clock is taken. Raises as ``search`` does.
    """
    highest, *others = [ddr_timing(board, clock.mhz, efficiency) for clock in reversed(board.clocks())]
    best = search(network, board, highest, goal, space, executor, tell, batch)
    if goal.objective in HELD:
        return best
    asked = _asked(network, board, goal, space, batch)
    least = min(
        sum(least_cycles(g, asked.made[g.columns, g.lanes], DdrTiming(1.0, NO_WAIT, 0, 0), asked.space))
        for g in geometries(asked.space, board)
    )
    for ddr in others:
        bound = math.ceil(best.key[0] * ddr.clock_mhz / best.ddr.clock_mhz)  # cycles of the same time
        if least >= bound:
            break
        found, proof = _solve(asked, ddr, (bound,), executor, tell)
        proof = best.proof + proof
        if found is not None:
            schedule = schedule_of(network, found.array, found.ways, batch)
            best = Found(schedule, ddr, goal, proof, found.key)
        best = replace(best, proof=proof)
    return best


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is the same at every clock. goal: of whole batches."""

    board: Board
    goal: Goal
    space: Space
    made: dict[tuple[int, int], Layers]


def _asked(network: QuantizedNetwork, board: Board, goal: Goal, space: Space | None, batch: int) -> _Asked:
    space = space or space_of(network, board, batch=batch)
    jobs = lower(network, batch)
    wanted = replace(goal, frames_per_second=goal.frames_per_second / batch)
    made = {shape: layers_of(network, jobs, *shape, space.strips, space.bits) for shape in space.shapes}
    return _Asked(board, wanted, space, made)


def _solve(
    asked: _Asked, ddr: DdrTiming, bound: tuple[int, ...] | None, executor: Executor | None, tell: Callable[[str], None]
) -> tuple[Candidate | None, Proof]:
    """The best at one clock, None where no key is less than ``bound``."""
    visits = _visits(asked.space, asked.board, asked.goal, ddr, asked.made)
    tasks = [
        (
            v,
            Task(
                v.geometry,
                asked.made[v.geometry.columns, v.geometry.lanes],
                asked.board,
                ddr,
                asked.goal,
                asked.space,
                bound,
            ),
        )
        for v in visits
    ]
    best, priced, arrays = _run(tasks, executor, tell, bound)
    return best, Proof(len(visits), priced, len(visits) - priced, arrays)


def _too_slow(
    network: QuantizedNetwork, board: Board, ddr: DdrTiming, goal: Goal, space: Space, batch: int
) -> str | None:
    """The sentence where it is only the frame rate that nothing reaches."""
    if not goal.frames_per_second:
        return None
    try:
        fastest = search(network, board, ddr, Goal(), space, batch=batch)
    except ScheduleError:
        return None
    rate = ddr.clock_mhz * 1e6 * batch / fastest.key[0]
    return (
        f"{network.name} does not reach {goal.frames_per_second:g} frames/s on {board.title} at {ddr.clock_mhz:g} "
        f"MHz: the fastest array, {fastest.schedule.array}, is modelled at {rate:.1f}; ask for fewer, or take a larger "
        "board or a higher clock"
    )


def schedule_of(network: QuantizedNetwork, array: Array, chosen: Sequence[Way], batch: int = 1) -> SystolicSchedule:
    jobs = lower(network, batch)
    tilings = tuple(tiling_of(network, job, array, way) for job, way in zip(jobs, chosen, strict=True))
    return SystolicSchedule(network, array, tilings)


def _visits(
    space: Space, board: Board, goal: Goal, ddr: DdrTiming, made: dict[tuple[int, int], Layers]
) -> list[_Visit]:
    """The most promising geometry first; what the frame rate rules out is not visited."""
    found = []
    for geometry in geometries(space, board):
        layers = made[geometry.columns, geometry.lanes]
        cycles = sum(least_cycles(geometry, layers, ddr, space))
        if cycles <= goal.most_cycles(ddr):
            found.append(_Visit(_bound(geometry, layers, board, goal, cycles), geometry))
    return sorted(found, key=lambda v: (v.bound, v.geometry.rows, v.geometry.columns))


def _bound(geometry: Geometry, layers: Layers, board: Board, goal: Goal, cycles: int) -> tuple[int, ...]:
    array = Array(geometry.rows, geometry.columns, geometry.lanes, 1, 1, 1, dsp=board.dsp.kind, bits=layers.bits)
    pes = area(fixed_usage(array, board), board)
    if goal.objective == "resources":
        return (pes, cycles)
    if goal.objective == "ddr":
        return (sum(least_bytes(geometry, layers)), cycles)
    return (cycles, pes)


def _run(
    tasks: Sequence[tuple[_Visit, Task]],
    executor: Executor | None,
    tell: Callable[[str], None],
    bound: tuple[int, ...] | None = None,
) -> tuple[Candidate | None, int, int]:
    """bound: the key to beat."""
    if executor is not None:
        return _run_in(executor, tasks, tell, bound)
    best: Candidate | None = None
    priced = arrays = 0
    for visit, task in tasks:
        if _beaten(visit, bound):
            break
        found, count = solve(replace(task, best=bound))
        priced, arrays = priced + 1, arrays + count
        if found is not None:
            best, bound = found, found.key
            tell(f"{best.array}: {best.key[0]:,}")
    return best, priced, arrays


def _beaten(visit: _Visit, bound: tuple[int, ...] | None) -> bool:
    """No candidate of the visit, nor of one after it, has a key less than ``bound``."""
    return bound is not None and visit.bound > bound[: len(visit.bound)]


@dataclass(frozen=True, eq=False)
class _Given:
    """What a worker has. at: its place among the visits; tries: how many workers have had it."""

    at: int
    task: Task
    tries: int = 1


@dataclass(frozen=True)
class _Best:
    """The key to beat, and the visit that it is of. Of equal keys the first visit's counts, whoever is ready first."""

    bound: tuple[int, ...] | None
    found: Candidate | None = None
    at: int = 0

    def with_found(self, found: Candidate | None, at: int) -> _Best:
        if found is None or (self.found is not None and (found.key, at) > (self.found.key, self.at)):
            return self
        return _Best(found.key, found, at)


def _run_in(
    executor: Executor,
    tasks: Sequence[tuple[_Visit, Task]],
    tell: Callable[[str], None],
    bound: tuple[int, ...] | None,
) -> tuple[Candidate | None, int, int]:
    """One geometry, and one more at a time for each that has not bettered the key: what is on its way does not know of
    keys found meanwhile, and the first ones rule most of the others out."""
    waiting = deque(enumerate(tasks))
    running: dict[_Answer, _Given] = {}
    best = _Best(bound)
    priced = arrays = in_vain = 0
    while True:
        while waiting and len(running) < min(1 + in_vain, AT_ONCE) and not _beaten(waiting[0][1][0], best.bound):
            at, (_, task) = waiting.popleft()
            given = _Given(at, replace(task, best=best.bound))
            running[_submit(executor, given.task)] = given
        if not running:
            return best.found, priced, arrays
        for future in wait(list(running), return_when=FIRST_COMPLETED).done:
            given = running.pop(future)
            answer = _answer(future, given, executor, running)
            if answer is None:
                continue
            priced, arrays = priced + 1, arrays + answer[1]
            before, best = best, best.with_found(answer[0], given.at)
            in_vain = in_vain + 1 if best.bound == before.bound else 0
            if best.found is not None and best.bound != before.bound:
                tell(f"{best.found.array}: {best.found.key[0]:,}")


def _submit(executor: Executor, task: Task) -> _Answer:
    """A pool that is broken takes nothing more: then the work is done here."""
    try:
        return executor.submit(solve, task)
    except RuntimeError:
        done: _Answer = Future()
        done.set_result(solve(task))
        return done


def _answer(
    future: _Answer, given: _Given, executor: Executor, running: dict[_Answer, _Given]
) -> tuple[Candidate | None, int] | None:
    """None where the worker died and its task was given again."""
    try:
        return future.result()
    except SystolicError:
        raise
    except Exception:
        if given.tries >= TRIES:
            return solve(given.task)
        running[_submit(executor, given.task)] = replace(given, tries=given.tries + 1)
        return None
