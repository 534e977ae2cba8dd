"""Which buffer a map on chip lies in, for how long, and which maps stay where not all can."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.map_buffers import Stay, buffers_of, maps_that_stay, paddings, stays_of
from scheduler.systolic.model.cost import cost
from scheduler.systolic.program.emit import emit
from scheduler.systolic.rules import check_schedule
from tests.scheduler.conftest import BOARD, Run
from tests.scheduler.quantised import Builder
from tests.schedules import first_fit, staying, with_on_chip

ARRAY = Array(
    4,
    8,
    8,
    row_depth=1024,
    weight_depth=512,
    kept_depth=512,
    chunk=8,
    channel_tiles=16,
    map_depth=512,
    added_maps=1,
)


def blocks(count: int) -> QuantizedNetwork:
    """A convolution, and blocks of two and an addition; the last one is read by a 1 × 1."""
    build = Builder(3, 11, 9, seed=8).conv(16, 3)
    for _ in range(count):
        source = len(build.nodes) - 1
        build.conv(16, 3).conv(16, 3).add(source, len(build.nodes) - 1, slope=0)
    return build.conv(5, 3, wide=True).network()


def bottleneck() -> QuantizedNetwork:
    """MobileNetV2's block: three convolutions between a map and its sum."""
    build = Builder(3, 10, 9, seed=9).conv(16, 1).conv(32, 1).conv(32, 3, depthwise=True).conv(16, 1)
    return build.add(1, 4, slope=1).conv(5, 1, wide=True).network()


def squeeze(second: int = 1) -> QuantizedNetwork:
    """A map that two layers read, whose results are joined."""
    build = Builder(3, 10, 9, seed=10).conv(16, 3).conv(16, 1).conv(24, 1).at(2).conv(16, second).concat(3, 4)
    return build.conv(5, 1, wide=True).network()


def stays(network: QuantizedNetwork) -> tuple[Stay, ...]:
    return stays_of(network, lower(network, fused=True))


def test_a_sum_takes_the_place_of_what_is_added() -> None:
    network = blocks(2)
    may = [stay.may for stay in stays(network)]
    assert may == [True] * 5 + [False]
    assert buffers_of(stays(network), may) == (1, 2, 1, 2, 1, 0)
    # Without the map between, the sum still lies over the one that it adds; without that, it may lie anywhere.
    assert buffers_of(stays(network), (True, False, True, False, True, False)) == (1, 0, 1, 0, 1, 0)
    assert buffers_of(stays(network), (False, True, True, True, False, False)) == (0, 1, 2, 1, 0, 0)


def test_of_three_convolutions_in_a_block_one_map_leaves() -> None:
    """The block's input takes one buffer till its end, where the last convolution reads the other: so the first one
    cannot hand its map on there, or the second one cannot."""
    network = bottleneck()
    wanted = tuple(stay.may for stay in stays(network))
    assert wanted == (True, True, True, True, False)
    assert buffers_of(stays(network), wanted) is None
    chosen = maps_that_stay(stays(network), wanted, (30, 20, 20, 30, 0))
    assert chosen in ((True, True, False, True, False), (True, False, True, True, False))
    assert maps_that_stay(stays(network), wanted, (1, 50, 50, 1, 0)) == (False, True, True, True, False)


def test_a_map_that_two_layers_read_stays_for_both() -> None:
    network = squeeze()
    assert [stay.may for stay in stays(network)] == [True, True, False, False, False]
    assert buffers_of(stays(network), (True, True, False, False, False)) == (1, 2, 0, 0, 0)
    assert [stay.may for stay in stays(squeeze(3))] == [True, False, False, False, False]


def test_it_is_refused_where_the_padding_differs() -> None:
    schedule = first_fit(squeeze(3), ARRAY)
    with pytest.raises(ScheduleError, match=r"conv2: all layers that read a map on chip have as many rows .*0 and 1"):
        check_schedule(with_on_chip(schedule, (True, True, False, False, False)))


def test_a_schedule_that_keeps_more_than_two_buffers_hold_is_refused() -> None:
    schedule = first_fit(bottleneck(), ARRAY)
    with pytest.raises(ScheduleError, match=r"conv\d: each of two map buffers holds one map until its last reader"):
        check_schedule(with_on_chip(schedule, (True, True, True, True, False)))


def test_a_map_that_only_a_saver_reads_lies_as_the_sum() -> None:
    """A shortcut's convolution of 1 × 1 beside one of 3 × 3: nothing reads its map but the Saver of the latter."""
    build = Builder(3, 10, 9, seed=9).conv(16, 3).conv(16, 1).at(1).conv(16, 3).conv(16, 3).add(2, 4, slope=1)
    network = build.conv(5, 3, wide=True).network()
    relations = stays(network)
    assert [stay.padding for stay in relations] == [None, None, 1, 1, None]
    assert paddings(relations, (False, True, True, True, False)) == (0, 1, 1, 1, 0)
    assert buffers_of(relations, (False, True, True, True, False)) == (0, 1, 2, 1, 0)


