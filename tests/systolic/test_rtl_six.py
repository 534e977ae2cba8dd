"""Test SystemVerilog designs with six 4-bit products per DSP: every integer matches, from two thirds of the DSPs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from boards.board import load
from boards.errors import InvalidValueError, MismatchError, RangeError, UnsupportedError
from contract.geometry import RTL
from scheduler.systolic.area.resources import fabric
from scheduler.systolic.formats import check_products
from scheduler.systolic.layers import lower
from scheduler.systolic.schedule_file import from_json, to_json
from systolic.execution.verilate import verilate
from systolic.files import write
from systolic.styles.systolic.exploration import explore
from systolic.styles.systolic.options import SystolicOptions
from systolic.styles.systolic.simulate import open_design, simulate
from tests.support.accelerators import picture_for
from tests.support.arrays.added_maps import residual
from tests.support.arrays.joins import NETWORKS
from tests.support.errors import raises, raises_among
from tests.support.quantised import Builder
from tests.support.rtl.engines import SIX, design_of
from tests.support.tolerance import missed_layers
from tests.support.traced import load_into

ZCU104 = load("zcu104")
FIRST = Builder(3, 9, 9, seed=1, bits=4).conv(60, 3).conv(26, 3).network()


@pytest.mark.engine
@pytest.mark.parametrize("stay", [False, True], ids=["in DDR", "on chip"])
@pytest.mark.parametrize("name", NETWORKS)
def test_rtl_six_products_match_golden_model(engines: Path, name: str, stay: bool) -> None:
    network = NETWORKS[name](4)
    design = load_into(engines / "six", design_of(network, SIX, stay))
    assert [layer.name for layer in simulate(design, picture_for(network, 6)).layers if layer.mismatches] == []


HALF = replace(SIX, lanes=16, columns=24, map_ports=2, save_rows=2)
"""An array with one and a half channel blocks per channel tile."""


@pytest.mark.engine
@pytest.mark.parametrize("stay", [False, True], ids=["in DDR", "on chip"])
@pytest.mark.parametrize("name", NETWORKS)
def test_rtl_six_products_in_partial_channel_blocks_match_golden_model(engines: Path, name: str, stay: bool) -> None:
    network = NETWORKS[name](4)
    if any(layer.summed > 1 for layer in lower(network)):
        with raises(InvalidValueError, what="columns", got=24):
            design_of(network, HALF, stay)
        return
    design = load_into(engines / "half", design_of(network, HALF, stay))
    assert [layer.name for layer in simulate(design, picture_for(network, 6)).layers if layer.mismatches] == []


@pytest.mark.engine
def test_rtl_six_products_with_residual_adds_match_golden_model(engines: Path) -> None:
    network = residual(4)
    design = load_into(engines / "added", design_of(network, replace(SIX, added_maps=True), stay=True))
    assert any(layer.added_node is not None for layer in design.manifest.layers)
    assert [layer.name for layer in simulate(design, picture_for(network, 6)).layers if layer.mismatches] == []
    with raises(InvalidValueError, what="columns", got=24):
        design_of(network, replace(HALF, added_maps=True))


@pytest.mark.engine
def test_rtl_six_products_save_a_third_of_the_dsps(engines: Path) -> None:
    counted = {}
    for products in (0, 6):
        array = replace(SIX, dsp_products=products)
        design = load_into(engines / f"{products} products", design_of(FIRST, array, stay=True))
        simulation = simulate(design, picture_for(FIRST, 6))
        assert simulation.mismatches == 0
        assert missed_layers(design, simulation) == []
        counted[products] = simulation.cycles
    assert all(abs(a - b) <= 10 for a, b in zip(counted[0], counted[6], strict=True))
    assert 3 * SIX.mac_dsps == 2 * replace(SIX, dsp_products=0).mac_dsps == 2 * SIX.rows * SIX.columns * SIX.lanes // 2
    assert SIX.macs_per_cycle == 6 * SIX.mac_dsps


@pytest.mark.engine
def test_rtl_six_products_lint_has_no_complaint(engines: Path) -> None:
    load_into(engines / "lint", design_of(FIRST, replace(SIX, columns=48, lanes=16, save_rows=2)))
    verilate(engines / "lint", engines / "none", lint=True)


def test_fabric_counts_the_adders_of_six_products() -> None:
    """Count by hand for 8 lanes. For its even lanes, a sum has an adder of three numbers (9 bits) and an adder of two
    numbers (11 bits). The odd lanes have the same. One adder of 16 bits for both kinds and one of 32 bits for the steps
    follow."""
    sums, packed = SIX.rows * SIX.columns * 2, SIX.columns // 3 * SIX.lanes * 18
    one_sum = 2 * (9 + 11) + 16 + 32
    other = replace(SIX, dsp_products=0)
    chains = SIX.rows * SIX.columns // 2 * (SIX.lanes // other.pack_chain)
    taken_apart = chains * (4 * 32 + 3 * 30)
    assert fabric(SIX).lut - fabric(other).lut == sums * one_sum + packed - taken_apart


PINS = MappingProxyType({"dsp_products": 6, "chunk": 8, "save_rows": 1, "map_ports": 1, "weight_ports": 1})


def test_explore_and_saved_schedule_keep_six_products() -> None:
    found = explore(FIRST, ZCU104, 300, SystolicOptions(array="4x24x8", pins=PINS))
    array = found.schedule.array
    assert (array.dsp_products, array.mac_dsps) == (6, 4 * 24 * 8 // 3)
    saved = to_json(found.schedule)
    assert from_json(saved, FIRST).array == array
    assert from_json(saved.replace(',\n  "dsp_products": 6', ""), FIRST).array == replace(array, dsp_products=0)
    with raises(MismatchError, what="--dsp-products", got=0, expected=6):
        explore(FIRST, ZCU104, 300, SystolicOptions(schedule=saved, pins={"dsp_products": 0}))


def test_rtl_six_products_require_columns_in_threes() -> None:
    with raises_among(InvalidValueError, what="columns", got=16):
        explore(FIRST, ZCU104, 300, SystolicOptions(array="4x16x8", pins=PINS))
    found = explore(FIRST, ZCU104, 300, SystolicOptions(pins={**PINS, "rows": 2, "lanes": 8}))
    assert found.schedule.array.columns % 3 == 0


def test_search_uses_partial_channel_blocks_without_joined_maps() -> None:
    found = explore(FIRST, ZCU104, 300, SystolicOptions(array="4x24x16", pins=PINS))
    assert (found.schedule.array.columns, found.schedule.array.tile_blocks) == (24, 2)
    assert from_json(to_json(found.schedule), FIRST).array == found.schedule.array
    with raises(InvalidValueError, what="columns", got=24, nearest=(16, 32), where="add"):
        explore(NETWORKS["moved"](4), ZCU104, 300, SystolicOptions(array="4x24x16", pins=PINS))
    with raises_among(InvalidValueError, what="columns", got=24, nearest=(16, 32)):
        explore(FIRST, ZCU104, 300, SystolicOptions(array="4x24x16", pins={**PINS, "dsp_products": 0}))


PLANTED = {
    "wrong half of a block": ("arrange.sv", "chunks[out_half].odd ? {1'b1", "!chunks[out_half].odd ? {1'b1"),
    "no shift by half a block": (
        "arrange.sv",
        "HALF_BLOCKS && chunk.odd) lane_results",
        "0 == 1 && chunk.odd) lane_results",
    ),
    "one pitch for all tiles": (
        "plan_chunks.sv",
        "odd ? tile_pitch : shared_pitch",
        "shared_pitch",
    ),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", PLANTED)
def test_rtl_six_products_defect_changes_the_result(engines: Path, name: str) -> None:
    module, right, wrong = PLANTED[name]
    write(design_of(FIRST, HALF), engines / name)
    text = (engines / name / "src" / module).read_text("utf-8")
    assert text.count(right) == 1
    (engines / name / "src" / module).write_text(text.replace(right, wrong), "utf-8")
    assert simulate(open_design(engines / name), picture_for(FIRST, 6)).mismatches > 0


def test_rtl_six_products_without_support_are_refused() -> None:
    narrow, pynq = SystolicOptions(pins=PINS, engine=RTL), load("pynq-z2")
    with raises(UnsupportedError, subject="6 products per DSP48E1"):
        explore(FIRST, pynq, 100, narrow)
    wide = Builder(3, 9, 9, seed=1, bits=8).conv(8, 3).network()
    with raises_among(RangeError, where="conv1", what="the number of bits of weights", got=8, high=4):
        explore(wide, ZCU104, 300, narrow)
    layers = lower(FIRST)
    check_products(FIRST, layers, "DSP48E2", 6)
    weights = layers[1].weights.copy()
    weights[0, 0, 0, 0] = -8
    least = [layers[0], replace(layers[1], weights=weights)]
    with raises_among(RangeError, where=layers[1].name, what="the number of bits of weights", got=5, high=4):
        check_products(FIRST, least, "DSP48E2", 6)
    check_products(FIRST, least, "DSP48E2", 0)
