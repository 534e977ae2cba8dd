"""The search over cycle counts, with solvers whose results are given: its targets, its conclusions and its errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from boards.board import load
from boards.errors import DoesNotFitError, RangeError, ToolError
from scheduler.hardware.budget import Budget
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.result import Goal, evaluate
from scheduler.streaming.search import exact, greedy, infeasible
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.exact import ENDLESS, _Targets, has_folding, least_cycles
from scheduler.streaming.search.remedies import Proposal
from scheduler.streaming.search.solve import Solution
from scheduler.streaming.search.space import space_of
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.low_bit import Layers

pytest.importorskip("ortools.sat.python.cp_model", reason="exact folding needs OR-tools: pip install -e '.[solver]'")
pytest.importorskip("scipy.optimize", reason="exact folding needs scipy: pip install -e '.[solver]'")

ULTRA96 = load("ultra96-v2")
LEAST = Options(max_pixels=1, uram_weights=False)
GRAPH = lower(Layers(2, 4, 4).conv(4, 1).network("tiny"))
SPACE = space_of(GRAPH, ULTRA96, LEAST)
SLOW = tuple(g.Fold(ram="lutram") if block.name == "conv1" else g.Fold() for block in GRAPH.blocks)
"""Folds with one product per cycle."""

COUNTS = [10, 20, 30, 40, 50, 60]


@dataclass(frozen=True)
class GivenTargets(_Targets):
    """A search whose solver results are given.

    Attributes:
        solutions: The solution for each cycle count. The cycles of a feasible folding are its only fold.
        asked: The cycle counts that the search has solved for, in order.
    """

    solutions: dict[int, Solution] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def _solve(self, cycles: int, any_folding: bool = False) -> Solution:
        assert any_folding
        self.asked.append(cycles)
        return self.solutions[cycles]


def bisected(monkeypatch: pytest.MonkeyPatch, states: list[str], faster: int = 0) -> tuple[Any, list[int]]:
    """Return the result of the bisection of COUNTS, and the cycle counts that it solved for.

    Args:
        monkeypatch: The fixture.
        states: The state of the solution for each count: "found", "infeasible" or "unknown".
        faster: The number of counts by which a folding is faster than required, unless that count is infeasible.
    """
    monkeypatch.setattr(exact, "frame_cycles", lambda _, folds: folds[0])
    first = states.index("found") if "found" in states else 0
    solutions = {}
    for index, (count, state) in enumerate(zip(COUNTS, states, strict=True)):
        reached = COUNTS[max(first, index - faster)]
        solutions[count] = Solution("feasible", (reached,)) if state == "found" else Solution(state)  # type: ignore[arg-type]
    space: Any = SimpleNamespace(graph=None)
    targets = GivenTargets(space, Goal(None), LEAST, None, 0.0, solutions=solutions)
    return targets._bisect(COUNTS), targets.asked


@pytest.mark.parametrize("faster", [0, 1, 5])
@pytest.mark.parametrize("first", range(7))
def test_bisection_finds_the_least_count_in_three_solves(
    monkeypatch: pytest.MonkeyPatch, first: int, faster: int
) -> None:
    states = ["infeasible"] * first + ["found"] * (6 - first)
    result, asked = bisected(monkeypatch, states, faster)
    if first == 6:
        assert (result.cycles, result.possible, result.undecided) == (None, 0, False)
    else:
        assert (result.cycles, result.possible, result.undecided) == (COUNTS[first], COUNTS[first], False)
    assert len(asked) == len(set(asked)) <= 3


@pytest.mark.parametrize("unknown", range(1, 6))
@pytest.mark.parametrize("impossible", range(6))
def test_bisection_with_unknown_states_claims_only_proven_counts(
    monkeypatch: pytest.MonkeyPatch, impossible: int, unknown: int
) -> None:
    """``possible`` is the count after the greatest one that was proven infeasible."""
    states = (["infeasible"] * impossible + ["unknown"] * unknown + ["found"] * 6)[:6]
    result, asked = bisected(monkeypatch, states)
    proven = [COUNTS.index(count) for count in asked if states[COUNTS.index(count)] == "infeasible"]
    assert result.undecided == any(states[COUNTS.index(count)] == "unknown" for count in asked)
    if "found" in states:
        assert result.cycles == COUNTS[states.index("found")]
        assert result.possible == COUNTS[max(proven, default=-1) + 1]
    else:
        assert result.cycles is None


# --- one target -------------------------------------------------------------------------------------------------------


def targets(goal: Goal = Goal(None), deadline: float | None = None, **methods: Any) -> _Targets:  # noqa: B008
    kind = type("Fixed", (_Targets,), methods)
    made: _Targets = kind(SPACE, goal, LEAST, deadline, 0.0)
    return made


@cases(
    "solution, rate_gap, state, gap",
    [
        (Solution("optimal", SLOW, 200.0, 50.0), 0.0, "optimal", 0.0),
        (Solution("optimal", SLOW, 200.0, 200.0), 0.25, "feasible", 0.0),
        (Solution("feasible", SLOW, 200.0, 150.0), 0.0, "feasible", 0.25),
        (Solution("feasible", SLOW, 200.0, 201.0), 0.0, "optimal", 0.0),
    ],
)
def test_gap_is_the_distance_to_the_bound(solution: Solution, rate_gap: float, state: str, gap: float) -> None:
    result = targets(_solve=lambda *_: solution).cheapest(1000, rate_gap)
    assert (result.state, result.gap, result.rate_gap) == (state, gap, rate_gap)
    assert result.folding.folds == SLOW
    assert result.seconds > 0
    assert targets(_solve=lambda *_: Solution("optimal", SLOW, 200.0, 200.0)).cheapest(1000).state == "optimal"


def test_fastest_has_the_rate_gap_of_the_bisection() -> None:
    def fastest(cycles: int | None, possible: int, undecided: bool) -> tuple[int, float]:
        bisected = exact._Bisected(cycles, possible, undecided)
        made = targets(_bisect=lambda *_: bisected, cheapest=lambda _, cycles, gap: (cycles, gap))
        pair: Any = made.fastest()
        return pair  # type: ignore[no-any-return]

    counts = SPACE.cycle_counts()
    assert fastest(40, 40, False) == (40, 0.0)
    assert fastest(40, 30, True) == (40, 0.25)
    assert fastest(None, 0, True) == (counts[-1], 1 - counts[0] / counts[-1])
    with raises(DoesNotFitError):
        fastest(None, 0, False)
    made = targets(_bisect=lambda *_: exact._Bisected(None, 0, True), fastest=lambda _: SimpleNamespace(cycles=77))
    assert made.fewest() == 77
    assert targets(_bisect=lambda *_: exact._Bisected(44, 0, True)).fewest() == 44


def test_known_folding_is_the_smallest_that_meets_the_target() -> None:
    goal = Goal(10_000)
    slow, both = (
        evaluate(GRAPH, folds, ULTRA96, goal) for folds in (SLOW, [*SLOW[:1], replace(SLOW[1], simd=2), SLOW[2]])
    )
    assert slow.area < both.area
    greedily = [greedy.fold(GRAPH, ULTRA96, Goal(slow.cycles), strict=strict) for strict in (False, True)]
    least = min(greedily, key=lambda result: result.area)
    made = targets(goal)
    known = made._known(slow.cycles)
    assert (known.state, known.area, known.folds) == ("feasible", least.area, least.folding.folds)
    made.foldings.extend([both.folding.folds, slow.folding.folds])
    assert made._known(slow.cycles).area == min(least.area, slow.area)
    assert made._known(1) == Solution("unknown")
    nothing = targets(replace(goal, budget=Budget(lut=0.0001)))
    assert nothing._known(slow.cycles) == Solution("unknown")


def test_has_folding_depends_on_cycles_and_budget() -> None:
    counts = SPACE.cycle_counts()
    assert least_cycles(GRAPH, ULTRA96, Goal(None), LEAST) == counts[0]
    assert has_folding(GRAPH, ULTRA96, Goal(counts[0]), LEAST)
    assert not has_folding(GRAPH, ULTRA96, Goal(counts[0] - 1), LEAST)
    assert not has_folding(GRAPH, ULTRA96, Goal(counts[0], budget=Budget(lut=0.0001)), LEAST)
    many = lower(Layers(512, 1, 1).conv(1024, 3).conv(1024, 3).network())
    assert not has_folding(many, load("pynq-z2"), Goal(10**9))


# --- why nothing was found --------------------------------------------------------------------------------------------


def test_errors_without_a_folding_state_the_reason() -> None:
    fastest = SPACE.cycle_counts()[0]
    for deadline, seconds in ((None, "0 s"), (2.5, "2.5 s")):
        late = targets(deadline=deadline)._nothing(100, "unknown")
        assert isinstance(late, ToolError)
        assert late.reason.endswith(seconds)
    fast = targets()._nothing(fastest - 1, "infeasible")
    assert isinstance(fast, RangeError)
    assert (fast.where, fast.got, fast.low) == ("tiny", fastest - 1, fastest)
    too_large = DoesNotFitError("tiny", "LUT", 2, 1)
    assert targets(_excess=lambda *_: too_large)._nothing(fastest, "infeasible") is too_large


def test_excess_is_measured_at_the_smallest_folding_without_limits() -> None:
    counts = SPACE.cycle_counts()
    cheapest = exact.fold(GRAPH, ULTRA96, Goal(counts[0], budget=ENDLESS), LEAST)
    budget = Budget(lut=0.5 * cheapest.usage.lut / ULTRA96.resources.lut)
    ((resource, need, have),) = infeasible.excess(cheapest.usage, ULTRA96, budget)
    slower = least_cycles(GRAPH, ULTRA96, Goal(None, budget=budget), LEAST)
    assert slower > counts[0]
    nearest = f"{slower} cycles per frame"
    with raises(DoesNotFitError, resource=resource, need=need, have=have, others=(), nearest=nearest) as caught:
        exact.fold(GRAPH, ULTRA96, Goal(counts[0], budget=budget), LEAST)
    assert f"tiny on Ultra96-V2 at {counts[0]} cycles per frame" in caught.value.subject
    assert str(budget) in caught.value.subject


def test_error_without_a_fitting_rate_has_a_proposal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def what_would_fit(refused: Any) -> Proposal:
        asked.append(refused)
        return Proposal("nothing", "sell it")

    monkeypatch.setattr(exact, "what_would_fit", what_would_fit)
    goal = Goal(None, budget=Budget(lut=0.0001))
    counts = SPACE.cycle_counts()
    with raises(DoesNotFitError, resource="LUT", have=7, nearest="nothing", remedy="sell it") as caught:
        exact.fold(GRAPH, ULTRA96, goal, LEAST, 9.0)
    assert f"at {counts[-1]} cycles per frame" in caught.value.subject
    assert caught.value.others
    (refused,) = asked
    assert (refused.graph, refused.board, refused.goal, refused.options) == (GRAPH, ULTRA96, goal, LEAST)
    assert 0 < refused.seconds < 9
    nothing = targets(_solve=None, _what_fits=lambda *_: Proposal("so much"))
    monkeypatch.setattr(exact, "solve", lambda *_: Solution("unknown"))
    for cycles in (counts[0], counts[0] - 1):
        unknown = nothing._excess(cycles)
        assert (unknown.need, unknown.have, unknown.nearest) == (None, None, "")
    monkeypatch.setattr(exact, "solve", lambda *_: Solution("optimal", SLOW))
    mixed = nothing._excess(counts[0])
    assert (mixed.need, mixed.have, mixed.nearest) == (None, None, "so much")
