"""Test the search for the least FIFO depths, with FIFOs whose needs are known."""

from __future__ import annotations

from collections.abc import Mapping

from systolic.trace.depths import Depths, DepthSearch, TracedFifos, bisect, greatest, least_depths
from tests.support.cases import cases

NEEDS = {"rows": 100, "words": 5, "beats": 1, "skip": 700}
BITS = {"rows": 8, "words": 64, "beats": 128, "skip": 4}


class Pipeline:
    """A pipeline that keeps its pace if every FIFO has its needed depth, and records the depths that were tried."""

    def __init__(self, needs: Mapping[str, int] = NEEDS) -> None:
        self.needs = needs
        self.solved: list[dict[str, int]] = []

    def keeps_pace(self, depths: Depths) -> bool:
        self.solved.append(dict(depths))
        return all(depths[name] >= need for name, need in self.needs.items())

    def fifos(self, trimmed: bool = False) -> TracedFifos:
        unbounded = dict.fromkeys(self.needs, 10_000)
        fullest = (lambda _: {name: need - 1 for name, need in self.needs.items()}) if trimmed else None
        return TracedFifos(unbounded, self.keeps_pace, lambda name, depth: BITS[name] * depth, fullest)


@cases("trimmed", [False, True])
def test_least_depths_are_the_needs(trimmed: bool) -> None:
    depths, solutions = least_depths(Pipeline().fifos(trimmed), DepthSearch())
    assert depths == NEEDS
    assert solutions < 60


def test_least_depths_respect_the_shallowest_depth() -> None:
    pipeline = Pipeline()
    depths, _ = least_depths(pipeline.fifos(), DepthSearch(shallowest=2))
    assert depths == {**NEEDS, "beats": 2}
    assert min(min(solved.values()) for solved in pipeline.solved) == 2


def test_least_depths_respect_the_floor() -> None:
    pipeline = Pipeline()
    depths, _ = least_depths(pipeline.fifos(), DepthSearch(floor={"rows": 300, "words": 2}))
    assert depths == {**NEEDS, "rows": 300}
    assert min(solved["rows"] for solved in pipeline.solved) == 300


def test_least_depths_try_a_sufficient_floor_once() -> None:
    pipeline = Pipeline()
    assert least_depths(pipeline.fifos(), DepthSearch(floor=NEEDS))[0] == NEEDS
    assert pipeline.solved == [NEEDS]


def test_least_depths_treat_equal_costs_as_one_depth() -> None:
    depths, _ = least_depths(Pipeline().fifos(trimmed=True), DepthSearch(shallowest=2, equal_cost_depth=32))
    assert depths == {**NEEDS, "beats": 2}
    depths, _ = least_depths(
        Pipeline({**NEEDS, "words": 1}).fifos(trimmed=True), DepthSearch(shallowest=2, equal_cost_depth=32)
    )
    assert depths["words"] == 2


def test_least_depths_start_with_the_costliest_fifo() -> None:
    """Expect the FIFO with words of 128 bits, which costs more than the others, as the first whose depth changes from
    1,024 words."""
    pipeline = Pipeline()
    least_depths(pipeline.fifos(), DepthSearch())
    first_changes = [next(name for name in NEEDS if solved[name] != 1024) for solved in pipeline.solved[11:12]]
    assert first_changes == ["beats"]


def test_least_depths_stop_when_solutions_are_spent() -> None:
    pipeline = Pipeline()
    depths, solutions = least_depths(pipeline.fifos(), DepthSearch(solutions=13))
    assert pipeline.keeps_pace(depths)
    assert depths["skip"] == 1024
    assert solutions == len(pipeline.solved)


def test_bisect_and_greatest_return_the_least_and_largest() -> None:
    assert [bisect(lambda depth, need=need: depth >= need, 9) for need in (1, 4, 9)] == [1, 4, 9]  # type: ignore[misc]
    assert greatest([{"a": 3, "b": 1}, {"a": 2, "c": 5}]) == {"a": 3, "b": 1, "c": 5}
