"""The engine, compiled once for each array of a module: what schedules are executed on."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.schedule import SystolicSchedule
from systolic.execution.build import Variant
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.simulate import simulate_batch
from tests.support.arrays.run import BOARD, Run
from tests.support.traced import load_into

CLOCK = BOARD.nearest_clock(300)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Mismatches of a schedule on one of ARRAYS; compiled once each, only program and data change."""
    compiled = tmp_path_factory.mktemp("engines")

    def mismatches(name: str, schedule: SystolicSchedule, seed: int, variant: Variant = Variant()) -> int:  # noqa: B008
        shape = schedule.network.input_shape
        size = (shape.channels, shape.height, shape.width)
        pictures = np.random.default_rng(seed).integers(0, 256, (schedule.batch, *size), np.uint8)
        design = generate(price(schedule, BOARD, ddr_timing(BOARD, CLOCK.mhz)), DesignInputs({}, pictures[0]))
        folder = load_into(compiled / name, design)
        return sum(one.mismatches for one in simulate_batch(folder, tuple(pictures), variant))

    return mismatches
