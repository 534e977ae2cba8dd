"""Test C++ designs with six 4-bit products per DSP: every integer matches the golden model, and DSPs match the
estimate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from boards.board import load
from boards.errors import InvalidValueError
from cnn.quantized import QuantizedNetwork
from contract.geometry import ENGINES, HLS, RTL
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import ddr_timing
from scheduler.hardware.primitives import shift_luts
from scheduler.systolic.area.memories import PORT_BUFFERS
from scheduler.systolic.area.resources import fixed, used_by
from scheduler.systolic.array import Array
from scheduler.systolic.engines.hls.fifos import WAIT_DEPTH
from scheduler.systolic.layers import lower
from scheduler.systolic.schedule_file import to_json
from systolic.checking.design import check_design
from systolic.execution.build import Variant
from systolic.files import DesignFiles, write
from systolic.model import DesignInputs
from systolic.styles.systolic.exploration import explore
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.options import SystolicOptions
from systolic.styles.systolic.simulate import open_design, simulate
from tests.support.accelerators import picture_for
from tests.support.arrays.added_maps import residual
from tests.support.arrays.joins import ARRAYS, NETWORKS
from tests.support.errors import raises
from tests.support.quantised import Builder
from tests.support.rtl.engines import design_of as rtl_design_of
from tests.support.schedules import first_fit, staying, with_on_chip
from tests.support.traced import load_into
from tests.support.traced_cycles import traced_cycles

ZCU104 = load("zcu104")
SIX = replace(ARRAYS["4 bits"], columns=24, weight_words=1, save_rows=2, dsp_products=6, map_depth=512)
HALF = replace(SIX, lanes=16, map_ports=2)
"""An array with one and a half channel blocks per channel tile."""
FIRST = Builder(3, 9, 9, seed=1, bits=4).conv(60, 3).conv(26, 3).network()


def design_of(network: QuantizedNetwork, array: Array, stay: bool = False) -> DesignFiles:
    """Return the files of a design on the array. With ``stay``, each map that may be on chip and fits is on chip."""
    schedule = first_fit(network, array)
    if stay:
        stays = staying(network, [scheduled.layer for scheduled in schedule.layers], array)
        schedule = with_on_chip(schedule, stays)
    mapping = price(schedule, ZCU104, ddr_timing(ZCU104, 300))
    return generate(mapping, DesignInputs({}, picture_for(network, 5)))


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for compiled engines, which the tests share."""
    return tmp_path_factory.mktemp("six")


@pytest.mark.engine
@pytest.mark.parametrize("ap_int", [False, True], ids=["native", "ap_int"])
@pytest.mark.parametrize("stay", [False, True], ids=["in DDR", "on chip"])
@pytest.mark.parametrize("name", NETWORKS)
def test_hls_six_products_match_golden_model(engines: Path, name: str, stay: bool, ap_int: bool) -> None:
    network = NETWORKS[name](4)
    design = load_into(engines / "six", design_of(network, SIX, stay))
    result = simulate(design, picture_for(network, 6), Variant(ap_int=ap_int))
    assert [layer.name for layer in result.layers if layer.mismatches] == []


@pytest.mark.engine
@pytest.mark.parametrize("ap_int", [False, True], ids=["native", "ap_int"])
@pytest.mark.parametrize("stay", [False, True], ids=["in DDR", "on chip"])
@pytest.mark.parametrize("name", ["first", *NETWORKS])
def test_hls_six_products_in_partial_channel_blocks_match_golden_model(
    engines: Path, name: str, stay: bool, ap_int: bool
) -> None:
    network = NETWORKS[name](4) if name in NETWORKS else FIRST
    if any(layer.combines_maps for layer in lower(network)):
        with raises(InvalidValueError, what="columns", got=24):
            design_of(network, HALF, stay)
        return
    design = load_into(engines / "half", design_of(network, HALF, stay))
    result = simulate(design, picture_for(network, 6), Variant(ap_int=ap_int))
    assert [layer.name for layer in result.layers if layer.mismatches] == []


@pytest.mark.engine
@pytest.mark.parametrize("ap_int", [False, True], ids=["native", "ap_int"])
def test_hls_six_products_with_residual_adds_match_golden_model(engines: Path, ap_int: bool) -> None:
    network = residual(4)
    array = replace(SIX, added_maps=True)
    design = load_into(engines / "added", design_of(network, array))
    assert any(layer.added for layer in lower(network, fused=True))
    result = simulate(design, picture_for(network, 6), Variant(ap_int=ap_int))
    assert [layer.name for layer in result.layers if layer.mismatches] == []
    with raises(InvalidValueError, what="columns", got=24):
        design_of(network, replace(HALF, added_maps=True))


