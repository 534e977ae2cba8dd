"""Solves the 0-1 program of a target and proves that the solution is optimal.

1. The linear relaxation (HiGHS, in scipy) gives a lower bound of the area. It also gives an excess for each column: a
   folding with this column has at least this much more area than the bound.
2. CP-SAT (OR-tools) finds the best folding among a few columns with a small excess, and then among more columns.
3. A column cannot be part of a better folding if its excess is above the excess of a known folding. When all other
   columns have been searched, the best folding is proven.

Both solvers are in the extra [solver].
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.errors import MissingToolError
from scheduler.streaming import graph as g
from scheduler.streaming.search.program import Program
from scheduler.streaming.search.prune import Numbers, Vectors

WORKERS = 1
"""The threads of CP-SAT. With one, the same network always gives the same folding. More threads are hardly faster on
programs of this size."""

LINEARISED = 2
"""CP-SAT's level of linearisation: all rows are in its linear relaxation. The relaxation is nearly integer here, so
that a proof takes a quarter of the time."""

FEW, WIDER = 500, 3
"""The columns of the first search, and the factor by which each further search has more."""

MIN_SECONDS = 0.05
"""The minimum time limit of a solver in seconds. If no more time is left, no further search starts."""

MARGIN = 1e-6
"""The tolerance for rounding errors, as a fraction of the area."""

OPTIMAL = 0
INFEASIBLE = 2
"""States of scipy's linprog."""


@dataclass(frozen=True)
class Solution:
    """The best folding that the solver found, with its state and a lower bound of the area.

    Attributes:
        state: "optimal", "feasible", "infeasible" or "unknown".
        folds: One fold per block. Empty if no folding was found.
        area: The area of the folding in 10⁻⁹ boards.
        bound: A lower bound of the area of all foldings in 10⁻⁹ boards.
    """

    state: str
    folds: tuple[g.Fold, ...] = ()
    area: float = np.inf
    bound: float = 0.0


