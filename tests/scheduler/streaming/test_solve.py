"""The solvers' results for programs of a few columns, compared with all combinations of choices."""

from __future__ import annotations

import signal
import threading
import time
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scheduler.streaming import graph as g
from scheduler.streaming.search import solve as module
from scheduler.streaming.search.program import Program, Row
from scheduler.streaming.search.solve import (
    MIN_SECONDS,
    Solution,
    Stop,
    _concluded,
    _solved,
    relax,
    search_among,
    seconds_left,
    solve,
)
from tests.support.cases import cases

pytest.importorskip("ortools.sat.python.cp_model", reason="exact folding needs OR-tools: pip install -e '.[solver]'")
pytest.importorskip("scipy.optimize", reason="exact folding needs scipy: pip install -e '.[solver]'")

UNITS = np.array([3, 5], np.int64)
"""The area of one unit of each of the two resources."""


def program(usage: list[list[list[int]]], limits: tuple[int, int], words: list[list[int]] | None = None) -> Program:
    """Return a program of blocks whose choices use two resources.

    Args:
        usage: The amounts, [block][choice][resource].
        limits: The limit of each resource.
        words: The words of each choice of the first two blocks, which must have equal words. Pairs of words use no
            resources.
    """
    counts = [len(block) for block in usage]
    first = [sum(counts[:index]) for index in range(len(counts))]
    rows = [
        Row(start + np.arange(count), np.ones(count, np.int64), 1) for start, count in zip(first, counts, strict=True)
    ]
    columns = [row for block in usage for row in block]
    for word in sorted({*words[0], *words[1]}) if words else ():
        pair = len(columns)
        columns.append([0, 0])
        for block, own in enumerate(words or ()):
            choices = first[block] + np.flatnonzero(np.array(own) == word)
            rows.append(Row(np.array([pair, *choices]), np.array([1, *[-1] * len(choices)]), 0))
    folds = [[g.Fold(pe=1 + choice, simd=1 + block) for choice in range(count)] for block, count in enumerate(counts)]
    space: Any = SimpleNamespace(unit_areas=UNITS, blocks=[SimpleNamespace(folds=own) for own in folds])
    every = tuple(np.arange(count) for count in counts)
    usages, most = np.array(columns, np.float64), np.array(limits, np.float64)
    return Program(space, every, tuple(first), usages, tuple(rows), most)


def fitting(made: Program, words: list[list[int]] | None = None) -> dict[tuple[int, ...], int]:
    """Return the area of every combination of choices that fits the limits, by definition."""
    areas = {}
    for choices in product(*(range(len(own)) for own in made.choices)):
        totals = sum(made.usage[first + choice] for first, choice in zip(made.first, choices, strict=True))
        alike = words is None or words[0][choices[0]] == words[1][choices[1]]
        if alike and (totals <= made.limits).all():
            areas[choices] = int(totals @ UNITS)
    return areas


def chosen(solution: Solution) -> tuple[int, ...]:
    return tuple(fold.pe - 1 for fold in solution.folds)


def drawn(seed: int) -> tuple[Program, list[list[int]] | None]:
    random = np.random.default_rng(seed)
    usage = random.integers(0, 9, (3, 4, 2))
    words = random.integers(0, 3, (2, 4)).tolist() if seed % 2 else None
    limits = tuple(random.integers(6, 16, 2).tolist())
    return program(usage.tolist(), limits, words), words


@pytest.mark.parametrize("few", [1, 500])
def test_solve_proves_the_least_area_of_all_combinations(few: int, monkeypatch: Any) -> None:
    """The search also finds the least area if it starts with two columns and widens."""
    monkeypatch.setattr(module, "FEW", few)
    nothing = 0
    for seed in range(16):
        made, words = drawn(seed)
        areas = fitting(made, words)
        solution = solve(made, Stop(), Solution("unknown"))
        if not areas:
            nothing += 1
            assert (solution.state, solution.folds) == ("infeasible", ())
            continue
        least = min(areas.values())
        assert (solution.state, solution.area, solution.bound) == ("optimal", least, least)
        assert areas[chosen(solution)] == least
    assert 0 < nothing < 8


