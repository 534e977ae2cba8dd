"""Buffers in BRAM36 or URAM: counts of every placement, and the one that is chosen."""

from __future__ import annotations

from dataclasses import replace

from boards.board import load
from scheduler.array import Array
from scheduler.placement import Placement, place, placed_usage, placements
from scheduler.resources import bram36, uram, usage

ZCU104 = load("zcu104")
ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=512, chunk=16, channel_tiles=64)


def test_the_usual_placement_is_what_the_array_takes() -> None:
    assert placed_usage(ARRAY, ZCU104, placements(ZCU104)[0]) == usage(ARRAY, ZCU104)


def test_a_buffer_moves_with_all_its_blocks() -> None:
    usual = usage(ARRAY, ZCU104)
    rows = placed_usage(ARRAY, ZCU104, Placement("uram", "uram"))
    assert (usual.bram36 - rows.bram36, rows.uram - usual.uram) == (26 * bram36(128, 1024), 26 * uram(128, 1024))
    weights = placed_usage(ARRAY, ZCU104, Placement("bram", "bram"))
    assert (weights.bram36 - usual.bram36, usual.uram - weights.uram) == (16 * bram36(128, 4096), 16 * uram(128, 4096))


def test_a_board_without_uram_has_one_placement() -> None:
    board = load("ultra96-v2")
    assert placements(board) == (Placement("bram", "bram"),)
    assert place(ARRAY, board)[1] == usage(ARRAY, board)


def test_shallow_weights_lie_in_bram_and_deep_ones_in_uram() -> None:
    """4096 words of 128 bits are 2 of 96 URAM or 15 of 312 BRAM36; 512 words are the same 2 or 2."""
    assert place(ARRAY, ZCU104)[0] == Placement("bram", "uram")
    assert place(replace(ARRAY, weight_depth=512), ZCU104)[0] == Placement("bram", "bram")


def test_rows_go_where_room_is() -> None:
    """The 300 blocks of these rows leave no room for its other buffers in 312 BRAM36."""
    deep = replace(ARRAY, rows=10, row_depth=8192)
    assert not usage(deep, ZCU104).fits(ZCU104)
    chosen, used = place(deep, ZCU104)
    assert chosen.row_memory == "uram"
    assert used.fits(ZCU104)