@pytest.mark.parametrize("network", [blocks(2), bottleneck(), squeeze()], ids=["blocks", "bottleneck", "squeeze"])
def test_any_of_them_may_stay_and_every_bit_is_the_same(network: QuantizedNetwork, run: Run) -> None:
    """What is added comes from DDR or from a buffer, and the sum goes to one or the other: all that are legal."""
    schedule, may = first_fit(network, ARRAY), [stay.may for stay in stays(network)]
    pairs = set()
    for on_chip in product(*((False, True) if stays_there else (False,) for stays_there in may)):
        if buffers_of(stays(network), on_chip) is None:
            continue
        chosen = check_schedule(with_on_chip(schedule, on_chip))
        pairs |= {(layer.shape.added_from_chip, layer.shape.to_chip) for layer in chosen.layers if layer.shape.added}
        assert run("small", chosen, 1) == 0, on_chip
    assert pairs in (set(), set(product((False, True), repeat=2)))


@given(st.data())
def test_the_maps_that_stay_are_those_that_spare_most(data: st.DataObject) -> None:
    """Against all ways to choose, for random readers."""
    count = data.draw(st.integers(2, 7))
    number = st.integers(0, count - 1)
    reads = [None, *(data.draw(st.none() | st.integers(0, n - 1)) for n in range(1, count))]
    adds = [None, *(data.draw(st.none() | st.integers(0, n - 1)) for n in range(1, count))]
    last = [max([n, *(m for m in range(count) if n in (reads[m], adds[m]))]) for n in range(count)]
    padding = [data.draw(st.sampled_from((0, 1))) if n in reads else None for n in range(count)]
    drawn = tuple(
        Stay(last[n] > n and data.draw(st.booleans()), reads[n], adds[n], last[n], padding[n]) for n in range(count)
    )
    room = tuple(data.draw(number) > 0 for _ in range(count))
    words = tuple(data.draw(st.integers(1, 9)) for _ in range(count))
    allowed = [stay.may and fits for stay, fits in zip(drawn, room, strict=True)]

    def spared(on_chip: tuple[bool, ...]) -> int:
        return sum(word for word, stays_there in zip(words, on_chip, strict=True) if stays_there)

    ways = product(*((False, True) if may else (False,) for may in allowed))
    best = max(spared(way) for way in ways if _fits(drawn, way))
    chosen = maps_that_stay(drawn, room, words)
    assert _fits(drawn, chosen)
    assert spared(chosen) == best


def _fits(stays: tuple[Stay, ...], on_chip: tuple[bool, ...]) -> bool:
    """By definition: some choice of buffers in which no layer writes what is still to be read."""
    for buffers in product(*((1, 2) if stays_there else (0,) for stays_there in on_chip)):
        if all(_legal(stays, buffers, n) for n in range(len(stays))) and _turns_agree(stays, buffers):
            return True
    return False


def _legal(stays: tuple[Stay, ...], buffers: tuple[int, ...], number: int) -> bool:
    stay, target = stays[number], buffers[number]
    read = buffers[stay.reads] if stay.reads is not None else 0
    added = buffers[stay.adds] if stay.adds is not None else 0
    occupied = [
        buffers[m]
        for m in range(number)
        if buffers[m] and (stays[m].last > number or (stays[m].last == number and m != stay.adds))
    ]
    apart = not (read and read == added) and not (target and target in (read, *occupied))
    return apart and not (target and added and target != added)


def _turns_agree(stays: tuple[Stay, ...], buffers: tuple[int, ...]) -> bool:
    """Of sums that lie one over the other all readers want the same padding."""
    root = list(range(len(stays)))
    for n, stay in enumerate(stays):
        if stay.adds is not None and buffers[n] and buffers[stay.adds]:
            root[n] = root[stay.adds]
    groups = {r: {stays[n].padding for n in range(len(stays)) if root[n] == r and buffers[n]} for r in root}
    return all(len(group - {None}) <= 1 for group in groups.values())


def test_what_stays_moves_no_bytes() -> None:
    network = blocks(2)
    in_ddr = first_fit(network, ARRAY)
    layers = [scheduled.layer for scheduled in in_ddr.layers]
    on_chip = check_schedule(with_on_chip(in_ddr, staying(network, layers, ARRAY)))
    ddr, maps = ddr_timing(BOARD, 300), emit(in_ddr).maps
    moved = cost(on_chip, ddr).traffic
    assert moved.maps_read == 8 * maps[0].words
    assert moved.maps_written == 8 * maps[layers[-1].output].words
    assert cost(on_chip, ddr).cycles < cost(in_ddr, ddr).cycles
    small = replace(ARRAY, map_depth=1)
    assert not any(staying(network, layers, small))