def test_solve_at_first_returns_a_folding_that_fits() -> None:
    for seed in range(8):
        made, words = drawn(seed)
        areas = fitting(made, words)
        solution = solve(made, Stop(at_first=True), Solution("unknown"))
        assert bool(solution.folds) == bool(areas)
        assert not areas or areas[chosen(solution)] == solution.area


def test_solve_keeps_the_known_folding_unless_one_is_smaller() -> None:
    made = program([[[4, 0], [2, 1]], [[1, 1], [3, 0]]], (9, 9))
    least = min(fitting(made).values())
    known = Solution("feasible", (g.Fold(pe=7), g.Fold(pe=8)), least)
    assert solve(made, Stop(), known) == Solution("optimal", known.folds, least, least)
    worse = Solution("feasible", known.folds, least + 1)
    better = solve(made, Stop(), worse)
    assert (better.state, better.area, chosen(better) in fitting(made)) == ("optimal", least, True)


def test_relaxation_is_a_lower_bound_of_every_folding() -> None:
    """The bound plus a column's excess is also a lower bound of every folding with this column."""
    bounded = 0
    for seed in range(16):
        made, words = drawn(seed)
        areas, relaxed = fitting(made, words), relax(made)
        if relaxed is None:
            assert not areas
            continue
        assert (relaxed.excess >= 0).all()
        for choices, area in areas.items():
            assert relaxed.bound <= area + 1e-6
            for first, choice in zip(made.first, choices, strict=True):
                assert relaxed.bound + relaxed.excess[first + choice] <= area + 1e-6
                bounded += relaxed.excess[first + choice] > 0
    assert bounded > 50


def test_relaxation_without_limits_is_the_sum_of_the_cheapest_choices() -> None:
    """The cheapest choices have the areas 2 · 3 + 1 · 5 and 1 · 3 + 1 · 5. The others have an excess of 1 each."""
    relaxed = relax(program([[[4, 0], [2, 1]], [[1, 1], [3, 0]]], (100, 100)))
    assert relaxed is not None
    assert relaxed.bound == pytest.approx(19)
    assert relaxed.excess == pytest.approx([1, 0, 0, 1])


def test_unsolved_relaxation_has_the_bound_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    made = program([[[4, 0], [2, 1]], [[1, 1], [3, 0]]], (9, 9))
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_: SimpleNamespace(status=4))  # numerical difficulties
    relaxed = relax(made)
    assert relaxed is not None
    assert (relaxed.bound, relaxed.excess.tolist()) == (0.0, [0.0] * 4)
    assert solve(made, Stop(), Solution("unknown")).area == min(fitting(made).values())


def test_solve_of_choices_without_resources_has_area_zero() -> None:
    solution = solve(program([[[0, 0]], [[0, 0], [0, 0]]], (0, 0)), Stop(), Solution("unknown"))
    assert (solution.state, solution.area) == ("optimal", 0.0)


def test_solve_without_a_relaxed_solution_is_infeasible() -> None:
    assert relax(program([[[4, 0], [5, 1]]], (3, 9))) is None
    assert solve(program([[[4, 0], [5, 1]]], (3, 9)), Stop(), Solution("unknown")) == Solution("infeasible")


def test_search_among_uses_only_the_given_columns() -> None:
    made = program([[[4, 0], [2, 1]], [[1, 1], [3, 0]]], (9, 9))
    nothing = Solution("unknown")
    found = search_among(made, np.array([0, 3]), Stop(), nothing)
    assert (found.state, found.area, found.bound, chosen(found)) == ("optimal", 21.0, 21.0, (0, 1))
    assert search_among(made, np.array([0, 1]), Stop(), nothing) == Solution("infeasible")  # one block has no choice
    below = search_among(made, np.array([0, 1, 2, 3]), Stop(), Solution("feasible", (g.Fold(),), 20.0))
    assert (below.area, chosen(below)) == (19.0, (1, 0))
    assert search_among(made, np.array([0, 1, 2, 3]), Stop(), Solution("feasible", (g.Fold(),), 19.0)).folds == ()
    first = search_among(made, np.array([0, 1, 2, 3]), Stop(at_first=True), nothing)
    assert (first.bound, chosen(first) in fitting(made)) == (0.0, True)


