"""Test designs whose DSPs run at twice the fabric's clock: the same integers and cycles from half of the DSPs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from boards.board import load
from boards.errors import ChoiceError, ConflictError, MismatchError, RangeError
from contract.geometry import RTL
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.model.clock import check_dsp_clock, highest_mhz
from scheduler.systolic.schedule_file import from_json, to_json
from scheduler.systolic.search.space import ports_fit
from systolic.cli.main import main
from systolic.execution.verilate import verilate
from systolic.model import DesignInputs
from systolic.styles.systolic.exploration import explore
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.options import SystolicOptions
from systolic.styles.systolic.simulate import simulate
from tests.support.accelerators import networks, picture_for
from tests.support.arrays.joins import NETWORKS
from tests.support.errors import raises, raises_among
from tests.support.rtl.engines import ARRAYS, FIRST, SMALL, design_of
from tests.support.schedules import first_fit
from tests.support.tolerance import missed_layers
from tests.support.traced import load_into

ZCU104 = load("zcu104")
DOUBLED = replace(SMALL, rows=3, dsp_clock=2)


@pytest.mark.engine
@pytest.mark.parametrize("name", ["pools", "no pool"])
def test_doubled_dsp_clock_matches_golden_model_in_the_same_cycles(engines: Path, name: str) -> None:
    network = networks().get(name, FIRST)
    counted = {}
    for dsp_clock in (1, 2):
        array = replace(DOUBLED, dsp_clock=dsp_clock)
        design = load_into(engines / f"clock {dsp_clock}", design_of(network, array, stay=True))
        simulation = simulate(design, picture_for(network, 5))
        assert [layer.name for layer in simulation.layers if layer.mismatches] == []
        assert missed_layers(design, simulation) == []
        counted[dsp_clock] = simulation.cycles
    assert all(abs(a - b) <= 10 for a, b in zip(counted[1], counted[2], strict=True))
    assert DOUBLED.mac_dsps == replace(DOUBLED, dsp_clock=1).mac_dsps // 2


@pytest.mark.engine
@pytest.mark.parametrize("bits", [4, 16])
def test_doubled_dsp_clock_with_other_bits_matches_golden_model(engines: Path, bits: int) -> None:
    array = replace(ARRAYS[bits], dsp_clock=2)
    for name in sorted(NETWORKS)[:3]:
        network = NETWORKS[name](bits)
        simulation = simulate(load_into(engines / str(bits), design_of(network, array)), picture_for(network, 6))
        assert [layer.name for layer in simulation.layers if layer.mismatches] == []


@pytest.mark.engine
def test_doubled_dsp_clock_lint_has_no_complaint(engines: Path) -> None:
    load_into(engines / "lint", design_of(FIRST, DOUBLED))
    verilate(engines / "lint", engines / "none", lint=True)


def test_doubled_dsp_clock_adds_a_second_clock_port() -> None:
    single, doubled = (design_of(FIRST, replace(SMALL, dsp_clock=clock)).files for clock in (1, 2))
    top, harness = "src/systolic_top.sv", "simulation/simulate.cpp"
    assert b"input logic ap_clk_2x" in doubled[top]
    assert b"ap_clk_2x" in doubled[harness]
    assert b"localparam int DSP_CLOCK = 2;" in doubled["src/systolic_geometry.sv"]
    assert b"_2x" not in single[top] + single[harness]
    assert b"its DSPs at" in doubled[top]


def test_doubled_dsp_clock_for_cpp_engine_is_refused() -> None:
    mapping = price(first_fit(FIRST, DOUBLED), ZCU104, ddr_timing(ZCU104, 300))
    with raises(ConflictError, subjects=("--engine hls", "--dsp-clock 2")):
        generate(mapping, DesignInputs({}, picture_for(FIRST, 5)))


def test_doubled_dsp_clock_above_the_limit_is_refused() -> None:
    board = load("pynq-z2")
    check_dsp_clock(board, 200, 2)
    check_dsp_clock(ZCU104, 333, 2)
    with raises(RangeError, got=250, high=232, where="PYNQ-Z2 (xc7z020clg400-1)"):
        check_dsp_clock(board, 250, 2)
    assert (highest_mhz(board, 1), highest_mhz(board, 2), highest_mhz(ZCU104, 2)) == (250, 232, 333)
    options = SystolicOptions(pins={"dsp_clock": 2}, engine=RTL)
    with raises(RangeError, high=232, remedy="take a lower clock, or dsp_clock 1"):
        explore(FIRST, board, 250, options)
    assert explore(FIRST, board, None, replace(options, array="2x8x8", pins=PINS)).clock_mhz <= 232


@pytest.mark.engine
def test_compare_shows_both_dsp_clocks(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "shapes", "--array", "2x8x8", "--clock", "300", "--dsp-clock", "1", "--dsp-clock", "2"]
    assert main([*command, "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["asked"].endswith(f"dsp_clock {clock}") for row, clock in zip(rows, (1, 2), strict=True)] == [True] * 2
    single, doubled = (row["schedule"]["usage"]["dsp"] for row in rows)
    assert single - doubled == 2 * 8 * 8 // 2 // 2
    assert main([*command, "--engine", "hls"]) == 2
    assert "--engine hls and --dsp-clock 2 exclude each other" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.parametrize("name", ["schedule", "pareto"])
def test_search_with_doubled_dsp_clock_uses_the_rtl_engine(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [name, "shapes", "--array", "2x8x8", "--clock", "300", "--dsp-clock", "2"]
    assert main([*command, "--engine", "hls"]) == 2
    assert "add --engine rtl, or remove --dsp-clock" in capsys.readouterr().err
    dsps = []
    for engine in ([], ["--engine", "rtl"]):
        assert main([*command, *engine, "--json", "-"]) == 0
        found = json.loads(capsys.readouterr().out)
        dsps.append((found["points"][0] if name == "pareto" else found)["usage"]["dsp"])
    assert main([*command[:-2], "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert dsps[0] == dsps[1] < (found["points"][0] if name == "pareto" else found)["usage"]["dsp"]


PINS = {"dsp_clock": 2, "chunk": 8, "save_rows": 1, "map_ports": 1, "weight_ports": 1}


def test_explore_and_saved_schedule_keep_the_dsp_clock() -> None:
    found = explore(FIRST, ZCU104, 300, SystolicOptions(array="4x16x16", pins=PINS))
    array = found.schedule.array
    assert (array.dsp_clock, array.mac_dsps, found.usage.dsp >= 256) == (2, 4 * 16 * 16 // 4, True)
    saved = to_json(found.schedule)
    assert from_json(saved, FIRST).array == array
    before = saved.replace(',\n  "dsp_clock": 2', "")
    assert from_json(before, FIRST).array == replace(array, dsp_clock=1)
    with raises(MismatchError, what="--dsp-clock", got=1, expected=2):
        explore(FIRST, ZCU104, 300, SystolicOptions(schedule=saved, pins={"dsp_clock": 1}))
    with raises_among(ChoiceError, what="dsp_clock", got=3, choices=(1, 2)):
        explore(FIRST, ZCU104, 300, SystolicOptions(pins={"dsp_clock": 3}))
    assert SystolicOptions(pins=PINS).fused == (True, False)


def test_ports_fit_all_maps_and_weights_at_doubled_dsp_clock() -> None:
    six = replace(DOUBLED, map_ports=2, weight_ports=4)
    assert (ports_fit(six, ZCU104), ports_fit(replace(six, dsp_clock=1), ZCU104)) == (True, False)
    assert not ports_fit(replace(six, map_ports=4), ZCU104)
