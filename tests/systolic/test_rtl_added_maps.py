"""Test residual adds in the Saver of the SystemVerilog engine: every integer matches, with each map in DDR or on
chip."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from boards.board import load
from cnn.quantized import QuantizedNetwork
from contract.geometry import ENGINES, HLS, RTL
from contract.program import names_of
from host.contract.libraries import StoppedError
from rtl_templates.sources import WRAPPER
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.network.copies import with_copies
from systolic.execution.build import build
from systolic.execution.verilate import verilate
from systolic.files import write
from systolic.model import DesignInputs
from systolic.styles.systolic.exploration import explore, front, ways_to_add
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.options import SystolicOptions
from systolic.styles.systolic.simulate import SystolicDesign, open_design, simulate
from tests.support.accelerators import picture_for
from tests.support.arrays.added_maps import NETWORKS, residual, stage
from tests.support.arrays.built_in import quantised
from tests.support.quantised import Builder
from tests.support.rtl.engines import ARRAYS, FIRST, design_of
from tests.support.schedules import first_fit, staying, with_on_chip
from tests.support.tcl import run_tcl
from tests.support.traced import load_into

ZCU104 = load("zcu104")
ADDING = {bits: replace(array, added_maps=True) for bits, array in ARRAYS.items()}


def last(bits: int) -> QuantizedNetwork:
    """Return a network whose last sum is the host's output, and adds a map that stays on chip."""
    build = Builder(3, 11, 9, seed=7, bits=bits).conv(16, 3).conv(16, 3).conv(16, 3)
    return build.add(1, 3, slope=1).network()


BLOCKS: Mapping[str, Callable[[int], QuantizedNetwork]] = {**NETWORKS, "stage": partial(stage, 16, 13), "last": last}
WAYS = {(False, False), (False, True), (True, False), (True, True)}
"""Pairs of booleans: the other map is read from chip, and the sum is written to chip."""


@pytest.fixture
def engine(engines: Path) -> Iterator[SystolicDesign]:
    """Yield a design with blocks of a ResNet on the 8-bit engine, and restore its delays and its initial state."""
    design = load_into(engines / "8", design_of(residual(), ADDING[8], stay=True))
    library = ctypes.CDLL(str(build(design.path)))
    yield design
    library.systolic_delays(0)
    library.systolic_begins(1)


def ways_of(design: SystolicDesign) -> set[tuple[bool, bool]]:
    """Return the pairs of WAYS that the design's adding layers use."""
    names = names_of(design.manifest.array)
    adding = [design.program[layer.first_pass] for layer in design.manifest.layers if layer.added_node is not None]
    assert all(words[names.index("added_words")] for words in adding)
    return {(bool(words[names.index("added_buffer")]), bool(words[names.index("out_buffer")])) for words in adding}


def wrong_layers(design: SystolicDesign, network: QuantizedNetwork) -> list[str]:
    """Return the names of the layers with mismatches."""
    return [layer.name for layer in simulate(design, picture_for(network, 6)).layers if layer.mismatches]


@pytest.mark.engine
@pytest.mark.parametrize("bits", ADDING)
def test_rtl_residual_adds_match_golden_model_in_every_way(engines: Path, bits: int) -> None:
    """Use blocks of a ResNet and of darknet53, and sums after pools and tables."""
    ways: set[tuple[bool, bool]] = set()
    for name, made in BLOCKS.items():
        network = with_copies(made(bits), True)
        for stay in (False, True):
            design = load_into(engines / str(bits), design_of(network, ADDING[bits], stay))
            assert wrong_layers(design, network) == [], (name, stay)
            ways |= ways_of(design)
    assert ways == WAYS


@pytest.mark.engine
def test_rtl_residual_adds_in_batch_match_golden_model(engines: Path) -> None:
    """Run the frames of a batch one after another, each of which adds its own map."""
    network, array = residual(), ADDING[8]
    mapping = price(first_fit(network, replace(array, engine=RTL), 3), ZCU104, ddr_timing(ZCU104, 300))
    design = load_into(engines / "8", generate(mapping, DesignInputs({}, picture_for(network, 5))))
    assert wrong_layers(design, network) == []


