"""Memory by primitive: counts at real aspect ratios, and that the engine's memories are those that are counted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.board import load
from hls_templates.headers import FOLDER, fixed_files, include_folders
from scheduler.hardware.primitives import BRAM36_SHAPES, bram36, distributed_luts, uram
from scheduler.systolic.area.resources import BUFFERS, FIFOS, Usage, built
from scheduler.systolic.array import Array

TOP = FOLDER / "templates" / "systolic" / "top.cpp.j2"
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


ULTRASCALE, SERIES_7 = "zynq-ultrascale+", "zynq-7000"


@pytest.mark.parametrize(
    ("bits", "depth", "family", "luts"),
    [
        (7, 64, ULTRASCALE, 8),  # RAM64M8
        (14, 32, ULTRASCALE, 8),  # RAM32M16
        (15, 32, ULTRASCALE, 16),
        (3, 64, SERIES_7, 4),  # RAM64M
        (6, 32, SERIES_7, 4),  # RAM32M
        (7, 65, ULTRASCALE, 2 * 8 + 7),  # two banks, a multiplexer a bit
        (7, 256, ULTRASCALE, 4 * 8 + 7),
        (7, 257, ULTRASCALE, 5 * 8 + 2 * 7),
        (128, 0, ULTRASCALE, 0),
    ],
)
def test_distributed_ram_counts(bits: int, depth: int, family: str, luts: int) -> None:
    assert distributed_luts(bits, depth, family) == luts


@given(st.integers(1, 600), st.integers(1, 5000), st.sampled_from([ULTRASCALE, SERIES_7]))
def test_distributed_ram_holds_what_it_is_counted_for(bits: int, depth: int, family: str) -> None:
    assert 64 * distributed_luts(bits, depth, family) >= bits * depth
    assert distributed_luts(bits, depth, family) <= distributed_luts(bits + 1, depth + 1, family)


def test_memories_of_the_engine_are_those_of_its_arrays() -> None:
    """Names, counts, bits and depths by hand from the includes, for 13×16×16 with two Saver rows and two map ports."""
    sizes = {b.name: (int(b.count(ARRAY)), int(b.bits(ARRAY)), int(b.depth(ARRAY))) for b in BUFFERS}
    assert [b.name for b in BUFFERS if b not in built(ARRAY)] == ["map buffers"]
    assert sizes == {
        "rows": (26, 128, 1024),  # [ROW_DEPTH / 2][2][ROWS] of a word
        "weights": (16, 128, 4096),  # [WEIGHT_DEPTH][COLUMNS] of a word
        "kept sums": (1, 512, 512),  # [KEPT_DEPTH] of 16 sums
        "requantisers": (16, 72, 64),  # [CHANNEL_TILES][COLUMNS]
        "map buffers": (26, 128, 0),  # 2 × [MAP_DEPTH][ROWS] of a word
        "arranged": (4, 128, 224),  # [2][BANK_ROWS = 7][2][CHUNK = 16][1][2] of a word
    }


def test_every_buffer_of_the_includes_is_counted_and_bound() -> None:
    """A memory is a static array; each has one BIND_STORAGE, whose macro is that of a buffer."""
    top = TOP.read_text().replace("map_buffer_{{ buffer }}", "map_buffer")
    text = "\n".join([top, *fixed_files(*include_folders("systolic")).values()])
    bound = re.findall(r"BIND_STORAGE variable = (\w+) type = ram_s2p impl = (\w+)", text)
    assert sorted(macro for _, macro in bound) == sorted(buffer.macro for buffer in BUFFERS)
    memories = re.findall(r"static (?:lanes_t|sums_t|channel_t|arranged_t|map_buffer_t) (\w+)(?:\[|;)", text)
    assert sorted(memories) == sorted(name for name, _ in bound)


def test_fifos_are_the_streams_of_the_top_function() -> None:
    assert sorted(fifo.name for fifo in FIFOS) == sorted(re.findall(r"depths\.(\w+)", TOP.read_text()))


def test_fits_needs_every_resource() -> None:
    board = load("zcu104")
    have = board.resources
    full = Usage(have.dsp, have.bram36, have.uram, have.lut, have.lutram)
    assert full.fits(board)
    for index in range(5):
        assert not (full + Usage(*(int(i == index) for i in range(5)))).fits(board)
