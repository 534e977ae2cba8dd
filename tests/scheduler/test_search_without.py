"""Searches without a candidate, and the defaults of spaces."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from boards.board import load
from boards.errors import DoesNotFitError, InvalidValueError
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import RULES, Array
from scheduler.systolic.layers import lower
from scheduler.systolic.search.search import search
from scheduler.systolic.search.solve import solve
from scheduler.systolic.search.space import Geometry, Goal, Space, _chunks, _widths, pin
from scheduler.systolic.search.task import Task, network_shapes
from scheduler.systolic.tiling import MAX_COLUMN_TILES, ORDERS
from scheduler.systolic.workload import workload_of
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.quantised import Builder
from tests.support.searches import problem

ZCU104 = load("zcu104")
DDR = ddr_timing(ZCU104, 300)
NETWORK = Builder(2, 4, 3).conv(8, 1).network()
NONE = replace(ZCU104, title="No board", resources=replace(ZCU104.resources, lut=10))


def space() -> Space:
    """Return a space with one value per number, and with all defaults."""
    return Space((2,), ((8, 8),), (1,), (8,), (1,), (1,), (16,), (64,), (32,))


def test_space_defaults_equal_those_of_an_array() -> None:
    # The defaults are DSPs at the clock of the array, without packing beyond the format's.
    bare, array = space(), Array(2, 8, 8)
    assert (bare.dsp_clock, bare.dsp_products, bare.dsp_registers) == (1, 0, 0)
    assert (array.dsp_clock, array.dsp_products, array.dsp_registers) == (1, 0, 0)
    assert (bare.bits, bare.port_bits, bare.map_depths, bare.combining_layers) == (array.bits, 128, None, ())
    assert (bare.column_tiles, bare.orders) == (MAX_COLUMN_TILES, ORDERS)
    frame = workload_of(NETWORK)
    assert (frame.batch, frame.fused, Goal()) == (1, False, Goal("fps", 0.0, 0.0))


def test_solve_board_without_room_gives_no_candidate() -> None:
    task = Task(Geometry(2, 8, 8), network_shapes(workload_of(NETWORK), (8, 8), space()), ZCU104, DDR, Goal(), space())
    best, count = solve(task)
    assert best is not None
    assert count == 1
    assert solve(replace(task, board=NONE)) == (None, 0)
    ports = replace(ZCU104, ports=ZCU104.ports[:1])
    assert solve(replace(task, board=ports, space=replace(space(), map_ports=(2,)))) == (None, 0)


@pytest.mark.parametrize("goal", [Goal(), Goal("resources", 1.0), Goal("ddr", 1e9)], ids=lambda goal: goal.objective)
def test_search_nothing_fits_names_the_smallest_array_and_no_rate(goal: Goal) -> None:
    with raises(DoesNotFitError) as caught:
        search(problem(NETWORK, NONE, space()), DDR, goal)
    assert "on No board, with the smallest array that holds it" in caught.value.subject


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_pin_numbers_of_a_legal_array_are_accepted(bits: int) -> None:
    # The columns and lanes of every legal array with two weight ports can be pinned.
    for lanes, factor in product((4, 8, 16, 32), (1, 2, 3, 5)):
        array = Array(64, factor * lanes, lanes, 1, 1, 2, bits=bits)
        if all(rule.holds(array) for rule in RULES):
            pinned = pin(replace(space(), bits=bits), columns=factor * lanes, lanes=lanes)
            assert pinned.shapes == ((factor * lanes, lanes),)


@cases(
    "bits, port_bits, lanes",
    [
        *((8, 32, {4}), (8, 64, {4, 8}), (8, 128, {4, 8, 16}), (8, 512, {4, 8, 16, 32, 64})),
        *((4, 32, {8}), (4, 128, {8, 16, 32}), (4, 256, {8, 16, 32, 64}), (16, 128, {4, 8}), (16, 64, {4})),
    ],
)
def test_widths_have_lanes_of_a_word_and_columns_of_whole_lanes(bits: int, port_bits: int, lanes: set[int]) -> None:
    """There are at most 256 columns, and at most 64 · lanes columns."""
    wanted = {(columns, count) for count in lanes for columns in range(count, 257, count) if columns <= 64 * count}
    assert set(_widths(bits, port_bits)) == wanted
    assert len(_widths(bits, port_bits)) == len(wanted)


@cases(
    "widest, chunks",
    [
        (7, {16, 32, 64}),
        (8, {8, 16, 32, 64}),
        (128, {16, 19, 22, 26, 32, 43, 64, 128}),
        (129, {16, 17, 19, 22, 26, 32, 33, 43, 64, 65}),
        (1000, {16, 32, 64, 125}),
    ],
)
def test_chunks_divide_the_widest_map_evenly(widest: int, chunks: set[int]) -> None:
    # The widest map is divided into one to eight chunks of 8 to 128 columns. 16, 32 and 64 are added.
    assert set(_chunks([3, widest, 1])) == chunks
    assert list(_chunks([widest])) == sorted(chunks)


def test_pin_columns_or_lanes_alone_keep_whole_blocks() -> None:
    # With six products per DSP, columns may be a multiple of half of the lanes, but not if a layer adds maps.
    network = Builder(3, 6, 5).conv(8, 3).conv(8, 3).add(1, 2).network()
    adding = replace(space(), combining_layers=tuple(layer for layer in lower(network) if layer.combines_maps))
    assert adding.combining_layers
    assert pin(adding, lanes=8).shapes == ((8, 8),)
    assert pin(adding, columns=16).shapes == ((16, 8),)
    with raises(InvalidValueError, where="add3", what="columns", got=12, nearest=(8, 16)):
        pin(replace(adding, bits=4), columns=12, lanes=8, dsp_products=6)
