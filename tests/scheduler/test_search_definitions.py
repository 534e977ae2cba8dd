"""The search and its parts, compared with slow definitions on small networks."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from boards.board import load
from boards.errors import DoesNotFitError, InvalidValueError, RangeError, SeveralFaultsError
from cnn.maps import Padding
from scheduler.hardware.ddr import ddr_timing, milli_cycles
from scheduler.systolic.area.placement import excess, place
from scheduler.systolic.area.resources import Usage
from scheduler.systolic.array import Array
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.model.cost import cost, layer_cost, layer_traffic
from scheduler.systolic.schedule_file import to_json
from scheduler.systolic.search import infeasible
from scheduler.systolic.search.bounds import least_bytes, least_cycles
from scheduler.systolic.search.costs import LayerCosts
from scheduler.systolic.search.depths import useful_depths
from scheduler.systolic.search.pareto import pareto_front
from scheduler.systolic.search.runner_up import runners_up
from scheduler.systolic.search.search import Proof, choose, search, search_clocks
from scheduler.systolic.search.solve import solve
from scheduler.systolic.search.space import (
    TOLERANCE,
    Geometry,
    Goal,
    Space,
    bare_array,
    geometries,
    pin,
    weight_words,
)
from scheduler.systolic.search.task import Task, arrays_of, map_depths, network_shapes, stays_at, tilings_of
from scheduler.systolic.search.workers import ALONE, Visit, Workers, visit_all
from scheduler.systolic.shape import steps_after, with_maps_on_chip
from scheduler.systolic.tiling import ORDERS, BufferNeeds, buffer_needs, column_cuts, tilings
from scheduler.systolic.workload import workload_of
from tests.support.brute_force import brute_force
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.pairwise import pairwise
from tests.support.quantised import Builder
from tests.support.searches import problem, space_of

ZCU104 = load("zcu104")
DDR = replace(ddr_timing(ZCU104, 300), milli_bytes=6_000)  # a memory that matters

NETWORKS = {
    "pooled": Builder(3, 7, 6).conv(8, 3).pool().conv(12, 1).network(),
    "strided": Builder(3, 9, 7).conv(8, 3, 2, Padding(1, 1, 0, 1)).conv(20, 3).network(),
    "dense": Builder(2, 6, 6).conv(8, 1).pool().dense(10).network(),
}
QUICK = Space(
    rows=(3,),
    shapes=((8, 8),),
    save_rows=(1, 2),
    chunks=(8,),
    map_ports=(1,),
    weight_ports=(2,),
    row_depths=(16, 64),
    weight_depths=(64, 256),
    kept_depths=(32,),
    column_tiles=2,
    map_depths=(0, 24),
)
GOALS = (Goal(), Goal("ddr", 240_000), Goal("resources", 234_000))


# --- the whole search ------------------------------------------------------------------------------------------------


SPACES = {
    "depths": QUICK,
    "rows": replace(QUICK, rows=(3, 4), save_rows=(1,), map_depths=(0,)),
    "ports": replace(QUICK, map_ports=(1, 2), save_rows=(2,), map_depths=(24,), row_depths=(64,)),
}


@pytest.mark.parametrize(("name", "space", "goal"), pairwise(name=tuple(NETWORKS), space=tuple(SPACES), goal=GOALS))
def test_search_small_space_equals_brute_force(name: str, space: str, goal: Goal) -> None:
    asked = problem(NETWORKS[name], ZCU104, SPACES[space])
    wanted = brute_force(asked, DDR, goal)
    if wanted is None:
        with raises(DoesNotFitError, resource="frames/s", need=goal.frames_per_second):
            search(asked, DDR, goal)
        return
    best = search(asked, DDR, goal)
    assert best.key == wanted
    assert best.proof.priced + best.proof.ruled_out == best.proof.geometries <= 2
    priced = cost(best.schedule, DDR)
    assert {priced.cycles, priced.traffic.total} <= set(best.key)


@pytest.mark.parametrize("goal", [Goal(), Goal("ddr", 100_000)], ids=lambda goal: goal.objective)
def test_search_batch_in_small_space_equals_brute_force(goal: Goal) -> None:
    asked = problem(NETWORKS["dense"], ZCU104, SPACES["rows"], 3)
    best = search(asked, DDR, goal)
    assert best.key == brute_force(asked, DDR, goal)


def test_search_unreachable_rate_names_the_fastest_array() -> None:
    asked, goal = problem(NETWORKS["pooled"], ZCU104, QUICK), Goal("ddr", 2_000_000)
    assert brute_force(asked, DDR, goal) is None
    fastest = search(asked, DDR)
    rate = round(300e6 / fastest.key[0], 1)
    with raises(DoesNotFitError, resource="frames/s", need=2_000_000, have=rate) as caught:
        search(asked, DDR, goal)
    assert str(fastest.schedule.array) in caught.value.nearest


@pytest.mark.parametrize("tolerance", [0.02, 0.4])
def test_search_tolerance_takes_the_smallest_area_and_adds_up_proofs(tolerance: float) -> None:
    network = NETWORKS["pooled"]
    space = SPACES["rows"]
    fastest = search(problem(network, ZCU104, space), DDR)
    budget = int(fastest.key[0] * (1 + tolerance))
    near = brute_force(problem(network, ZCU104, space), DDR, Goal("resources", DDR.clock_mhz * 1e6 / (budget + 0.5)))
    assert near is not None
    told: list[str] = []
    best = search(problem(network, ZCU104, space), DDR, Goal(tolerance=tolerance), Workers(progress=told.append))
    assert best.key == (near[1], near[0], near[2])
    assert best.proof.arrays > fastest.proof.arrays > 0
    assert replace(best.proof, arrays=0) == replace(fastest.proof, arrays=0, tolerance=tolerance)
    assert told[0] == "searching, 0 of at most 2 geometries priced"
    assert told[-1].startswith("cheapest of the fastest: searching, ")


def test_search_clocks_chosen_clock_is_the_fastest() -> None:
    board, network = replace(ZCU104, plls=ZCU104.plls[:1]), NETWORKS["strided"]
    told: list[str] = []
    best = search_clocks(problem(network, board, QUICK), workers=Workers(progress=told.append))
    clocks = [clock.mhz for clock in reversed(board.clocks())]
    times = []
    for mhz in clocks[:4]:
        at_clock = search(problem(network, board, QUICK), ddr_timing(board, mhz))
        times.append(at_clock.key[0] / mhz)
    assert best.key[0] / best.ddr.clock_mhz <= min(times)
    assert best.ddr.clock_mhz in clocks
    assert best.key == search(problem(network, board, QUICK), best.ddr).key
    tried = best.proof.geometries
    assert tried > 1
    assert best.proof.priced + best.proof.ruled_out == best.proof.geometries
    assert {words.partition(":")[0] for words in told if words.startswith("at ")} <= {
        f"at {mhz:.4g} MHz" for mhz in clocks[1:tried]
    }
    held = search_clocks(problem(network, board, QUICK), Goal("resources", 1000))
    assert held.ddr.clock_mhz == clocks[0]


def test_search_proof_priced_and_ruled_out_cover_all_geometries() -> None:
    space = replace(SPACES["rows"], rows=(2, 3, 4, 5, 6, 7), row_depths=(64,), weight_depths=(256,))
    proof = search(problem(NETWORKS["dense"], ZCU104, space), DDR, Goal("resources", 1000)).proof
    assert (proof.priced + proof.ruled_out, proof.geometries) == (6, 6)
    assert 0 < proof.ruled_out < 6
    assert 0 < proof.arrays <= proof.priced


def test_search_tiny_tolerance_finds_the_fastest_again() -> None:
    """Rounding does not lower the budget of cycles: the fastest schedule is within a tiny tolerance of itself."""
    space = replace(SPACES["rows"], rows=(3,), row_depths=(64,), weight_depths=(256,))
    fastest = search(problem(NETWORKS["dense"], ZCU104, space), DDR)
    near = search(problem(NETWORKS["dense"], ZCU104, space), DDR, Goal(tolerance=1e-9))
    assert near.key == fastest.key
    assert near.proof == replace(fastest.proof, arrays=2 * fastest.proof.arrays, tolerance=1e-9)
    assert to_json(near.schedule) == to_json(fastest.schedule)


@pytest.mark.parametrize(("budget", "cycles"), [(969, 878), (970, 970)])
def test_search_tolerance_takes_a_schedule_of_exactly_the_budget(budget: int, cycles: int) -> None:
    # The fastest schedule takes 877 cycles, and the one with the smallest area 970.
    asked = problem(NETWORKS["dense"], ZCU104, QUICK)
    assert search(asked, DDR).key[0] == 877
    near = search(asked, DDR, Goal(tolerance=(budget + 0.5) / 877 - 1))
    assert near.key[0] == cycles
    assert near.key[0] <= budget


def test_proof_addition_adds_the_counts() -> None:
    assert Proof(10, 3, 7, 40, 0.5) + Proof(21, 12, 9, 200) == Proof(31, 15, 16, 240, 0.0)


def test_search_without_ddr_takes_the_highest_clock() -> None:
    space = replace(QUICK, save_rows=(1,), row_depths=(64,), weight_depths=(256,), map_depths=(0,))
    best = search(problem(NETWORKS["dense"], ZCU104, space))
    assert best.ddr == ddr_timing(ZCU104, max(clock.mhz for clock in ZCU104.clocks()))


def test_choose_and_workload_of_default_to_one_frame() -> None:
    assert inspect.signature(choose).parameters["batch"].default == workload_of(NETWORKS["dense"]).batch == 1
    with raises(RangeError, what="the clock in MHz", got=-5):
        choose(NETWORKS["dense"], ZCU104, -5)
    network = Builder(2, 1, 1).dense(10).network()
    assert [space_of(network, ZCU104, batch=count).rows[-1] for count in (1, 2, 3, 5)] == [2, 2, 3, 5]
    defaults = {name: parameter.default for name, parameter in inspect.signature(workload_of).parameters.items()}
    assert (defaults["batch"], defaults["fused"]) == (1, False)
    assert (Goal().tolerance, TOLERANCE) == (0, 1e-3)  # a thousandth shows on no board


# --- bounds ----------------------------------------------------------------------------------------------------------


def pass_bound(task: Task, index: int, first: bool, following: int) -> int:
    """Return the least cycles of a pass over a whole layer, tile by tile.

    Args:
        task: The geometry.
        index: The layer.
        first: Whether the pass waits for its own first weights.
        following: Steps of the next pass's first weights.
    """
    geometry, space, ddr, network = task.geometry, task.space, task.ddr, task.network
    shape = with_maps_on_chip(network.shapes, network.may_stay)[index]
    beats = {ports: weight_words(geometry, space, ports) for ports in space.weight_ports}
    pace = min(
        geometry.columns // (ports * words) * milli_cycles(((ports, words * geometry.lanes, 64),), ddr.milli_bytes)[0]
        for ports, words in beats.items()
    )
    tiles = range(0, shape.filters, geometry.columns)
    computed = sum(
        shape.steps * shape.separate_taps
        for _ in product(range(0, shape.out_height, geometry.rows), tiles, range(0, shape.out_width, shape.positions))
    )
    words = min(cut.total_words for cut in network.cuts[index])
    start = ENGINE_NAMED["hls"].least_fill(shape, geometry.rows, max(space.map_ports), words, ddr)
    if first:
        start = max(start, ENGINE_NAMED["hls"].least_weights(shape.steps * pace // 1000, ddr))
    arriving = (len(tiles) - (0 if first else 1)) * shape.steps
    ends = [start + computed]
    if arriving:
        ends.append(ENGINE_NAMED["hls"].least_weights(arriving * pace // 1000, ddr) + shape.steps)
    ends = [max(ends) + ENGINE_NAMED["hls"].least_drain(shape, geometry.rows, ddr)]
    if following:
        ends.append(ENGINE_NAMED["hls"].least_weights((arriving + following) * pace // 1000, ddr))
    return ENGINE_NAMED["hls"].least_program(ddr) + max(ends) - 3


TALL = Builder(3, 11, 10).conv(40, 3).pool().conv(24, 3, 2).conv(9, 1).network()
SPACE = replace(
    QUICK,
    rows=(2, 5),
    shapes=((8, 8), (16, 4)),
    map_ports=(1, 2),
    weight_ports=(1, 2),
    row_depths=(16, 192),
    kept_depths=(64,),
    map_depths=None,
)


def tasks(board_space: Space = SPACE, batch: int = 1, milli_bytes: int = 6_000) -> list[Task]:
    """Return the tasks of the network TALL on every geometry of the space."""
    workload = workload_of(TALL, batch)
    ddr = replace(DDR, milli_bytes=milli_bytes)
    return [
        Task(geometry, network_shapes(workload, geometry.width, board_space), ZCU104, ddr, Goal(), board_space)
        for geometry in geometries(board_space, ZCU104)
    ]


@cases("milli_bytes, batch", [(500, 1), (6_000, 1), (60_000, 1), (6_000, 2), (6_000, 4)])
def test_least_cycles_equal_the_definition(milli_bytes: int, batch: int) -> None:
    # Each frame of a batch that is executed one after the other is a pass. Only the first of these passes waits for
    # its own weights. The last one prefetches the weights of the next layer.
    assert len(tasks()) == 4
    for task in tasks(batch=batch, milli_bytes=milli_bytes):
        shapes = task.network.shapes
        wanted = []
        for index, shape in enumerate(shapes):
            after = [*[shape.steps] * (shape.repeats - 1), steps_after(shapes, index)]
            wanted.append(sum(pass_bound(task, index, index + frame == 0, steps) for frame, steps in enumerate(after)))
        assert least_cycles(task.geometry, task.network, task.ddr, task.space) == wanted


@pytest.mark.parametrize(
    "depths", [(24,), pytest.param((0,), marks=pytest.mark.engine), pytest.param((400,), marks=pytest.mark.engine)]
)
def test_least_cycles_and_bytes_are_below_every_tiling(depths: tuple[int, ...]) -> None:
    for task in tasks(replace(SPACE, map_depths=depths))[:2]:
        cycles = least_cycles(task.geometry, task.network, task.ddr, task.space)
        traffic = least_bytes(task.geometry, task.network)
        shapes = with_maps_on_chip(task.network.shapes, stays_at(task, depths[0]))
        for index, shape in enumerate(shapes):
            following = steps_after(shapes, index)
            ways, _ = tilings_of(task, shape, task.network.cuts[index], following)
            prices = [
                layer_cost(replace(array, map_depth=depths[0]), shape, tiling, following, task.ddr, index == 0)
                for array in arrays_of(task)[:2]
                for tiling in ways
            ]
            assert cycles[index] <= min((price.total for price in prices), default=1 << 60)
            assert traffic[index] <= min((price.traffic.total for price in prices), default=1 << 60)


def test_least_bytes_equal_the_smallest_traffic_of_a_tiling() -> None:
    for task in tasks():
        shapes = with_maps_on_chip(task.network.shapes, task.network.may_stay)
        assert least_bytes(task.geometry, task.network) == [
            min(
                layer_traffic(task.geometry.rows, task.geometry.columns, task.geometry.lanes, shape, tiling).total
                for tiling in tilings(shape, task.geometry.rows, cuts)
            )
            for shape, cuts in zip(shapes, task.network.cuts, strict=True)
        ]


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_space_for_lists_all_supported_numbers() -> None:
    # A ZCU104 has UltraRAM and ports of 128 bits, which hold words of 4, 8 or 16 lanes of INT8.
    space = space_of(Builder(3, 13, 12).conv(8, 3).network(), ZCU104)
    assert space.rows == (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    wanted = [(n, lanes) for lanes in (4, 8, 16) for n in range(2, 257, 2) if n % lanes == 0 and n <= 64 * lanes]
    assert list(space.shapes) == wanted
    assert (space.save_rows, space.map_ports, space.weight_ports) == ((1, 2, 4, 8, 16), (1, 2, 4), (1, 2, 4))
    assert space.row_depths == tuple(1024 * step for step in range(1, 17))
    assert space.weight_depths == tuple(4096 * step for step in range(1, 9))
    assert space.kept_depths == tuple(512 * step for step in range(1, 9))
    assert (space.bits, space.port_bits, space.column_tiles, space.orders) == (8, 128, 8, ORDERS)
    assert space.chunks == (12, 16, 32, 64)  # 12 is the whole width, and its parts 6, 4 … are below 8
    smaller = replace(ZCU104, resources=replace(ZCU104.resources, uram=0))
    assert space_of(TALL, smaller).weight_depths == tuple(512 * step for step in range(1, 17))


@pytest.mark.parametrize(
    ("side", "rows", "chunks"),
    [
        (1, 2, (16, 32, 64)),
        (64, 64, (8, 10, 11, 13, 16, 22, 32, 64)),
        (70, 64, (9, 10, 12, 14, 16, 18, 24, 32, 35, 64, 70)),
    ],
)
def test_space_for_rows_and_chunks_follow_the_largest_map(side: int, rows: int, chunks: tuple[int, ...]) -> None:
    space = space_of(Builder(1, side, side).conv(2, 1).network(), ZCU104)
    assert space.rows == tuple(range(2, rows + 1))
    assert space.chunks == chunks


@pytest.mark.parametrize(("bits", "lanes"), [(4, 8), (8, 4), (16, 4)])
def test_pin_accepts_numbers_that_some_array_has(bits: int, lanes: int) -> None:
    """Arrays of 4 bits have at least 8 lanes."""
    space = replace(QUICK, bits=bits)
    assert pin(space, rows=7).rows == (7,)
    assert pin(space, columns=3 * lanes, lanes=lanes).shapes == ((3 * lanes, lanes),)
    assert pin(space, chunk=9, row_depth=18).chunks == (9,)
    with raises_among(InvalidValueError, what="columns", got=3 * lanes + 1):
        pin(space, columns=3 * lanes + 1, lanes=lanes)


def test_space_for_lanes_depend_on_the_bits() -> None:
    network = Builder(1, 4, 4).conv(2, 1).network()
    assert {lanes for _, lanes in space_of(network, ZCU104, 16).shapes} == {4, 8}
    assert {lanes for _, lanes in space_of(network, ZCU104, 4).shapes} == {8, 16, 32}


@cases("bits, port_bits", [(8, 128), (8, 64), (4, 128), (16, 128)])
def test_weight_words_fill_the_width_of_a_port(bits: int, port_bits: int) -> None:
    space = replace(QUICK, bits=bits, port_bits=port_bits)
    for lanes, factor, ports in product((4, 8, 16), range(1, 9), (1, 2, 4)):
        columns = lanes * factor
        wanted = 1
        for words in (2, 4):
            if words * lanes * bits <= port_bits and columns % (words * ports) == 0:
                wanted = words
        assert weight_words(Geometry(2, columns, lanes), space, ports) == wanted


# --- fronts, runners-up, counts --------------------------------------------------------------------------------------


FEW = replace(SPACES["rows"], rows=(2, 3, 4), shapes=((8, 8), (8, 4)), row_depths=(96,), weight_depths=(256,))


def few(network: str = "strided") -> list[Task]:
    """Return the tasks of a network on six geometries, each with a single array."""
    workload = workload_of(NETWORKS[network])
    return [
        Task(geometry, network_shapes(workload, geometry.width, FEW), ZCU104, DDR, Goal(), FEW)
        for geometry in geometries(FEW, ZCU104)
    ]


def test_pareto_front_equals_the_undominated_geometries() -> None:
    points = []
    for task in few():
        best, count = solve(task)
        assert best is not None
        assert count == 1
        points.append((best.key[0], place(best.array, ZCU104)[1].dsp, str(best.array)))
    wanted = [
        point for point in points if not any(o != point and o[0] <= point[0] and o[1] <= point[1] for o in points)
    ]
    told: list[str] = []
    front = pareto_front(problem(NETWORKS["strided"], ZCU104, FEW), DDR, told.append)
    assert [str(schedule.array) for schedule in front] == [array for _, _, array in sorted(wanted)]
    assert [cost(schedule, DDR).cycles for schedule in front] == [cycles for cycles, _, _ in sorted(wanted)]
    assert len(points) == 6 > len(front) > 1
    assert told[:2] == ["searching the front, 0 of 6 geometries", "searching the front, 1 of 6 geometries"]
    assert len(told) == 6


def test_arrays_of_have_the_units_that_a_layer_needs() -> None:
    # Each unit is needed alone, by the second of two layers, and the arrays have no other unit.
    plain = Builder(3, 6, 5).conv(8, 1)
    units = {
        "windows": Builder(3, 6, 5).conv(8, 1).window(3).network(),
        "late_offsets": Builder(3, 6, 5).conv(8, 1).conv(8, 1).late().network(),
        "table_depth": Builder(3, 6, 5).conv(8, 1).curve().network(),
        "table_slopes": Builder(3, 6, 5).conv(8, 1).to(12).curve().network(),
        "": plain.conv(8, 1).network(),
    }
    for unit, network in units.items():
        task = replace(few()[0], network=network_shapes(workload_of(network), (8, 8), FEW))
        (array,) = arrays_of(task)
        ours = {name: getattr(array, name) for name in ("windows", "late_offsets", "table_depth", "table_slopes")}
        depth = {"table_depth": 256} if unit.startswith("table") else {}
        assert ours == {**dict.fromkeys(ours, 0), **({unit: 1} if unit else {}), **depth}
        assert (array.upscale, array.save_rows, array.map_ports, array.weight_ports, array.chunk) == (1, 1, 1, 2, 8)


def test_map_depths_are_the_sizes_of_maps() -> None:
    # Two maps may stay, with 6 × 5 values of 40 channels and 3 × 3 values of 24 channels. On 2 rows and 8 lanes, a
    # bank has 3 rows of 5 · 5 words of the first map, and 2 rows of 3 · 3 words of the second.
    assert [map_depths(task) for task in tasks()] == [(0, 18, 75), (0, 9, 50), (0, 36, 150), (0, 18, 100)]
    assert [map_depths(task) for task in tasks(replace(SPACE, map_depths=(7, 9)))] == [(7, 9)] * 4
    bare = replace(ZCU104, resources=replace(ZCU104.resources, bram36=1, uram=0, lutram=100))
    assert [map_depths(replace(task, board=bare)) for task in tasks()] == [(0,)] * 4


def test_bare_array_has_one_of_each() -> None:
    array = bare_array(Geometry(3, 16, 8), ZCU104, replace(SPACE, bits=4))
    assert (array.rows, array.columns, array.lanes, array.bits, array.dsp) == (3, 16, 8, 4, "DSP48E2")
    assert (array.save_rows, array.map_ports, array.weight_ports) == (1, 1, 1)
    assert (QUICK.bits, QUICK.port_bits) == (8, 128)  # the defaults


def test_geometries_are_legal_and_within_the_dsps() -> None:
    board = replace(ZCU104, resources=replace(ZCU104.resources, dsp=100))
    space = replace(FEW, rows=(2, 3, 5, 7), shapes=((8, 8), (8, 4), (12, 8), (16, 8), (4, 4)))
    wanted = [
        (rows, columns, lanes)
        for columns, lanes in ((8, 8), (8, 4), (16, 8), (4, 4))
        for rows in (2, 3, 5, 7)
        if Array(rows, columns, lanes, dsp="DSP48E2").mac_dsps <= 100
    ]
    assert [(g.rows, g.columns, g.lanes) for g in geometries(space, board)] == wanted
    assert 0 < len(wanted) < 16


@pytest.mark.engine
def test_runners_up_equal_the_best_of_all_other_tilings() -> None:
    space = replace(SPACE, rows=(2,), shapes=((8, 8),), map_ports=(1,), weight_ports=(2,), save_rows=(1,))
    schedule = search(problem(TALL, ZCU104, replace(space, map_depths=(0,))), DDR).schedule
    costs, array = cost(schedule, DDR), schedule.array
    shapes = [scheduled.shape for scheduled in schedule.layers]
    lines = runners_up(schedule, costs)
    assert len(lines) == len(shapes) == 3
    for index, (line, scheduled) in enumerate(zip(lines, schedule.layers, strict=True)):
        shape, following, chosen = shapes[index], steps_after(shapes, index), costs.layers[index]
        rivals = []
        for way in tilings(shape, array.rows, column_cuts(schedule.network, scheduled.layer, array)):
            rival = layer_cost(array, shape, replace(way, on_chip=scheduled.tiling.on_chip), following, DDR, index == 0)
            needs = rival.needs
            fits = needs.row_depth <= array.row_depth and needs.weight_depth <= array.weight_depth
            if fits and needs.kept_depth <= array.kept_depth and rival.tiling != scheduled.tiling:
                rivals.append(rival)
        if not rivals:
            assert line == "no other way fits the buffers"
            continue
        second = min(rivals, key=lambda rival: (rival.total, rival.traffic.total))
        assert line.startswith(f"{second.tiling.order}, {second.tiling.columns.count} column tile(s)")
        assert (", no overlap" in line) == (chosen.tiling.overlap and not second.tiling.overlap)
        assert line.endswith(f"{second.traffic.total - chosen.traffic.total:+,} bytes")
        slower = second.total - chosen.total
        assert (f": {slower:+,} cycles (" in line) if slower else (": as fast, " in line)
    assert sum("column tile(s)" in line for line in lines) >= 2
    ways = tilings(shapes[0], array.rows, column_cuts(schedule.network, schedule.layers[0].layer, array))
    slowest = max(ways, key=lambda way: layer_cost(array, shapes[0], way, shapes[1].steps, DDR, True).total)
    slow = replace(schedule, layers=(replace(schedule.layers[0], tiling=slowest), *schedule.layers[1:]))
    faster = runners_up(slow, cost(slow, DDR))[0]
    assert ": -" in faster


def test_solve_counts_every_array_that_fits_the_board() -> None:
    """Depths beyond the first that holds every tiling are not counted, nor arrays with too many LUTs for the board."""
    space = replace(
        FEW, rows=(3,), shapes=((8, 8),), save_rows=(1, 2, 4), row_depths=(8, 16, 64), weight_depths=(64, 256)
    )
    (plain,) = (replace(task, space=space) for task in few("pooled") if task.geometry == Geometry(3, 8, 8))
    shapes = with_maps_on_chip(plain.network.shapes, stays_at(plain, 0))
    needs = [
        need
        for index, shape in enumerate(shapes)
        for need in tilings_of(plain, shape, plain.network.cuts[index], steps_after(shapes, index))[1]
    ]

    def useful(depths: tuple[int, ...], name: str) -> list[int]:
        deepest = max(getattr(need, name) for need in needs)
        return [depth for index, depth in enumerate(depths) if not index or depths[index - 1] < deepest]

    rows, weights = useful(space.row_depths, "row_depth"), useful(space.weight_depths, "weight_depth")
    sized = [
        replace(array, row_depth=r, weight_depth=w, kept_depth=32)
        for array, r, w in product(arrays_of(plain), rows, weights)
    ]
    luts = sorted(place(array, ZCU104)[1].lut for array in sized)
    counts = []
    for lut in (luts[0] - 1, luts[len(luts) // 2], luts[-1]):
        board = replace(ZCU104, resources=replace(ZCU104.resources, lut=lut))
        counts.append(sum(place(array, board)[1].fits(board) for array in sized))
        assert solve(replace(plain, board=board))[1] == counts[-1]
    assert min(counts) < max(counts) == len(sized)


def test_tilings_of_fit_the_deepest_buffers() -> None:
    # If a buffer is one word shallower, fewer tilings fit.
    task = tasks()[0]
    shape, cuts = task.network.shapes[0], task.network.cuts[0]
    every = [buffer_needs(shape, 2, 8, tiling, 5) for tiling in tilings(shape, 2, cuts)]
    deepest = {
        name: max(getattr(needs, name) for needs in every) for name in ("row_depth", "weight_depth", "kept_depth")
    }
    whole: Space = replace(task.space, **{f"{name}s": (1, depth) for name, depth in deepest.items()})  # type: ignore[arg-type]
    assert tilings_of(replace(task, space=whole), shape, cuts, 5)[1] == tuple(every)
    for name, depth in deepest.items():
        space: Space = replace(whole, **{f"{name}s": (1, depth - 1)})  # type: ignore[arg-type]
        fewer = tuple(needs for needs in every if getattr(needs, name) < depth)
        assert tilings_of(replace(task, space=space), shape, cuts, 5)[1] == fewer
        assert len(fewer) < len(every)


def test_useful_depths_are_all_if_none_holds_every_tiling() -> None:
    grid = np.zeros((1, 2), np.int64)
    layer = LayerCosts((), (BufferNeeds(50, 100, 7, 1, 0), BufferNeeds(20, 400, 3, 1, 0)), grid, grid[0])
    space = replace(FEW, row_depths=(8, 16, 32, 40), weight_depths=(100, 200, 400, 800), kept_depths=(1, 2, 7))
    depths = useful_depths(space, [layer])
    assert depths.steps == ((8, 16, 32, 40), (100, 200, 400), (1, 2, 7))


# --- what does not fit -----------------------------------------------------------------------------------------------


def test_least_arrays_have_the_smallest_sufficient_depths() -> None:
    # The first layer's kernel reads more rows than a tile has. Its map has 10 columns and 2 columns of padding.
    space = replace(
        SPACE, save_rows=(2, 1), chunks=(9, 8), map_ports=(2, 1), weight_ports=(4, 1), map_depths=(48, 24), bits=8
    )
    for task in tasks(space):
        least = next(infeasible._least_arrays(task.geometry, ZCU104, space, task.network))
        assert (least.save_rows, least.map_ports, least.weight_ports, least.chunk) == (2, 2, 4, 9)
        assert (least.rows, least.columns, least.lanes) == (task.geometry.rows, *task.geometry.width)
        assert (least.map_depth, least.dsp, least.bits) == (24, "DSP48E2", 8)
        assert least.channel_tiles == math.ceil(40 / task.geometry.columns)
        assert (least.row_depth, least.weight_depth) == (192, 256)
    assert infeasible._step((4, 8, 16), [_depths(8), _depths(3)], "row_depth") == 8
    assert infeasible._step((4, 8, 16), [_depths(9), _depths(3)], "row_depth") == 16


def _depths(rows: int) -> Any:
    return replace(
        tilings_of(tasks()[0], tasks()[0].network.shapes[0], tasks()[0].network.cuts[0], 0)[1][0], row_depth=rows
    )


def test_infeasible_small_board_names_the_shortfalls_of_the_nearest_array() -> None:
    resources = replace(ZCU104.resources, dsp=40, bram36=6, uram=0, lut=9_000, lutram=900)
    board = replace(ZCU104, title="Tiny board", resources=resources)
    nearest: list[tuple[float, Array, Usage]] = []
    for task in tasks():
        array = next(infeasible._least_arrays(task.geometry, board, SPACE, task.network))
        usage = place(array, board)[1]
        nearest.append((excess(usage, board), array, usage))
    _, array, usage = min(nearest, key=lambda entry: entry[0])
    error = infeasible.nothing_fits(problem(TALL, board, SPACE))
    assert isinstance(error, DoesNotFitError)
    assert f"({array}, row_depth {array.row_depth}, weight_depth {array.weight_depth})" in error.subject
    assert [(error.resource, error.need, error.have), *error.others] == infeasible.shortfalls(array, usage, board)


def test_infeasible_shallow_buffers_name_layers_and_sufficient_depths() -> None:
    small = replace(SPACE, row_depths=(2,), weight_depths=(2, 8))
    error = infeasible.nothing_fits(problem(TALL, ZCU104, small))
    assert isinstance(error, SeveralFaultsError)
    assert error.subject.endswith(f"{len(error.errors)} layers do not fit the array 5×8×8")
    wider = replace(small, shapes=((16, 8), (8, 8), (16, 4)))  # most lanes, and then fewest columns
    assert infeasible.nothing_fits(problem(TALL, ZCU104, wider)).message().startswith(error.subject)
    rows = faults_of(error, DoesNotFitError, have=2)
    assert rows
    for lack in rows:
        assert lack.need is not None
        assert lack.nearest == f"row_depth {lack.need + lack.need % 2}, or more rows"
    for order in ORDERS:
        pinned = infeasible.nothing_fits(problem(TALL, ZCU104, replace(small, orders=(order,))))
        assert isinstance(pinned, SeveralFaultsError)
        assert pinned.subject.endswith(f" do not fit the array 5×8×8 in the order {order}")
    shallow = replace(SPACE, weight_depths=(2, 8))
    asked = problem(TALL, ZCU104, shallow)
    steps = {shape.steps for shape in asked.networks[8, 8].shapes}
    weights = faults_of(infeasible.nothing_fits(asked), DoesNotFitError, have=8)
    assert weights
    for lack in weights:
        assert lack.resource == "steps of the weight buffer"
        assert any(f"tile of {count} steps" in lack.subject for count in steps)
        assert lack.nearest == f"weight_depth {lack.need}, or more lanes"


# --- who prices ------------------------------------------------------------------------------------------------------


def test_visit_all_ends_at_the_first_bound_that_cannot_win() -> None:
    # The visits are sorted by their bounds, so no later visit can win either.
    visits = [Visit((bound,), task) for bound, task in zip((1, 1 << 40, 1), few()[2::-1], strict=True)]
    told: list[str] = []
    best, priced, arrays = visit_all(visits, None, Workers(progress=told.append))
    alone, count = solve(visits[0].task)
    assert best is not None
    assert alone is not None
    assert (best.key, priced, arrays) == (alone.key, 1, count)
    first = "searching, 0 of at most 3 geometries priced"
    layers = len(visits[0].task.network.shapes)
    assert told[0] == first
    assert told[1:] == [f"{first}; {done} of {layers} layers of the next" for done in range(layers)], (
        "a geometry that takes long reports its layers"
    )
    _, priced, arrays = visit_all([visits[0], visits[2]], None, Workers(progress=told.append))
    assert (priced, arrays) == (2, 2)
    assert visit_all([], None, ALONE) == (None, 0, 0)
    (second,) = (text for text in told if text.startswith("searching, 1 of ") and ";" not in text)
    assert second == f"searching, 1 of at most 2 geometries priced, best {alone.array}"


def test_visit_all_reports_fewer_geometries_after_a_better_key() -> None:
    # Two of four geometries cannot beat the key of the first one.
    tasks = few()[2::-1]
    bounds = [(1,), (2,), (1 << 40,), (1 << 41,)]
    visits = [Visit(bound, task) for bound, task in zip(bounds, [*tasks, tasks[0]], strict=True)]
    told: list[str] = []
    visit_all(visits, None, Workers(progress=told.append))
    counts = [text.partition(" geometries")[0] for text in told if ";" not in text]
    assert counts == ["searching, 0 of at most 4", "searching, 1 of at most 2"]
    assert all(getattr(text, "share", None) is None for text in told)
