"""Counts of the fabric's primitives, compared with the vendor's tables and slow definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from scheduler.hardware.primitives import (
    BRAM18_SHAPES,
    BRAM36_BITS,
    BRAM36_SHAPES,
    LUT_BITS,
    ULTRASCALE,
    URAM_BITS,
    bram18,
    bram36,
    constant_luts,
    distributed_luts,
    product_dsps,
    product_luts,
    shift_luts,
    uram,
)
from tests.support.cases import cases

SERIES_7 = "zynq-7000"


def test_bram_shapes_equal_the_table_of_the_vendor() -> None:
    # Words of 9 bits or more use a parity bit per byte. Narrower words have 2ⁿ bits, and the parity bits are unused.
    for shapes, kilobits in ((BRAM36_SHAPES, 32), (BRAM18_SHAPES, 16)):
        widest = 9 * kilobits // 4
        expected = [(width, 9 * 1024 * kilobits // 8 // width) for width in (72, 36, 18, 9) if width <= widest]
        expected += [(width, 1024 * kilobits // width) for width in (4, 2, 1)]
        assert list(shapes) == expected
    assert (BRAM36_BITS, URAM_BITS, LUT_BITS) == (72 * 512, 72 * 4096, 2**6)


@pytest.mark.parametrize(
    ("blocks", "shapes"), [(bram36, BRAM36_SHAPES), (bram18, BRAM18_SHAPES), (uram, ((72, 4096),))]
)
def test_bram_one_bit_or_word_more_takes_another_block(
    blocks: Callable[[int, int], int], shapes: tuple[tuple[int, int], ...]
) -> None:
    for bits, words in shapes:
        assert blocks(bits, words) == 1
    widest, deepest = shapes[0], shapes[-1]
    assert blocks(widest[0] + 1, widest[1]) == 2
    assert blocks(deepest[0], deepest[1] + 1) == 2
    for bits, words in itertools.product((1, 5, 19, 73), (1, 513, 5000, 40_000)):
        assert blocks(bits, words) == min(
            len(range(0, bits, width)) * len(range(0, words, deep)) for width, deep in shapes
        )


@cases(
    "family, bits, depth, luts",
    [
        # RAM32M16: 32 × 14 in eight LUTs; RAM64M8: 64 × 7
        (ULTRASCALE, 14, 32, 8),
        (ULTRASCALE, 15, 32, 16),
        (ULTRASCALE, 14, 1, 8),
        (ULTRASCALE, 14, 0, 0),
        (ULTRASCALE, 7, 33, 8),
        (ULTRASCALE, 7, 64, 8),
        (ULTRASCALE, 8, 64, 16),
        # RAM32M: 32 × 6 in four; RAM64M: 64 × 3
        (SERIES_7, 6, 32, 4),
        (SERIES_7, 7, 32, 8),
        (SERIES_7, 3, 33, 4),
        (SERIES_7, 3, 64, 4),
        (SERIES_7, 4, 64, 8),
        # banks of 64 words with 4:1 multiplexers: one LUT per bit joins four banks, another one three more
        (ULTRASCALE, 7, 65, 2 * 8 + 7),
        (ULTRASCALE, 7, 256, 4 * 8 + 7),
        (ULTRASCALE, 7, 257, 5 * 8 + 2 * 7),
        (ULTRASCALE, 21, 448, 7 * 24 + 2 * 21),
        (ULTRASCALE, 21, 449, 8 * 24 + 3 * 21),
        (SERIES_7, 3, 512, 8 * 4 + 3 * 3),
        ("another", 3, 512, 8 * 4 + 3 * 3),
        ("zynq-ultrascale", 6, 32, 4),
    ],
)
def test_luts_of_distributed_memory(family: str, bits: int, depth: int, luts: int) -> None:
    assert distributed_luts(bits, depth, family) == luts


@cases(
    "family, bits, depth, luts",
    [
        (ULTRASCALE, 5, 0, 0),
        (ULTRASCALE, 5, 1, 5),
        (ULTRASCALE, 5, 64, 5),
        (ULTRASCALE, 5, 65, 10),
        (ULTRASCALE, 5, 512, 40),  # F7, F8 and F9 join eight tables
        (ULTRASCALE, 5, 513, 45 + 5),
        (ULTRASCALE, 5, 4 * 512, 5 * 32 + 5),
        (ULTRASCALE, 5, 4 * 512 + 1, 5 * 33 + 10),
        (SERIES_7, 5, 256, 20),  # F7 and F8 four
        (SERIES_7, 5, 257, 25 + 5),
        (SERIES_7, 5, 1024, 5 * 16 + 5),
        (SERIES_7, 5, 1025, 5 * 17 + 10),
        ("another", 5, 257, 25 + 5),
        ("zynq-ultrascale", 5, 257, 25 + 5),
    ],
)
def test_luts_of_a_table_of_constants(family: str, bits: int, depth: int, luts: int) -> None:
    assert constant_luts(bits, depth, family) == luts


def test_shift_register_stores_32_words_per_lut() -> None:
    assert [shift_luts(3, depth) for depth in (1, 32, 33, 64, 65)] == [3, 3, 6, 6, 9]


@cases(
    "bits, luts",
    [
        ((1, 1), 1),
        ((1, 5), 5),
        ((5, 1), 5),
        ((2, 2), 3),
        ((2, 5), 6),
        ((3, 3), 8),
        ((4, 4), 15),
        ((4, 6), 21),
        ((8, 8), 63),
    ],
)
def test_luts_of_a_multiplication(bits: tuple[int, int], luts: int) -> None:
    # The LUTs are (min − 1)(max + 1), for carry chains that add rows of partial products. A factor of one bit
    # selects.
    assert product_luts(*bits) == luts


@cases(
    "bits, dsp, dsps",
    [
        ((25, 18), "DSP48E1", 1),
        ((18, 25), "DSP48E1", 1),
        ((26, 18), "DSP48E1", 2),
        ((27, 18), "DSP48E2", 1),
        ((19, 19), "DSP48E2", 2),
        ((28, 18), "DSP48E2", 2),
        ((27, 35), "DSP48E2", 2),
        ((27, 36), "DSP48E2", 3),
        ((53, 18), "DSP48E2", 2),
        ((54, 18), "DSP48E2", 3),
        ((53, 35), "DSP48E2", 4),
    ],
)
def test_dsps_of_a_multiplication(bits: tuple[int, int], dsp: str, dsps: int) -> None:
    """Signed pieces fill a port. All pieces except the uppermost have no sign, and one bit less."""
    assert product_dsps(*bits, dsp) == product_dsps(*bits[::-1], dsp) == dsps
