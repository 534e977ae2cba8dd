"""The search against pricing every candidate by itself, its sentences, and workers that die."""

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
from scheduler.systolic.model.cost import cost
from scheduler.systolic.schedule_file import to_json
from scheduler.systolic.search.costs import GeometryCosts, LayerCosts
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
def test_the_search_finds_what_pricing_everything_finds(name: str, goal: Goal) -> None:
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
def test_near_the_fastest_it_takes_the_cheapest(name: str, tolerance: float) -> None:
    """As pricing everything finds it: first the fewest cycles, then the least area within the tolerance of them."""
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
def test_a_bound_cuts_off_what_does_not_beat_it_and_no_more(name: str, goal: Goal) -> None:
    """Geometry by geometry: the best is found again where the key to beat is a little worse, and not where it is it."""
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
def test_of_few_arrays_too(goal: Goal) -> None:
    ddr = replace(LINK, milli_bytes=6_000)
    found = search(problem(NETWORKS["dense"], ZCU104, TINY), ddr, goal)
    assert found.key == brute_force(problem(NETWORKS["dense"], ZCU104, TINY), ddr, goal)
    assert (found.schedule.array.rows, found.schedule.array.map_ports) == (3, 1)


@pytest.mark.engine
@pytest.mark.parametrize("goal", [Goal(), Goal("ddr", 20_000)], ids=lambda g: g.objective)
def test_the_search_over_batches_finds_what_pricing_everything_finds(goal: Goal) -> None:
    ddr = replace(LINK, milli_bytes=6_000)
    wanted = brute_force(problem(NETWORKS["dense"], ZCU104, SMALL, 5), ddr, goal)
    assert wanted is not None
    found = search(problem(NETWORKS["dense"], ZCU104, SMALL, 5), ddr, goal)
    assert found.key == wanted
    assert found.schedule.batch == 5


@pytest.mark.engine
def test_it_finds_thirteen_rows_for_tiny_yolo() -> None:
    """All map heights are multiples of 13: no other geometry of 1664 DSPs wastes no row."""
    found = search(problem(tiny_yolo(), ZCU104), LINK)
    array = found.schedule.array
    assert (array.rows, array.columns, array.lanes) == (13, 16, 16)
    assert LINK.clock_mhz * 1e6 / found.key[0] > 270
    assert found.proof.priced + found.proof.ruled_out == found.proof.geometries
    assert place(array, ZCU104)[1].fits(ZCU104)


