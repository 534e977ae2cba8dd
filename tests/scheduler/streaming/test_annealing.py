"""The start, the neighbours and the energy of annealing, compared with their definitions for all combinations."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from boards.board import load
from boards.errors import RangeError
from scheduler.hardware.budget import Budget
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import limits
from scheduler.streaming.lower import lower
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.result import Goal, evaluate
from scheduler.streaming.rules import violations
from scheduler.streaming.search import annealing, greedy
from scheduler.streaming.search.annealing import APART, PENALTY, Effort, _Annealing, _distance
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.space import Space, space_of
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.low_bit import Layers

pytest.importorskip("scipy.optimize", reason="annealing needs scipy: pip install -e '.[solver]'")

ULTRA96 = load("ultra96-v2")
LEAST = Options(max_pixels=1, uram_weights=False)


@lru_cache
def space(kind: str) -> Space:
    made = Layers(2, 3, 3, "BIPOLAR").depthwise(2) if kind == "depthwise" else Layers(2, 3, 3).conv(2, 1)
    graph = lower(made.network(kind))
    return space_of(graph, ULTRA96, LEAST)


def search(kind: str, cycles: int, goal: Goal | None = None) -> _Annealing:
    return _Annealing(space(kind), goal or Goal(cycles), cycles, Effort(), ())


@cases("budget", [Budget(), Budget(lut=0.004, dsp=0.003, bram=0.004)])
@cases("kind", ["depthwise", "pointwise"])
def test_energy_is_the_area_plus_penalties(kind: str, budget: Budget) -> None:
    """The energy of a legal combination is its area as a fraction of the board, plus penalties.

    PENALTY is added per whole limit by which a resource is exceeded. APART, which exceeds any of these sums, is added
    per stream whose words cannot be converted.
    """
    slowest = space(kind).cycle_counts()[-1]
    goal = Goal(slowest, budget=budget)
    annealed, kinds = search(kind, slowest, goal), set()
    most = limits(ULTRA96, budget)
    for chosen in product(*(range(len(block.folds)) for block in space(kind).blocks)):
        energy = annealed.energy(np.array(chosen))
        folds = [block.folds[choice] for block, choice in zip(space(kind).blocks, chosen, strict=True)]
        apart = len({error.where for error in violations(space(kind).graph, folds)})
        if apart:
            assert apart * APART <= energy < (apart + 1) * APART
            kinds.add("apart")
            continue
        result = evaluate(space(kind).graph, folds, ULTRA96, goal)
        excess = sum(
            max(0, getattr(result.usage, name) - getattr(most, name)) / max(1, getattr(most, name))
            for name in ("lut", "lutram", "dsp", "bram18", "uram")
        )
        assert energy == pytest.approx(result.area / 1e9 + PENALTY * excess, rel=1e-12)
        kinds.add("fits" if result.fits else "too much")
    assert kinds - {"apart"} == {"fits" if budget == Budget() else "too much"}
    assert ("apart" in kinds) == (kind == "depthwise")


def test_rows_of_lanes_exclude_folds_above_the_target_cycles() -> None:
    counts = space("depthwise").cycle_counts()
    cycles = counts[len(counts) // 2]
    rows = search("depthwise", cycles).rows_of_lanes()
    for index, block in enumerate(space("depthwise").blocks):
        graph = space("depthwise").graph
        lanes: dict[tuple[int, ...], list[int]] = {}
        for choice, fold in enumerate(block.folds):
            if block_cycles(graph, index, fold) <= cycles:
                key = (fold.m, fold.style == "parallel", fold.pad_in, fold.pad_out, fold.pixels, fold.pe, fold.simd)
                lanes.setdefault(key, []).append(choice)
        units = space("depthwise").unit_areas
        cheapest = [min(alike, key=lambda choice: block.usage[choice] @ units) for _, alike in sorted(lanes.items())]
        assert rows[index].tolist() == cheapest


def test_rows_of_kinds_vary_only_memories_and_multipliers() -> None:
    annealed = search("pointwise", space("pointwise").cycle_counts()[-1])
    rows = annealed.rows_of_kinds()
    for block, row, chosen in zip(space("pointwise").blocks, rows, annealed.chosen, strict=True):
        now = block.folds[chosen]
        alike = [
            choice
            for choice, fold in enumerate(block.folds)
            if replace(fold, memory=now.memory, ram=now.ram, multiplier=now.multiplier) == now
        ]
        assert row.tolist() == alike
        assert chosen in alike
    assert len(rows[1]) == 6  # weights in LUTs, in BRAM, or decoupled; products in DSPs or in LUTs


@cases("made", [Layers(6, 4, 4).depthwise(3), Layers(6, 8, 8).conv(8, 1).depthwise(3, 2)], ids=["one", "two"])
def test_start_is_legal_for_every_cycle_count(made: Layers) -> None:
    """A window and the depthwise unit that reads it start with words that can be converted."""
    graph = lower(made.network())
    whole = space_of(graph, ULTRA96, LEAST)
    for cycles in whole.cycle_counts():
        try:
            folds = _Annealing(whole, Goal(cycles), cycles, Effort(), ()).folds()
        except RangeError:
            continue
        assert list(violations(graph, folds)) == []


def test_start_has_the_lanes_of_the_greedy_folding() -> None:
    """The start has the greedy folding's lanes if they are among the choices, with the memory that is listed first."""
    cycles = space("pointwise").cycle_counts()[-1]
    greedily = greedy.fold(space("pointwise").graph, ULTRA96, Goal(cycles), strict=False).folding.folds
    for fold, other in zip(search("pointwise", cycles).folds(), greedily, strict=True):
        assert replace(fold, ram="auto") == other


