"""The search compared with pricing every candidate, its errors, and workers that die."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from boards.board import load
from boards.errors import ChoiceError, DoesNotFitError, InvalidValueError, MissingValueError, RangeError, SystolicError
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.area.placement import place
from scheduler.systolic.array import Array
from scheduler.systolic.model.arrays import ArrayGrid
from scheduler.systolic.model.cost import cost, layer_cycles
from scheduler.systolic.model.cycles import Cycles
from scheduler.systolic.schedule_file import to_json
from scheduler.systolic.search import costs
from scheduler.systolic.search.search import choose, search
from scheduler.systolic.search.solve import Candidate, solve
from scheduler.systolic.search.space import (
    AT_A_RATE,
    OBJECTIVES,
    TOLERANCE,
    Geometry,
    Goal,
    geometries,
    pin,
)
from scheduler.systolic.search.task import Task, network_shapes
from scheduler.systolic.search.workers import Visit, Workers, visit_all
from scheduler.systolic.shape import LayerShape
from scheduler.systolic.tiling import ORDERS
from scheduler.systolic.workload import workload_of
from tests.support.arrays.spaces import SMALL
from tests.support.brute_force import brute_force
from tests.support.cases import cases
from tests.support.errors import raises, raises_among
from tests.support.quantised import Builder, tiny_yolo
from tests.support.searches import problem, space_of

ZCU104 = load("zcu104")
LINK = ddr_timing(ZCU104, 300)


NETWORKS = {
    "pools": Builder(3, 13, 12).conv(16, 3).pool().conv(24, 3).pool(1).network(),
    "strides": Builder(3, 15, 9).conv(8, 3, 2).conv(16, 5, 2).network(),
    "dense": Builder(2, 6, 6).conv(8, 1).pool().dense(10).network(),
}
GOALS = (Goal(), Goal("ddr", 20_000), Goal("resources", 20_000), Goal("ddr", 40_000))


@pytest.mark.engine
@pytest.mark.parametrize("goal", GOALS, ids=lambda g: f"{g.objective}-{g.frames_per_second:g}")
@pytest.mark.parametrize("name", NETWORKS)
def test_search_equals_brute_force(name: str, goal: Goal) -> None:
    ddr = replace(LINK, milli_bytes=6_000)  # a memory that matters
    wanted = brute_force(problem(NETWORKS[name], ZCU104, SMALL), ddr, goal)
    if wanted is None:
        with raises(DoesNotFitError, resource="frames/s", need=goal.frames_per_second):
            search(problem(NETWORKS[name], ZCU104, SMALL), ddr, goal)
        return
    found = search(problem(NETWORKS[name], ZCU104, SMALL), ddr, goal)
    assert found.key == wanted
    priced = cost(found.schedule, ddr)
    assert {priced.cycles, priced.traffic.total} <= set(found.key)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "tolerance"), [("strides", 0.001), ("strides", 0.1), ("strides", 0.5), ("dense", 0.1), ("pools", 0.001)]
)
def test_search_tolerance_takes_the_smallest_area(name: str, tolerance: float) -> None:
    # The reference prices every candidate twice, for the fewest cycles and for the smallest area within the
    # tolerance.
    ddr = replace(LINK, milli_bytes=6_000)
    fastest = brute_force(problem(NETWORKS[name], ZCU104, SMALL), ddr, Goal())
    assert fastest is not None
    budget = int(fastest[0] * (1 + tolerance))
    near = Goal("resources", ddr.clock_mhz * 1e6 / (budget + 0.5))
    wanted = brute_force(problem(NETWORKS[name], ZCU104, SMALL), ddr, near)
    assert wanted is not None
    found = search(problem(NETWORKS[name], ZCU104, SMALL), ddr, Goal(tolerance=tolerance))
    assert found.key == (wanted[1], wanted[0], wanted[2])
    assert fastest[0] <= cost(found.schedule, ddr).cycles <= budget
    assert found.key[1] <= fastest[1]
    assert found.proof.tolerance == tolerance


@pytest.mark.parametrize("goal", GOALS, ids=lambda g: f"{g.objective}-{g.frames_per_second:g}")
@pytest.mark.parametrize("name", NETWORKS)
def test_solve_key_to_beat_excludes_equal_keys_only(name: str, goal: Goal) -> None:
    # For each geometry, the best is found again if the key to beat is slightly worse, but not if it is equal.
    workload = workload_of(NETWORKS[name])
    ddr = replace(LINK, milli_bytes=6_000)
    found = 0
    for geometry in geometries(SMALL, ZCU104):
        layers = network_shapes(workload, geometry.width, SMALL)
        task = Task(geometry, layers, ZCU104, ddr, goal, SMALL)
        best, _ = solve(task)
        if best is None:
            continue
        found += 1
        again, _ = solve(replace(task, best=(*best.key[:-1], best.key[-1] + 1)))
        assert again == best
        assert solve(replace(task, best=best.key))[0] is None
    assert found >= 2 or goal.frames_per_second


TINY = replace(SMALL, rows=(3,), map_ports=(1,), row_depths=(64,))


@pytest.mark.parametrize("goal", [GOALS[0], *GOALS[1::2]], ids=lambda g: f"{g.objective}-{g.frames_per_second:g}")
def test_search_few_arrays_equals_brute_force(goal: Goal) -> None:
    ddr = replace(LINK, milli_bytes=6_000)
    found = search(problem(NETWORKS["dense"], ZCU104, TINY), ddr, goal)
    assert found.key == brute_force(problem(NETWORKS["dense"], ZCU104, TINY), ddr, goal)
    assert (found.schedule.array.rows, found.schedule.array.map_ports) == (3, 1)


@pytest.mark.engine
@pytest.mark.parametrize("goal", [Goal(), Goal("ddr", 20_000)], ids=lambda g: g.objective)
def test_search_batch_equals_brute_force(goal: Goal) -> None:
    ddr = replace(LINK, milli_bytes=6_000)
    wanted = brute_force(problem(NETWORKS["dense"], ZCU104, SMALL, 5), ddr, goal)
    assert wanted is not None
    found = search(problem(NETWORKS["dense"], ZCU104, SMALL, 5), ddr, goal)
    assert found.key == wanted
    assert found.schedule.batch == 5


@pytest.mark.engine
def test_search_tiny_yolo_takes_thirteen_rows() -> None:
    # All heights of maps are multiples of 13, so 13 rows of PEs waste no row.
    found = search(problem(tiny_yolo(), ZCU104), LINK)
    array = found.schedule.array
    assert (array.rows, array.columns, array.lanes) == (13, 16, 16)
    assert LINK.clock_mhz * 1e6 / found.key[0] > 270
    assert found.proof.priced + found.proof.ruled_out == found.proof.geometries
    assert place(array, ZCU104)[1].fits(ZCU104)


@pytest.fixture
def layers_priced(monkeypatch: pytest.MonkeyPatch) -> list[LayerShape]:
    """Return the list of layers that are priced during the test. Costs that are known from earlier tests do not count
    as known."""
    priced: list[LayerShape] = []

    def counted(arrays: ArrayGrid, shape: LayerShape, *further: Any) -> Cycles:
        priced.append(shape)
        return layer_cycles(arrays, shape, *further)

    costs._known_cycles.cache_clear()
    monkeypatch.setattr(costs, "layer_cycles", counted)
    return priced


@pytest.mark.engine
def test_search_bound_by_weights_prices_few_geometries(layers_priced: list[LayerShape]) -> None:
    """Many geometries are nearly equal. The bounds include the weights, but not the last results in the Saver.

    Few layers per geometry are priced to rule out the rest.
    """
    network = Builder(3, 32, 32).conv(16, 3).pool().dense(1024).dense(1024).network()
    proof = search(problem(network, ZCU104), LINK).proof
    assert proof.geometries > 600
    assert proof.priced < proof.geometries / 4
    assert len(layers_priced) < 4.5 * proof.priced  # of four layers and four places of their maps


@pytest.mark.engine
def test_solve_arrays_beyond_the_board_are_not_priced(layers_priced: list[LayerShape]) -> None:
    board, network = load("kv260"), tiny_yolo()

    def priced(rows: int, columns: int, lanes: int) -> tuple[Candidate | None, int]:
        layers = network_shapes(workload_of(network), (columns, lanes), space_of(network, board))
        ddr, space = ddr_timing(board, 300), space_of(network, board)
        return solve(Task(Geometry(rows, columns, lanes), layers, board, ddr, Goal(), space))

    assert priced(13, 44, 4) == (None, 0)
    assert layers_priced == []
    assert priced(7, 40, 8)[0] is not None
    assert len(layers_priced) >= 9


def test_search_keeps_pins() -> None:
    space = pin(space_of(tiny_yolo(96), ZCU104), rows=8, columns=16, lanes=16, save_rows=4, order="weights-resident")
    schedule = search(problem(tiny_yolo(96), ZCU104, space), LINK).schedule
    assert (schedule.array.rows, schedule.array.save_rows) == (8, 4)
    assert all(t.tiling.weights_resident or t.row_tiles == 1 for t in schedule.layers)


PINS: dict[str, tuple[dict[str, Any], type[SystolicError], dict[str, Any]]] = {
    "rule": (
        {"rows": 13, "columns": 24, "lanes": 16},
        InvalidValueError,
        {"what": "columns", "got": 24, "nearest": (16, 32)},
    ),
    "rows": ({"rows": 1}, RangeError, {"what": "rows", "got": 1, "low": 2}),
    "ports": ({"map_ports": 3}, ChoiceError, {"what": "map_ports", "got": 3, "choices": (1, 2, 4)}),
    "stream": ({"columns": 32, "lanes": 16, "save_rows": 4}, RangeError, {"got": 4113, "high": 4096}),
}


@cases("name", PINS)
def test_pin_breaking_a_rule_raises_its_error(name: str) -> None:
    pins, kind, fields = PINS[name]
    with raises_among(kind, **fields):
        pin(space_of(tiny_yolo(96), ZCU104), **pins)


def test_pin_unknown_order_is_refused() -> None:
    with raises(ChoiceError, what="the loop order", got="both", choices=ORDERS):
        pin(space_of(tiny_yolo(96), ZCU104), order="both")


def test_goal_invalid_is_refused() -> None:
    with raises(ChoiceError, what="the objective", got="speed", choices=OBJECTIVES):
        Goal("speed")
    for rate in (-1.0, float("inf")):
        with raises(RangeError, what="the frame rate", got=rate, low=0):
            Goal("fps", rate)
    for objective in AT_A_RATE:
        with raises(MissingValueError, what="a frame rate above 0", remedy="give --fps RATE"):
            Goal(objective)


def test_ddr_timing_negative_clock_is_refused() -> None:
    with raises(RangeError, what="the clock in MHz", got=-5, low=0, exclusive=True):
        ddr_timing(ZCU104, -5)


@pytest.mark.engine
def test_search_small_board_names_the_missing_resources() -> None:
    tiny = replace(ZCU104, title="Tiny board", resources=replace(ZCU104.resources, dsp=40, bram36=10, uram=2))
    with raises(
        DoesNotFitError, resource="DSPs", need=256, have=40
    ) as caught:  # the requantisers then multiply in LUTs
        search(problem(tiny_yolo(), tiny, pin(space_of(tiny_yolo(), tiny), lanes=16)), LINK)
    assert "tiny-yolo-416 on Tiny board" in caught.value.subject
    memory = {name: (need, have) for name, need, have in caught.value.others}["LUT as memory"]
    assert memory[0] > memory[1] == 101760  # the memory that 10 BRAM36 and 2 URAM do not hold


@pytest.mark.engine
def test_search_unreachable_rate_names_the_fastest() -> None:
    with raises(DoesNotFitError, resource="frames/s", need=400) as caught:
        search(problem(tiny_yolo(), ZCU104), LINK, Goal("resources", 400))
    assert caught.value.have is not None
    assert 200 < caught.value.have < 400
    assert "13×16×16" in caught.value.nearest


@pytest.mark.engine
def test_choose_equals_the_search_with_tolerance() -> None:
    network = tiny_yolo()
    assert (
        choose(network, ZCU104, 300).schedule.array
        == search(problem(network, ZCU104), LINK, Goal(tolerance=TOLERANCE)).schedule.array
    )


@pytest.mark.engine
def test_search_lower_rate_takes_a_smaller_area() -> None:
    network = tiny_yolo(96)
    space = pin(space_of(network, ZCU104), lanes=16, chunk=24)
    fast, slow = (search(problem(network, ZCU104, space), LINK, Goal("resources", rate)) for rate in (500, 100))
    assert slow.key[0] < fast.key[0]
    assert cost(slow.schedule, LINK).frames_per_second >= 100


# --- executors -----------------------------------------------------------------------------------------------------


def test_search_threads_and_processes_find_the_same_key() -> None:
    network = NETWORKS["pools"]
    alone = search(problem(network, ZCU104, SMALL), LINK)
    with ThreadPoolExecutor(2) as threads:
        assert search(problem(network, ZCU104, SMALL), LINK, workers=Workers(threads)).key == alone.key
    with ProcessPoolExecutor(1) as processes:
        assert search(problem(network, ZCU104, SMALL), LINK, workers=Workers(processes)).key == alone.key


Visits = Callable[[Callable[[int], None]], list[Visit]]


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    """Return a function that makes visits of geometries with 2…19 rows.

    The first two geometries have the key 100, and all others 30. From 6 rows on, the bound is 40. The function's
    argument is called with the rows of each geometry before it is priced.
    """

    def make(asked: Callable[[int], None]) -> list[Visit]:
        def solve(task: Task) -> tuple[Candidate | None, int]:
            rows = task.geometry.rows
            asked(rows)
            found = Candidate((100,) if rows < 4 else (30,), Array(rows, 8, 8), ())
            return (found if task.best is None or found.key < task.best else None), 1

        monkeypatch.setattr("scheduler.systolic.search.workers.solve", solve)
        layers = network_shapes(workload_of(NETWORKS["pools"]), (8, 8), SMALL)
        geometries = [Geometry(rows, 8, 8) for rows in range(2, 20)]
        return [
            Visit((10 if geometry.rows < 6 else 40,), Task(geometry, layers, ZCU104, LINK, Goal(), SMALL))
            for geometry in geometries
        ]

    return make


def test_visit_all_workers_price_few_ruled_out_geometries(visits: Visits) -> None:
    # One geometry runs until one does not improve the key. Then two run, and the later one finishes first.
    seen: list[int] = []
    fourth = threading.Event()

    def asked(rows: int) -> None:
        seen.append(rows)
        if rows == 4:
            assert fourth.wait(120)
        if rows == 5:
            fourth.set()

    with ThreadPoolExecutor(2) as threads:
        found, priced, _ = visit_all(visits(asked), None, Workers(threads))
    assert found is not None
    assert (found.key, found.array.rows) == (
        (30,),
        4,
    )  # of two equal keys, the first visit's counts, although it finished last
    assert sorted(seen) == [2, 3, 4, 5]
    assert priced == 4


def test_visit_all_resubmitted_visit_wins_over_a_later_equal_one(visits: Visits) -> None:
    seen: list[int] = []
    with Mortal(1, killed=(2,)) as executor:
        found, _, _ = visit_all(visits(seen.append), None, Workers(executor))
    assert found is not None
    assert found.array.rows == 4
    assert seen == [2, 3, 5, 4]  # the worker with 4 rows died


def test_visit_all_submits_more_after_visits_in_vain(visits: Visits) -> None:
    """Three visits wait for each other. Three visits before them did not improve the key."""
    together = threading.Barrier(3, timeout=120)

    def asked(rows: int) -> None:
        if 8 <= rows <= 10:
            together.wait()

    low = [Visit((10,), visit.task) for visit in visits(asked)]
    with ThreadPoolExecutor(3) as threads:
        found, priced, _ = visit_all(low, None, Workers(threads))
    assert found is not None
    assert (found.array.rows, priced) == (4, 18)


class Mortal(ThreadPoolExecutor):
    """An executor of which some workers die. Their futures raise errors like the futures of a killed process."""

    def __init__(self, workers: int, killed: Sequence[int] = (0, 1, 2)) -> None:
        super().__init__(workers)
        self.killed, self.deaths = killed, 0
        self.given = itertools.count()

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        if next(self.given) in self.killed:
            self.deaths += 1
            dead: Future[object] = Future()
            dead.set_exception(OSError("worker was killed"))
            return dead
        return super().submit(fn, *args, **kwargs)


def test_search_dead_worker_loses_no_result() -> None:
    network = NETWORKS["pools"]
    with Mortal(1) as executor:
        found = search(problem(network, ZCU104, SMALL), LINK, workers=Workers(executor))
    assert executor.deaths == 3
    assert found.key == search(problem(network, ZCU104, SMALL), LINK).key


class Killing(ProcessPoolExecutor):
    """An executor that kills one of its processes when the second task is submitted."""

    given = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.given += 1
        future = super().submit(fn, *args, **kwargs)
        if self.given == 2:
            next(iter(self._processes.values())).kill()
        return future


def test_search_killed_process_loses_no_result() -> None:
    network = NETWORKS["dense"]
    alone = search(problem(network, ZCU104, SMALL), LINK)
    with Killing(1) as executor:
        found = search(problem(network, ZCU104, SMALL), LINK, workers=Workers(executor))
        assert executor.given > 2
    assert to_json(found.schedule) == to_json(alone.schedule)


def test_search_closed_pool_is_replaced_by_this_process() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    network = NETWORKS["dense"]
    found = search(problem(network, ZCU104, SMALL), LINK, workers=Workers(executor))
    assert found.key == search(problem(network, ZCU104, SMALL), LINK).key