@pytest.mark.engine
def test_rtl_residual_adds_of_resnet8_save_cycles(engines: Path) -> None:
    cycles = {}
    for folder, array in (("8", ADDING[8]), ("alone", ARRAYS[8])):
        network = with_copies(quantised("resnet8", None), array.added_maps > 0)
        # These are the same sources as in other tests, so they are compiled once.
        load_into(engines / folder, design_of(FIRST, array))
        design = load_into(engines / folder, design_of(network, array, stay=True))
        assert bool(ways_of(design)) == (array.added_maps > 0)
        simulation = simulate(design, picture_for(network, 3))
        assert [layer.name for layer in simulation.layers if layer.mismatches] == []
        cycles[folder] = sum(simulation.cycles)
    assert cycles["8"] < cycles["alone"]


@pytest.mark.engine
def test_rtl_residual_adds_with_doubled_dsp_clock_match_golden_model(engines: Path) -> None:
    network = residual()
    design = load_into(engines / "doubled", design_of(network, replace(ADDING[8], dsp_clock=2), stay=True))
    assert len(ways_of(design)) > 1
    assert wrong_layers(design, network) == []


@pytest.mark.engine
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rtl_residual_adds_with_random_ddr_delays_match_golden_model(engine: SystolicDesign, seed: int) -> None:
    quick = simulate(engine, picture_for(residual(), 6))
    ctypes.CDLL(str(build(engine.path))).systolic_delays(seed)
    slow = simulate(engine, picture_for(residual(), 6))
    assert quick.mismatches == slow.mismatches == 0
    assert sum(slow.cycles) > sum(quick.cycles)


@pytest.mark.engine
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_rtl_residual_adds_with_random_initial_state_match_golden_model(engine: SystolicDesign, seed: int) -> None:
    usual = simulate(engine, picture_for(residual(), 6))
    ctypes.CDLL(str(build(engine.path))).systolic_begins(seed)
    other = simulate(engine, picture_for(residual(), 6))
    assert other.mismatches == 0
    assert other.cycles == usual.cycles


@pytest.mark.engine
def test_rtl_pass_waits_for_write_responses_of_sums(engines: Path) -> None:
    """Plant an engine that does not wait. It is stopped, because DDR does not order a write and a read of two ports."""
    network = residual()
    folder = engines / "unanswered"
    write(design_of(network, ADDING[8]), folder)
    path = folder / "src/engine.sv"
    text = path.read_text("utf-8")
    assert text.count("(&writes_done) &&") == 1
    path.write_text(text.replace("(&writes_done) &&", "(&(writes_done | (SAVE_PORTS'(1) << MAP_PORTS))) &&"), "utf-8")
    with pytest.raises(StoppedError, match=r"port maps_\d: a read at \d+ overlaps a write of port maps_1 that is not"):
        simulate(open_design(folder), picture_for(network, 6))