PLANTED = {
    "wrong half of a block": (
        "save.h",
        "chunk.odd != 0 || block < TILE_BLOCKS - 1",
        "chunk.odd == 0 || block < TILE_BLOCKS - 1",
    ),
    "no shift by half a block": ("save.h", "in.odd != 0, words[r]", "false, words[r]"),
    "one pitch for all tiles": ("save.h", "shared ? shared_pitch : tile_pitch", "shared_pitch"),
    "no 64 in the fields": ("six_products.h", "+ six_sum_t(SIX_OFFSETS)", "+ six_sum_t(0)"),
    "sum without the third number": ("six_products.h", "ternary_sum += numbers[3 * i + 2]", "ternary_sum += 0"),
    "upper nibbles multiplied by 8": ("six_products.h", "sum_t(odd * 16)", "sum_t(odd * 8)"),
    "same weights for all columns": (
        "six_products.h",
        "w[c] = weights.value[l * COLUMNS + n + c]",
        "w[c] = weights.value[l * COLUMNS + n]",
    ),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", PLANTED)
def test_hls_six_products_defect_changes_the_result(engines: Path, name: str) -> None:
    header, right, wrong = PLANTED[name]
    folder = engines / name.replace(" ", "-")
    write(design_of(FIRST, HALF), folder)
    text = (folder / "src" / header).read_text("utf-8")
    assert text.count(right) == 1
    (folder / "src" / header).write_text(text.replace(right, wrong), "utf-8")
    ap_int = header == "six_products.h"
    assert simulate(open_design(folder), picture_for(FIRST, 6), Variant(ap_int=ap_int)).mismatches > 0


def test_hls_six_products_use_the_images_of_the_rtl_engine() -> None:
    """Expect weights, requantisers and the program in the layout that the SystemVerilog engine reads."""
    designs = [design_of(FIRST, array).files for array in (HALF, replace(HALF, dsp_registers=True))]
    other = rtl_design_of(FIRST, HALF).files
    for name in ("data/weights_0.bin", "data/requantisers.bin", "data/program.bin"):
        assert designs[0][name] == designs[1][name] == other[name]


CHANGED = {"feed_weights", "pe_row", "last_pe_row", "plan_chunks", "arrange", "write_rows<0>"}
"""The processes that use six products per DSP, or write halves of words."""


@pytest.mark.engine
def test_hls_six_products_pass_the_check(tmp_path: Path) -> None:
    """Run ``systolic check`` at 300 MHz, with whole and with partial channel blocks."""
    for name, array in {"six": SIX, "half": HALF}.items():
        array = replace(
            array, table_depth=0, table_slopes=False, late_offsets=0, windows=False, map_products=False, upscale=1
        )
        write(design_of(FIRST, array, stay=True), tmp_path / name)
        report = check_design(tmp_path / name, 300)
        loops = [loop for loop in report.loops if loop.process in CHANGED]
        assert {loop.process for loop in loops} == CHANGED
        assert all(loop.holds and not loop.deeper for loop in loops), report.text()
        assert all(row.holds for row in report.memories), report.text()
        assert all(row.holds for row in report.dsps), report.text()
        rows = {row.process: row for row in report.dsps}
        assert rows["pe_row"].derived + rows["last_pe_row"].derived == array.mac_dsps


@pytest.mark.engine
def test_hls_six_products_take_the_cycles_of_four(engines: Path) -> None:
    """Trace the same number of PEs, built from two thirds of the DSPs. The weights are sent one cycle later."""
    cycles = {}
    for products in (0, 6):
        array = replace(SIX, dsp_products=products)
        opened = load_into(engines / f"{products}-products", design_of(FIRST, array, stay=True))
        cycles[products] = traced_cycles(opened)
    assert abs(cycles[6] - cycles[0]) <= 20
    assert 3 * SIX.mac_dsps == 2 * replace(SIX, dsp_products=0).mac_dsps


def test_explore_gives_cpp_fifos_and_rtl_registers_for_weights() -> None:
    pins = {"dsp_products": 6, "chunk": 8, "save_rows": 1, "map_ports": 1, "weight_ports": 1}
    found = {
        engine: explore(FIRST, ZCU104, 300, SystolicOptions(array="4x24x8", pins=pins, engine=engine))
        for engine in ENGINES
    }
    arrays = {engine: mapping.schedule.array for engine, mapping in found.items()}
    assert [array.dsp_registers for array in arrays.values()] == [0, 1]
    bits = arrays[RTL].sum_bits
    assert bits < arrays[HLS].sum_bits
    assert replace(arrays[HLS], dsp_registers=True, engine=RTL, sum_bits=bits) == arrays[RTL]
    fifos = {
        engine: [
            used_by(fifo, array, fifo.impls[0], ZCU104).lut
            for fifo in fixed(array)
            if fifo.name == "weights" and fifo not in PORT_BUFFERS
        ]
        for engine, array in arrays.items()
    }
    # C++ has one FIFO per column of every row. SystemVerilog has one for all columns, before the first row, which
    # stores 14 bits in eight LUTs.
    assert fifos == {HLS: [24 * 4 * shift_luts(8 * 4, WAIT_DEPTH)], RTL: [8 * ceil_div(24 * 8 * 4, 14)]}
    saved = to_json(found[RTL].schedule)
    again = explore(FIRST, ZCU104, 300, SystolicOptions(schedule=saved))
    assert (again.schedule.array, again.usage) == (arrays[HLS], found[HLS].usage)