@pytest.fixture
def layers_priced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The layers that are priced from here on, again where a map lies elsewhere."""
    priced: list[int] = []
    price = GeometryCosts._price

    def counted(costs: GeometryCosts, index: int, shape: LayerShape) -> LayerCosts:
        priced.append(index)
        return price(costs, index, shape)

    monkeypatch.setattr(GeometryCosts, "_price", counted)
    return priced


@pytest.mark.engine
def test_where_the_ddr_s_weights_bound_everything_little_is_priced(layers_priced: list[int]) -> None:
    """Many geometries are nearly as good: the bounds know what the weights take, though not the results that stand in
    the Saver at the end of such a layer, and few layers show the rest."""
    network = Builder(3, 32, 32).conv(16, 3).pool().dense(1024).dense(1024).network()
    proof = search(problem(network, ZCU104), LINK).proof
    assert proof.geometries > 600
    assert proof.priced < proof.geometries / 4
    assert len(layers_priced) < 4.5 * proof.priced  # of four layers and four places of their maps


@pytest.mark.engine
def test_arrays_that_a_board_does_not_hold_are_not_priced(layers_priced: list[int]) -> None:
    board, network = load("kv260"), tiny_yolo()

    def priced(rows: int, columns: int, lanes: int) -> tuple[Candidate | None, int]:
        layers = network_shapes(workload_of(network), (columns, lanes), space_of(network, board))
        ddr, space = ddr_timing(board, 300), space_of(network, board)
        return solve(Task(Geometry(rows, columns, lanes), layers, board, ddr, Goal(), space))

    assert priced(13, 44, 4) == (None, 0)
    assert layers_priced == []
    assert priced(7, 40, 8)[0] is not None
    assert set(layers_priced) == set(range(9))


def test_pins_are_kept() -> None:
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
def test_a_pin_that_breaks_a_rule_gets_its_error(name: str) -> None:
    pins, kind, fields = PINS[name]
    with raises_among(kind, **fields):
        pin(space_of(tiny_yolo(96), ZCU104), **pins)


def test_a_pinned_order_that_is_none_is_refused() -> None:
    with raises(ChoiceError, what="the loop order", got="both", choices=ORDERS):
        pin(space_of(tiny_yolo(96), ZCU104), order="both")


def test_a_goal_that_is_none_is_refused() -> None:
    with raises(ChoiceError, what="the objective", got="speed", choices=OBJECTIVES):
        Goal("speed")
    for rate in (-1.0, float("inf")):
        with raises(RangeError, what="the frame rate", got=rate, low=0):
            Goal("fps", rate)
    for objective in AT_A_RATE:
        with raises(MissingValueError, what="a frame rate above 0", remedy="give --fps RATE"):
            Goal(objective)


def test_a_clock_is_positive() -> None:
    with raises(RangeError, what="the clock in MHz", got=-5, low=0, exclusive=True):
        ddr_timing(ZCU104, -5)


@pytest.mark.engine
def test_too_small_a_board_gets_what_it_lacks() -> None:
    tiny = replace(ZCU104, title="Tiny board", resources=replace(ZCU104.resources, dsp=40, bram36=10, uram=2))
    with raises(DoesNotFitError, resource="DSPs", need=256, have=40) as caught:  # requantisers multiply in LUTs then
        search(problem(tiny_yolo(), tiny, pin(space_of(tiny_yolo(), tiny), lanes=16)), LINK)
    assert "tiny-yolo-416 on Tiny board" in caught.value.subject
    memory = {name: (need, have) for name, need, have in caught.value.others}["LUT as memory"]
    assert memory[0] > memory[1] == 101760  # what 10 BRAM36 and 2 URAM do not hold


@pytest.mark.engine
def test_a_rate_that_nothing_reaches_names_the_fastest() -> None:
    with raises(DoesNotFitError, resource="frames/s", need=400) as caught:
        search(problem(tiny_yolo(), ZCU104), LINK, Goal("resources", 400))
    assert caught.value.have is not None
    assert 200 < caught.value.have < 400
    assert "13×16×16" in caught.value.nearest


@pytest.mark.engine
def test_choose_is_the_search() -> None:
    network = tiny_yolo()
    assert (
        choose(network, ZCU104, 300).schedule.array
        == search(problem(network, ZCU104), LINK, Goal(tolerance=TOLERANCE)).schedule.array
    )


@pytest.mark.engine
def test_fewer_resources_suffice_for_a_lower_rate() -> None:
    network = tiny_yolo(96)
    space = pin(space_of(network, ZCU104), lanes=16, chunk=24)
    fast, slow = (search(problem(network, ZCU104, space), LINK, Goal("resources", rate)) for rate in (500, 100))
    assert slow.key[0] < fast.key[0]
    assert cost(slow.schedule, LINK).frames_per_second >= 100


# --- executors -----------------------------------------------------------------------------------------------------


def test_threads_and_processes_find_the_same() -> None:
    network = NETWORKS["pools"]
    alone = search(problem(network, ZCU104, SMALL), LINK)
    with ThreadPoolExecutor(2) as threads:
        assert search(problem(network, ZCU104, SMALL), LINK, workers=Workers(threads)).key == alone.key
    with ProcessPoolExecutor(1) as processes:
        assert search(problem(network, ZCU104, SMALL), LINK, workers=Workers(processes)).key == alone.key


Visits = Callable[[Callable[[int], None]], list[Visit]]


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    """Geometries of 2…19 rows: the first two have key 100, all others 30, and none from 6 rows on less than 40.

    What is given is called with the rows of each that is priced, before its key is there.
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


def test_workers_price_little_that_a_key_rules_out(visits: Visits) -> None:
    """One geometry until one is in vain, then two, of which the later one's key is there first."""
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
    assert (found.key, found.array.rows) == ((30,), 4)  # the first visit's of two equal keys, though it ended last
    assert sorted(seen) == [2, 3, 4, 5]
    assert priced == 4


def test_a_visit_that_is_given_again_is_found_though_a_later_one_is_as_good(visits: Visits) -> None:
    seen: list[int] = []
    with Mortal(1, killed=(2,)) as executor:
        found, _, _ = visit_all(visits(seen.append), None, Workers(executor))
    assert found is not None
    assert found.array.rows == 4
    assert seen == [2, 3, 5, 4]  # the worker that had the fourth died


def test_the_more_are_priced_in_vain_the_more_are_given_at_once(visits: Visits) -> None:
    """Three visits, before which three were in vain, wait for each other."""
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
    """Some of its workers die, as a killed process's futures do."""

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


def test_a_killed_worker_loses_no_result() -> None:
    network = NETWORKS["pools"]
    with Mortal(1) as executor:
        found = search(problem(network, ZCU104, SMALL), LINK, workers=Workers(executor))
    assert executor.deaths == 3
    assert found.key == search(problem(network, ZCU104, SMALL), LINK).key


class Killing(ProcessPoolExecutor):
    """Kills one of its processes when it is given the second task."""

    given = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.given += 1
        future = super().submit(fn, *args, **kwargs)
        if self.given == 2:
            next(iter(self._processes.values())).kill()
        return future


def test_a_killed_process_loses_no_result() -> None:
    network = NETWORKS["dense"]
    alone = search(problem(network, ZCU104, SMALL), LINK)
    with Killing(1) as executor:
        found = search(problem(network, ZCU104, SMALL), LINK, workers=Workers(executor))
        assert executor.given > 2
    assert to_json(found.schedule) == to_json(alone.schedule)


def test_a_pool_that_is_gone_is_done_without() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    network = NETWORKS["dense"]
    found = search(problem(network, ZCU104, SMALL), LINK, workers=Workers(executor))
    assert found.key == search(problem(network, ZCU104, SMALL), LINK).key
