"""The exact folding search: the cheapest folding for a frame rate, or the highest rate that fits, and the proof.

goal                     what is solved (solve.py), each a 0-1 program (program.py)
cycles a frame           one program: the least area
the highest frame rate   bisection over all cycle counts that a frame can take, any folding will do; then the least area
                         at the count that it ended with

Choices that another one beats whatever stands beside them never become columns (prune.py).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from boards.board import Board
from boards.errors import DoesNotFitError, RangeError, SystolicError, ToolError
from scheduler.hardware.budget import Budget
from scheduler.streaming import graph as g
from scheduler.streaming.model.cycles import frame_cycles
from scheduler.streaming.result import FoldingResult, Goal, evaluate
from scheduler.streaming.search import greedy, infeasible
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.program import program_of
from scheduler.streaming.search.remedies import Proposal, Refused, what_would_fit
from scheduler.streaming.search.solve import Solution, Stop, seconds_left, solve
from scheduler.streaming.search.space import Space, space_of

ENDLESS = Budget(*[1e6] * 5)


def fold(
    graph: g.StreamGraph,
    board: Board,
    goal: Goal,
    options: Options | None = None,
    deadline: float | None = None,
    space: Space | None = None,
) -> FoldingResult:
    """The cheapest folding that keeps ``goal.cycles`` in the budget, or the fastest one, and of these the cheapest.

    deadline: seconds; then the best that was found, with its proven gap. space: as ``space_of`` made it, where several
    goals are asked for.

    Raises:
        DoesNotFitError: The board is too small; infeasible.py says why.
        RangeError: No folding has so few cycles, on any board.
        ToolError: The time was up before the solver had found a folding.
        MissingToolError: A solver is not installed.
    """
    targets = _targets(graph, board, goal, options or Options(), deadline, space)
    return targets.fastest() if goal.cycles is None else targets.cheapest(goal.cycles)


def least_cycles(
    graph: g.StreamGraph, board: Board, goal: Goal, options: Options | None = None, deadline: float | None = None
) -> int:
    """The cycles of the fastest folding in the budget, without looking for the cheapest one that has them; errors as of
    ``fold``."""
    return _targets(graph, board, goal, options or Options(), deadline).fewest()


def keeps(
    graph: g.StreamGraph, board: Board, goal: Goal, options: Options | None = None, deadline: float | None = None
) -> bool:
    """Whether a folding of ``goal.cycles`` in the budget was found: any will do. Raises MissingToolError without
    a solver."""
    assert goal.cycles is not None
    options = options or Options()
    if infeasible.too_many_weights(graph, board, goal.budget, options.external, options.uram_weights):
        return False
    return _targets(graph, board, goal, options, deadline).any_folding(goal.cycles)


def _targets(
    graph: g.StreamGraph,
    board: Board,
    goal: Goal,
    options: Options,
    deadline: float | None,
    space: Space | None = None,
) -> _Targets:
    start = time.perf_counter()
    too_many = infeasible.too_many_weights(graph, board, goal.budget, options.external, options.uram_weights)
    if too_many:
        proposal = what_would_fit(Refused(graph, board, goal, options, deadline))
        raise replace(too_many, nearest=proposal.nearest, remedy=proposal.remedy)
    return _Targets(space or space_of(graph, board, options, goal.traced), goal, options, deadline, start)


@dataclass(frozen=True)
class _Bisected:
    """cycles: the least for which a folding was found, None where none was; possible: the least that are not proven
    impossible. undecided: whether the time was up before a target was decided."""

    cycles: int | None
    possible: int
    undecided: bool


@dataclass(frozen=True)
class _Targets:
    """The search over targets, cycle counts. foldings: what the bisection found on its way."""

    space: Space
    goal: Goal
    options: Options
    deadline: float | None
    start: float
    foldings: list[tuple[g.Fold, ...]] = field(default_factory=list)

    def cheapest(self, cycles: int, rate_gap: float = 0.0) -> FoldingResult:
        """The folding of least area that takes ``cycles`` or less."""
        solution = self._solve(cycles)
        if not solution.folds:
            raise self._nothing(cycles, solution.state)
        gap = 0.0 if solution.state == "optimal" else max(0.0, 1 - solution.bound / solution.area)
        state = "optimal" if gap == 0 and rate_gap == 0 else "feasible"
        seconds = time.perf_counter() - self.start
        result = evaluate(self.space.graph, solution.folds, self.space.board, self.goal)
        return replace(result, state=state, gap=gap, seconds=seconds, rate_gap=rate_gap)

    def fastest(self) -> FoldingResult:
        """The least cycle count that fits, then the cheapest folding that keeps it."""
        counts = self.space.cycle_counts()
        bisected = self._bisect(counts)
        if bisected.cycles is not None:
            return self.cheapest(bisected.cycles, 1 - bisected.possible / bisected.cycles)
        if not bisected.undecided:
            raise self._nothing(counts[-1], "infeasible")
        return self.cheapest(counts[-1], 1 - counts[0] / counts[-1])  # the greedy search may still know a folding

    def fewest(self) -> int:
        """The least cycle count for which a folding was found."""
        return self._bisect(self.space.cycle_counts()).cycles or self.fastest().cycles

    def any_folding(self, cycles: int) -> bool:
        """Whether one was found that takes ``cycles`` or less."""
        return bool(self._solve(cycles, any_folding=True).folds)

    def _bisect(self, counts: list[int]) -> _Bisected:
        low, high, impossible, undecided = -1, len(counts), -1, False
        while high - low > 1:
            middle = (low + high) // 2
            solution = self._solve(counts[middle], any_folding=True)
            if solution.folds:
                self.foldings.append(solution.folds)
                reached = frame_cycles(self.space.graph, solution.folds)
                high = min(middle, max(low + 1, int(np.searchsorted(counts, reached))))
            else:
                low = middle
                impossible = middle if solution.state == "infeasible" else impossible
                undecided |= solution.state != "infeasible"
        if high == len(counts):
            return _Bisected(None, 0, undecided)
        return _Bisected(counts[high], counts[min(impossible + 1, high)], undecided)

    def _solve(self, cycles: int, any_folding: bool = False) -> Solution:
        program = program_of(self.space, self.goal, cycles)
        if program is None:
            return Solution("infeasible")
        stop = Stop(any_folding, self._seconds_left())
        return solve(program, stop, Solution("unknown") if any_folding else self._known(cycles))

    def _seconds_left(self) -> float | None:
        return seconds_left(self.deadline, self.start)

    def _known(self, cycles: int) -> Solution:
        """What the greedy search or the bisection found, where it fits: nothing of more area has to be looked at."""
        graph, board, goal = self.space.graph, self.space.board, replace(self.goal, cycles=cycles)
        external = self.options.external
        results = [greedy.fold(graph, board, goal, strict=strict, external=external) for strict in (False, True)]
        results += [evaluate(graph, folds, board, goal) for folds in self.foldings]
        fitting = [result for result in results if result.fits and result.cycles <= cycles]
        best = min(fitting, key=lambda result: result.area, default=None)
        return Solution("feasible", best.folding.folds, best.area) if best else Solution("unknown")

    # --- why nothing was found ---------------------------------------------------------------------------------

    def _nothing(self, cycles: int, state: str) -> SystolicError:
        graph = self.space.graph
        if state != "infeasible":
            reason = f"found no folding of {graph.name} in {self.deadline or 0:g} s"
            return ToolError("the solver", reason, remedy="allow more time")
        fastest = self.space.cycle_counts()[0]
        if fastest > cycles:
            remedy = "ask for fewer frames, or allow more pixels per word"
            return RangeError("the number of cycles per frame", cycles, fastest, where=graph.name, remedy=remedy)
        return self._excess(cycles)

    def _excess(self, cycles: int) -> DoesNotFitError:
        """Return what the cheapest folding on an endless board takes beyond this one, and what would fit."""
        graph, board = self.space.graph, self.space.board
        subject = f"{graph.name} on {board.title} at {cycles:,} cycles per frame, in {self.goal.budget} of it,"
        endless = replace(self.goal, cycles=cycles, budget=ENDLESS)
        program = program_of(self.space, endless, cycles)
        stop = Stop(seconds=self._seconds_left())
        solution = solve(program, stop, Solution("unknown")) if program else Solution("infeasible")
        if not solution.folds:
            return DoesNotFitError(subject, "resources", None, None)
        usage = evaluate(graph, solution.folds, board, endless).usage
        proposal = self._what_fits(cycles)
        error = DoesNotFitError(
            subject, "resources, in some mix,", None, None, nearest=proposal.nearest, remedy=proposal.remedy
        )
        short = infeasible.excess(usage, board, self.goal.budget)
        if short:
            (resource, need, have), *others = short
            error = replace(error, resource=resource, need=need, have=have, others=tuple(others))
        return error

    def _what_fits(self, cycles: int) -> Proposal:
        slower = self._bisect([count for count in self.space.cycle_counts() if count > cycles])
        if slower.cycles is None:
            refused = Refused(self.space.graph, self.space.board, self.goal, self.options, self._seconds_left())
            return what_would_fit(refused)
        return Proposal(f"{slower.cycles:,} cycles per frame")
