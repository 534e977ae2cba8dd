"""Maps on chip that are read with strides of 3 to 7. The rows of a row stride are in different banks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boards.errors import RangeError
from contract.formulas import MAX_STRIDED_ROWS
from contract.geometry import MAX_MAP_STRIDE
from hls_templates.lint import lint
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.layers import lower
from scheduler.systolic.on_chip import broken_stay_rules, handovers
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.shape import row_strides_per_cycle
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from tests.support.arrays.leaps import ARRAYS, SMALL, leaping, networks
from tests.support.arrays.run import BOARD, Run
from tests.support.errors import raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, staying, with_on_chip


@pytest.mark.engine
@pytest.mark.parametrize("array", ARRAYS)
def test_engine_strides_3_to_7_on_chip_are_bit_exact(array: str, run: Run) -> None:
    for name, network in networks().items():
        schedule = first_fit(network, ARRAYS[array])
        layers = [scheduled.layer for scheduled in schedule.layers]
        may = staying(network, layers, ARRAYS[array])
        assert may[0], f"{name}: the map that is read with the stride may stay"
        chosen = check_schedule(with_on_chip(schedule, may))
        assert run(array, chosen, 1) == 0, name


@pytest.mark.engine
@pytest.mark.parametrize("rows", [2, 3, 5])
def test_generate_strides_3_to_7_on_chip_passes_the_linter(rows: int) -> None:
    schedule = first_fit(leaping(3, 3), replace(SMALL, rows=rows, map_stride=7))
    design = generate(price(schedule, BOARD, ddr_timing(BOARD, 300)), DesignInputs({}, np.zeros((3, 31, 11), np.uint8)))
    sources = {path: data.decode() for path, data in design.files.items() if path.endswith((".h", ".cpp"))}
    assert (
        lint({path.removeprefix("src/"): text for path, text in sources.items() if "src/" in path}, "systolic_top")
        == ()
    )


def test_moved_together_counts_row_strides_in_different_banks() -> None:
    # The reference lists the banks: no two of the row strides that are moved together begin in the same bank.
    shape = with_stride = first_fit(leaping(3, 3), SMALL).layers[1].shape
    for rows in range(2, 17):
        for stride in range(3, MAX_MAP_STRIDE + 1):
            with_stride = replace(shape, stride=stride)
            count = row_strides_per_cycle(with_stride, rows)
            assert len({stride * r % rows for r in range(count)}) == count <= MAX_STRIDED_ROWS
            if count < MAX_STRIDED_ROWS:
                assert stride * count % rows == 0


def test_hindrances_stride_8_keeps_the_map_in_ddr() -> None:
    network = Builder(3, 20, 9).conv(16, 3).conv(16, 8, 8).conv(5, 1, wide=True).network()
    (reason,) = broken_stay_rules(handovers(network, lower(network))[0])
    assert reason.endswith("(stride 8)")


def test_check_schedule_map_stride_too_small_is_refused() -> None:
    schedule = first_fit(leaping(3, 3), replace(SMALL, map_stride=2))
    with raises_among(RangeError, where="conv2", what="map_stride of the array", got=2, low=3):
        check_schedule(with_on_chip(schedule, (True, False, False, False, False)))
