"""The exact folder: a solver chooses a fold for every block, converters and FIFOs between them included.

The program: a 0-1 column a choice, one of each block's is taken. On every stream a column a pair of (words that leave,
words that are taken) carries what the converters and the FIFO between them take; the pairs of a stream are tied to the
choices on both ends as a transport problem is, so that the linear relaxation is nearly whole. Resources are sums,
bounded by the budget; the cost is a sum.

How it is solved: (1) choices that another one beats whatever stands beside are left out (prune.py); (2) the linear
relaxation (HiGHS, in scipy) bounds the cost from below, and says of each column how much dearer a folding that takes it
is at least; (3) CP-SAT (OR-tools) finds the best folding among few columns that are not dear, then among more; (4)
columns that are dearer than a folding that is known cannot be part of a better one, which ends the search with a proof.
Both solvers are in the extra [solver].
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from boards.board import Board
from boards.errors import ScheduleError
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.cost import Budget, limits
from scheduler.streaming.folded import Folded, Goal, ddr_limit, folded
from scheduler.streaming.search import greedy
from scheduler.streaming.search import infeasible as lack
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.prune import Numbers, Vectors
from scheduler.streaming.search.space import RESOURCES, Space, space_of, vector

WORKERS = 1
"""One: the same network gives the same folding, and more are hardly faster on programs as small as these."""

LINEARISED = 2
"""CP-SAT keeps every row in its linear relaxation, which is nearly whole here: a proof takes a quarter of the time."""

FEW, WIDER = 500, 3
"""Columns among which a first folding is looked for, and how many times more are then taken."""

ENDLESS = Budget(*[1e6] * 5)

MARGIN = 1e-6
"""Of the cost: what floating point may be wrong by."""


def fold(
    graph: g.StreamGraph,
    board: Board,
    goal: Goal,
    options: Options | None = None,
    deadline: float | None = None,
    space: Space | None = None,
) -> Folded:
    """The cheapest folding that keeps ``goal.cycles`` in the budget, or the fastest one, and of these the cheapest.

    deadline: seconds; then the best that was found, with its proven gap. space: as ``space_of`` made it, where several
    goals are asked for. ScheduleError where nothing fits (lack.py says why), or where a solver is missing.
    """
    start = time.perf_counter()
    options = options or Options()
    unfit = lack.too_many_weights(graph, board, goal.budget, options.external, options.uram_weights)
    if unfit:
        raise ScheduleError(unfit)
    space = space or space_of(graph, board, options)
    return _Search(space, goal, deadline, start, options).run()


@dataclass(frozen=True)
class Solved:
    """folds: one a block, empty where none was found. bound: no folding is cheaper."""

    state: str
    folds: tuple[g.Fold, ...] = ()
    price: float = np.inf
    bound: float = 0.0


@dataclass
class _Search:
    space: Space
    goal: Goal
    deadline: float | None
    start: float
    options: Options
    seen: list[tuple[g.Fold, ...]] = field(default_factory=list)
    """Foldings that the bisection found on its way."""
    unproven: bool = False
    """Whether the time was up before a target was decided."""

    def run(self) -> Folded:
        return self.fastest() if self.goal.cycles is None else self.cheapest(self.goal.cycles, 0.0)

    def cheapest(self, cycles: int, rate_gap: float) -> Folded:
        solved = self.solve(cycles)
        if not solved.folds:
            raise ScheduleError(self._none(cycles, solved.state))
        gap = 0.0 if solved.state == "optimal" else max(0.0, 1 - solved.bound / solved.price)
        state = "optimal" if gap == 0 and rate_gap == 0 else "feasible"
        seconds = time.perf_counter() - self.start
        return folded(self.space.graph, solved.folds, self.space.board, self.goal, state, gap, seconds, rate_gap)

    def fastest(self) -> Folded:
        """The least cycle count that fits, then the cheapest folding that keeps it."""
        counts = self.space.cycle_counts()
        found = self._bisect(counts)
        if found is None and not self.unproven:
            raise ScheduleError(self._none(counts[-1], "infeasible"))
        found = found or (counts[-1], counts[0])  # the time was up, but the greedy folder may know one
        return self.cheapest(found[0], 1 - found[1] / found[0])

    def _bisect(self, counts: list[int]) -> tuple[int, int] | None:
        """(the least of ``counts`` for which a folding was found, the least that is not proven impossible)."""
        low, high, proven = -1, len(counts), -1
        while high - low > 1:
            middle = (low + high) // 2
            solved = self.solve(counts[middle], first=True)
            if solved.folds:
                self.seen.append(solved.folds)
                reached = lanes.frame_cycles(self.space.graph, solved.folds)
                high = min(middle, max(low + 1, int(np.searchsorted(counts, reached))))
            else:
                low = middle
                proven = middle if solved.state == "infeasible" else proven
                self.unproven |= solved.state != "infeasible"
        return None if high == len(counts) else (counts[high], counts[min(proven + 1, high)])

    def _left(self) -> float | None:
        return None if self.deadline is None else max(0.05, self.deadline - (time.perf_counter() - self.start))

    def _none(self, cycles: int, state: str) -> str:
        graph, board = self.space.graph, self.space.board
        if state != "infeasible":
            return f"no folding of {graph.name} was found in {self.deadline or 0:g} s; allow more time"
        least = self.space.cycle_counts()[0]
        if least > cycles:
            return (
                f"{graph.name} has no folding of {cycles:,} cycles a frame or less: unfolded as far as its words allow "
                f"it takes {least:,}; ask for fewer frames, or allow more pixels a word"
            )
        return f"{graph.name} does not fit {board.title} at {cycles:,} cycles a frame: {self._lack(cycles)}"

    def _lack(self, cycles: int) -> str:
        """What the cheapest folding on a board without end lacks here, and what would fit."""
        endless = replace(self.goal, cycles=cycles, budget=ENDLESS)
        program = program_of(self.space, endless, cycles)
        solved = _solve(program, self._left(), False, Solved("unknown")) if program else Solved("infeasible")
        if not solved.folds:
            return "nothing was found that would"
        used = folded(self.space.graph, solved.folds, self.space.board, endless, "", 0.0, 0.0).usage
        said = ", ".join(lack.lacks(used, self.space.board, self.goal.budget)) or "a mix of all resources"
        return f"the cheapest folding needs {said}; {self._fitting(cycles)}"

    def _fitting(self, cycles: int) -> str:
        high = self._bisect([count for count in self.space.cycle_counts() if count > cycles])
        if high is None:
            memory = lack.on_chip_bits(self.space.board, self.options.uram_weights)
            names = ", ".join(lack.from_ddr(self.space.graph, memory, self.options.external, lack.SAFE))
            return f"no frame rate fits; take fewer bits, a larger board, or the weights of {names} from DDR (external)"
        return f"what fits: {high[0]:,} cycles a frame"

    def solve(self, cycles: int, first: bool = False) -> Solved:
        """first: any folding will do."""
        program = program_of(self.space, self.goal, cycles)
        if program is None:
            return Solved("infeasible")
        return _solve(program, self._left(), first, Solved("unknown") if first else self._known(cycles))

    def _known(self, cycles: int) -> Solved:
        """What the greedy folder or the bisection found, where it fits: nothing dearer has to be looked at."""
        graph, board, goal = self.space.graph, self.space.board, replace(self.goal, cycles=cycles)
        far = self.options.external
        tried = [greedy.fold(graph, board, goal, strict=strict, external=far) for strict in (False, True)]
        tried += [folded(graph, folds, board, goal, "feasible", 0.0, 0.0) for folds in self.seen]
        fine = [found for found in tried if found.fits and found.cycles <= cycles]
        best = min(fine, key=lambda found: found.price, default=None)
        return Solved("feasible", best.folding.folds, best.price) if best else Solved("unknown")


# --- the program -----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Program:
    """Columns and rows of one target. rows: equations (columns, their factors, right side). limits: of resources."""

    space: Space
    limits: Vectors
    choices: list[Numbers] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    """Of every block the number of its first column."""
    taken: list[Vectors] = field(default_factory=list)
    rows: list[tuple[Numbers, Numbers, int]] = field(default_factory=list)
    columns: int = 0

    def add(self, taken: Vectors) -> int:
        """Columns with these resources; the number of the first."""
        self.taken.append(taken)
        self.columns += len(taken)
        return self.columns - len(taken)

    def folds(self, one: Numbers) -> tuple[g.Fold, ...]:
        """The folds of the columns that are 1."""
        found = []
        for index, choices in enumerate(self.choices):
            at = np.flatnonzero(one[self.first[index] : self.first[index] + len(choices)])[0]
            found.append(self.space.blocks[index].folds[int(choices[at])])
        return tuple(found)


def program_of(space: Space, goal: Goal, cycles: int) -> Program | None:
    """None where a block has no choice that is fast enough."""
    limit = np.array(vector(limits(space.board, goal.budget)), np.float64)
    limit[RESOURCES.index("ddr_bits")] = ddr_limit(space.board, goal, cycles)
    kept = space.within(cycles)
    if not all(len(some) for some in kept):
        return None
    made = Program(space, limit, kept)
    for index, choices in enumerate(kept):
        made.first.append(made.add(space.blocks[index].taken[choices].astype(np.float64)))
        ours = made.first[index] + np.arange(len(choices))
        made.rows.append((ours, np.ones(len(ours), np.int64), 1))
    for number in range(len(space.streams)):
        _tie(made, number, cycles)
    return made


def _tie(made: Program, number: int, cycles: int) -> None:
    """The pairs of words of one stream, tied to the choices on both ends."""
    space, stream = made.space, made.space.streams[number]
    gives = space.words(number, True)[made.choices[stream.writer]]
    takes = space.words(number, False)[made.choices[stream.reader]]
    leaves, taken = np.unique(gives), np.unique(takes)
    between = space.between(number, cycles)[np.ix_(leaves, taken)]
    i, j = np.nonzero(np.isfinite(between).all(axis=2))
    start = made.add(between[i, j])
    for values, words, block, at in ((leaves, gives, stream.writer, i), (taken, takes, stream.reader, j)):
        for key, word in enumerate(values):
            pairs = start + np.flatnonzero(at == key)
            ours = made.first[block] + np.flatnonzero(words == word)
            factors = np.concatenate([np.ones(len(pairs), np.int64), -np.ones(len(ours), np.int64)])
            made.rows.append((np.concatenate([pairs, ours]), factors, 0))


# --- solving it ------------------------------------------------------------------------------------------------


def _solve(program: Program, seconds: float | None, first: bool, best: Solved) -> Solved:
    """Among few columns, then among more, until all that a cheaper folding could have are there."""
    start = time.perf_counter()
    taken = np.concatenate(program.taken)
    price = taken @ program.space.weights
    relaxed = _relax(program, taken, price)
    if relaxed is None:
        return Solved("infeasible")
    bound, dearer = relaxed
    count = FEW
    while True:
        most = best.price - bound + MARGIN * bound
        near = float(np.sort(dearer)[min(len(dearer) - 1, count)])
        kept = np.flatnonzero(dearer <= min(most, near))
        left = None if seconds is None else max(0.05, seconds - (time.perf_counter() - start))
        found = _search(program, taken, price, kept, left, first, best)
        best = found if found.folds else best
        if first and best.folds:
            return best
        if near >= most or len(kept) == len(dearer):  # nothing cheaper is outside
            return _final(found, best, bound)
        if left is not None and left <= 0.05:
            return Solved("feasible" if best.folds else "unknown", best.folds, best.price, bound)
        count *= WIDER


def _final(found: Solved, best: Solved, bound: float) -> Solved:
    """What the search over everything that is left has shown."""
    if found.state in ("optimal", "infeasible"):
        return Solved("optimal", best.folds, best.price, best.price) if best.folds else found
    known = min(best.price, max(bound, found.bound))
    return Solved("feasible" if best.folds else "unknown", best.folds, best.price, known)


def _relax(program: Program, taken: Vectors, price: Vectors) -> tuple[float, Vectors] | None:
    """(least cost, how much dearer at least a folding with each column is) of the linear relaxation."""
    optimize, sparse = _scipy()
    rows, columns, values, right = [], [], [], []
    for number, (at, factors, rhs) in enumerate(program.rows):
        rows.append(np.full(len(at), number))
        columns.append(at)
        values.append(factors)
        right.append(rhs)
    equal = sparse.csr_matrix(
        (np.concatenate(values).astype(float), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(program.rows), program.columns),
    )
    bounded = np.flatnonzero(taken.any(axis=0))
    scale = np.maximum(program.limits[bounded], 1.0)
    scaled = sparse.csr_matrix((taken[:, bounded] / scale).T)
    unit = max(1.0, float(price.max()))
    solved = optimize.linprog(
        price / unit, scaled, program.limits[bounded] / scale, equal, np.array(right, float), (0, None), "highs"
    )
    if solved.status == 2:
        return None
    if solved.status != 0:
        return 0.0, np.zeros(program.columns)
    return float(solved.fun) * unit, np.maximum(solved.lower.marginals, 0.0) * unit


def _search(
    program: Program,
    taken: Vectors,
    price: Vectors,
    kept: Numbers,
    seconds: float | None,
    first: bool,
    best: Solved,
) -> Solved:
    """CP-SAT over the columns ``kept``. first: any solution; else only cheaper ones than ``best``."""
    cp_model = _cp_model()
    model = cp_model.CpModel()
    variables = {int(column): model.new_bool_var("") for column in kept}
    for at, factors, right in program.rows:
        inside = [(variables[c], int(f)) for c, f in zip(at.tolist(), factors.tolist(), strict=True) if c in variables]
        if not inside and right:
            return Solved("infeasible")
        if right == 1:
            model.add_exactly_one(v for v, _ in inside)
        else:
            model.add(sum(f * v for v, f in inside) == right)
    order = list(variables)
    for resource, limit in enumerate(program.limits):
        amounts = taken[order, resource].astype(np.int64)
        if amounts.any():
            model.add(cp_model.LinearExpr.weighted_sum(list(variables.values()), amounts.tolist()) <= int(limit))
    costs = cp_model.LinearExpr.weighted_sum(list(variables.values()), price[order].astype(np.int64).tolist())
    if best.folds:
        model.add(costs <= int(best.price) - 1)
    if not first:
        model.minimize(costs)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = WORKERS
    solver.parameters.linearization_level = LINEARISED
    if seconds is not None:
        solver.parameters.max_time_in_seconds = seconds
    state = solver.status_name(solver.solve(model)).lower()
    if state not in ("optimal", "feasible"):
        return Solved(state)
    one = np.zeros(program.columns, np.int64)
    one[[column for column, variable in variables.items() if solver.boolean_value(variable)]] = 1
    return Solved(state, program.folds(one), float(price @ one), 0.0 if first else solver.best_objective_bound)


_MISSING = "exact folding needs {}: pip install -e '.[solver]', or fold greedily"


def _cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise ScheduleError(_MISSING.format("OR-tools")) from error
    return cp_model


def _scipy() -> tuple[Any, Any]:
    try:
        from scipy import optimize, sparse
    except ImportError as error:
        raise ScheduleError(_MISSING.format("scipy")) from error
    return optimize, sparse
