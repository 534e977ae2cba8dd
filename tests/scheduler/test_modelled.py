"""Modelled cycles of designs whose trace agrees with them (test_cost.py, to 3 %): a change of the model shows here to
the cycle, as a difference of modelled.json, without a trace. `--update-golden` writes it anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from boards.board import load
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.model.arrays import array_column
from scheduler.systolic.model.cost import cost, layer_cycles
from scheduler.systolic.model.cycles import PARTS
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import steps_after
from scheduler.systolic.tiling import column_cuts, tilings
from tests.scheduler.quantised import Builder
from tests.scheduler.test_cost import FOUR_PORTS, SHARES, SHORT_OF_DDR, TRACED, TRACED_ARRAY
from tests.schedules import first_fit
from tests.traced import kept

RECORDED = Path(__file__).with_name("modelled.json")
BOARD = load("zcu104")
BATCHES = {"batch of two": 2, "batch of five": 5}
Numbers = dict[str, list[int]]


def on_chip() -> SystolicSchedule:
    """Maps stay on chip where they fit."""
    return kept(first_fit(Builder(3, 32, 40).conv(40, 3, 2).conv(16, 3).pool().dense(48).network(), FOUR_PORTS))


def narrow() -> SystolicSchedule:
    """4 bits, one port of each kind, more rows than the last map has."""
    array = Array(7, 16, 8, 1, 1, 1, row_depth=512, weight_depth=512, kept_depth=256, chunk=8, channel_tiles=8, bits=4)
    return first_fit(Builder(2, 30, 41, bits=4).conv(20, 3).pool(1).conv(36, 3).pool().conv(9, 1).network(), array)


SCHEDULES: dict[str, tuple[Callable[[], SystolicSchedule], tuple[float, ...]]] = {
    **{
        name: ((lambda name=name: first_fit(TRACED[name], TRACED_ARRAY, BATCHES.get(name, 1))), SHARES[name])  # type: ignore[misc]
        for name in TRACED
    },
    **{
        name: ((lambda network=network: first_fit(network, FOUR_PORTS)), shares)  # type: ignore[misc]
        for name, (network, shares) in SHORT_OF_DDR.items()
    },
    "maps on chip": (on_chip, (0.85, 0.2)),
    "narrow": (narrow, (0.85, 0.1)),
}


def parts(schedule: SystolicSchedule, share: float) -> Numbers:
    """Layer → its cycles by PARTS."""
    layers = cost(schedule, ddr_timing(BOARD, 300, share)).layers
    return {layer.shape.name: [int(getattr(layer.cycles, part)) for part in PARTS] for layer in layers}


def every_way(schedule: SystolicSchedule) -> Numbers:
    """Layer → cycles of all its tilings, on the array and on one with other ports and chunks around the same PEs."""
    array, shapes, ddr = schedule.array, [layer.shape for layer in schedule.layers], ddr_timing(BOARD, 300, 0.3)
    other = replace(array, map_ports=1, weight_ports=2, weight_words=1, save_rows=1, chunk=8)
    found = {}
    for index, scheduled in enumerate(schedule.layers):
        cuts = column_cuts(schedule.network, scheduled.layer, array, 3)
        ways = tilings(scheduled.shape, array.rows, cuts)
        grid = array_column([array, other])
        cycles = layer_cycles(grid, scheduled.shape, ways, steps_after(shapes, index), ddr, index == 0)
        found[scheduled.shape.name] = cycles.total.ravel().tolist()
    return found


def agree(name: str, found: Numbers, update: bool) -> None:
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if update:
        lines = [
            f"{json.dumps(case)}: {json.dumps(cycles)}" for case, cycles in sorted({**recorded, name: found}.items())
        ]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    assert found == recorded[name]


@pytest.mark.parametrize(
    ("name", "share"), [(name, share) for name, (_, shares) in SCHEDULES.items() for share in shares]
)
def test_cycles_of_a_schedule(name: str, share: float, pytestconfig: pytest.Config) -> None:
    found = parts(SCHEDULES[name][0](), share)
    agree(f"{name}, {share} of the DDR", found, pytestconfig.getoption("--update-golden"))


@pytest.mark.parametrize("name", SCHEDULES)
def test_cycles_of_every_way(name: str, pytestconfig: pytest.Config) -> None:
    found = every_way(SCHEDULES[name][0]())
    agree(f"{name}, every way", found, pytestconfig.getoption("--update-golden"))