def test_solve_allows_a_usage_equal_to_the_limit() -> None:
    for limit, state in ((7, "optimal"), (6, "infeasible")):
        made = program([[[4, 0]], [[3, 0]]], (limit, 0))
        assert search_among(made, np.array([0, 1]), Stop(), Solution("unknown")).state == state
        assert solve(made, Stop(), Solution("unknown")).state == state


@cases(
    "last, best, concluded",
    [
        (Solution("optimal", (), 9.0, 9.0), Solution("optimal", (g.Fold(),), 9.0, 9.0), ("optimal", 9.0, 9.0)),
        (Solution("infeasible"), Solution("feasible", (g.Fold(),), 9.0), ("optimal", 9.0, 9.0)),
        (Solution("infeasible"), Solution("unknown"), ("infeasible", np.inf, 0.0)),
        (Solution("unknown"), Solution("unknown"), ("unknown", np.inf, 4.0)),
        (Solution("unknown"), Solution("feasible", (g.Fold(),), 9.0), ("feasible", 9.0, 4.0)),
        (Solution("feasible", (), 9.0, 6.0), Solution("feasible", (g.Fold(),), 9.0, 6.0), ("feasible", 9.0, 6.0)),
        (Solution("feasible", (), 9.0, 3.0), Solution("feasible", (g.Fold(),), 9.0, 3.0), ("feasible", 9.0, 4.0)),
        (Solution("unknown", (), np.inf, 12.0), Solution("feasible", (g.Fold(),), 9.0), ("feasible", 9.0, 9.0)),
    ],
)
def test_concluded_state_follows_from_the_last_search(
    last: Solution, best: Solution, concluded: tuple[str, float, float]
) -> None:
    """The last search covered all foldings below the best one. The relaxation's bound is 4."""
    solution = _concluded(last, best, 4.0)
    assert (solution.state, solution.area, solution.bound) == concluded
    assert solution.folds == best.folds
    assert Solution("unknown") == Solution("unknown", (), np.inf, 0.0)  # the defaults claim nothing


def test_seconds_left_are_at_least_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 103.0)
    assert seconds_left(None, 100.0) is None
    assert seconds_left(5.0, 100.0) == 2.0
    assert seconds_left(3.04, 100.0) == seconds_left(1.0, 100.0) == MIN_SECONDS


def test_solve_after_the_time_limit_returns_the_best_and_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search finds one folding, and no further search starts."""
    made = program([[[4, 0], [2, 1], [9, 9]], [[1, 1], [3, 0], [9, 9]]], (99, 99))
    monkeypatch.setattr(module, "FEW", 0)
    asked: list[Stop] = []

    def search(_: Program, columns: Any, stop: Stop, best: Solution) -> Solution:
        asked.append(stop)
        return Solution("feasible", (g.Fold(pe=2), g.Fold(pe=2)), 20.0, 19.0) if best.area > 20 else Solution("unknown")

    monkeypatch.setattr(module, "search_among", search)
    given = solve(made, Stop(seconds=MIN_SECONDS), Solution("unknown"))
    assert (given.state, given.area) == ("feasible", 20.0)
    assert given.bound == pytest.approx(19.0)
    assert asked == [Stop(False, MIN_SECONDS)]
    monkeypatch.setattr(module, "search_among", lambda *_: Solution("unknown"))
    empty = solve(made, Stop(seconds=MIN_SECONDS), Solution("unknown"))
    assert (empty.state, empty.folds) == ("unknown", ())
    assert empty.bound == pytest.approx(19.0)


def test_interrupted_solver_is_stopped() -> None:
    """The solver runs in a thread. Without the stop, the interrupt would only arrive after the thread's end."""
    stopped = threading.Event()
    solver: Any = SimpleNamespace(
        parameters=SimpleNamespace(catch_sigint_signal=True),
        solve=lambda _: stopped.wait(1.5),
        stop_search=stopped.set,
    )
    earlier = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            _solved(solver, None)
    finally:
        signal.signal(signal.SIGALRM, earlier)
    assert stopped.is_set()
    assert solver.parameters.catch_sigint_signal is False
    solver.solve = lambda model: (model, "solved")
    assert _solved(solver, "model") == ("model", "solved")
