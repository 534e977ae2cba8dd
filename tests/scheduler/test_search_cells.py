"""The best cell and tilings of one geometry with random numbers, compared with trying all of them."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scheduler.hardware.arithmetic import NEVER
from scheduler.systolic.array import Array
from scheduler.systolic.search import solve
from scheduler.systolic.search.costs import LayerCosts, _can_beat
from scheduler.systolic.search.depths import Depths
from scheduler.systolic.tiling import BufferNeeds
from tests.support.cases import cases

DEPTHS = Depths(((2, 4, 8), (3, 6), (1, 5)))
ARRAYS = [Array(2, 8, 8, 1), Array(2, 8, 8, 2)]


def layer(random: Any, count: int) -> LayerCosts:
    """Return the costs of a layer. Its tilings fit the deepest buffers, and few different numbers make keys equal."""
    needs = tuple(
        BufferNeeds(int(random.integers(1, 9)), int(random.integers(1, 7)), int(random.integers(0, 6)), 1, 0)
        for _ in range(count)
    )
    cycles = random.integers(5, 12, (2, count))
    tilings: Any = tuple(f"tiling {index}" for index in range(count))
    return LayerCosts(tilings, needs, np.asarray(cycles, np.int64), np.asarray(random.integers(3, 9, count), np.int64))


def cells(seed: int, objective: str, budget: int, best: tuple[int, ...] | None = None) -> Any:
    random = np.random.default_rng(seed)
    layers = [layer(random, count) for count in (4, 1 + seed % 4, 3)]
    areas = np.asarray(random.integers(20, 26, (2, *DEPTHS.counts)), np.int64)
    areas[random.random(areas.shape) < 0.3] = NEVER
    goal = SimpleNamespace(objective=objective, cycle_budget=lambda _: budget)
    task: Any = SimpleNamespace(goal=goal, ddr=None, best=best)
    return solve._Cells(task, ARRAYS, layers, DEPTHS, areas)


def holds(cell: tuple[int, ...], needs: BufferNeeds) -> bool:
    """Return whether the buffers of a cell are deep enough."""
    depths = tuple(steps[index] for steps, index in zip(DEPTHS.steps, cell[1:], strict=True))
    return all(
        need <= depth
        for need, depth in zip((needs.row_depth, needs.weight_depth, needs.kept_depth), depths, strict=True)
    )


def every(made: Any, budget: int) -> list[tuple[int, int, int]]:
    """Return cycles, bytes and area of every combination of tilings in every cell that fits the board."""
    found = []
    for cell in np.ndindex(made.areas.shape):
        if made.areas[cell] == NEVER:
            continue
        fitting = [[index for index, needs in enumerate(layer.needs) if holds(cell, needs)] for layer in made.layers]
        for choice in product(*fitting):
            pairs = list(zip(made.layers, choice, strict=True))
            cycles = sum(int(layer.cycles[cell[0], index]) for layer, index in pairs)
            if cycles <= budget:
                found.append((cycles, sum(int(layer.bytes[index]) for layer, index in pairs), int(made.areas[cell])))
    return found


@pytest.mark.parametrize("budget", [NEVER, 24, 20, 18])
@pytest.mark.parametrize("objective", ["fps", "resources", "ddr"])
def test_fewest_cycles_and_bytes_equal_the_best_of_all_cells(objective: str, budget: int) -> None:
    order = {"ddr": (1, 0, 2), "resources": (2, 0, 1)}.get(objective, (0, 2, 1))
    fewest = solve._fewest_bytes if objective == "ddr" else solve._fewest_cycles
    several = 0
    for seed in range(25):
        made = cells(seed, objective, budget)
        keys = [tuple(entry[place] for place in order) for entry in every(made, budget)]
        best = fewest(made)
        if not keys:
            assert best is None
            continue
        several += 1
        assert best is not None
        assert best.key == min(keys)
        cell = next(cell for cell in np.ndindex(made.areas.shape) if best.array == DEPTHS.sized(ARRAYS[cell[0]], cell))
        chosen = [int(name.split()[1]) for name in best.tilings]  # type: ignore[attr-defined]
        pairs = list(zip(made.layers, chosen, strict=True))
        assert all(holds(cell, layer.needs[index]) for layer, index in pairs)
        taken = (
            sum(int(layer.cycles[cell[0], index]) for layer, index in pairs),
            sum(int(layer.bytes[index]) for layer, index in pairs),
            int(made.areas[cell]),
        )
        assert tuple(taken[place] for place in order) == best.key
        for worse, beaten in ((1, True), (0, False), (-1, False)):
            again = fewest(cells(seed, objective, budget, (*best.key[:2], best.key[2] + worse)))
            assert (again is not None and again.key == best.key) == beaten
    assert several > 3


@cases("seed", range(6))
def test_least_keys_equal_the_minimum_of_fitting_tilings(seed: int) -> None:
    made = cells(seed, "fps", NEVER)
    first = made.layers[0]
    table = made.least_keys(first, first.cycles)
    for cell in np.ndindex(made.areas.shape):
        fitting = [int(first.cycles[cell[0], i]) for i, needs in enumerate(first.needs) if holds(cell, needs)]
        assert table[cell] == min(fitting, default=NEVER)


@cases(
    "objective, budget, best, cycles, traffic, possible",
    [
        ("fps", 100, None, (100, 101), 9, [True, False]),
        ("fps", 100, (50, 1), (50, 51), 99, [True, False]),
        ("ddr", 100, (50, 1), (99, 101), 50, [True, False]),
        ("ddr", 100, (50, 1), (1, 2), 51, [False, False]),
        ("resources", 100, (50, 1), (99, 101), 99, [True, False]),
    ],
)
def test_can_beat_compares_budget_and_best(
    objective: str,
    budget: int,
    best: tuple[int, ...] | None,
    cycles: tuple[int, ...],
    traffic: int,
    possible: list[bool],
) -> None:
    goal = SimpleNamespace(objective=objective, cycle_budget=lambda _: budget)
    task: Any = SimpleNamespace(goal=goal, ddr=None, best=best)
    assert _can_beat(task, np.array(cycles), traffic).tolist() == possible


@pytest.mark.parametrize("order", [1, -1])
def test_fewest_cycles_equal_cycles_take_the_fewest_bytes(order: int) -> None:
    # The bytes may be up to 2^32 − 1, which is more than any known network moves per layer.
    last = (1 << 32) - 1
    needs = (BufferNeeds(1, 1, 1, 1, 0),) * 2
    tilings: Any = ("tiling 0", "tiling 1")
    traffic = np.array([last - 1, last][::order], np.int64)
    made = LayerCosts(tilings, needs, np.full((2, 2), 7, np.int64), traffic)
    goal = SimpleNamespace(objective="fps", cycle_budget=lambda _: NEVER)
    task: Any = SimpleNamespace(goal=goal, ddr=None, best=None)
    areas = np.full((2, *DEPTHS.counts), 5, np.int64)
    best = solve._fewest_cycles(solve._Cells(task, ARRAYS, [made, made], DEPTHS, areas))
    assert best is not None
    assert best.key == (14, 5, 2 * (last - 1))
    assert best.tilings == (tilings[0 if order == 1 else 1],) * 2