@dataclass(frozen=True)
class Stop:
    """The condition at which a solver ends its search.

    Attributes:
        at_first: Whether the search ends with the first folding, and not with the one of least area.
        seconds: The time limit, or None for no limit.
    """

    at_first: bool = False
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The solution of the 0-1 program's linear relaxation, in 10⁻⁹ boards.

    Attributes:
        bound: A lower bound of the area of every folding.
        excess: The minimum area above ``bound`` of a folding with the column, [column].
    """

    bound: float
    excess: Vectors


def seconds_left(limit: float | None, start: float) -> float | None:
    """Return the seconds left of ``limit`` since ``start``, at least MIN_SECONDS, or None without a limit."""
    return None if limit is None else max(MIN_SECONDS, limit - (time.perf_counter() - start))


def solve(program: Program, stop: Stop, known: Solution) -> Solution:
    """Solve a folding's 0-1 program and return the folding of least area, or any folding with ``stop.at_first``.

    Args:
        program: The program.
        stop: The end of the search.
        known: A folding that is known already. It is returned if no better one is found.

    Raises:
        MissingToolError: A solver is not installed.
    """
    start = time.perf_counter()
    relaxed = relax(program)
    if relaxed is None:
        return Solution("infeasible")
    best, count, bound, excess = known, FEW, relaxed.bound, relaxed.excess
    while True:
        gainful = best.area - bound + MARGIN * bound
        reach = float(np.sort(excess)[min(len(excess) - 1, count)])
        columns = np.flatnonzero(excess <= min(gainful, reach))
        seconds = seconds_left(stop.seconds, start)
        solution = search_among(program, columns, Stop(stop.at_first, seconds), best)
        best = solution if solution.folds else best
        if stop.at_first and best.folds:
            return best
        if reach >= gainful or len(columns) == len(excess):  # no column outside can be part of a better folding
            return _concluded(solution, best, bound)
        if seconds is not None and seconds <= MIN_SECONDS:
            return Solution("feasible" if best.folds else "unknown", best.folds, best.area, bound)
        count *= WIDER


def _concluded(last: Solution, best: Solution, bound: float) -> Solution:
    """Return the final ``Solution`` of a folding search from its last solver run, the best folding and the lower bound.

    Args:
        last: The result of the search over all columns that a better folding could have.
        best: The best folding so far.
        bound: The bound of the linear relaxation.
    """
    if last.state in ("optimal", "infeasible"):
        return Solution("optimal", best.folds, best.area, best.area) if best.folds else last
    proven = min(best.area, max(bound, last.bound))
    return Solution("feasible" if best.folds else "unknown", best.folds, best.area, proven)


def relax(program: Program) -> Relaxation | None:
    """Solve the linear relaxation of the 0-1 program, and return its bounds, or None if it has no solution.

    Raises:
        MissingToolError: scipy is not installed.
    """
    optimize, sparse = _scipy()
    rows = np.concatenate([np.full(len(row.columns), number) for number, row in enumerate(program.rows)])
    columns = np.concatenate([row.columns for row in program.rows])
    factors = np.concatenate([row.factors for row in program.rows]).astype(float)
    equal = sparse.csr_matrix((factors, (rows, columns)), shape=(len(program.rows), program.columns))
    resources = np.flatnonzero(program.usage.any(axis=0))
    scale = np.maximum(program.limits[resources], 1.0)
    unit = max(1.0, float(program.area.max()))
    solved = optimize.linprog(
        program.area / unit,
        sparse.csr_matrix((program.usage[:, resources] / scale).T),
        program.limits[resources] / scale,
        equal,
        np.array([row.right for row in program.rows], float),
        (0, None),
        "highs",
    )
    if solved.status == INFEASIBLE:
        return None
    if solved.status != OPTIMAL:
        return Relaxation(0.0, np.zeros(program.columns))
    return Relaxation(float(solved.fun) * unit, np.maximum(solved.lower.marginals, 0.0) * unit)


def search_among(program: Program, columns: Numbers, stop: Stop, best: Solution) -> Solution:
    """Return the folding of less area than ``best`` that CP-SAT finds if only the variables ``columns`` may be 1.

    Args:
        program: The program.
        columns: The columns that may be taken.
        stop: The end of the search.
        best: The best folding so far, or a solution without folds.
    """
    cp_model = _cp_model()
    model = cp_model.CpModel()
    variables = {int(column): model.new_bool_var("") for column in columns}
    if not _add_rows(model, program, variables):
        return Solution("infeasible")
    area = _add_limits(cp_model, model, program, variables)
    if best.folds:
        model.add(area <= int(best.area) - 1)
    if not stop.at_first:
        model.minimize(area)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = WORKERS
    solver.parameters.linearization_level = LINEARISED
    if stop.seconds is not None:
        solver.parameters.max_time_in_seconds = stop.seconds
    state = solver.status_name(_solved(solver, model)).lower()
    if state not in ("optimal", "feasible"):
        return Solution(state)
    chosen = np.zeros(program.columns, np.int64)
    chosen[[column for column, variable in variables.items() if solver.boolean_value(variable)]] = 1
    bound = 0.0 if stop.at_first else solver.best_objective_bound
    return Solution(state, program.folds(chosen), float(program.area @ chosen), bound)


def _solved(solver: Any, model: Any) -> Any:
    """Run the CP-SAT solver so that Ctrl-C interrupts it, and return its status.

    CP-SAT's own handler of SIGINT would replace Python's. Therefore the solver runs in a thread without that handler,
    and is stopped by an exception in this thread.
    """
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(1, "CP-SAT") as pool:
        status = pool.submit(solver.solve, model)
        try:
            return status.result()
        except BaseException:
            solver.stop_search()
            raise


def _add_rows(model: Any, program: Program, variables: dict[int, Any]) -> bool:
    """Add all equations of the 0-1 program to the CP-SAT model. Return False if one cannot be met with
    ``variables``."""
    for row in program.rows:
        terms = [
            (int(factor), variables[column])
            for column, factor in zip(row.columns.tolist(), row.factors.tolist(), strict=True)
            if column in variables
        ]
        if not terms and row.right:
            return False
        if row.right == 1:
            model.add_exactly_one(variable for _, variable in terms)
        else:
            model.add(sum(factor * variable for factor, variable in terms) == row.right)
    return True


def _add_limits(cp_model: Any, model: Any, program: Program, variables: dict[int, Any]) -> Any:
    """Add the limits of all board resources to the CP-SAT model, and return the expression of the total area."""
    columns, weighted_sum = list(variables), cp_model.LinearExpr.weighted_sum
    for resource, limit in enumerate(program.limits):
        amounts = program.usage[columns, resource].astype(np.int64)
        if amounts.any():
            model.add(weighted_sum(list(variables.values()), amounts.tolist()) <= int(limit))
    return weighted_sum(list(variables.values()), program.area[columns].astype(np.int64).tolist())


_PURPOSE, _REMEDY = "fold exactly", "pip install -e '.[solver]', or fold greedily (--folding greedy)"


def _cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise MissingToolError("OR-tools", _PURPOSE, remedy=_REMEDY) from error
    return cp_model


def _scipy() -> tuple[Any, Any]:
    try:
        from scipy import optimize, sparse
    except ImportError as error:
        raise MissingToolError("scipy", _PURPOSE, remedy=_REMEDY) from error
    return optimize, sparse
