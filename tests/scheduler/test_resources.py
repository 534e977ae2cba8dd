"""The memory of each primitive at its aspect ratios, and the memories of the engine."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.board import load
from contract.geometry import RTL
from hls_templates.headers import FOLDER, fixed_files, include_folders
from scheduler.hardware.primitives import BRAM36_SHAPES, bram36, distributed_luts, uram
from scheduler.systolic.area.logic import Fabric
from scheduler.systolic.area.memories import BUFFERS, TABLES, units
from scheduler.systolic.area.resources import PLACED, PRODUCTS, Usage, area, built, fabric, fixed_usage, used_as
from scheduler.systolic.array import Array
from scheduler.systolic.engines.hls.fifos import FIFOS
from scheduler.systolic.engines.rtl.fabric import _array, _delays
from tests.support.cases import cases

TOP = FOLDER / "templates" / "systolic" / "top.cpp.j2"
ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=512, chunk=16, channel_tiles=64)


@cases(
    "bits, depth, blocks",
    [(72, 512, 1), (73, 512, 2), (72, 513, 2), (36, 1024, 1), (9, 4096, 1), (9, 4097, 2), (128, 1024, 4), (8, 1, 1)],
)
def test_bram36_counts_by_hand(bits: int, depth: int, blocks: int) -> None:
    assert bram36(bits, depth) == blocks


@cases("bits, depth, blocks", [(72, 4096, 1), (128, 4096, 2), (128, 4097, 4), (1, 1, 1)])
def test_uram_counts_by_hand(bits: int, depth: int, blocks: int) -> None:
    assert uram(bits, depth) == blocks


@given(st.integers(1, 600), st.integers(1, 20_000))
def test_bram36_holds_the_bits_of_the_memory(bits: int, depth: int) -> None:
    blocks = bram36(bits, depth)
    assert blocks * 36 * 1024 >= bits * depth
    assert blocks <= min(-(-bits // w) * -(-depth // d) for w, d in BRAM36_SHAPES)


@given(st.integers(1, 300), st.integers(1, 8000), st.integers(1, 300), st.integers(1, 8000))
def test_bram36_more_bits_or_words_take_no_fewer_blocks(a: int, b: int, c: int, d: int) -> None:
    assert bram36(a, b) <= bram36(a + c, b + d)


ULTRASCALE, SERIES_7 = "zynq-ultrascale+", "zynq-7000"


@cases(
    "bits, depth, family, luts",
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
def test_lutram_counts_by_hand(bits: int, depth: int, family: str, luts: int) -> None:
    assert distributed_luts(bits, depth, family) == luts


@given(st.integers(1, 600), st.integers(1, 5000), st.sampled_from([ULTRASCALE, SERIES_7]))
def test_lutram_holds_the_bits_of_the_memory(bits: int, depth: int, family: str) -> None:
    assert 64 * distributed_luts(bits, depth, family) >= bits * depth
    assert distributed_luts(bits, depth, family) <= distributed_luts(bits + 1, depth + 1, family)


def test_buffers_equal_the_memories_of_the_headers_by_hand() -> None:
    """Counts, bits and depths follow from the headers, for 13×16×16 with two Saver rows and two map ports."""
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


def test_buffers_are_the_bound_memories_of_the_headers() -> None:
    # Every memory is a static array with one BIND_STORAGE, whose macro belongs to a buffer. Process ``arrange`` has
    # two forms with one memory each, and an engine has one of the forms. The memory of add.h is not counted here.
    top = TOP.read_text().replace("map_buffer_{{ buffer }}", "map_buffer")
    headers = fixed_files(*include_folders("systolic"))
    assert re.findall(r"BIND_STORAGE variable = (\w+) .* impl = (\w+)", headers["add.h"]) == [
        ("buffer", "ARRANGED_MEMORY")
    ]
    text = "\n".join([top, *(header for name, header in headers.items() if name != "add.h")])
    bound = re.findall(r"BIND_STORAGE variable = (\w+) type = ram_s2p impl = (\w+)", text)
    assert sorted(macro for _, macro in bound) == sorted(buffer.macro for buffer in (*BUFFERS, TABLES))
    memories = re.findall(
        r"static (?:lanes_t|sums_t|channel_word_t|arrange_buffer_t|entry_t|row_buffer_t|weight_buffer_t|map_buffer_t)"
        r" (\w+)(?:\[|;)",
        text,
    )
    assert sorted(memories) == sorted(name for name, _ in bound)


def test_products_are_the_bound_multiplications_of_the_headers() -> None:
    text = "\n".join(fixed_files(*include_folders("systolic")).values())
    products = [
        *["fabric"] * 4,
        PRODUCTS.macro,
    ]  # residual adds, addresses, products of maps and slopes, then requantisers
    assert sorted(re.findall(r"BIND_OP variable = \w+ op = mul impl = (\w+)", text)) == sorted(products)
    assert (int(PRODUCTS.count(ARRAY)), int(PRODUCTS.bits(ARRAY)), int(PRODUCTS.depth(ARRAY))) == (32, 32, 16)


def test_fifos_equal_the_streams_of_the_top_function() -> None:
    assert sorted(fifo.name for fifo in FIFOS) == sorted(re.findall(r"fifo\(\"(\w+)\"\)", TOP.read_text()))


def test_usage_fits_needs_every_resource() -> None:
    board = load("zcu104")
    have = board.resources
    full = Usage(have.dsp, have.bram36, have.uram, have.lut, have.lutram)
    assert full.fits(board)
    for index in range(5):
        assert not (full + Usage(*(int(i == index) for i in range(5)))).fits(board)


@pytest.mark.parametrize(
    ("array", "lut", "ff"),
    [
        (
            Array(5, 8, 8),
            20 * (2 * 32 + 30)  # 20 chains of 8 lanes, two fields: both summed, one corrected
            + 5 * 64 * 2  # a word of one of 5 rows: two stages of 4:1
            + 5 * 64 * 1  # a window at one of 2 pixels
            + 2 * 8 * 192  # bias, rounding, shifts
            + 2 * 5 * 8 * 32  # sums that pool
            + (7 + 2 * 6) * 8 * 33,  # products of 32 × 9 bits
            # words and weights of a row, delayed by 1 to 8 cycles
            5 * 64 * (1 + 8) * 9 // 2 + 4 * 5 * 8 * 32 + 2 * 8 * 4 * 64,
        ),
        (
            Array(6, 16, 8, 4, 4, bits=4),
            48 * 2 * (4 * 32 + 3 * 30)  # two positions: 4 fields; chains of 4 low and of 4 high nibbles
            + 2 * 6 * 32 * 2
            + 2 * 6 * 32 * 1
            + 4 * 16 * 192
            + 2 * 6 * 16 * 32
            + (7 + 4 * 6) * 8 * 33,
            6 * 32 * (2 + 16) * 5 // 2 + 4 * 6 * 16 * 32 * 2 + 4 * 16 * 4 * 64,
        ),
        (
            Array(7, 16, 16, 1, 1, bits=16),
            112 * 2 * 32 + 7 * 256 * 2 + 7 * 256 * 3 + 16 * 192 + 2 * 7 * 16 * 32 + (7 + 6) * 8 * 33,
            7 * 256 * (1 + 16) * 9 // 2 + 4 * 7 * 16 * 32 + 16 * 4 * 64,
        ),
    ],
    ids=["8 bits", "4 bits", "16 bits"],
)
def test_fabric_by_hand(array: Array, lut: int, ff: int) -> None:
    assert (fabric(array).lut, fabric(array).ff) == (lut, ff)


def test_rtl_array_at_4_bits_by_hand() -> None:
    # An array 3×8×8 of 4 bits has 2 chains of 4 lanes, 2 positions, 48 sums of 32 bits and fields of 11 bits.
    sums = Fabric(48 * (32 * 2 + (11 + 4)), 48 * (32 + 2 * 11))  # every second chain may count 16 times
    handed = Fabric(60, 70 + 2 * 8 * 8 * 4)  # the weights of a step, to two further rows
    # Delays of 3 cycles or more are shift registers. Weights (64 bits) are delayed by 0 to 3 cycles, by their place
    # in a chain. Values (16 bits) are delayed by their place and by their row.
    values = [0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5]
    luts = 64 + 16 * sum(cycles >= 3 for cycles in values)
    delays = Fabric(luts, 64 * (0 + 1 + 2) + 16 * sum(cycles for cycles in values if cycles < 3))
    assert _array(Array(3, 8, 8, bits=4, engine=RTL)) == sums + handed + delays


def test_rtl_delays_at_twice_the_dsp_clock_by_hand() -> None:
    # An array 3×8×8 has one chain of 8 places, 64 bits of weights and 8 bits of values. A DSP takes 32 of the 64 bits
    # in each of its own cycles.
    slow_weights = [1, 1, 2, 2, 3, 3, 4, 4]
    slow_values = [*slow_weights, 1, 2, 2, 3, 3, 4, 4, 5, 2, 2, 3, 3, 4, 4, 5, 5]
    fast_weights, fast_values = [0, 1] * 4, [1, 2] * 4 + [2, 1] * 4 + [1, 2] * 4
    luts = 64 * sum(cycles >= 3 for cycles in slow_weights) + 8 * sum(cycles >= 3 for cycles in slow_values)
    registers = 64 * (1 + 1 + 2 + 2) + 8 * sum(cycles for cycles in slow_values if cycles < 3)
    registers += 32 * sum(fast_weights) + 8 * sum(fast_values)
    chosen = 8 * 32  # one half of the weights or the other, at each place
    fields = 6 * 2 * 18  # 6 chains of DSPs, each of which computes 12 PEs in two of its own cycles
    expected = Fabric(luts + chosen, registers + chosen + fields * 7 // 2)
    assert _delays(Array(3, 8, 8, dsp_clock=2, engine=RTL)) == expected


def test_fixed_usage_of_ports_and_fifos_by_hand() -> None:
    # An array 5×8×8 has two ports of each kind and two Saver rows. Words have 64 bits, sums 8 · 32 bits and results 8
    # · 16 bits. A FIFO of up to 32 words takes one LUT per bit. The 64 words of 64 bits of a port take one BRAM36.
    used = fixed_usage(Array(5, 8, 8), load("zcu104"))
    fifos = 3 * 2 * 64 + 5 * 64 + 5 * 8 * 64 + 5 * 256 + 2 * 256 + 2 * 128
    fifos += 113 + (1 + 2) * 160 + 17  # a tile; a chunk for arrange and for each port; a group
    assert used == Usage(5 * 8 * 4, 2 * 2 + 2, 0, fabric(Array(5, 8, 8)).lut + fifos, fifos)
    wide = Array(40, 16, 8, 4, 4, 4, bits=4, weight_words=4)
    used = fixed_usage(wide, load("zcu104"))
    # words of 32 bits, 4 of them for weights; two positions; FIFOs of 96 words and sums take three LUTs per bit
    fifos = 4 * 32 + 4 * 128 + 4 * 32 + 40 * 64 * 3 + 40 * 16 * 32 + 40 * 1024 * 3 + 4 * 512 + 4 * 256
    fifos += 113 + (1 + 4) * 160 + 17
    assert (used.lut - fabric(wide).lut, used.lutram, used.bram36) == (fifos, fifos, 8 + 4 * 2)


def test_used_as_and_units_of_each_primitive() -> None:
    assert used_as("bram", 3) == Usage(bram36=3)
    assert used_as("uram", 3) == Usage(uram=3)
    assert used_as("lutram", 3) == used_as("srl", 3) == Usage(lut=3, lutram=3)
    assert [units(impl, 64, 512, ULTRASCALE) for impl in ("bram", "uram", "lutram", "srl")] == [
        1,
        1,
        8 * 8 * 10 + 3 * 64,
        1024,
    ]


def test_area_is_the_mean_share_of_the_board() -> None:
    # A ZCU104 has 1728 DSPs, 312 BRAM36, 96 URAM and 230,400 LUTs. An Ultra96 has no URAM.
    zcu104, ultra96 = load("zcu104"), load("ultra96-v2")
    shares = [
        area(Usage(*(have if kind == index else 0 for kind in range(5))), zcu104)
        for index, have in enumerate((1728, 312, 96, 230_400, 101_760))
    ]
    assert shares == [pytest.approx(2.5e11, rel=1e-5)] * 4 + [0]
    assert area(Usage(dsp=180, uram=5), ultra96) == pytest.approx(1e12 / 3 / 2, rel=1e-5)
    assert area(Usage(dsp=1), zcu104) == 10**12 // (4 * 1728)
    assert area(Usage(lut=1, lutram=1), ultra96) == 10**12 // (3 * 70_560)


def test_buffers_arranged_rows_cover_saver_rows_and_ports() -> None:
    # The depth follows from the larger of Saver rows and map ports: 2 · ⌈(8 + 1) / 4⌉ · 16 words.
    array = Array(8, 16, 8, 1, 4, chunk=16, map_depth=100)
    (arranged,) = (buffer for buffer in BUFFERS if buffer.name == "arranged")
    assert (int(arranged.count(array)), int(arranged.bits(array)), int(arranged.depth(array))) == (4 * 2 * 2, 64, 96)
    assert [buffer.name for buffer in built(array)] == [buffer.name for buffer in PLACED]
