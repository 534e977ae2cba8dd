"""Streaming blocks under g++ against plain numpy: every value, and every cycle.

The default suite compiles a sample once: one case or more of every block, activation and element-wise operation. All
cases, also with the vendor's integers and under the sanitizer, have the marker ``engine``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scheduler.streaming.weights import slot_bits, weight_image
from tests.support.blocks import elementwise, label_select, matrix_vector, moving_blocks, softmax, weights, window
from tests.support.blocks.compute import BIPOLAR, FRAMES, Builds, Case, Library, compile_cases, signed, unsigned
from tests.support.blocks.moving import Padding
from tests.support.blocks.window import EVEN, NONE, SAME, WALK_DEPTH, WALK_LANDING

DOCUMENTED = Path(__file__).resolve().parents[3] / "docs" / "reference" / "streaming_blocks.md"
FAMILIES: dict[str, tuple[Case, ...]] = {
    "elementwise": elementwise.CASES,
    "label_select": label_select.CASES,
    "matrix_vector": matrix_vector.CASES,
    "moving_blocks": moving_blocks.CASES,
    "softmax": softmax.CASES,
    "weights": weights.CASES,
    "window": window.CASES,
}
SANITIZED = ("label_select", "moving_blocks", "softmax", "window")
"""The others run under both sanitizers in test_address_sanitizer.py."""

INT4, INT8, UINT4, UINT8 = signed(4), signed(8), unsigned(4), unsigned(8)
SMALL = (4, 4, 6)
SAMPLE: tuple[Case, ...] = (
    # positions, MW, MH; SIMD, PE, PIXELS
    matrix_vector.matrix_vector(9, (6, 36, 5), (36, 5, 2), INT4, UINT4, "thresholds"),
    matrix_vector.matrix_vector(6, (6, 27, 5), (9, 5, 1), INT8, UINT8, "requantise", streamed=True),
    matrix_vector.matrix_vector(21, (12, 36, 8), (18, 4, 2), INT4, UINT4, "multiply", resident=True),
    matrix_vector.matrix_vector(12, (6, 16, 6), (8, 3, 2), BIPOLAR, BIPOLAR, "bipolar", "LUT"),
    matrix_vector.vector_vector(32, (6, 8, 9), (3, 8, 2), INT4, UINT4, "ternary"),
    matrix_vector.activate(45, (6, 8), (4, 2), signed(8), "table"),
    matrix_vector.activate(46, (16, 4), (2, 2), signed(12), "pieces", signed(16)),
    elementwise.global_pool(1, (12, 6), (2, 1), INT8, "requantise"),
    elementwise.add(20, (6, 8), (4, 1), ((INT8, 1), (INT8, 1)), "requantise"),
    elementwise.add(23, (6, 8), (2, 2), ((UINT4, 1), (INT8, 2), (BIPOLAR, 3), (UINT4, 16384)), "thresholds"),
    *(elementwise.element_wise(30, (6, 8), (4, 2), (INT8, UINT8), op, "identity") for op in elementwise.OPERATIONS),
    label_select.of_lanes(30),
    label_select.of_one_lane(31),
    label_select.of_short_lists(32),
    softmax.of_classes(33),
    softmax.of_halves(34),
    softmax.of_equal(35),
    weights.stream(16, (2, 3, 2, 4), INT8, "RAM_AUTO"),
    weights.from_memory(17, (2, 3, 2, 4), signed(3), 4, "fetch"),
    weights.from_memory(18, (2, 3, 2, 4), UINT8, 4, "load"),
    # channels, height, width
    window.default(1, SMALL, 2),
    window.default(6, SMALL, 2, depthwise=True, stride=2),
    window.parallel(4, SMALL, 4),
    window.parallel(34, (2, 6, 8), 2, stride=2, pixels=2, padding=Padding(1, 1, 0, 0)),
    window.pool(3, SMALL, 2, 3, 1, SAME),
    window.pool(61, (4, 6, 8), 2, pixels=4, padding=NONE),
    moving_blocks.width(8, (6, 2, 2), 3, 2, INT4),
    moving_blocks.channels(7, (8, 2, 3), (4, 3), 12),
    moving_blocks.channels(12, (8, 3, 4), (4, 3), 3),
    moving_blocks.pixels(8, SMALL, 2, (2, 1)),
    moving_blocks.pixels(9, SMALL, 2, (1, 2)),
    moving_blocks.duplicate(10, SMALL, 2, 2),
    moving_blocks.discard(11, SMALL, 2),
    moving_blocks.concat(23, (12, 2, 3), 2, (2, 6, 4)),
    moving_blocks.split(13, (12, 2, 3), 2, (2, 6, 4)),
    moving_blocks.reorg(15, (4, 6, 4), 1, 2, "darknet"),
    moving_blocks.reorg(16, SMALL, 2, 2, "block"),
    moving_blocks.spread(69, (12, 2, 4), 1, (2, 3)),
    moving_blocks.resize(17, SMALL, 4, (4, 9)),
    moving_blocks.resize(74, (2, 6, 6), 2, (3, 3)),
    moving_blocks.upsample(18, SMALL, 2, 2),
    moving_blocks.down_sample(19, (4, 5, 6), 2, 2),
)


def check_values(library: Library) -> None:
    for case in library.cases:
        np.testing.assert_array_equal(library.run(case), case.expected, err_msg=case.name)


def check_cycles(library: Library) -> None:
    """Check that three frames take no idle cycles except those in a block's formula, and wait for DDR once."""
    for case in library.cases:
        block, from_ddr = library.time(case), "memory_beat_t" in case.code
        waits = (block.wait_space, block.wait_input)
        if from_ddr:
            assert case.cycles < block.busy < case.cycles + weights.FILL, case.name
        else:
            assert block.busy == case.cycles, case.name
        assert waits == ((0, 0) if "_weights<" in case.code else (0, 1)), case.name


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return compile_cases(SAMPLE, tmp_path_factory.mktemp("sample"), "quick")


