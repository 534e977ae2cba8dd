"""Maps on chip: which maps may stay, their places, and the search that keeps them."""

from __future__ import annotations

from dataclasses import replace

from boards.board import load
from boards.errors import DoesNotFitError, UnsupportedError
from cnn.quantized import QuantizedNetwork
from contract.program import PASS_FIELDS
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.map_buffers import Place, Room, Stay, places_of, stays_of
from scheduler.systolic.model.cost import cost
from scheduler.systolic.on_chip import broken_stay_rules, handovers
from scheduler.systolic.program.emit import emit
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import Geometry, Goal, pin
from scheduler.systolic.search.task import Task, map_depths, network_shapes, stays_at
from scheduler.systolic.workload import workload_of
from tests.support.errors import raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, staying, with_on_chip
from tests.support.searches import problem, space_of

ZCU104 = load("zcu104")
LINK = ddr_timing(ZCU104, 300)
ARRAY = Array(5, 8, 8, row_depth=1024, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16, map_depth=512)
CHAIN = Builder(3, 20, 24).conv(16, 3).pool().conv(24, 3).conv(16, 3).conv(8, 1).network()
"""Its maps have 10×12×16 values (48 words per bank, with 8 lanes and 5 banks), 10×12×24 (72), 10×12×16 (48), and the
result."""


def kept(network: QuantizedNetwork, array: Array) -> SystolicSchedule:
    """Return a schedule in which every map stays on chip that may and fits."""
    return check_schedule(with_on_chip(first_fit(network, array), staying(network, lower(network), array)))


def test_staying_keeps_all_maps_but_the_result_if_they_fit() -> None:
    assert staying(CHAIN, lower(CHAIN), ARRAY) == (True, True, True, False)
    assert staying(CHAIN, lower(CHAIN), replace(ARRAY, map_depth=71)) == (True, False, True, False)
    assert staying(CHAIN, lower(CHAIN), replace(ARRAY, map_depth=72)) == (True, True, True, False)
    assert staying(CHAIN, lower(CHAIN), replace(ARRAY, map_depth=0)) == (False,) * 4


def test_hindrances_large_stride_sends_the_map_to_ddr() -> None:
    network = Builder(3, 20, 24).conv(16, 3).conv(24, 3, 8).conv(8, 1).network()
    assert [stay.is_allowed for stay in stays_of(network, lower(network))] == [False, True, False]
    (reason,) = broken_stay_rules(handovers(network, lower(network))[0])
    assert reason.endswith("(stride 8)")


def test_stays_of_batch_keeps_no_map() -> None:
    jobs = lower(CHAIN, 2)
    assert not any(stay.is_allowed for stay in stays_of(CHAIN, jobs))
    assert "a map stays on chip only in designs of one frame per batch (a batch of 2)" in broken_stay_rules(
        handovers(CHAIN, jobs)[0]
    )


def test_places_of_alternates_between_the_buffers() -> None:
    chain = [Stay(True, number - 1 if number else None, None, number + 1, 1) for number in range(6)]
    places = places_of(chain, (True, True, True, False, True, False), Room((5,) * 6, 9))
    assert places == tuple(Place(buffer, 0) for buffer in (1, 2, 1, 0, 1, 0))


def test_emit_passes_name_the_buffers_of_their_maps() -> None:
    words = emit(kept(CHAIN, ARRAY)).words.astype(int)
    fields = {name: words[:, PASS_FIELDS.index(name)].tolist() for name in ("in_buffer", "out_buffer", "out_turn")}
    assert fields == {"in_buffer": [0, 1, 2, 1], "out_buffer": [1, 2, 1, 0], "out_turn": [1, 1, 0, 0]}


def test_check_schedule_too_many_maps_on_chip_is_refused() -> None:
    schedule = kept(CHAIN, ARRAY)
    on_chip = [True] * len(schedule.layers)
    with raises_among(UnsupportedError, where="conv5", subject="on_chip") as caught:
        check_schedule(with_on_chip(schedule, on_chip))
    assert "0 such layer(s)" in str(caught.value)
    small = schedule_of(CHAIN, replace(ARRAY, map_depth=50), schedule.tilings)
    with raises_among(DoesNotFitError, where="conv3", need=72, have=50):
        check_schedule(small)


def test_map_depths_each_hold_more_maps_within_the_board() -> None:
    layers = network_shapes(workload_of(CHAIN), (8, 8), space_of(CHAIN, ZCU104))
    task = Task(Geometry(5, 8, 8), layers, ZCU104, LINK, Goal(), space_of(CHAIN, ZCU104))
    sizes = map_depths(task)
    assert sizes[0] == 0
    assert [sum(stays_at(task, depth)) for depth in sizes] == sorted({sum(stays_at(task, depth)) for depth in sizes})
    assert sum(stays_at(task, sizes[-1])) == 3
    none = replace(ZCU104, resources=replace(ZCU104.resources, bram36=0, uram=0, lutram=100))
    assert map_depths(replace(task, board=none)) == (0,)
    assert map_depths(replace(task, space=pin(task.space, map_depth=50))) == (50,)


def test_search_keeps_maps_on_chip_and_moves_fewer_bytes() -> None:
    space = pin(space_of(CHAIN, ZCU104), rows=5, columns=8, lanes=8)
    free = search(problem(CHAIN, ZCU104, space), LINK)
    in_ddr = search(problem(CHAIN, ZCU104, pin(space, map_depth=0)), LINK)
    assert [tiling.on_chip for tiling in free.schedule.tilings] == [True, True, True, False]
    assert not any(tiling.on_chip for tiling in in_ddr.schedule.tilings)
    near, far = cost(free.schedule, LINK), cost(in_ddr.schedule, LINK)
    assert near.cycles < far.cycles
    traffic = [(layer.traffic.maps_read > 0, layer.traffic.maps_written > 0) for layer in near.layers]
    assert traffic == [(True, False), (False, False), (False, False), (False, True)]
