"""The model of the SystemVerilog engine, compared with cycles that were counted under Verilator.

benchmarks/cycles.py records the cycles, and tests/systolic/test_rtl.py counts the cycles of small networks again.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import rtl_templates
from benchmarks.cycles import CASES, MHZ, SMALL, recorded
from boards.board import load
from contract.geometry import HLS, RTL
from scheduler.hardware.ddr import DdrRate, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.engines.rtl import engine as rtl
from scheduler.systolic.engines.rtl import loader, saver, stages
from scheduler.systolic.engines.rtl.stages import LINE_STAGES, stages_of
from scheduler.systolic.model.arrays import array_grid
from scheduler.systolic.model.cost import cost, layer_cycles
from scheduler.systolic.search.bounds import least_cycles
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import Geometry, pin
from scheduler.systolic.search.task import network_shapes
from scheduler.systolic.shape import steps_after, with_maps_on_chip
from scheduler.systolic.tiling import tilings
from scheduler.systolic.workload import workload_of
from tests.support import recorded_cycles
from tests.support.cases import cases
from tests.support.quantised import Builder
from tests.support.schedules import first_fit
from tests.support.searches import problem, space_of
from tests.support.tolerance import SHARE, within

BOARD = load("zcu104")
SOURCES = Path(rtl_templates.__file__).parent
COUNTED = sorted(recorded_cycles.recorded(recorded_cycles.COUNTED))


def outside(name: str) -> list[str]:
    """Return a sentence for each layer of a recorded case for which the model is outside the tolerance."""
    pairs = [(layer.shape.name, layer.total, counted) for layer, counted in recorded(name).layers()]
    return [
        f"{layer}: {total} modelled, {counted} counted" for layer, total, counted in pairs if not within(total, counted)
    ]


def test_recorded_cases_can_be_counted_again() -> None:
    assert set(SMALL) < set(COUNTED) <= set(CASES)


@cases("name", COUNTED)
def test_cost_rtl_is_within_3_percent_of_the_counted_cycles(name: str) -> None:
    assert outside(name) == []


@cases("name", COUNTED)
def test_cost_rtl_sum_of_layers_is_within_half_the_share(name: str) -> None:
    layers = recorded(name).layers()
    counted = sum(cycles for _, cycles in layers)
    assert sum(layer.total for layer, _ in layers) == pytest.approx(counted, rel=SHARE / 2)


def test_cost_hls_differs_from_the_counted_rtl_cycles() -> None:
    # The model of the HLS engine does not fit the RTL engine.
    counted = recorded("connected")
    hls = replace(counted.schedule, array=replace(counted.schedule.array, engine=HLS))
    modelled = cost(hls, ddr_timing(BOARD, MHZ)).layers
    assert not all(within(layer.total, counted.cycles[layer.shape.name]) for layer in modelled)


def missed() -> int:
    """Return the sum of the model's absolute errors over all recorded layers, in cycles."""
    layers = [pair for name in COUNTED for pair in recorded(name).layers()]
    return sum(abs(layer.total - counted) for layer, counted in layers)


