"""The exact folding search: the least area for a frame rate, or the highest frame rate that fits, with a proof.

goal                     0-1 programs (program.py) that are solved (solve.py)
cycles per frame         one program for the least area
highest frame rate       a bisection over all possible cycles per frame, each with a program for any folding; then one
                         program for the least area at the least cycles

prune.py removes the choices that the best folding never needs before a program is built.
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
"""A budget without limits, to compute the resources that a network lacks."""


def fold(
    graph: g.StreamGraph,
    board: Board,
    goal: Goal,
    options: Options | None = None,
    deadline: float | None = None,
    space: Space | None = None,
) -> FoldingResult:
    """Return the folding of least area within the budget that takes at most ``goal.cycles`` per frame.

    Without ``goal.cycles``, return the fastest folding, and of several the one of least area.

    Args:
        graph: The graph.
        board: The board.
        goal: The goal.
        options: The folds that the search may use.
        deadline: The time limit in seconds. After it, the best folding so far is returned with its proven gap.
        space: The result of ``space_of`` for the same graph, board and options, to share it between several goals.

    Raises:
        DoesNotFitError: The board is too small. The error names the resources that are missing (infeasible.py).
        RangeError: No folding has so few cycles, on any board.
        ToolError: The time limit passed before the solver found a folding.
        MissingToolError: A solver is not installed.
    """
    targets = _targets(graph, board, goal, options or Options(), deadline, space)
    return targets.fastest() if goal.cycles is None else targets.cheapest(goal.cycles)


def least_cycles(
    graph: g.StreamGraph, board: Board, goal: Goal, options: Options | None = None, deadline: float | None = None
) -> int:
    """Return the cycles per frame of the fastest folding within the budget, without a search for the least area.

    The arguments and errors are the same as for ``fold``.
    """
    return _targets(graph, board, goal, options or Options(), deadline).fewest()


def has_folding(
    graph: g.StreamGraph, board: Board, goal: Goal, options: Options | None = None, deadline: float | None = None
) -> bool:
    """Return whether a folding within the budget was found that takes at most ``goal.cycles`` per frame.

    Raises:
        MissingToolError: A solver is not installed.
    """
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
    """The result of a bisection over cycles per frame for the least that is feasible.

    Attributes:
        cycles: The least cycles per frame for which a folding was found, or None.
        possible: The least cycles per frame that are not proven impossible.
        undecided: Whether the time limit passed at a target before the solver found a folding or proved that none
            exists.
    """

    cycles: int | None
    possible: int
    undecided: bool


@dataclass(frozen=True)
class _Targets:
    """The exact search for foldings of one graph under different targets of cycles per frame.

    Attributes:
        space: The candidate folds of all blocks.
        goal: The goal of the search.
        options: The folds that the search may use.
        deadline: The time limit in seconds, or None.
        start: The start of the search, by time.perf_counter().
        foldings: The foldings that the bisection has found.
    """

    space: Space
    goal: Goal
    options: Options
    deadline: float | None
    start: float
    foldings: list[tuple[g.Fold, ...]] = field(default_factory=list)

    def cheapest(self, cycles: int, rate_gap: float = 0.0) -> FoldingResult:
        """Return the folding of least area that takes at most ``cycles`` per frame. ``rate_gap`` is stored in the
        result."""
        solution = self._solve(cycles)
        if not solution.folds:
            raise self._nothing(cycles, solution.state)
        gap = 0.0 if solution.state == "optimal" else max(0.0, 1 - solution.bound / solution.area)
        state = "optimal" if gap == 0 and rate_gap == 0 else "feasible"
        seconds = time.perf_counter() - self.start
        result = evaluate(self.space.graph, solution.folds, self.space.board, self.goal)
        return replace(result, state=state, gap=gap, seconds=seconds, rate_gap=rate_gap)

    def fastest(self) -> FoldingResult:
        """Return the folding with the fewest cycles per frame that fits the budget, and of several the one of least
        area."""
        counts = self.space.cycle_counts()
        bisected = self._bisect(counts)
        if bisected.cycles is not None:
            return self.cheapest(bisected.cycles, 1 - bisected.possible / bisected.cycles)
        if not bisected.undecided:
            raise self._nothing(counts[-1], "infeasible")
        return self.cheapest(counts[-1], 1 - counts[0] / counts[-1])  # the greedy search may have found a folding

    def fewest(self) -> int:
        """Return the fewest cycles per frame for which a folding within the budget was found."""
        return self._bisect(self.space.cycle_counts()).cycles or self.fastest().cycles

    def any_folding(self, cycles: int) -> bool:
        """Return whether a folding was found that takes at most ``cycles`` per frame."""
        return bool(self._solve(cycles, any_folding=True).folds)

    def _bisect(self, counts: list[int]) -> _Bisected:
        """Find the fewest cycles per frame among ``counts`` (ascending) for which a folding fits, by bisection."""
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
        """Return the folding of least area that the greedy search or the bisection has found and that fits.

        The solver then skips all foldings of more area.
        """
        graph, board, goal = self.space.graph, self.space.board, replace(self.goal, cycles=cycles)
        external = self.options.external
        results = [greedy.fold(graph, board, goal, strict=strict, external=external) for strict in (False, True)]
        results += [evaluate(graph, folds, board, goal) for folds in self.foldings]
        fitting = [result for result in results if result.fits and result.cycles <= cycles]
        best = min(fitting, key=lambda result: result.area, default=None)
        return Solution("feasible", best.folding.folds, best.area) if best else Solution("unknown")

    # --- errors if no folding was found ------------------------------------------------------------------------

    def _nothing(self, cycles: int, state: str) -> SystolicError:
        """Return the error for a search that ended in solver state ``state`` without a folding of at most ``cycles``
        per frame."""
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
        """Return the error that names the missing board resources and proposes a change that fits.

        They follow from the folding of least area on a board without limits.
        """
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
        """Return a proposal for the user: a lower frame rate if any folding fits, else another board or weights in
        DDR."""
        slower = self._bisect([count for count in self.space.cycle_counts() if count > cycles])
        if slower.cycles is None:
            refused = Refused(self.space.graph, self.space.board, self.goal, self.options, self._seconds_left())
            return what_would_fit(refused)
        return Proposal(f"{slower.cycles:,} cycles per frame")
