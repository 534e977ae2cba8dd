"""Memory by primitive: block counts at real aspect ratios."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.board import load
from scheduler.array import Array
from scheduler.resources import BRAM36_SHAPES, Usage, bram36, uram, usage

ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=512, chunk=16, channel_tiles=64)


@pytest.mark.parametrize(
    ("bits", "depth", "blocks"),
    [(72, 512, 1), (73, 512, 2), (72, 513, 2), (36, 1024, 1), (9, 4096, 1), (9, 4097, 2), (128, 1024, 4), (8, 1, 1)],
)
def test_bram_counts(bits: int, depth: int, blocks: int) -> None:
    assert bram36(bits, depth) == blocks


@pytest.mark.parametrize(("bits", "depth", "blocks"), [(72, 4096, 1), (128, 4096, 2), (128, 4097, 4), (1, 1, 1)])
def test_uram_counts(bits: int, depth: int, blocks: int) -> None:
    assert uram(bits, depth) == blocks


@given(st.integers(1, 600), st.integers(1, 20_000))
def test_bram_holds_what_it_is_counted_for(bits: int, depth: int) -> None:
    blocks = bram36(bits, depth)
    assert blocks * 36 * 1024 >= bits * depth
    assert blocks <= min(-(-bits // w) * -(-depth // d) for w, d in BRAM36_SHAPES)


@given(st.integers(1, 300), st.integers(1, 8000), st.integers(1, 300), st.integers(1, 8000))
def test_more_bits_or_words_never_take_fewer_blocks(a: int, b: int, c: int, d: int) -> None:
    assert bram36(a, b) <= bram36(a + c, b + d)


def test_weights_lie_in_uram_where_the_board_has_any() -> None:
    with_uram, without = usage(ARRAY, load("zcu104")), usage(ARRAY, load("ultra96-v2"))
    assert with_uram.uram == 16 * 2
    assert without.uram == 0
    assert without.bram36 == with_uram.bram36 + 16 * bram36(128, 4096)


def test_fits_needs_every_resource() -> None:
    board = load("zcu104")
    have = board.resources
    assert Usage(have.dsp, have.bram36, have.uram).fits(board)
    for more in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        assert not Usage(have.dsp + more[0], have.bram36 + more[1], have.uram + more[2]).fits(board)
