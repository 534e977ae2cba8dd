"""The places of maps in the map buffers, how long they stay, and the choice of maps if not all fit."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import UnsupportedError
from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.map_buffers import IN_DDR, Place, Room, Stay, choose_maps_on_chip, places_of, stays_of
from scheduler.systolic.model.cost import cost
from scheduler.systolic.program.emit import emit
from scheduler.systolic.rules import check_schedule
from tests.support.arrays.run import BOARD, Run
from tests.support.errors import raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, staying, with_on_chip

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
    map_stride=2,
    added_maps=True,
)


def blocks(count: int) -> QuantizedNetwork:
    """Return a convolution, followed by residual blocks of two convolutions and an add, and by a last convolution."""
    build = Builder(3, 11, 9, seed=8).conv(16, 3)
    for _ in range(count):
        source = len(build.nodes) - 1
        build.conv(16, 3).conv(16, 3).add(source, len(build.nodes) - 1, slope=0)
    return build.conv(5, 3, wide=True).network()


def bottleneck() -> QuantizedNetwork:
    """Return a block of MobileNetV2, with three convolutions between a map and its sum."""
    build = Builder(3, 10, 9, seed=9).conv(16, 1).conv(32, 1).conv(32, 3, depthwise=True).conv(16, 1)
    return build.add(1, 4, slope=1).conv(5, 1, wide=True).network()


def squeeze(second: int = 1) -> QuantizedNetwork:
    """Return a network with a map that two layers read, and a concat of their results."""
    build = Builder(3, 10, 9, seed=10).conv(16, 3).conv(16, 1).conv(24, 1).at(2).conv(16, second).concat(3, 4)
    return build.conv(5, 1, wide=True).network()


def strided(above: int) -> QuantizedNetwork:
    """Return a network with a map that two layers read with stride 2, one of them with ``above`` rows of padding."""
    build = Builder(3, 10, 9, seed=11).conv(16, 3).conv(16, 3, 2).at(1).conv(16, 3, 2, Padding(above, 1, 2 - above, 1))
    return build.concat(2, 3).conv(5, 1, wide=True).network()


def stays(network: QuantizedNetwork) -> tuple[Stay, ...]:
    return stays_of(network, lower(network, fused=True))


def in_buffers(relations: tuple[Stay, ...], on_chip: tuple[bool, ...]) -> tuple[int, ...] | None:
    """Return the buffer per map, or None, if each buffer has room for one map."""
    places = places_of(relations, on_chip, Room((5,) * len(on_chip), 9))
    return None if places is None else tuple(place.buffer for place in places)


def test_places_of_sum_takes_the_place_of_the_added_map() -> None:
    network = blocks(2)
    may = tuple(stay.is_allowed for stay in stays(network))
    assert may == (*[True] * 5, False)
    assert in_buffers(stays(network), may) == (1, 2, 1, 2, 1, 0)
    # Without the map between them, the sum still replaces the map that it adds. Without that map, it may be anywhere.
    assert in_buffers(stays(network), (True, False, True, False, True, False)) == (1, 0, 1, 0, 1, 0)
    assert in_buffers(stays(network), (False, True, True, True, False, False)) == (0, 1, 2, 1, 0, 0)


def test_maps_that_stay_bottleneck_sends_one_map_to_ddr() -> None:
    # The block's input occupies one buffer until the end of the block, where the last convolution reads the other
    # one. The first convolution, or the second one, can therefore not keep its map on chip.
    network = bottleneck()
    wanted = tuple(stay.is_allowed for stay in stays(network))
    assert wanted == (True, True, True, True, False)
    assert in_buffers(stays(network), wanted) is None
    room = Room(
        (5,) * 5, 10
    )  # for two maps per buffer, which does not help: the last convolution still reads one buffer
    assert places_of(stays(network), wanted, room) is None
    chosen = choose_maps_on_chip(stays(network), room, (30, 20, 20, 30, 0))
    assert chosen in ((True, True, False, True, False), (True, False, True, True, False))
    assert choose_maps_on_chip(stays(network), room, (1, 50, 50, 1, 0)) == (False, True, True, True, False)


def test_stays_of_map_with_two_readers_stays_for_both() -> None:
    # This is also true if only one reader has rows of padding. Both readers write to the same strip.
    for network in (squeeze(), squeeze(3)):
        assert [stay.is_allowed for stay in stays(network)] == [True, True, True, True, False]
        assert in_buffers(stays(network), (True, True, True, True, False)) == (1, 2, 1, 1, 0)
        assert in_buffers(stays(network), (True, True, False, False, False)) == (1, 2, 0, 0, 0)
    assert stays(squeeze(3))[1].bank_rotation == 1


def test_check_schedule_stride_2_with_different_padding_is_refused() -> None:
    assert [stay.is_allowed for stay in stays(strided(1))] == [True, True, True, False]
    schedule = first_fit(strided(0), ARRAY)
    with raises_among(UnsupportedError, where="conv1", subject="on_chip") as caught:
        check_schedule(with_on_chip(schedule, (True, False, False, False)))
    assert "0 and 1 rows" in str(caught.value)


def test_check_schedule_part_of_a_strip_on_chip_is_refused() -> None:
    schedule = first_fit(squeeze(), ARRAY)
    with raises_among(UnsupportedError, where="conv3", subject="on_chip") as caught:
        check_schedule(with_on_chip(schedule, (True, True, True, False, False)))
    assert "together" in str(caught.value)


def test_check_schedule_more_maps_than_the_buffers_hold_is_refused() -> None:
    schedule = first_fit(bottleneck(), ARRAY)
    with raises_among(UnsupportedError, subject="on_chip") as caught:
        check_schedule(with_on_chip(schedule, (True, True, True, True, False)))
    assert "the two map buffers cannot hold this map" in str(caught.value)


def test_places_of_stores_several_maps_in_one_buffer() -> None:
    # The first and the third of four maps are read last. The fourth map takes the place of the second.
    relations = (
        Stay(True, None, None, 4, 0),
        Stay(True, None, None, 2, 0),
        Stay(True, 1, None, 4, 0),
        Stay(True, None, None, 4, 0),
        Stay(False, 3, None, 4, 0),
    )
    kept = (True, True, True, True, False)
    places = places_of(relations, kept, Room((5, 3, 4, 2, 0), 9))
    assert places == (Place(1, 0), Place(1, 5), Place(2, 0), Place(1, 5), IN_DDR)
    assert places_of(relations, kept, Room((5, 3, 5, 5, 0), 9)) is None


def test_stays_of_map_read_only_by_the_saver_has_the_turn_of_the_sum() -> None:
    # A shortcut has a 1 × 1 convolution. Only the Saver of the 3 × 3 convolution reads its map.
    build = Builder(3, 10, 9, seed=9).conv(16, 3).conv(16, 1).at(1).conv(16, 3).conv(16, 3).add(2, 4, slope=1)
    network = build.conv(5, 3, wide=True).network()
    relations = stays(network)
    assert [stay.bank_rotation for stay in relations] == [1, 1, 1, 1, 0]
    assert in_buffers(relations, (False, True, True, True, False)) == (0, 1, 2, 1, 0)


@pytest.mark.engine
@pytest.mark.parametrize(
    "network", [blocks(2), bottleneck(), squeeze(), squeeze(3)], ids=["blocks", "bottleneck", "squeeze", "squeeze 3"]
)
def test_engine_every_legal_choice_of_maps_is_bit_exact(network: QuantizedNetwork, run: Run) -> None:
    # The added map is read from DDR or from a buffer, and the sum is written to either. All legal choices are run.
    schedule, relations = first_fit(network, ARRAY), stays(network)
    pairs = set()
    for on_chip in product(*((False, True) if stay.is_allowed else (False,) for stay in relations)):
        apart = any(
            on_chip[n] != on_chip[s.first_writer] for n, s in enumerate(relations) if s.first_writer is not None
        )
        if apart or places_of(relations, on_chip, schedule.room) is None:
            continue
        chosen = check_schedule(with_on_chip(schedule, on_chip))
        pairs |= {(layer.shape.added_from_chip, layer.shape.to_chip) for layer in chosen.layers if layer.shape.added}
        assert run("small", chosen, 1) == 0, on_chip
    assert pairs in (set(), set(product((False, True), repeat=2)))


@st.composite
def random_relations(draw: st.DrawFn) -> tuple[tuple[Stay, ...], Room, tuple[int, ...]]:
    """Draw random readers, adders and strips, the room of two buffers, and the words that each map spares."""
    count = draw(st.integers(2, 7))
    first = [draw(st.sampled_from((n, *range(n)))) if draw(st.booleans()) else n for n in range(count)]
    first = [f if first[f] == f else n for n, f in enumerate(first)]  # a map in an earlier strip begins no strip
    reads = [None, *(draw(st.none() | st.sampled_from([first[m] for m in range(n)])) for n in range(1, count))]
    adds = [None, *(draw(st.none() | st.sampled_from([first[m] for m in range(n)])) for n in range(1, count))]
    last = [max(n, *(m for m in range(count) if first[n] in (reads[m], adds[m], first[m]))) for n in range(count)]
    turn, may, size = [[draw(st.integers(0, most)) for _ in range(count)] for most in (1, 3, 4)]
    for n, other in enumerate(adds):  # a sum has the shape of the map that is added
        if other is not None and first.count(first[n]) == first.count(other) == 1:
            size[n] = size[other]
    relations = tuple(
        Stay(
            may[first[n]] > 0,
            reads[n],
            adds[n],
            last[n],
            turn[first[n]],
            first[n] if first.count(first[n]) > 1 else None,
        )
        for n in range(count)
    )
    words = tuple(draw(st.integers(1, 9)) for _ in range(count))
    return relations, Room(tuple(1 + size[f] for f in first), draw(st.integers(1, 9))), words


@given(random_relations())
def test_maps_that_stay_equal_the_best_of_all_choices(drawn: tuple[tuple[Stay, ...], Room, tuple[int, ...]]) -> None:
    # The reference tries all choices, for random readers.
    relations, room, words = drawn
    allowed = [stay.is_allowed and size <= room.depth for stay, size in zip(relations, room.sizes, strict=True)]

    def spared(buffers: tuple[int, ...]) -> int:
        return sum(word for word, buffer in zip(words, buffers, strict=True) if buffer)

    ways = list(product(*((0, 1, 2) if may else (0,) for may in allowed)))
    legal = [buffers for buffers in ways if _is_legal(relations, room, buffers)]
    chosen = choose_maps_on_chip(relations, room, words)
    assert any(chosen == tuple(buffer > 0 for buffer in buffers) for buffers in legal)
    everything = tuple(allowed)
    if any(everything == tuple(buffer > 0 for buffer in buffers) for buffers in legal):
        assert chosen == everything
    else:
        assert spared(tuple(map(int, chosen))) == max(map(spared, legal))
    places = places_of(relations, chosen, room)
    assert places is not None
    assert _is_legal(relations, room, tuple(place.buffer for place in places))


def _is_legal(relations: tuple[Stay, ...], room: Room, buffers: tuple[int, ...]) -> bool:
    """Return whether a choice of buffers is legal by definition.

    No layer writes the buffer that it reads. A map that is still to be read is not overwritten. Maps take the first
    words that are free.
    """
    start: dict[int, int] = {}
    for n, stay in enumerate(relations):
        root = n if stay.first_writer is None else stay.first_writer
        read, added = (buffers[s] if s is not None else 0 for s in (stay.reads, stay.adds))
        if buffers[n] != buffers[root] or (read and read in (buffers[n], added)):
            return False
        if not buffers[n]:
            continue
        over = False
        if added:
            assert stay.adds is not None
            other = relations[stay.adds]
            over = (
                stay.first_writer is None
                and other.first_writer is None
                and other.last == n
                and other.bank_rotation == stay.bank_rotation
            )
            if added != buffers[n] or not (over or stay.adds == root):
                return False
        if root != n:
            continue
        occupied: set[int] = set()
        for m in start:
            if buffers[m] == buffers[n] and relations[m].last >= n and not (over and m == stay.adds):
                occupied |= set(range(start[m], start[m] + room.sizes[m]))
        free = (w for w in range(room.depth) if not occupied & set(range(w, w + room.sizes[n])))
        start[n] = start[stay.adds] if over and stay.adds is not None else next(free, room.depth)
        if start[n] + room.sizes[n] > room.depth:
            return False
    return True


def test_cost_maps_on_chip_move_no_bytes() -> None:
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
