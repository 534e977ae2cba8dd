"""An error in any block that moves values is caught: each header gets one error, and every case must then fail."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.blocks import moving_blocks as blocks
from tests.support.blocks import window as windows
from tests.support.blocks.compute import Library, compile_cases
from tests.support.blocks.planted import Plant, compile_planted

pytestmark = pytest.mark.engine

SMALL = (4, 4, 6)

PLANTS = (
    Plant("window.h", "y >= 0 && y < HEIGHT", "y >= 0 && y <= HEIGHT", windows.default(1, SMALL, 2)),
    Plant("window.h", "scan.row_inside(ky) && ", "", windows.parallel(2, SMALL, 2)),
    Plant("max_pool.h", "(!inside[k] || value[other]", "(value[other]", windows.pool(3, SMALL, 2, 3, 1, windows.SAME)),
    Plant("scan.h", "PIXELS_IN - PLAN::LEFT", "PIXELS_IN + 1 - PLAN::LEFT", windows.parallel(4, SMALL, 4)),
    Plant("delay.h", "all.line[n] = newest[n];", "all.line[n] = newest[0];", windows.parallel(5, SMALL, 4)),
    Plant("walk.h", "if (!inside) value", "if (!inside || l == 0) value", windows.default(6, SMALL, 2, depthwise=True)),
    Plant(
        "gearbox.h",
        "present ? units[u][l]",
        "present || u >= 0 ? units[u][l]",
        blocks.channels(7, (8, 2, 3), (4, 3), 12),
    ),
    Plant(
        "width.h", "if (part.value == p) value.lane[l]", "if (p == 0) value.lane[l]", blocks.pixels(8, SMALL, 2, (2, 1))
    ),
    Plant(
        "width.h",
        "PARTS - 1 ? value : stored_words",
        "PARTS ? value : stored_words",
        blocks.pixels(9, SMALL, 2, (1, 2)),
    ),
    Plant("duplicate.h", "first.write(value);", "first.write(zeros<W>());", blocks.duplicate(10, SMALL, 2, 2)),
    Plant("discard.h", "progress_t<WORDS>", "progress_t<WORDS - 1>", blocks.discard(11, SMALL, 2)),
    Plant("parts.h", "begin((p + 1) % PARTS)", "begin(0)", blocks.concat(12, (12, 2, 3), 2, (2, 10))),
    Plant("concat.h", "read_from(number - 1", "read_from(number", blocks.concat(23, (12, 2, 3), 2, (2, 6, 4))),
    Plant("split.h", "write_to(number - 1", "write_to(number", blocks.split(13, (12, 2, 3), 2, (2, 6, 4))),
    Plant("reorg.h", "taps     ? TAP_ROW_STEP", "taps     ? 1", blocks.reorg(14, (4, 4, 6), 2, 2, "darknet")),
    Plant(
        "reorg.h", "x.set_remainder(first_x.value)", "x.set_remainder(0)", blocks.reorg(15, (4, 6, 4), 1, 2, "darknet")
    ),
    Plant("reorg.h", "0, 0, 0, 0, 1, false, RAM", "0, 0, 0, 0, 1, true, RAM", blocks.reorg(16, SMALL, 2, 2, "block")),
    Plant("resize.h", "long_step_x ? LONG_STEP_X : STEP_X", "STEP_X", blocks.resize(17, SMALL, 4, (4, 9))),
    Plant(
        "upsample.h",
        "HEIGHT * STRIDE, WIDTH * STRIDE",
        "WIDTH * STRIDE, HEIGHT * STRIDE",
        blocks.upsample(18, SMALL, 2, 2),
    ),
    Plant("raster.h", "if (y.next()) phase_y.clear();", "y.next();", blocks.down_sample(19, (4, 5, 6), 2, 2)),
    Plant("down_sample.h", "if (at.on_grid())", "if (at.odd_x.value == 0)", blocks.down_sample(20, SMALL, 4, 2)),
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return compile_planted(PLANTS, tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return compile_cases([plant.case for plant in PLANTS], tmp_path_factory.mktemp("sound"), "sanitized")


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_moving_block_with_a_planted_error_fails_its_case(planted: Library, sound: Library, plant: Plant) -> None:
    """Check that wrong values, missing words or extra words reveal the error."""
    np.testing.assert_array_equal(sound.run(plant.case), plant.case.expected)
    with pytest.raises((AssertionError, RuntimeError), match=r"Arrays are not equal|while it is empty|holds|left"):
        np.testing.assert_array_equal(planted.run(plant.case), plant.case.expected)