def test_block_sample_equals_numpy(sample: Library) -> None:
    check_values(sample)


def test_block_sample_takes_the_cycles_of_the_formulas(sample: Library) -> None:
    check_cycles(sample)


def test_block_sample_covers_every_documented_block() -> None:
    rows = [line.split("|")[1] for line in DOCUMENTED.read_text("utf-8").splitlines() if line.startswith("| `")]
    blocks = {name for row in rows for name in re.findall(r"`(\w+)`", row) if not name.endswith("_op")}
    assert len(blocks) >= 26
    code = "\n".join(case.code for case in SAMPLE)
    assert [name for name in sorted(blocks) if f"{name}<" not in code] == []


@pytest.fixture(scope="module", params=FAMILIES)
def builds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return Builds(FAMILIES[request.param], tmp_path_factory.mktemp(request.param))


@pytest.mark.engine
def test_block_cases_equal_numpy_and_take_their_cycles(builds: Builds) -> None:
    check_values(builds["native"])
    check_cycles(builds["native"])


@pytest.mark.engine
def test_block_cases_with_vendor_integers_equal_numpy(builds: Builds) -> None:
    check_values(builds["ap_int"])


@pytest.mark.engine
@pytest.mark.parametrize("family", SANITIZED)
def test_block_cases_are_clean_under_the_sanitizer(family: str, tmp_path: Path) -> None:
    check_values(compile_cases(FAMILIES[family], tmp_path, "sanitized"))


# --------------------------------------------------------------------------------- formulas by hand


def test_convert_steps_of_few_zeros_or_dropped_channels_add_none() -> None:
    """Use less than a word of zeros or dropped channels.

    If words grow, the zeros are at most the growth, so that the last input word fills an output word.
    """
    for lanes_in, lanes_out in [(1, 4), (4, 1), (3, 8), (8, 3), (6, 4), (4, 6), (4, 4)]:
        for words in range(1, 9):
            whole = words * lanes_in
            for after in range(lanes_out, 2 * whole + lanes_out, lanes_out):
                zeros = lanes_out - lanes_in if lanes_in < lanes_out else lanes_in - 1
                if -max(lanes_in, lanes_out) < after - whole <= zeros:
                    steps = moving_blocks.convert_steps(lanes_in, lanes_out, whole, after)
                    assert steps == max(words, after // lanes_out), (lanes_in, lanes_out, whole, after)


def test_weight_image_has_whole_beats_and_slots() -> None:
    tiles = np.array([[[1, -2, 3]], [[-4, 5, -6]]])  # 2 PEs, a tile, 3 lanes
    image = weight_image(tiles, 4, 4)
    assert image.tolist() == [[0xE1, 0xC3, 0xA5, 0]]
    assert weight_image(tiles, 8, 4).tolist() == [[1, 0xFE, 3, 0xFC, 5, 0xFA, 0, 0]]
    assert weight_image(np.array([[[1, 0, 1, 1]]]), 1, 1).tolist() == [[0b1101]]
    assert [slot_bits(bits) for bits in (1, 2, 3, 4, 5, 8, 9, 16)] == [1, 2, 4, 4, 8, 8, 16, 16]


@pytest.mark.engine
def test_window_with_a_barely_fast_writer_keeps_its_rate(tmp_path: Path) -> None:
    """Check that the window reads its input evenly.

    A window that fills its buffer at once would wait at the beginning of each row of windows.
    """
    code = EVEN.code.replace(f"feed({FRAMES * 64}, ", f"feed_slowly({FRAMES * 64}, 4, ")
    slow = replace(EVEN, code=code, headers=(*EVEN.headers, "moving.h"))
    assert code != EVEN.code
    block = compile_cases([slow], tmp_path, "native").time(slow)
    first = 2 * 8 + 3
    assert block.busy + block.wait_input <= 4 * (first + WALK_LANDING) + FRAMES * 16 * 16 + WALK_DEPTH