GEOMETRIES = {
    **{f"{bits} bits": array for bits, array in ADDING.items()},
    "four ports": replace(ADDING[8], rows=5, columns=8, map_ports=4, save_rows=2),
    "no map buffer": replace(ADDING[8], map_depth=0),
    "DSP48E1": replace(ADDING[8], dsp="DSP48E1"),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", GEOMETRIES)
def test_rtl_residual_adds_lint_has_no_complaint(engines: Path, tmp_path: Path, name: str) -> None:
    array = GEOMETRIES[name]
    write(design_of(residual(array.bits), array), tmp_path / "design")
    verilate(tmp_path / "design", tmp_path / "none", lint=True)


@pytest.mark.proof
def test_rtl_residual_adds_slang_has_no_complaint(tmp_path: Path) -> None:
    pytest.importorskip("pyslang", reason="the second front-end is slang: pip install 'systolic-cnn[proof]'")
    from tests.support.rtl.slang import complaints

    for name, array in GEOMETRIES.items():
        write(design_of(residual(array.bits), array), tmp_path / name)
        assert complaints(tmp_path / name) == ""


@pytest.mark.engine
def test_rtl_residual_adds_are_packaged_by_vivado_script(engines: Path, tmp_path: Path) -> None:
    """Check that the wrapper has the ports of the top, and run the script that packages the IP, with stubs."""
    write(design_of(residual(), ADDING[8]), tmp_path / "design")
    sources = tmp_path / "wrapped/src"
    sources.mkdir(parents=True)
    for path in (*(tmp_path / "design/src").glob("*.sv"), tmp_path / "design/simulation/DSP48E2.sv"):
        shutil.copy(path, sources)
    wrapper = (tmp_path / f"design/src/{WRAPPER}.v").read_text("utf-8")
    assert "m_axi_maps_1_AWVALID" in wrapper
    (sources / f"{WRAPPER}.sv").write_text(wrapper, "utf-8")
    verilate(tmp_path / "wrapped", tmp_path / "none", WRAPPER, lint=True)
    script = (tmp_path / "design/package_ip.tcl").read_text("utf-8")
    ran = run_tcl(tmp_path / "design", "package_ip.tcl", script)
    assert ran.rc == 0, ran.out
    assert ran.named("ipx::save_core")


# --- the search, and both engines compared ----------------------------------------------------------------------------


def test_residual_adds_use_the_same_images_in_both_engines() -> None:
    """Expect the same weights, requantisers and program, and the same addresses of registers."""
    network = residual()
    schedule = first_fit(network, ADDING[8])
    layers = [scheduled.layer for scheduled in schedule.layers]
    schedule = with_on_chip(schedule, staying(network, layers, ADDING[8]))
    made = {}
    for engine in ENGINES:
        of_engine = replace(schedule, array=replace(schedule.array, engine=engine))
        mapping = price(of_engine, ZCU104, ddr_timing(ZCU104, 300))
        made[engine] = generate(mapping, DesignInputs({}, picture_for(network, 5))).files
    for name in ("data/weights_0.bin", "data/requantisers.bin", "data/program.bin"):
        assert made[HLS][name] == made[RTL][name]
    assert b"maps_read_1" in made[RTL]["systolic.hwh"]
    assert b"localparam int PASS_WORDS = 73;" in made[RTL]["src/systolic_geometry.sv"]


def test_rtl_without_residual_adds_has_no_logic_for_them() -> None:
    """Expect no field of a pass, no port and no register for residual adds."""
    plain = design_of(residual(), ARRAYS[8]).files
    assert b"added_words" not in plain["src/systolic_geometry.sv"]
    assert b"localparam int PASS_WORDS = 64;" in plain["src/systolic_geometry.sv"]
    for name in ("src/systolic_top.sv", "src/control_slave.sv", "src/systolic_top_ip.v", "systolic.hwh"):
        assert b"maps_1" not in plain[name]
        assert b"maps_read_1" not in plain[name]


PINS = {"chunk": 16, "save_rows": 2, "map_ports": 1, "weight_ports": 1}


@pytest.mark.engine
@pytest.mark.parametrize("dsp_clock", [1, 2])
def test_rtl_search_fuses_residual_adds_as_for_cpp(dsp_clock: int) -> None:
    network = stage(16, 12)
    options = SystolicOptions(array="4x8x8", pins={**PINS, "dsp_clock": dsp_clock}, engine=RTL)
    assert ways_to_add(network, options) == ways_to_add(network, SystolicOptions()) == (True, False)
    found = explore(network, ZCU104, 300, options)
    assert found.schedule.array.added_maps == 1
    if dsp_clock == 1:
        other = explore(network, ZCU104, 300, replace(options, engine=HLS)).schedule.array
        bits = found.schedule.array.sum_bits
        assert found.schedule.array == replace(other, engine=RTL, sum_bits=bits)
        assert bits < other.sum_bits
    own = explore(network, ZCU104, 300, replace(options, pins={**options.pins, "added_maps": 0}))
    assert own.schedule.array.added_maps == 0
    assert found.cost.cycles < own.cost.cycles
    assert {point.schedule.array.added_maps for point in front(network, ZCU104, 300, options).points} == {1}
