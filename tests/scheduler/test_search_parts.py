"""Parts of the search with results by hand: coarse spaces, Pareto fronts, and the resources that a board lacks."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from boards.board import load
from boards.errors import DoesNotFitError, InvalidValueError, RangeError
from scheduler.hardware.arithmetic import NEVER
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.area.placement import place, placed_area
from scheduler.systolic.area.resources import Usage
from scheduler.systolic.array import RULES, Array, Rule
from scheduler.systolic.model.arrays import array_column
from scheduler.systolic.model.cost import layer_cycles
from scheduler.systolic.search import pareto
from scheduler.systolic.search.costs import _known_cycles, geometry_costs
from scheduler.systolic.search.depths import Depths, areas
from scheduler.systolic.search.infeasible import _advice, _too_large, nothing_fits, shortfalls
from scheduler.systolic.search.search import _cheapest_near, _search, _visits, search
from scheduler.systolic.search.space import TOLERANCE, Goal
from scheduler.systolic.search.task import arrays_of
from scheduler.systolic.search.workers import ALONE
from scheduler.systolic.shape import steps_after, with_maps_on_chip
from scheduler.systolic.tiling import ORDERS, TILING_RULES, BufferNeeds, TilingRule
from tests.support.arrays.spaces import SMALL
from tests.support.cases import cases
from tests.support.errors import raises_among
from tests.support.quantised import Builder
from tests.support.searches import problem

ZCU104 = load("zcu104")
WIDE = replace(SMALL, save_rows=(1, 2, 3, 4, 8), chunks=(4, 8, 16), map_ports=(1, 2, 3), weight_ports=(1, 2, 4))


def test_coarse_keeps_few_values_per_number_and_all_pins() -> None:
    coarse = pareto._coarse(WIDE, ZCU104)
    assert (coarse.save_rows, coarse.chunks, coarse.column_tiles) == ((1, 2, 4), (16,), 4)
    assert (coarse.map_ports, coarse.weight_ports) == ((2,), (2,))
    assert (coarse.rows, coarse.shapes) == (WIDE.rows, WIDE.shapes)
    pinned = pareto._coarse(replace(WIDE, save_rows=(8,), map_ports=(3,), weight_ports=(4,)), ZCU104)
    assert (pinned.save_rows, pinned.map_ports, pinned.weight_ports) == ((8,), (3,), (4,))


@cases("ports, few", [(5, 2), (6, 2), (4, 1), (3, 1)])
def test_coarse_board_of_few_ports_has_one_port_of_each_kind(ports: int, few: int) -> None:
    # Two ports for maps, two for weights and one for the program need a board with five ports.
    board = replace(ZCU104, ports=tuple(ZCU104.ports[0] for _ in range(ports)))
    coarse = pareto._coarse(WIDE, board)
    assert (coarse.map_ports, coarse.weight_ports) == ((few,), (few,))


def test_areas_equal_the_placement_of_each_array() -> None:
    # The board is too small for some of the arrays.
    arrays = [Array(2, 8, 8, save_rows=rows) for rows in (1, 2)]
    depths = Depths(((64, 16_384), (64, 4096, 8192), (512, 4096)))
    board = replace(ZCU104, resources=replace(ZCU104.resources, bram36=40, uram=4, lutram=4000))
    grid = areas(arrays, depths, board)
    assert grid.shape == (2, 2, 3, 2)
    placed = 0
    for cell in np.ndindex(*grid.shape):
        array = depths.sized(arrays[cell[0]], cell)
        placement, used = place(array, board)
        assert grid[cell] == (placed_area(array, board, placement) if used.fits(board) else NEVER)
        placed += used.fits(board)
    assert 3 < placed < 20


def test_infeasible_buffers_too_shallow_together_name_their_depths() -> None:
    network = Builder(3, 7, 6).conv(8, 3).pool().conv(12, 1).network()
    space = replace(SMALL, shapes=((8, 4),), row_depths=(2, 10), weight_depths=(2, 11), kept_depths=(512, 4096))
    error = nothing_fits(problem(network, ZCU104, space))
    assert isinstance(error, DoesNotFitError)
    assert (error.need, error.have, error.remedy) == (None, 10, "allow deeper buffers")
    assert error.subject.endswith(", with a weight buffer of 11 steps,")
    held = nothing_fits(problem(network, replace(ZCU104, ports=ZCU104.ports[:2]), replace(space, row_depths=(2, 12))))
    assert "with the smallest array that holds it" in held.message()  # under another tiling than the one of fewest rows


def test_search_rule_without_a_tiling_gives_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # A new rule is a row of one table. The search keeps the rule, and the error of a failed search is that row's
    # error.
    network = Builder(3, 7, 6).conv(8, 3).pool().conv(12, 1).network()
    assert search(problem(network, ZCU104, SMALL)).schedule.tilings[0].order != "streamed"
    toy = TilingRule(
        lambda shape, tiling, rows: tiling.order == "streamed" and rows != 4,
        lambda shape, tiling, rows: InvalidValueError("order", tiling.order, "streamed, on rows other than 4"),
    )
    monkeypatch.setattr("scheduler.systolic.tiling.TILING_RULES", (*TILING_RULES, toy))
    found = search(problem(network, ZCU104, SMALL)).schedule
    assert found.array.rows == 3
    assert {tiled.order for tiled in found.tilings} == {"streamed"}
    with raises_among(InvalidValueError, what="order", required="streamed, on rows other than 4"):
        search(problem(network, ZCU104, replace(SMALL, rows=(4,))))


def test_search_rule_without_an_array_gives_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Rule(lambda array: array.map_ports != 2, lambda array: RangeError("map_ports", array.map_ports, high=1))
    monkeypatch.setattr("scheduler.systolic.array.RULES", (*RULES, toy))
    network = Builder(3, 7, 6).conv(8, 3).network()
    assert search(problem(network, ZCU104, SMALL)).schedule.array.map_ports == 1
    with raises_among(RangeError, what="map_ports", got=2):
        search(problem(network, ZCU104, replace(SMALL, map_ports=(2,))))


@cases(
    "needs, lack",
    [
        # words of rows, steps of weights and stored sums; the deepest buffers have 4, 8 and 10
        ((7, 9, 11), (7, 4, "row_depth 8, or more rows")),
        ((7, 8, 10), (7, 4, "row_depth 8, or more rows")),
        ((6, 8, 10), (6, 4, "row_depth 6, or more rows")),
        ((4, 9, 11), (9, 8, "weight_depth 9, or more lanes")),
        ((4, 8, 11), (11, 10, "kept_depth 11, or an even number of rows")),
        ((4, 11, 10), (11, 8, "weight_depth 11, or more lanes")),
        ((4, 8, 10), None),
    ],
)
def test_too_large_names_the_first_buffer_too_shallow_for_all_tilings(
    needs: tuple[int, int, int], lack: tuple[int, int, str] | None
) -> None:
    # Each layer has a second tiling that needs more of every buffer.
    layer: Any = SimpleNamespace(name="conv", steps=5)
    small = replace(SMALL, row_depths=(2, 4), weight_depths=(4, 8), kept_depths=(5, 10))
    rows, weights, sums = needs
    tilings = tuple(
        (
            cast("Any", SimpleNamespace(columns=SimpleNamespace(width=width))),
            BufferNeeds(times * rows, times * weights, times * sums, 1, 0),
        )
        for width, times in ((4, 2), (3, 1))
    )
    error = _too_large(layer, tilings, small)
    if lack is None:
        assert error is None
        return
    assert isinstance(error, DoesNotFitError)
    assert (error.where, error.need, error.have, error.nearest) == ("conv", *lack)
    assert "(3 columns)" in error.subject or rows == 4


def test_visits_include_a_bound_equal_to_the_budget() -> None:
    # The budget of cycles per frame equals the bound, or is one cycle below.
    network = Builder(3, 7, 6).conv(8, 3).pool().conv(12, 1).network()
    ddr = ddr_timing(ZCU104, 300)
    every = _visits(problem(network, ZCU104, SMALL), ddr, Goal(), None)
    bounds = sorted(visit.bound[0] for visit in every)
    assert bounds[0] < bounds[-1]
    for budget in (bounds[0], bounds[-1] - 1, bounds[-1]):
        goal = Goal("resources", 300e6 / (budget + 0.5))
        visits = _visits(problem(network, ZCU104, SMALL), ddr, goal, None)
        assert sorted(visit.bound[1] for visit in visits) == [bound for bound in bounds if bound <= budget]


def test_geometry_costs_layer_without_a_tiling_prices_nothing() -> None:
    network = Builder(3, 7, 6).conv(8, 3).pool().conv(12, 1).network()
    tiny = replace(SMALL, weight_depths=(2,))
    task = _visits(problem(network, ZCU104, tiny), ddr_timing(ZCU104, 300), Goal(), None)[0].task
    costs = geometry_costs(task, arrays_of(task))
    before = _known_cycles.cache_info().misses
    assert costs.layers(task.network.may_stay, None) == ([], [])
    assert _known_cycles.cache_info().misses == before


def test_cheapest_near_reuses_known_prices() -> None:
    # The second search prices no layer again, and finds the same schedule with an empty cache.
    network = Builder(3, 40, 40).conv(24, 3).pool().conv(40, 3).network()
    ddr, small = ddr_timing(ZCU104, 300), problem(network, ZCU104, SMALL)
    fastest = _search(small, ddr, Goal(tolerance=TOLERANCE), ALONE)
    before = _known_cycles.cache_info().misses
    found = _cheapest_near(small, fastest, ALONE)
    assert _known_cycles.cache_info().misses == before
    _known_cycles.cache_clear()
    anew = _cheapest_near(small, fastest, ALONE)
    assert _known_cycles.cache_info().misses > 0
    assert (found.key, found.schedule.array, found.proof) == (anew.key, anew.schedule.array, anew.proof)


def test_geometry_costs_equal_layers_are_priced_once() -> None:
    """Four equal layers are priced three times: the first of the frame, the two in the middle, and the last one.

    The last one has no following layer whose weights it loads.
    """
    network = Builder(16, 20, 20).conv(16, 3).conv(16, 3).conv(16, 3).conv(16, 3).network()
    task = _visits(problem(network, ZCU104, SMALL), ddr_timing(ZCU104, 300), Goal(), None)[0].task
    before = _known_cycles.cache_info()
    arrays, costs = geometry_costs(task, arrays_of(task)).layers((False,) * 4, None)
    after = _known_cycles.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (3, 1)
    assert arrays == arrays_of(task)
    assert np.array_equal(costs[1].cycles, costs[2].cycles)
    assert not np.array_equal(costs[2].cycles, costs[3].cycles)


def test_geometry_costs_drops_only_arrays_that_cannot_beat_the_best() -> None:
    # The arrays of one geometry differ in their cycles. Each that is dropped takes more cycles than the best schedule.
    network = Builder(3, 40, 40).conv(24, 3).pool().conv(40, 3).conv(16, 1).network()
    task = _visits(problem(network, ZCU104, SMALL), ddr_timing(ZCU104, 300), Goal(), None)[0].task
    geometry, on_chip = geometry_costs(task, arrays_of(task)), task.network.may_stay
    arrays, layers = geometry.layers(on_chip, None)
    cycles = dict(zip(arrays, sum(layer.cycles.min(axis=1) for layer in layers), strict=True))
    for best in sorted(set(cycles.values())):
        left, fewer = geometry.layers(on_chip, (best,))
        assert left == [array for array in arrays if cycles[array] <= best]
        picked = np.array([array in left for array in arrays])
        assert all(np.array_equal(part.cycles, layer.cycles[picked]) for part, layer in zip(fewer, layers, strict=True))
    assert geometry.layers(on_chip, (min(cycles.values()) - 1,)) == ([], [])


@pytest.mark.parametrize("width", [40, 13])
def test_costs_long_chunks_take_the_same_cycles(width: int) -> None:
    # The cache prices a chunk that is longer than a row of the output as one that holds just this row.
    network = Builder(3, 24, width).conv(24, 3).pool().conv(40, 3).conv(16, 1).network()
    task = _visits(problem(network, ZCU104, SMALL), ddr_timing(ZCU104, 300), Goal(), None)[0].task
    long = [replace(array, chunk=64 + index) for index, array in enumerate(arrays_of(task))]
    arrays, layers = geometry_costs(task, long).layers(task.network.may_stay, None)
    shapes = with_maps_on_chip(task.network.shapes, task.network.may_stay)
    for index, (layer, shape) in enumerate(zip(layers, shapes, strict=True)):
        after = steps_after(shapes, index)
        cycles = layer_cycles(array_column(arrays), shape, layer.tilings, after, task.ddr, index == 0).total
        assert np.array_equal(np.broadcast_to(cycles, layer.cycles.shape), layer.cycles)


def point(cycles: int, dsps: int) -> Any:
    """Return a point of a front."""
    return SimpleNamespace(cycles=cycles, dsps=dsps)


def test_with_point_keeps_undominated_points() -> None:
    front = [point(100, 4), point(50, 8)]
    assert pareto._with_point(front, point(100, 4)) is front
    assert pareto._with_point(front, point(101, 4)) is front
    assert pareto._with_point(front, point(100, 5)) is front
    between = point(70, 6)
    assert pareto._with_point(front, between) == [*front, between]
    better = point(50, 4)
    assert pareto._with_point(front, better) == [better]
    assert [pareto._cycles_to_beat(front, dsps) for dsps in (3, 4, 7, 8, 9)] == [None, 100, 100, 50, 50]


def test_shortfalls_name_every_missing_resource() -> None:
    resources = ZCU104.resources
    array = Array(2, 4, 4, map_ports=2, weight_ports=2)
    whole: dict[str, Any] = {name: getattr(resources, name) for name in ("dsp", "bram36", "uram", "lut", "lutram")}
    usage = cast(Usage, SimpleNamespace(**whole))
    assert shortfalls(array, usage, ZCU104) == []
    titles = {"dsp": "DSPs", "bram36": "BRAM36", "uram": "URAM", "lut": "LUT", "lutram": "LUT as memory"}
    for name, title in titles.items():
        beyond = cast(Usage, SimpleNamespace(**{**whole, name: whole[name] + 3}))
        assert shortfalls(array, beyond, ZCU104) == [(title, whole[name] + 3, whole[name])]
    few = replace(ZCU104, ports=ZCU104.ports[:1] * 4)
    assert shortfalls(array, usage, few) == [("AXI ports for maps, weights and the program", 5, 4)]


def test_advice_gives_up_pins_before_the_board() -> None:
    assert (
        _advice(replace(SMALL, orders=ORDERS[:1]))
        == f"leave out --order {ORDERS[0]}, which pins how every layer is tiled"
    )
    pinned = replace(SMALL, rows=(3,), shapes=((8, 8),))
    assert _advice(pinned) == "leave out --array, which pins it, or pin a smaller one"
    for space in (SMALL, replace(pinned, rows=(3, 4)), replace(pinned, shapes=SMALL.shapes)):
        assert _advice(space) == "take a larger board, or a smaller input"