FOLD = g.Fold(pe=4, simd=6)


@pytest.mark.parametrize(
    "folds",
    [
        # in ascending distance from a fold of 4 · 6 lanes
        [
            FOLD,
            replace(FOLD, ram="bram"),
            replace(FOLD, ram="lutram"),
            replace(FOLD, memory="decoupled"),
            replace(FOLD, multiplier="lut"),
            replace(FOLD, pe=5),
            replace(FOLD, pe=7),
            replace(FOLD, style="parallel"),
            replace(FOLD, pixels=2),
            replace(FOLD, m=2),
            replace(FOLD, pad_in=1),
            replace(FOLD, pad_in=1, pad_out=1),
        ],
        [g.Fold(pe=3, simd=6), g.Fold(pe=4, simd=5), g.Fold(pe=4, simd=7), g.Fold(pe=5, simd=6)],  # 18, 20, 28, 30
        [g.Fold(pe=4, simd=6), g.Fold(pe=3, simd=7), g.Fold(pe=2, simd=6)],  # both 2 away, with 21 and 12 products
    ],
)
def test_distance_orders_by_lanes_then_products(folds: list[g.Fold]) -> None:
    distances = [_distance(fold, FOLD) for fold in folds]
    if folds[1] == g.Fold(pe=3, simd=7):
        assert distances[0] < distances[2] < distances[1]
    else:
        assert all(near < far for near, far in pairwise(distances))


@pytest.mark.parametrize("kind", ["depthwise", "pointwise"])
def test_annealing_with_enough_effort_finds_the_least_energy(kind: str) -> None:
    """Annealing finds the minimum over all lanes, and then over all memories and multipliers."""
    counts = space(kind).cycle_counts()
    cycles = counts[len(counts) // 2]
    annealed = _Annealing(space(kind), Goal(cycles), cycles, Effort(300, 1, 5), ())
    for rows in (annealed.rows_of_lanes(), annealed.rows_of_kinds()):
        before = annealed.energy(annealed.chosen)
        least = min(annealed.energy(np.array(chosen)) for chosen in product(*rows))
        annealed.anneal_partitions(rows, len(rows))
        assert annealed.energy(annealed.chosen) == min(before, least)
        assert all(choice in row for choice, row in zip(annealed.chosen, rows, strict=True)) or before <= least


def test_go_through_anneals_groups_of_neighbouring_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks with one choice are skipped."""
    parts: list[list[int]] = []
    monkeypatch.setattr(_Annealing, "_anneal", lambda _, part, rows: parts.append(part))
    annealed = search("pointwise", space("pointwise").cycle_counts()[-1])
    several = [np.arange(2)] * 8
    annealed.anneal_partitions(several, 3)
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7]]
    parts.clear()
    annealed.anneal_partitions([np.arange(count) for count in (1, 2, 1, 1, 1, 1, 5)], 2)
    assert parts == [[1], [6]]


def test_anneal_bounds_extend_half_an_index_beyond_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds give every index of a row the same probability. The start is the chosen index, or the nearest one."""
    asked: dict[str, Any] = {}

    def solver(energy: Any, bounds: Any, **options: Any) -> None:
        asked.update(options, bounds=bounds)
        for point in ([-0.49, 1.49], [0.51, 0.49], [9.0, -9.0]):
            energy(point)

    monkeypatch.setattr(annealing, "_dual_annealing", lambda: solver)
    annealed = search("pointwise", space("pointwise").cycle_counts()[-1])
    rows = annealed.rows_of_lanes()
    annealed.chosen = np.array([0, rows[1][-1], rows[2][-1]])
    annealed._anneal([1, 2], rows)
    assert asked["x0"].tolist() == [len(rows[1]) - 1, len(rows[2]) - 1]
    assert asked["bounds"] == [(-0.499, len(rows[1]) - 0.501), (-0.499, len(rows[2]) - 0.501)]
    assert asked["maxfun"] == 2 * 200
    assert (asked["visit"], asked["accept"], asked["no_local_search"], asked["seed"]) == (2.0, -5.0, True, 0)


def test_fold_anneals_lanes_and_then_kinds_in_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[tuple[int, ...]] = []
    monkeypatch.setattr(_Annealing, "anneal_partitions", lambda _, rows, together: gone.append((len(rows), together)))
    graph = space("pointwise").graph
    cycles = space("pointwise").cycle_counts()[-1]
    result = annealing.fold(graph, ULTRA96, Goal(cycles), LEAST, space=space("pointwise"))
    assert gone == 2 * [(3, 3), (3, 8)]
    assert (result.state, result.seconds > 0) == ("heuristic", True)
    annealing.fold(graph, ULTRA96, Goal(cycles), LEAST, Effort(attempts=1))
    assert len(gone) == 6


def test_annealing_names_the_block_that_misses_the_target() -> None:
    fastest = [int(block.cycles.min()) for block in space("pointwise").blocks]
    slowest = max(fastest)
    assert search("pointwise", slowest).chosen.shape == (3,)
    name = space("pointwise").graph.blocks[fastest.index(slowest)].name
    with raises(RangeError, where=f"pointwise: {name}", got=slowest - 1, low=slowest):
        search("pointwise", slowest - 1)