PLANTED = {
    "a pass is taken later": (rtl, "PASS_START", 3 + 10),
    "a pass ends later": (rtl, "PASS_END", 1 + 10),
    "its program is not read ahead": (rtl, "PASS_START", 3 + 131),
    "a first step comes later": (rtl, "LOAD_TO_STEP", 8 + 10),
    "a first step comes earlier": (rtl, "LOAD_TO_STEP", 0),
    "load waits longer between two phases": (loader, "LOAD_GAP", 3 + 5),
    "a beat comes later": (loader, "READ_FIFO_LATENCY", 1 + 10),
    "a port has one burst on its way": (loader, "OUTSTANDING", 1),
    "a port of results has one burst on its way": (saver, "OUTSTANDING", 1),
    "feed_weights waits longer between two tiles": (loader, "FEED_GAP", 1 + 5),
    "a tile of weights is stored later": (loader, "TILE_TO_STEP", 3 + 20),
    "a chunk is written later": (rtl, "OUTPUT_LATENCY", 2 + 10),
    "one tile of weights arrives with the first rows": (
        rtl,
        "weights_at_once",
        lambda grid: grid.flat(grid.shape.steps * grid.step_words),
    ),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_of_the_model_increases_the_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each fault increases the sum of errors of all layers.
    before = missed()
    module, constant, wrong = PLANTED[name]
    monkeypatch.setattr(module, constant, wrong)
    assert missed() > before + 2 * len(COUNTED)


@pytest.mark.engine
@pytest.mark.parametrize(
    "name",
    [
        "its program is not read ahead",
        "a port has one burst on its way",
        "one tile of weights arrives with the first rows",
    ],
)
def test_planted_fault_exceeds_the_tolerance(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, constant, wrong = PLANTED[name]
    monkeypatch.setattr(module, constant, wrong)
    assert any(outside(case) for case in COUNTED)


def test_stages_equal_the_depths_of_the_modules() -> None:
    def text(name: str) -> str:
        return (SOURCES / name).read_text()

    def number(module: str, constant: str) -> int:
        (found,) = re.findall(rf"(?:localparam|parameter) int {constant} = (\d+)\b", text(module))
        return int(found)

    load_stages, requantised = number("loader/load.sv", "LATENCY"), 4 + 4
    assert "SHIFT_STAGES = LATE_OFFSETS > 0 ? 5 : 4;" in text("saver/requantise.sv")
    assert "RESULT_LATENCY = SHIFT_STAGES + 4;" in text("saver/requantise.sv")
    assert load_stages + 1 == stages.FEED_TO_STEP
    assert stages.LOAD_GAP + load_stages + 1 == stages.LOAD_TO_STEP
    assert number("common/axi_read.sv", "DEPTH") == stages.READ_WORDS
    assert number("loader/feed_weights.sv", "LATENCY") + 1 == stages.FIRST_FEED == stages.TILE_TO_STEP
    assert number("saver/arrange.sv", "LATENCY") == stages.OUTPUT_LATENCY
    states = {
        "loader/load.sv": "IDLE, BEGIN, RUN, REWIND, NEXT",
        "loader/feed_weights.sv": "IDLE, BEGIN, RUN",
        "control/sequence_passes.sv": "IDLE, TAKE, PLAN, BEGIN, RUN",
    }
    for module, names in states.items():
        assert f"{{{names}}} state_t" in text(module)
    array = "array/pe_array.sv"
    assert "SIX ? 6 + tree_levels(LANES / 2) : DSP_CLOCK == 1 ? PACK_CHAIN + 4 : PACK_CHAIN / 2 + 5" in text(array)
    assert "IN_FLIGHT = LATENCY + 2;" in text(array)
    assert "ROW_WAIT = (ROWS - 1 + DSP_CLOCK - 1) / DSP_CLOCK + 5;" in text(array)
    for module in ("saver/multiply.sv", "loader/feed_weights.sv"):
        assert ".DEPTH(LATENCY + 4), .SLACK(LATENCY)" in text(module)
    for module in ("saver/requantise.sv", "loader/load.sv"):
        assert ".DEPTH(2 * LATENCY + 2), .SLACK(LATENCY)" in text(module)
    assert load_stages + 2 < stages.ROW_LEAD < 2 * load_stages + 2
    plain = stages_of(Array(4, 8, 8))
    assert set(re.findall(r"\bs\d+_valid\b", text("saver/pool.sv"))) == {"s1_valid"}, "a group is in one register"
    assert stages.POOL_REGISTER == 1
    assert plain.results == stages.POOL_REGISTER + requantised + 1
    assert plain.result_limit == requantised + 2
    assert plain.sums - 2 - 3 == Array(4, 8, 8).pack_chain + 4 == plain.in_flight - 2
    assert stages_of(Array(4, 8, 8, table_depth=256)).results == plain.results + 1
    assert stages_of(Array(4, 8, 8, table_depth=256, table_slopes=True)).results == plain.results + LINE_STAGES
    assert f"TABLE_SLOPES > 0 ? {LINE_STAGES} : TABLE_DEPTH > 0 ? 1 : 0" in text("saver/requantise.sv")
    assert stages_of(Array(4, 8, 8, late_offsets=1)).results == plain.results + 1
    multiplied = number("saver/multiply.sv", "LATENCY") + 1
    assert stages_of(Array(4, 8, 8, map_products=True)).results == plain.results + multiplied


@pytest.mark.parametrize(
    ("dsp_clock", "dsp_products", "sums"), [(1, 0, 4 + 4 + 2 + 12), (2, 0, 2 + 5 + 2 + 6), (1, 6, 8 + 2 + 12)]
)
def test_stages_sums_follow_from_the_chains(dsp_clock: int, dsp_products: int, sums: int) -> None:
    """13 rows and 8 lanes of 4 bits have chains of 4. With six products, two adders add four lanes each."""
    array = Array(13, 24, 8, bits=4, dsp_clock=dsp_clock, dsp_products=dsp_products)
    assert dsp_products or array.pack_chain == 4
    assert stages_of(array).sums == sums


@pytest.mark.engine
@pytest.mark.parametrize("share", [0.85, 0.2, 0.05])
@pytest.mark.parametrize("name", ["odd", "connected", "batch of five", "rows of stride 2", "a pool between two chunks"])
def test_least_cycles_rtl_are_below_every_tiling(name: str, share: float) -> None:
    # The lower bounds of the search hold for the RTL engine too.
    schedule = recorded(name).schedule
    array, network, batch = schedule.array, schedule.network, schedule.batch
    ddr = ddr_timing(BOARD, MHZ, DdrRate(19.2, share))
    space = replace(
        space_of(network, BOARD), map_ports=(array.map_ports,), weight_ports=(array.weight_ports,), engine=RTL
    )
    geometry = Geometry(array.rows, array.columns, array.lanes)
    layers = network_shapes(workload_of(network, batch), (array.columns, array.lanes), space)
    for stay in (layers.may_stay, (False,) * len(layers.may_stay)):
        here = replace(layers, may_stay=stay)
        shapes = with_maps_on_chip(here.shapes, stay)
        bounds = least_cycles(geometry, here, ddr, space)
        for index, (numbers, cuts) in enumerate(zip(shapes, here.cuts, strict=True)):
            every = tilings(numbers, array.rows, cuts)
            cycles = layer_cycles(array_grid(array), numbers, every, steps_after(shapes, index), ddr, index == 0)
            assert all((getattr(cycles, f.name) >= 0).all() for f in fields(cycles))
            assert int(np.min(cycles.total)) >= bounds[index]


@pytest.mark.engine
def test_search_prices_its_own_engine() -> None:
    network, ddr = Builder(3, 40, 40).conv(24, 3).pool().conv(40, 3).network(), ddr_timing(BOARD, 300)
    found = {}
    for engine in (HLS, RTL):
        space = pin(space_of(network, BOARD), rows=4, columns=16, lanes=8, engine=engine)
        found[engine] = search(problem(network, BOARD, space), ddr)
        assert found[engine].schedule.array.engine == engine
        built = cost(found[engine].schedule, ddr).cycles
        assert 0.98 * found[engine].key[0] <= built <= found[engine].key[0]
    assert found[RTL].key[0] < found[HLS].key[0]


def test_array_default_engine_is_hls() -> None:
    schedule = first_fit(Builder(3, 8, 8).conv(8, 3).network(), Array(2, 8, 8))
    assert schedule.array.engine == HLS
