"""An error in any compute block is caught: each header gets one error, and every case must then fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.blocks import elementwise as elements
from tests.support.blocks import label_select as choices
from tests.support.blocks import matrix_vector as units
from tests.support.blocks import softmax as shares
from tests.support.blocks import weights as streamers
from tests.support.blocks.compute import BIPOLAR, Case, Library, compile_cases, signed, unsigned
from tests.support.blocks.planted import Plant, compile_planted

pytestmark = pytest.mark.engine

INT8, UINT8 = signed(8), unsigned(8)


def multiply(seed: int, *, streamed: bool = False) -> Case:
    return units.matrix_vector(seed, (4, 6, 4), (2, 2, 1), INT8, UINT8, streamed=streamed)


PLANTS = (
    Plant("label_select.h", "from_labels[j] < labels[i]", "from_labels[j] > labels[i]", choices.of_lanes(30)),
    Plant("label_select.h", "value(value) > VALUE", "value(value) >= VALUE", choices.of_one_lane(31)),
    Plant("label_select.h", "smaller(K, OWN * distance)", "K", choices.of_short_lists(32)),
    Plant(
        "softmax.h", "if (written_count.value == 0) inverse", "if (written_count.last) inverse", shares.of_classes(33)
    ),
    Plant("softmax.h", "left >= by", "left > by", shares.of_halves(34)),
    Plant("softmax.h", "if (value > top) {", "if (value >= top) {", shares.of_equal(35)),
    Plant(
        "activation.h",
        "half = integer<64, true>(1)",
        "half = integer<64, true>(0)",
        units.activate(1, (6, 4), (2, 1), signed(20), "requantise"),
    ),
    Plant(
        "activation.h",
        " + integer<48, true>(bias",
        " - integer<48, true>(bias",
        units.activate(2, (6, 4), (2, 1), signed(20), "multiply"),
    ),
    Plant(
        "activation.h",
        "integer<33, true>(-value)",
        "integer<33, true>(value)",
        units.activate(3, (6, 4), (2, 1), signed(12), "thresholds"),
    ),
    Plant(
        "activate.h",
        "nf.next();",
        "nf.clear();",
        units.activate(4, (6, 4), (1, 1), signed(12), "bipolar"),
    ),
    Plant("matrix_vector.h", "(source, at.tile.value, weight)", "(source, at.sf.value, weight)", multiply(5)),
    Plant("fold.h", "packed.lane[pe * SIMD + s]", "packed.lane[s * PE + pe]", multiply(6, streamed=True)),
    Plant(
        "matrix_vector_resident.h",
        "vector_word += SF;",
        "vector_word += 1;",
        units.matrix_vector(19, (4, 6, 4), (2, 2, 1), INT8, UINT8, resident=True),
    ),
    Plant(
        "vector_vector.h",
        "values.lane[(x * SIMD + s) * PE + pe]",
        "values.lane[(x * SIMD + s) + pe * SIMD]",
        units.vector_vector(7, (4, 6, 9), (3, 2, 1), INT8, UINT8),
    ),
    Plant(
        "datatype.h",
        "carried != 0 ? value_t(1)",
        "carried == 0 ? value_t(1)",
        units.matrix_vector(8, (4, 6, 4), (2, 2, 1), BIPOLAR, UINT8),
    ),
    Plant(
        "global_pool.h",
        "if (step.value == 0) sums",
        "if (done.frame == 0 && step.value == 0) sums",
        elements.global_pool(9, (4, 6), (2, 1), UINT8, "identity"),
    ),
    Plant(
        "elementwise.h",
        " * TERM::multiplier",
        "",
        elements.add(11, (4, 4), (2, 1), ((INT8, 3), (UINT8, 2)), "identity"),
    ),
    Plant(
        "elementwise.h",
        "VALUE1::value(second.lane[l])",
        "VALUE1::value(second.lane[0])",
        elements.element_wise(12, (4, 4), (2, 1), (INT8, INT8), "subtract_op", "identity"),
    ),
    Plant(
        "operation.h",
        "return a > b ? SUM(a - b) : SUM(b - a);",
        "return SUM(a - b);",
        elements.element_wise(14, (4, 4), (2, 1), (INT8, INT8), "difference_op", "identity"),
    ),
    Plant(
        "weights.h",
        "value.lane[pe * SIMD + s] = weights",
        "value.lane[s * PE + pe] = weights",
        streamers.stream(16, (2, 3, 2, 4), INT8, "RAM_AUTO"),
    ),
    Plant(
        "weights.h",
        "(raw ^ sign) - sign",
        "(raw ^ sign) + sign",
        streamers.from_memory(17, (2, 3, 2, 4), signed(3), 4, "fetch"),
    ),
    Plant(
        "weights.h",
        "if (beat.next()) index.next();",
        "beat.next();",
        streamers.from_memory(18, (2, 3, 2, 4), UINT8, 4, "load"),
    ),
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return compile_planted(PLANTS, tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return compile_cases([plant.case for plant in PLANTS], tmp_path_factory.mktemp("sound"), "sanitized")


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_compute_block_with_a_planted_error_fails_its_case(planted: Library, sound: Library, plant: Plant) -> None:
    np.testing.assert_array_equal(sound.run(plant.case), plant.case.expected)
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        np.testing.assert_array_equal(planted.run(plant.case), plant.case.expected)


LINES = units.activate(46, (16, 4), (2, 2), signed(12), "pieces", signed(16))
IN_LINES = (
    Plant("activation.h", "(1 << FRACTION) + (1 << (FRACTION - 1))", "(1 << FRACTION)", LINES),
    Plant("activation.h", "slope[pe % COPIES][piece]", "slope[pe % COPIES][(piece + 1) % 256]", LINES),
    Plant("activation.h", "slope[pe % COPIES][piece]", "slope[0][piece]", LINES),
    Plant("activation.h", "(addend + product) >> FRACTION", "(addend + product) >> (FRACTION - 1)", LINES),
    Plant("activation.h", "piece = distance >> FRACTION", "piece = distance >> (FRACTION + 1)", LINES),
    Plant("activation.h", "((1 << FRACTION) - 1)", "((1 << (FRACTION - 1)) - 1)", LINES),
)
"""In one functor: each alone."""


@pytest.mark.parametrize("plant", IN_LINES, ids=lambda plant: plant.wrong)
def test_line_with_one_planted_error_fails_its_case(plant: Plant, tmp_path: Path) -> None:
    library = compile_planted([plant], tmp_path)
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        np.testing.assert_array_equal(library.run(plant.case), plant.case.expected)
