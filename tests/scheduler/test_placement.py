"""Placements of buffers in BRAM36, URAM or LUTRAM: their usage, and the search for the smallest area."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.board import Board, load
from boards.errors import DoesNotFitError
from contract.geometry import ENGINES
from scheduler.hardware.arithmetic import NEVER
from scheduler.hardware.ddr import ddr_timing
from scheduler.hardware.primitives import bram36, distributed_luts, uram
from scheduler.systolic.area.memories import BUFFERS
from scheduler.systolic.area.placement import (
    excess,
    holds_maps,
    least_areas,
    place,
    placed_area,
    placed_usage,
    placements,
)
from scheduler.systolic.area.resources import PRODUCT_LUT_SHARE, PRODUCTS, WHOLE, Usage, area
from scheduler.systolic.array import Array
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import Goal, pin
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.quantised import Builder
from tests.support.searches import problem, space_of

ZCU104 = load("zcu104")
ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=512, chunk=16, channel_tiles=64)
IN_BRAM = {buffer.name: "bram" for buffer in BUFFERS} | {PRODUCTS.name: "dsp"}


def smaller(board: Board, **resources: int) -> Board:
    """Return the board with other numbers of some resources."""
    return replace(board, resources=replace(board.resources, **resources))


@cases(
    "name, count, bits, depth",
    [("rows", 26, 128, 1024), ("weights", 16, 128, 4096), ("kept sums", 1, 512, 512), ("arranged", 4, 128, 224)],
)
def test_used_by_counts_all_memories_of_a_buffer(name: str, count: int, bits: int, depth: int) -> None:
    usual = placed_usage(ARRAY, ZCU104, IN_BRAM)
    ultra = placed_usage(ARRAY, ZCU104, IN_BRAM | {name: "uram"})
    assert (usual.bram36 - ultra.bram36, ultra.uram) == (count * bram36(bits, depth), count * uram(bits, depth))
    distributed = placed_usage(ARRAY, ZCU104, IN_BRAM | {name: "lutram"})
    luts = count * distributed_luts(bits, depth, ZCU104.family)
    assert usual.bram36 - distributed.bram36 == count * bram36(bits, depth)
    assert (distributed.lut - usual.lut, distributed.lutram - usual.lutram) == (luts, luts)


def test_place_board_without_uram_uses_none() -> None:
    assert len(list(placements(ZCU104))) == 2 * 3 ** len(BUFFERS)
    assert all("uram" not in one.values() for one in placements(load("ultra96-v2")))


def test_place_weights_depend_on_their_depth() -> None:
    """4096 words of 128 bits are 2 of 96 URAM or 15 of 312 BRAM36; 512 words are 2 or 2; 32 are 80 LUTs of 230,400."""
    depths = {4096: "uram", 512: "bram", 32: "lutram"}
    assert {depth: place(replace(ARRAY, weight_depth=depth), ZCU104)[0]["weights"] for depth in depths} == depths


SHAPES = Array(
    12,
    16,
    16,
    row_depth=1024,
    weight_depth=4096,
    kept_depth=512,
    chunk=12,
    channel_tiles=8,
    save_rows=4,
    engine="rtl",
    map_depth=560,
    sum_bits=26,
)
"""The array that the search takes for the network shapes on a ZCU104."""


def test_place_maps_deeper_than_256_words_take_free_blocks() -> None:
    """24 banks of 560 words of 128 bits are 42,048 LUTs, 18 % of the board, or 96 BRAM36, 31 %. Up to 256 words the
    area decides."""
    assert 24 * distributed_luts(128, 560, ZCU104.family) / 230_400 < 24 * bram36(128, 560) / 312
    chosen, used = place(SHAPES, ZCU104)
    assert chosen["map buffers"] in ("bram", "uram")
    assert used.fits(ZCU104)
    at = {depth: place(replace(SHAPES, map_depth=depth), ZCU104)[0]["map buffers"] for depth in (256, 257)}
    assert at == {256: "lutram", 257: "bram"}
    assert place(replace(SHAPES, engine="hls"), ZCU104)[0]["map buffers"] == chosen["map buffers"]


def test_place_deep_memories_take_luts_if_no_block_is_free() -> None:
    """The ports, the rows and the kept sums take 62 BRAM36, the weights 32 URAM."""
    small = smaller(ZCU104, bram36=66, uram=34)
    chosen, used = place(SHAPES, small)
    assert chosen["map buffers"] == "lutram"
    assert used.fits(small)


def test_placed_area_counts_a_board_for_each_deep_buffer_of_luts() -> None:
    chosen, used = place(SHAPES, ZCU104)
    assert placed_area(SHAPES, ZCU104, chosen) == area(used, ZCU104)
    deep = {**chosen, "map buffers": "lutram", "kept sums": "lutram"}
    assert placed_area(SHAPES, ZCU104, deep) == area(placed_usage(SHAPES, ZCU104, deep), ZCU104) + 2 * WHOLE


def test_place_products_are_in_luts_if_dsps_are_short() -> None:
    # A product of 32 × 16 bits takes 2 DSPs or 495 LUTs. It is in LUTs if their share of the board allows it.
    assert (ARRAY.save_rows * ARRAY.columns, ARRAY.mac_dsps) == (32, 1664)
    chosen, used = place(ARRAY, ZCU104)
    assert (chosen[PRODUCTS.name], used.dsp) == ("dsp", 1664 + 2 * 32)
    chosen, fewer = place(ARRAY, smaller(ZCU104, dsp=1676))
    assert (chosen[PRODUCTS.name], fewer.dsp, fewer.lut - used.lut) == ("fabric", 1664, 32 * 495)
    many = replace(ARRAY, save_rows=4)
    assert PRODUCT_LUT_SHARE * ZCU104.resources.lut < 64 * 495
    assert not place(many, smaller(ZCU104, dsp=1676))[1].fits(smaller(ZCU104, dsp=1676))


def test_place_rows_avoid_a_full_primitive() -> None:
    # The 300 blocks of these rows leave no room for its other buffers in 312 BRAM36.
    deep = replace(ARRAY, rows=10, row_depth=8192)
    assert place(deep, smaller(ZCU104, bram36=1000))[0]["rows"] == "bram"
    chosen, used = place(deep, ZCU104)
    assert chosen["rows"] == "uram"
    assert used.fits(ZCU104)


def test_place_nothing_fits_gives_the_smallest_excess() -> None:
    none = smaller(ZCU104, bram36=1, uram=1, lutram=100)
    used = place(ARRAY, none)[1]
    assert not used.fits(none)
    assert excess(used, none) == min(excess(placed_usage(ARRAY, none, one), none) for one in placements(none))


# --- the least of all choices ---------------------------------------------------------------------------------------

DEPTHS = {"row_depth": (64, 1024, 8192), "weight_depth": (64, 512, 4096, 8192), "kept_depth": (32, 512)}


@st.composite
def boards(draw: st.DrawFn) -> Board:
    """Draw a real board with few of some primitives, so that buffers compete for them."""
    board = load(draw(st.sampled_from(["zcu104", "ultra96-v2", "pynq-z2", "kv260"])))
    have = board.resources
    return smaller(
        board,
        bram36=draw(st.integers(1, have.bram36)),
        uram=draw(st.integers(1, have.uram)) if have.uram else 0,
        lut=draw(st.integers(have.lut // 4, have.lut)),
        dsp=draw(st.integers(have.dsp // 8, have.dsp)),
        lutram=draw(st.integers(have.lutram // 40, have.lutram // 3)),
    )


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    lanes = draw(st.sampled_from([4, 8, 16]))
    return Array(
        draw(st.integers(2, 14)),
        lanes * draw(st.integers(1, 3)),
        lanes,
        channel_tiles=draw(st.integers(1, 100)),
        engine=draw(st.sampled_from(ENGINES)),
    )


def least(array: Array, board: Board) -> int:
    """Return the smallest area, with penalties, over all choices."""
    every = (one for one in placements(board) if placed_usage(array, board, one).fits(board))
    return min((placed_area(array, board, one) for one in every), default=NEVER)


@pytest.mark.engine
@settings(max_examples=8)
@given(boards(), arrays(), st.data())
def test_place_equals_the_best_of_all_choices(board: Board, array: Array, data: st.DataObject) -> None:
    changes: dict[str, Any] = {name: data.draw(st.sampled_from(depths)) for name, depths in DEPTHS.items()}
    array = replace(array, **changes)
    chosen, used = place(array, board)
    assert used == placed_usage(array, board, chosen)
    assert (placed_area(array, board, chosen) if used.fits(board) else NEVER) == least(array, board)


@settings(max_examples=2)
@given(boards(), arrays())
def test_least_areas_grid_equals_each_array(board: Board, array: Array) -> None:
    def axis(values: tuple[int, ...], at: int) -> np.ndarray:
        return np.array(values).reshape([-1 if a == at else 1 for a in range(4)])

    knobs = {"save_rows": (1, 2, 2), "map_ports": (1, 2, 1), "chunk": (8, 16, 64)}
    axes: dict[str, Any] = {name: axis(values, 0) for name, values in knobs.items()}
    axes |= {name: axis(depths, number) for number, (name, depths) in enumerate(DEPTHS.items(), 1)}
    grid = replace(array, **axes)
    found = least_areas(grid, board)
    for at in np.ndindex(*found.shape):
        numbers: dict[str, Any] = {name: values[at[0]] for name, values in knobs.items()}
        numbers |= {name: depths[i] for (name, depths), i in zip(DEPTHS.items(), at[1:], strict=True)}
        one = replace(array, **numbers)
        placement, used = place(one, board)
        assert found[at] == (placed_area(one, board, placement) if used.fits(board) else NEVER)


# --- through the search ---------------------------------------------------------------------------------------------

NETWORK = Builder(3, 16, 16).conv(16, 3).pool().conv(32, 3).network()


@pytest.mark.parametrize("goal", [Goal(), pytest.param(Goal("resources", 2000), marks=pytest.mark.engine)])
def test_search_placement_equals_the_best_of_all_choices(goal: Goal) -> None:
    board = smaller(ZCU104, bram36=40, uram=10)
    found = search(problem(NETWORK, board, pin(space_of(NETWORK, board), lanes=8)), ddr_timing(board, 300), goal)
    placement, used = place(found.schedule.array, board)
    assert used.fits(board)
    size = placed_area(found.schedule.array, board, placement)
    assert size == least(found.schedule.array, board)
    assert size == found.key[0 if goal.objective == "resources" else 1]


def test_search_board_short_of_bram_uses_lutram() -> None:
    """Ports take 8 or more BRAM36. The remaining blocks do not hold all buffers, and the board has no URAM."""
    short = smaller(load("ultra96-v2"), bram36=12)
    space = pin(space_of(NETWORK, short), rows=4, columns=8, lanes=4, map_ports=1, weight_ports=1)
    found = search(problem(NETWORK, short, space), ddr_timing(short, 300))
    chosen, used = place(found.schedule.array, short)
    assert "lutram" in chosen.values()
    assert used.fits(short)
    assert not placed_usage(found.schedule.array, short, IN_BRAM).fits(short)
    without = smaller(short, lutram=1000)  # FIFOs alone take more
    with raises(DoesNotFitError) as caught:
        search(problem(NETWORK, without, space), ddr_timing(short, 300))
    lacks = {name: have for name, _, have in caught.value.others} | {caught.value.resource: caught.value.have}
    assert lacks["LUT as memory"] == 1000


def test_place_counts_logic_too() -> None:
    short = smaller(load("ultra96-v2"), lut=3000)
    space = pin(space_of(NETWORK, short), rows=4, columns=8, lanes=4)
    with raises(DoesNotFitError, resource="LUT", have=3000):
        search(problem(NETWORK, short, space), ddr_timing(short, 300))


def test_usage_addition_adds_the_counts() -> None:
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)


# --- where the least of every buffer by itself does not fit ---------------------------------------------------------


def found(array: Array, board: Board) -> int:
    column: Any = np.array([array.row_depth])
    return int(least_areas(replace(array, row_depth=column), board)[0])


@pytest.mark.parametrize(
    "resources",
    [
        {"bram36": 40},
        {"bram36": 40, "uram": 4},
        {"bram36": 40, "uram": 20, "lutram": 20_000},
        {"bram36": 100, "uram": 1},
        {"bram36": 12, "uram": 96, "lutram": 30_000},
        {"bram36": 180, "uram": 1, "lutram": 12_000},
        {"bram36": 8, "uram": 60, "lutram": 30_000},
        {"bram36": 7, "uram": 96},  # ports take 8
        {"dsp": 2000, "lut": 60_000},
        {"dsp": 1696 - 1},
        {"lutram": 9_000},
    ],
    ids=str,
)
def test_place_buffers_competing_for_the_budget_equals_all_choices(resources: dict[str, int]) -> None:
    board = smaller(ZCU104, **resources)
    assert found(ARRAY, board) == least(ARRAY, board)


@pytest.mark.parametrize(
    ("name", "bram36"), [("dsp", 312), ("bram36", 312), ("bram36", 90), ("uram", 90), ("lut", 60), ("lutram", 60)]
)
def test_place_board_with_exactly_enough_fits(name: str, bram36: int) -> None:
    # The board has exactly the amount of one resource that the smallest placement takes, and then one less.
    board = smaller(ZCU104, bram36=bram36)
    used = place(ARRAY, board)[1]
    taken = getattr(used, name)
    assert used.fits(board)
    assert found(ARRAY, smaller(board, **{name: taken})) == least(ARRAY, smaller(board, **{name: taken}))
    assert found(ARRAY, smaller(board, **{name: taken})) < NEVER
    fewer = smaller(board, **{name: max(1, taken - 1)})
    assert found(ARRAY, fewer) == least(ARRAY, fewer)


def test_holds_maps_needs_memory_of_the_board() -> None:
    """26 banks of 4096 words of 128 bits take 52 URAM, or 390 BRAM36, or more LUTs than any board has."""
    deep = replace(ARRAY, map_depth=4096)
    assert holds_maps(deep, smaller(ZCU104, uram=52))
    assert not holds_maps(deep, smaller(ZCU104, uram=51))
    assert holds_maps(deep, smaller(ZCU104, uram=51, bram36=390))
    assert not holds_maps(deep, smaller(ZCU104, uram=51, bram36=389))


def test_excess_is_the_largest_share() -> None:
    # The usage is twice the BRAM36 of the board, and three URAM on a board without URAM.
    none = smaller(ZCU104, bram36=10, uram=0)
    assert excess(Usage(bram36=20, uram=1), none) == 2
    assert excess(Usage(bram36=20, uram=3), none) == 3
    assert excess(Usage(dsp=1728, lut=2 * 230_400, lutram=101_760), ZCU104) == 2
    assert excess(Usage(lutram=3 * 101_760), ZCU104) == 3
    assert excess(Usage(dsp=864), ZCU104) == 0.5
