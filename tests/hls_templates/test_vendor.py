"""Files for the vendor's tools: the Tcl runs under tclsh with every command recorded, the test bench under g++."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from boards.board import load
from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError, UnsupportedError
from boards.facts import Port
from cnn.datatype import INT8, UINT8, DataType, TensorType
from cnn.integer_model import run_integer
from cnn.maps import Padding, Shape
from cnn.ops import QConvolution, QInput
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Requantiser
from contract.geometry import PIXEL_BYTES
from hls_templates.streaming.sources import Packet
from hls_templates.systolic.sources import systolic_simulation, systolic_sources
from hls_templates.vendor.block_design import dma_config, port_plan
from hls_templates.vendor.files import vendor_files
from hls_templates.vendor.hwh import hardware_description
from hls_templates.vendor.ports import DmaPackets, Output, Ports, StreamingPorts, SystolicPorts
from hls_templates.vendor.registers import bundles
from hls_templates.vendor.values import PS_KINDS, Figure, VendorValues, word
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.program.emit import Program, emit
from scheduler.systolic.program.maps import MapRegion
from systolic.styles.systolic.generation.generate import systolic_values
from systolic.styles.systolic.mapping import price
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.kinds import as_kind
from tests.support.schedules import first_fit
from tests.support.tcl import (
    HOLD,
    MET,
    MISSED,
    PLACE,
    WORSE,
    Ran,
    dictionary,
    hls,
    interfaces,
    option,
    run_tcl,
    vivado,
)
from tests.support.vendor_types import vendor_types
from tests.support.vendor_values import BOTH, CLOCKS, HOSTILE, SMUGGLED, STYLES, edited, streams, systolic

VLNV = "systolic:cnn:systolic_top:1.0"
DOCUMENTED = Path(__file__).parent / "kernels" / "documented"
Integers = npt.NDArray[np.int8]


def values(board: str = "zcu104", ports: Ports = BOTH[0]) -> VendorValues:
    facts = load(board)
    return VendorValues(
        title="tiny on a 4×8×8 systolic array",
        board=facts,
        clock=facts.nearest_clock(CLOCKS[board]),
        ports=ports,
        sources=("src/top.cpp", "src/top.h"),
    )


# --- Vitis HLS ---------------------------------------------------------------------------------------------


def test_hls_exports_the_ip_name_that_the_host_expects(tmp_path: Path) -> None:
    ran = hls(tmp_path, values())
    assert ran.rc == 0, ran.out
    export = dict(zip(*[iter(ran.one("export_design"))] * 2, strict=True))
    assert ":".join(export[f"-{key}"] for key in ("vendor", "library", "ipname", "version")) == VLNV
    assert values().ports.vlnv == VLNV
    assert export["-format"] == "ip_catalog"
    assert ran.one("set_top") == ["systolic_top"]
    assert ran.one("set_part") == ["xczu7ev-ffvc1156-2-e"]
    assert ran.one("config_interface") == ["-m_axi_addr64=true"]
    assert float(ran.one("create_clock")[1]) == pytest.approx(1000 / 300, abs=1e-5)


def test_hls_adds_sources_test_bench_and_the_folder_of_headers(tmp_path: Path) -> None:
    files = hls(tmp_path, replace(values(), sources=("src/top.cpp", "more/b.cpp", "src/top.h"))).named("add_files")
    assert [call[-1] for call in files] == [f"{tmp_path}/{n}" for n in ("src/top.cpp", "more/b.cpp", "test_bench.cpp")]
    assert ["-tb" in call for call in files] == [False, False, True]
    for call in files:
        flags = call[call.index("-cflags") + 1].split()
        assert {f"-I{tmp_path}/src", f"-I{tmp_path}/more", "-DSYSTOLIC_AP_INT"} <= set(flags)


@cases(
    "arguments, settings, wanted",
    [
        ([], {}, ["csim", "csynth", "export"]),
        (["csim"], {}, ["csim"]),
        (["-f", "run_hls.tcl", "-tclargs", "synth", "cosim"], {}, ["csynth", "cosim"]),
        ([], {"SYSTOLIC_STEPS": " synth  export "}, ["csynth", "export"]),
    ],
)
def test_hls_runs_the_requested_steps(
    arguments: list[str], settings: dict[str, str], wanted: list[str], tmp_path: Path
) -> None:
    ran = hls(tmp_path, values(), *arguments, **settings)
    assert ran.rc == 0, ran.out
    assert [c[0].removesuffix("_design") for c in ran.calls if c[0].endswith("_design")] == wanted
    assert ("-reset" in ran.one("open_project")) == ("csynth" in wanted)


def test_hls_passes_the_data_folder_to_the_test_bench(tmp_path: Path) -> None:
    ran = hls(tmp_path, values(), "csim", "synth", "cosim")
    assert ran.one("csim_design") == ["-argv", f"{tmp_path}/data"]
    assert ran.one("cosim_design") == ["-argv", f"{tmp_path}/data apart"]


def test_hls_exports_a_streaming_ip_and_runs_its_test_bench(tmp_path: Path) -> None:
    ran = hls(tmp_path, values("zcu104", streams()), "csim", "synth", "cosim", "export")
    assert ran.rc == 0, ran.out
    assert ran.one("set_top") == ["streaming_top"]
    assert ran.one("cosim_design") == ran.one("csim_design") == ["-argv", f"{tmp_path}/data"]
    assert option(ran.one("export_design"), "-ipname") == "streaming_top"


def test_hls_wrong_step_folder_or_result_ends_with_a_sentence(tmp_path: Path) -> None:
    unknown = hls(tmp_path, values(), "simulate")
    assert (unknown.rc, unknown.calls) == (1, ())
    assert "a step is one of csim, synth, cosim, export, not 'simulate'" in unknown.out
    spaces = hls(tmp_path / "my designs", values())
    assert (spaces.rc, spaces.calls) == (1, ())
    assert "move the folder out of" in spaces.out
    failed = hls(tmp_path, values(), STUB_FAIL="csim_design")
    assert failed.rc == 1
    assert "run_hls.tcl: csim_design failed" in failed.out
    assert not failed.named("csynth_design")


# --- Vivado ------------------------------------------------------------------------------------------------


@cases("board", CLOCKS)
@cases("ports", STYLES)
def test_vivado_connects_every_master_to_its_planned_port(board: str, ports: Ports, tmp_path: Path) -> None:
    of = values(board, ports)
    ran = vivado(tmp_path, of, "design")
    assert ran.rc == 0, ran.out
    wires = interfaces(ran)
    ps = f"{load(board).ps.ip}_0"
    for use in port_plan(of):
        for master in use.masters:
            switch = wires[str(master)].split("/")[0]
            assert wires[f"{switch}/M00_AXI"] == f"{ps}/{use.port.name}"
    masters = [pin for call in ran.named("connect_bd_intf_net") for pin in call if re.search("/(m_axi|M_AXI)_", pin)]
    wanted = [f"{ports.cell}/m_axi_{bundle}" for bundle in bundles(ports.arguments)]
    wanted += [f"axi_dma_0/M_AXI_{way}" for way in ("MM2S", "S2MM") if isinstance(ports, StreamingPorts)]
    assert Counter(pin for pin in masters if not pin.startswith(ps)) == Counter(wanted)


def interconnects(ran: Ran, board: str) -> list[str]:
    kind = "axi_interconnect" if load(board).ps.ip == "processing_system7" else "smartconnect"
    return [call[-1] for call in ran.named("create_bd_cell") if f"xilinx.com:ip:{kind}" in call]


def pins_of(ran: Ran, board: str, plain: str) -> list[str]:
    """Return the clock or reset pins of all interconnects. An AXI Interconnect has one for itself and one per port."""
    if load(board).ps.ip != "processing_system7":
        return [f"{switch}/{plain}" for switch in interconnects(ran, board)]
    ports = [pin for call in ran.named("connect_bd_intf_net") for pin in call]
    found = []
    for switch in interconnects(ran, board):
        sides = [pin.removesuffix("_AXI") for pin in ports if re.fullmatch(rf"{switch}/[SM]\d\d_AXI", pin)]
        found += [f"{switch}/{plain.upper()}", *(f"{side}_{plain.upper()}" for side in sides)]
    return found


@cases("board", CLOCKS)
@cases("ports", STYLES[-3:])
def test_vivado_interconnect_has_as_many_ports_as_connections(board: str, ports: Ports, tmp_path: Path) -> None:
    ran = vivado(tmp_path, values(board, ports), "design")
    sides = Counter(re.sub(r"\d\d", "", pin) for call in ran.named("connect_bd_intf_net") for pin in call)
    switches = interconnects(ran, board)
    for switch in switches:
        (config,) = [dictionary(c[1]) for c in ran.named("set_property") if c[-1] == switch]
        assert int(config["CONFIG.NUM_SI"]) == sides[f"{switch}/S_AXI"] > 0
        assert int(config["CONFIG.NUM_MI"]) == sides[f"{switch}/M_AXI"] > 0


@cases("board", CLOCKS)
@cases("style", BOTH)
def test_vivado_drives_every_clock_and_reset_pin_once(board: str, style: Ports, tmp_path: Path) -> None:
    of = values(board, style)
    facts = load(board)
    ran = vivado(tmp_path, of, "design")
    ps = f"{facts.ps.ip}_0"
    nets = ran.named("connect_bd_net")
    clocked = [to for source, to in nets if source == f"{ps}/{facts.ps.clock}"]
    ports = [f"{ps}/{use.port.clock}" for use in port_plan(of)]
    assert Counter(clocked) == Counter(
        ["reset_0/slowest_sync_clk", f"{style.cell}/ap_clk", f"{ps}/{facts.control.clock}"]
        + SECOND_SLAVE[type(style)][0]
        + ports
        + pins_of(ran, board, "aclk")
    )
    reset = [to for source, to in nets if source == "reset_0/peripheral_aresetn"]
    assert Counter(reset) == Counter(
        [f"{style.cell}/ap_rst_n", SECOND_SLAVE[type(style)][1], *pins_of(ran, board, "aresetn")]
    )


SECOND_SLAVE = {
    SystolicPorts: (["axi_intc_0/s_axi_aclk"], "axi_intc_0/s_axi_aresetn"),
    StreamingPorts: (
        ["axi_dma_0/s_axi_lite_aclk", "axi_dma_0/m_axi_mm2s_aclk", "axi_dma_0/m_axi_s2mm_aclk"],
        "axi_dma_0/axi_resetn",
    ),
}
"""Clock pins and reset pin of the other blocks in the block design."""


@cases("board", CLOCKS)
def test_vivado_connects_the_interrupt_through_the_controller(board: str, tmp_path: Path) -> None:
    facts = load(board)
    ran = vivado(tmp_path, values(board), "design")
    nets = ran.named("connect_bd_net")
    assert ["systolic_top_0/interrupt", "axi_intc_0/intr"] in nets
    assert ["axi_intc_0/irq", f"{facts.ps.ip}_0/{facts.ps.interrupt}"] in nets
    assert ["-dict", "CONFIG.C_IRQ_CONNECTION 1", "axi_intc_0"] in ran.named("set_property")
    wires = interfaces(ran)
    assert wires["control/S00_AXI"] == f"{facts.ps.ip}_0/{facts.control.name}"
    assert {wires["control/M00_AXI"], wires["control/M01_AXI"]} == {"systolic_top_0/s_axi_control", "axi_intc_0/s_axi"}


@cases("board", CLOCKS)
@cases("ports", BOTH)
def test_registers_have_the_addresses_of_the_hardware_description(board: str, ports: Ports, tmp_path: Path) -> None:
    of = values(board, ports)
    ran = vivado(tmp_path, of, "design")
    fixed = [call for call in ran.named("assign_bd_address") if "-offset" in call]
    found = {
        call[-2].split("/")[0]: (int(option(call, "-offset"), 16), int(option(call, "-range"), 16)) for call in fixed
    }
    described = re.findall(r'BASEVALUE="(\w+)" HIGHVALUE="(\w+)" INSTANCE="(\w+)"', hardware_description(of))
    assert found == {cell: (int(base, 16), int(high, 16) - int(base, 16) + 1) for base, high, cell in described}
    assert found[ports.cell] == (load(board).control.base, 0x10000)
    assert {option(call, "-target_address_space") for call in fixed} == {f"{load(board).ps.ip}_0/Data"}


@pytest.mark.parametrize("ports", BOTH)
def test_vivado_assigns_masters_all_ddr_and_no_other_memory(ports: Ports, tmp_path: Path) -> None:
    ran = vivado(tmp_path, values("zcu104", ports), "design")
    memory = [call for call in ran.named("assign_bd_address") if "-offset" not in call]
    spaces = {f"systolic_top_0/m_axi_{bundle}" for bundle in bundles(ports.arguments)}  # the stub calls them so
    if isinstance(ports, StreamingPorts):
        spaces = {"axi_dma_0/M_AXI_MM2S", "axi_dma_0/M_AXI_S2MM", "streaming_top_0/m_axi_weights_conv1"}
    assigned = [(option(c, "-target_address_space"), c[-2]) for c in memory]
    excluded = [(option(c, "-target_address_space"), c[-1]) for c in ran.named("exclude_bd_addr_seg")]
    assert len(assigned) == len(excluded) == 2 * len(spaces)
    assert {space for space, _ in assigned} == {space for space, _ in excluded} == spaces
    assert {segment.rsplit("/")[-1] for _, segment in assigned} == {"HP0_DDR_LOW", "HP0_DDR_HIGH"}
    assert {segment.rsplit("/")[-1] for _, segment in excluded} == {"HP0_LPS_OCM", "HP0_QSPI"}


@cases("board", CLOCKS)
def test_vivado_configures_clock_ports_and_one_master_of_the_ps(board: str, tmp_path: Path) -> None:
    of, facts = values(board), load(board)
    ran = vivado(tmp_path, of, "design")
    (config,) = [dictionary(c[1]) for c in ran.named("set_property") if c[-1] == f"{facts.ps.ip}_0"]
    assert float(config[f"CONFIG.{facts.ps.clock_mhz_key}"]) == pytest.approx(CLOCKS[board], rel=2e-4)
    assert config[f"CONFIG.{facts.ps.clock_source_key}"] == facts.plls[0].name
    assert config[f"CONFIG.{facts.ps.interrupt_key}"] == "1"
    used = {use.port.name for use in port_plan(of)}
    assert {p.name for p in facts.ports if config[f"CONFIG.{p.enable}"] == "1"} == used
    assert all(config[f"CONFIG.{p.width}"] == str(p.bits) for p in facts.ports if p.name in used)
    masters = [key for key in config if re.search(r"USE_+M_AXI_GP\d", key)]
    assert [key for key in masters if config[key] == "1"] == [f"CONFIG.{facts.control.enable}"]
    assert len(masters) > 1


@cases("board", CLOCKS)
@cases("names", ["in_r out_r", "in out"])
def test_vivado_connects_the_streams_to_the_dma_without_interrupt(board: str, names: str, tmp_path: Path) -> None:
    facts = load(board)
    ran = vivado(tmp_path, values(board, streams()), "design", STUB_STREAMS=names)
    assert ran.rc == 0, ran.out
    wires, (first, second) = interfaces(ran), names.split()
    assert wires["axi_dma_0/M_AXIS_MM2S"] == f"streaming_top_0/{first}"
    assert wires["axi_dma_0/S_AXIS_S2MM"] == f"streaming_top_0/{second}"
    assert wires["control/M01_AXI"] == "axi_dma_0/S_AXI_LITE"
    (config,) = [dictionary(c[1]) for c in ran.named("set_property") if c[-1] == "axi_dma_0"]
    assert (config["CONFIG.c_include_sg"], config["CONFIG.c_sg_length_width"]) == ("0", "26")
    # A beat as wide as the accelerator's; the side of the memory has at least 32 bits.
    assert (config["CONFIG.c_m_axis_mm2s_tdata_width"], config["CONFIG.c_m_axi_s2mm_data_width"]) == ("64", "32")
    # Nothing interrupts: the PS has no such pin then, and none is connected.
    (told,) = [dictionary(c[1]) for c in ran.named("set_property") if c[-1] == f"{facts.ps.ip}_0"]
    assert told[f"CONFIG.{facts.ps.interrupt_key}"] == "0"
    assert not [pin for call in ran.named("connect_bd_net") for pin in call if "irq" in pin.lower()]


def test_dma_config_bursts_are_at_most_4_kb() -> None:
    for beat in (1, 4, 64, 128):
        config = dma_config(DmaPackets(Packet(900, beat), Packet(900, 8)))
        size = config["c_mm2s_burst_size"] * config["c_m_axi_mm2s_data_width"] // 8
        assert size <= 4096
        assert config["c_mm2s_burst_size"] >= 32


def test_vivado_ip_without_the_streams_is_refused(tmp_path: Path) -> None:
    ran = vivado(tmp_path, values("zcu104", streams()), STUB_STREAMS="maps")
    assert (ran.rc, ran.named("launch_runs")) == (1, [])
    assert "the IP has no stream 'in': run vitis_hls -f run_hls.tcl again" in ran.out


def test_vivado_writes_bit_and_hwh_under_the_name_of_the_design(tmp_path: Path) -> None:
    (tmp_path / "detector.bit").write_text("of an earlier run")
    ran = vivado(tmp_path, replace(values(), design="detector"), "jobs=8")
    assert ran.rc == 0, ran.out
    assert not (tmp_path / "vivado/failed").exists()
    assert (tmp_path / "detector.bit").read_text() == ""
    assert (tmp_path / "detector.hwh").is_file()
    assert ran.named("launch_runs") == [
        ["synth_1", "-jobs", "8"],
        ["impl_1", "-to_step", "write_bitstream", "-jobs", "8"],
    ]
    assert ran.one("create_project") == ["-force", "detector", f"{tmp_path}/vivado", "-part", "xczu7ev-ffvc1156-2-e"]
    assert ["board_part", "xilinx.com:zcu104:part0:1.0", "project"] in ran.named("set_property")


@pytest.mark.parametrize(("stop", "runs"), [("design", 0), ("synth", 1)])
def test_vivado_stops_after_the_requested_step(stop: str, runs: int, tmp_path: Path) -> None:
    ran = vivado(tmp_path, values(), stop)
    assert ran.rc == 0, ran.out
    assert len(ran.named("validate_bd_design")) == 1
    assert len(ran.named("launch_runs")) == runs
    assert not list(tmp_path.glob("*.bit"))


@cases(
    "settings, arguments, sentence",
    [
        ({"STUB_HZ": "214284000"}, [], "the PS makes 214.284 MHz, not 300 MHz: generate the design for a clock"),
        (
            {"STUB_BOARDS": "xilinx.com:zcu102:part0:3.4 xilinx.com:kv260_som:part0:1.4 xilinx.com:zcu102:part0:3.3"},
            [],
            "no files of the board xilinx.com:zcu104:part0. It has files of: xilinx.com:kv260_som, xilinx.com:zcu102. ",
        ),
        ({"STUB_BOARDS": ""}, [], "It has files of: no board. Install the board's files"),
        ({"STUB_PROGRESS": "40%"}, [], "synth_1 failed: synth_design ERROR; its log is in vivado/"),
        ({"STUB_FAIL": "validate_bd_design"}, [], "validate_bd_design failed"),
        (
            {},
            ["place"],
            "strategy=performance or strategy=default, floorplan=on or floorplan=off, or clock=MHZ, not 'place'",
        ),
        ({}, ["jobs=0"], "not 'jobs=0'"),
        (
            {},
            ["floorplan=on"],
            "floorplan=on is not possible: only an engine in SystemVerilog has DSP chains with known",
        ),
        ({}, ["strategy=best"], "not 'strategy=best'"),
        (
            {},
            ["clock=260"],
            "the clock is one of 300, 250, 214.286, 187.5, 166.667, 150, 136.364, 125, 115.385, 107.143, 100 MHz",
        ),
    ],
)
def test_vivado_failure_writes_no_bitstream(
    settings: dict[str, str], arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    ran = vivado(tmp_path, values(), *arguments, **settings)
    assert ran.rc == 1
    assert sentence in ran.out
    assert not list(tmp_path.glob("*.bit"))


def test_vivado_uses_the_newest_installed_files_of_the_board(tmp_path: Path) -> None:
    boards = [f"xilinx.com:zcu104:part0:{version}" for version in ("1.9", "1.10", "1.1")]
    ran = vivado(tmp_path, values(), "design", STUB_BOARDS=" ".join([*boards, "xilinx.com:zcu104_rev2:part0:9.0"]))
    assert ["board_part", boards[1], "project"] in ran.named("set_property")
    assert "WARNING" not in ran.out
    other = vivado(tmp_path, values(), "design", STUB_PART="xczu7ev-ffvc1156-2-i")
    assert "WARNING: the board files name the part xczu7ev-ffvc1156-2-i" in other.out


PLACEMENTS = ["ExtraTimingOpt", "EarlyBlockPlacement", "ExtraNetDelay_high"]
TIMED = "{clk_pl_0 3.334 3.334 -0.058} {clk_out2 1.667 1.667 -0.100} {clk_out3 3.334 6.668 -0.100} {idle 10 {} {}}"
"""Clocks of a design: name, period, and the requirement and slack of the worst path in ns."""


def runs_of(ran: Ran) -> list[str]:
    return [call[0] for call in ran.named("launch_runs") if call[0] != "synth_1"]


def directives(ran: Ran, step: str) -> dict[str, str]:
    return {call[2]: call[1] for call in ran.named("set_property") if call[0] == f"STEPS.{step}.ARGS.DIRECTIVE"}


def test_vivado_performance_strategy_tries_placements_until_one_meets_timing(tmp_path: Path) -> None:
    for logs, tried in (([MET], 1), ([MISSED, MET], 2), ([PLACE, WORSE, MET], 3), ([MISSED, PLACE, HOLD], 3)):
        ran = vivado(tmp_path, values(), STUB_LOGS=" ".join(map(str, logs)), STUB_PATHS=TIMED)
        runs = [f"impl_{n + 1}" for n in range(tried)]
        assert runs_of(ran) == runs
        assert directives(ran, "PLACE_DESIGN") == dict(zip(runs, PLACEMENTS, strict=False))
        assert directives(ran, "PHYS_OPT_DESIGN") == dict.fromkeys(runs, "AggressiveExplore")
        assert [call[0] for call in ran.named("create_run")] == runs[1:]
        assert (ran.rc == 0) == (logs[-1] is MET)
        assert ran.one("open_run") == [runs[-1] if ran.rc == 0 else "impl_1"]
        # A strategy overwrites the directives, so that it is set before them.
        for run in [*runs, "synth_1"]:
            names = [call[0] for call in ran.named("set_property") if call[2:] == [run]]
            assert names.index("strategy") == 0
    assert ["SYNTH_CHECKPOINT_MODE", "None", "system.bd"] in ran.named("set_property")
    assert "placement EarlyBlockPlacement: impl_2 failed: place_design ERROR" in ran.out


def test_vivado_default_strategy_changes_no_setting(tmp_path: Path) -> None:
    ran = vivado(tmp_path, values(), "strategy=default", STUB_LOGS=str(MISSED), STUB_PATHS=TIMED)
    assert (ran.rc, runs_of(ran)) == (1, ["impl_1"])
    assert directives(ran, "PLACE_DESIGN") == {"impl_1": "Default"}
    assert not [call for call in ran.named("set_property") if call[0] in {"strategy", "SYNTH_CHECKPOINT_MODE"}]


def test_vivado_missed_timing_keeps_the_best_run_and_proposes_its_clock(tmp_path: Path) -> None:
    (tmp_path / "systolic.bit").write_text("of an earlier run")
    logs = " ".join(map(str, (WORSE, MISSED, WORSE)))
    ran = vivado(tmp_path, values(), "jobs=8", STUB_LOGS=logs, STUB_PATHS=TIMED)
    assert (ran.rc, ran.one("open_run")) == (1, ["impl_2"])
    assert not (tmp_path / "systolic.bit").exists()
    assert {path.name for path in (tmp_path / "vivado/failed").iterdir()} == {
        "systolic.bit",
        "systolic.hwh",
        "timing.rpt",
    }
    assert "timing is not met: worst setup slack -0.058 ns, worst hold slack 0.066 ns" in ran.out
    # 1.667 ns of 1.767 ns; a path of two cycles, 6.668 ns of 6.768 ns, limits less.
    assert "clock clk_out2: 599.9 MHz wanted, 565.9 MHz at most" in ran.out
    assert "clock clk_out3: 299.9 MHz wanted, 295.5 MHz at most" in ran.out
    assert "The highest clock is 283.0 MHz" in ran.out
    assert "and --clock 250." in ran.out
    command = re.search(r"vivado -mode batch -source build_vivado.tcl -tclargs (.*)", ran.out)
    assert command
    again = vivado(tmp_path, values(), *command[1].split())
    assert again.rc == 0, again.out
    assert (command[1], "PL clock: 250.0 MHz" in again.out) == ("jobs=8 clock=250", True)
    assert not (tmp_path / "vivado/failed").exists()


@cases(
    "log, settings, sentence",
    [
        (
            HOLD,
            {},
            "slack -0.085 ns. The files are in vivado/failed/, for a look only. No clock corrects a hold slack",
        ),
        (MET, {"STUB_TPWS": "-0.2"}, "A clock is above the limit of a block: see Pulse Width Checks"),
        (MISSED, {"STUB_PATHS": "{clk_pl_0 3.334 3.334 -9.0}"}, "That is below 100 MHz: generate a smaller array."),
        (PLACE, {}, "build_vivado.tcl: impl_3 failed: place_design ERROR; its log is in vivado/"),
    ],
)
def test_vivado_failure_without_a_helpful_clock_proposes_none(
    log: Path, settings: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    ran = vivado(tmp_path, values(), STUB_LOGS=" ".join([str(log)] * 3), **{"STUB_PATHS": TIMED, **settings})
    assert ran.rc == 1
    assert sentence in ran.out
    assert "clock=" not in ran.out
    assert not list(tmp_path.glob("*.bit"))


def test_vivado_needs_the_ip(tmp_path: Path) -> None:
    ran = run_tcl(tmp_path, "build_vivado.tcl", vendor_files(values())["build_vivado.tcl"])
    assert (ran.rc, ran.calls) == (1, ())
    assert "run vitis_hls -f run_hls.tcl first" in ran.out


# --- which port --------------------------------------------------------------------------------------------


def plan(board: str, ports: Ports) -> dict[str, tuple[str, ...]]:
    uses = port_plan(values(board, ports))
    return {use.port.name: tuple(one.pin.removeprefix("m_axi_") for one in use.masters) for use in uses}


def test_port_plan_of_a_zcu104_gives_maps_and_weights_a_port_each() -> None:
    assert plan("zcu104", systolic(2, 2)) == {
        "S_AXI_HP0_FPD": ("maps_0",),
        "S_AXI_HP1_FPD": ("maps_1",),
        "S_AXI_HP2_FPD": ("weights_0",),
        "S_AXI_HP3_FPD": ("weights_1",),
        "S_AXI_HPC0_FPD": ("program", "layers"),
    }


def test_port_plan_of_few_bundles_avoids_ports_of_one_controller_port() -> None:
    """HP1 and HP2 of a Zynq UltraScale+ share a port of the controller, as do HP0 and HP1 of a Zynq-7000."""
    three = values("zcu104", systolic(2, 1))
    assert [use.port.name for use in port_plan(three)][:3] == ["S_AXI_HP0_FPD", "S_AXI_HP1_FPD", "S_AXI_HP3_FPD"]
    assert plan("pynq-z2", systolic(1, 1))["S_AXI_HP2"] == ("weights_0",)


def test_port_plan_of_more_bundles_than_ports_is_even() -> None:
    assert plan("zcu104", systolic(4, 4))["S_AXI_HP1_FPD"] == ("maps_1", "weights_1")
    sizes = [len(shared) for shared in plan("pynq-z2", systolic(4, 2)).values()]
    assert sorted(sizes) == [2, 2, 2, 2]


def test_port_plan_gives_each_dma_master_its_own_memory_port() -> None:
    assert plan("zcu104", streams()) == {"S_AXI_HP0_FPD": ("M_AXI_MM2S",), "S_AXI_HP1_FPD": ("M_AXI_S2MM",)}
    assert plan("zcu104", streams("a", "b", "c"))["S_AXI_HP0_FPD"] == ("M_AXI_MM2S", "c")


def test_vendor_files_for_a_board_without_map_ports_are_refused() -> None:
    board = load("zcu104")
    only: tuple[Port, ...] = tuple(port for port in board.ports if port.coherent)
    with raises(UnsupportedError, subject="the board ZCU104"):
        vendor_files(replace(values(), board=replace(board, ports=only)))


# --- what must not reach a tool ----------------------------------------------------------------------------


def test_vendor_files_with_a_hostile_title_execute_nothing(tmp_path: Path) -> None:
    for ports in (SystolicPorts(2, 2, 100, (Output(HOSTILE, 0, 4),)), streams("weights_conv1")):
        check_harmless(replace(values(), title=HOSTILE, ports=ports), tmp_path)


def check_harmless(of: VendorValues, tmp_path: Path) -> None:
    assert hls(tmp_path, of).rc == 0
    assert vivado(tmp_path, of).rc == 0
    assert not list(tmp_path.rglob("OWNED*"))
    for name, text in vendor_files(of).items():
        assert "[exec" not in text, name
        assert "${evil}" not in text, name
        assert "\n#error" not in text, name


KEYS = (
    "part board_part ps.vlnv ps.clock ps.reset ps.interrupt ps.clock_mhz_key ps.interrupt_key ps.clock_source_key "
    "control.name control.clock control.enable port.name port.clock port.enable port.width"
)


@cases("key", KEYS.split())
@cases("text", SMUGGLED)
def test_vendor_files_with_tcl_in_a_board_fact_are_refused(key: str, text: str) -> None:
    with raises(InvalidValueError, got=text):
        vendor_files(replace(values(), board=edited(load("zcu104"), key, text)))


def test_vendor_files_with_tcl_in_a_pll_name_are_refused() -> None:
    clock = replace(load("zcu104").nearest_clock(300), pll="IOPLL}; exec touch OWNED; {")
    with raises(InvalidValueError, what="PSU__CRL_APB__PL0_REF_CTRL__SRCSEL", got=clock.pll):
        vendor_files(replace(values(), clock=clock))


@cases("path", ["../top.cpp", "/top.cpp", "src/$x.cpp", "a b.cpp", "-o.cpp", "src/../t.cpp", "t.sh"])
def test_vendor_files_with_a_source_outside_the_folder_are_refused(path: str) -> None:
    with raises(InvalidValueError, what="a source", got=path):
        vendor_files(replace(values(), sources=("src/top.cpp", path)))


def test_vendor_files_with_impossible_values_are_refused() -> None:
    clock, no_source = load("zcu104").nearest_clock(300), replace(values(), sources=("src/top.h",))
    window = load("zcu104").control
    small = replace(load("zcu104"), control=replace(window, bytes=0x1FFFF))
    with raises(MissingValueError, what="a .cpp or .sv file among the sources"):
        vendor_files(no_source)
    with raises(MissingValueError, what="an output"):
        vendor_files(replace(values(), ports=SystolicPorts(2, 2, 100, ())))
    with raises(InvalidValueError, what="output 'o'", got="40 words from 61"):
        vendor_files(replace(values(), ports=SystolicPorts(2, 2, 100, (Output("o", 61, 40),))))
    for mhz in (0.5, 1001.0, float("inf")):
        with raises(RangeError, what="the clock in MHz", got=mhz, low=1, high=1000):
            vendor_files(replace(values(), clock=replace(clock, mhz=mhz)))
    with raises(RangeError, what="the clock in MHz"):
        vendor_files(replace(values(), clock=replace(clock, mhz=float("nan"))))
    with raises(RangeError, got=0x1FFFF, low=0x20000) as caught:
        vendor_files(replace(values(), board=small))
    assert window.name in caught.value.what
    with raises(InvalidValueError, what="an identifier", got="../x"):
        vendor_files(replace(values(), design="../x"))
    with raises(ChoiceError, what="the source of 'speed'", got="hope"):
        vendor_files(replace(values(), figures=(Figure("speed", "9", "hope"),)))
    with raises(InvalidValueError, what="an identifier", got="a; exec x"):
        vendor_files(values(ports=streams("a; exec x")))
    with raises(ChoiceError, got=3) as choice:
        vendor_files(values(ports=StreamingPorts(Packet(9, 3), Packet(9, 8))))
    assert "packet_in" in choice.value.what
    with raises(ChoiceError, what="the PS", got="versal_cips", choices=PS_KINDS):
        vendor_files(replace(values(), board=edited(load("zcu104"), "ps.ip", "versal_cips")))


def test_word_with_a_space_is_braced() -> None:
    assert word("IO PLL", "pll") == "{IO PLL}"


# --- README ------------------------------------------------------------------------------------------------


def test_readme_names_files_commands_registers_and_origins_of_figures() -> None:
    figure = Figure("frames/s | at 300 MHz", "<b>240</b>", "traced")
    text = vendor_files(replace(values(), figures=(figure,)))["README.md"]
    assert "`vitis_hls -f run_hls.tcl`" in text
    assert "`vivado -mode batch -source build_vivado.tcl`" in text
    assert VLNV in text
    assert "| 0x70 | `first` |" in text
    assert "| frames/s _ at 300 MHz | _b_240_/b_ | traced |" in text
    assert "not yet shown. The clock, 300 MHz" in text


def test_readme_of_a_streaming_design_describes_packets_and_dma() -> None:
    text = vendor_files(values("zcu104", streams("weights_conv1")))["README.md"]
    assert "input packet of 900 bytes and an output packet of 40 bytes, in beats of 8 and 4 bytes" in text
    assert "| `S_AXI_HP0_FPD` | 128 | `axi_dma_0/M_AXI_MM2S` |" in text
    assert "| `S_AXI_HP3_FPD` | 128 | `streaming_top_0/m_axi_weights_conv1` |" in text
    assert "| 0x1c | `frames` |" in text
    assert "`in.bin` and `expected.bin`, a frame's packets for the test bench; the weights that stay in DDR" in text
    assert "interrupt" not in re.sub(r"nothing interrupts|.*Interrupt.*|.*CTRL.*", "", text)


# --- test bench --------------------------------------------------------------------------------------------

ARRAY = Array(4, 8, 8, row_depth=256, weight_depth=256, kept_depth=64, chunk=8, channel_tiles=8)


def convolution(random: np.random.Generator, channels: int, source: QNode, bits: int) -> QNode:
    weights = random.integers(-127, 128, (channels, source.shape.channels, 3, 3)).astype(np.int8)
    shift = np.full(channels, 26 if bits == 8 else 18, np.int64)
    multiplier = random.integers(20000, 32000, channels)
    by = Requantiser(random.integers(-500, 500, channels), multiplier, multiplier // 8, shift)
    op = QConvolution(weights, INT8, by, 1, Padding(1, 1, 1, 1), 1)
    shape = Shape(channels, source.shape.height, source.shape.width)
    index = 0 if isinstance(source.op, QInput) else int(source.name[-1])
    return QNode(f"conv{index + 1}", op, (index,), shape, TensorType(DataType(bits, True), 1.0), "net:1")


def network() -> QuantizedNetwork:
    """Return a network of two convolutions, the last one to 16 bits, so that both kinds of words are compared."""
    random = np.random.default_rng(5)
    pixels = QNode("input", QInput(), (), Shape(3, 9, 10), TensorType(UINT8, 1 / 255), "net:0")
    first = convolution(random, 12, pixels, 8)
    return QuantizedNetwork("tiny", (pixels, first, convolution(random, 10, first, 16)))


def input_words(region: MapRegion, picture: npt.NDArray[np.uint8]) -> Integers:
    rows = np.zeros((region.shape.height, region.row_words * ARRAY.lanes // PIXEL_BYTES, PIXEL_BYTES), np.uint8)
    rows[:, : region.shape.width, : region.shape.channels] = picture.transpose(1, 2, 0)
    return rows.reshape(-1, ARRAY.lanes).view(np.int8)


def output_words(region: MapRegion, integers: npt.NDArray[np.int16]) -> Integers:
    """Return a map (channel, row, column) as words (row, block, column, lane); missing channels are 0."""
    height, width = region.shape.height, region.shape.width
    padded = np.zeros((region.blocks * ARRAY.lanes, height, width), f"<i{region.value_words}")
    padded[: region.shape.channels] = integers
    words = padded.reshape(region.blocks, ARRAY.lanes, height, width).transpose(2, 0, 3, 1)
    return np.ascontiguousarray(words).reshape(-1).view(np.int8).reshape(-1, ARRAY.lanes)


def write_data(folder: Path, program: Program, net: QuantizedNetwork) -> None:
    picture = np.random.default_rng(6).integers(0, 256, (3, 9, 10)).astype(np.uint8)
    maps = np.full((program.maps_words, ARRAY.lanes), 0x55, np.int8)
    maps[program.maps[0].base :][: program.maps[0].words] = input_words(program.maps[0], picture)
    golden = as_kind(np.ndarray, run_integer(net, picture)[2])
    assert np.unique(golden).size > 100  # the comparison would be worth little otherwise
    images = {"maps": maps, "expected": output_words(program.maps[2], golden.astype(np.int16))}
    images |= {f"weights_{port}": image for port, image in enumerate(program.weights)}
    for name, image in images.items():
        (folder / f"{name}.bin").write_bytes(image.tobytes())
    (folder / "requantisers.bin").write_bytes(program.requantisers.astype("<u4").tobytes())
    (folder / "program.bin").write_bytes(program.words.astype("<u4").tobytes())


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a generated folder with a hostile title, and its test bench compiled by g++."""
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("no g++ on this machine: apt install g++")
    folder = tmp_path_factory.mktemp("design")
    net, board = network(), load("zcu104")
    schedule = first_fit(net, ARRAY)
    program = emit(schedule)
    engine = systolic_values(price(schedule, board, ddr_timing(board, 300)), program)
    sources = systolic_sources(engine)
    region = program.maps[2]
    of = replace(
        values(),
        title=HOSTILE,
        ports=SystolicPorts(2, 2, program.maps_words, (Output(HOSTILE, region.base, region.words),)),
        sources=tuple(f"src/{name}" for name in sources),
    )
    files = {f"src/{name}": text for name, text in sources.items()} | vendor_files(of)
    files |= {f"simulation/{name}": text for name, text in systolic_simulation(engine).items()}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (folder / "data").mkdir()
    write_data(folder / "data", program, net)
    # The command of the README, but without optimisation, which takes longer than it saves.
    command = re.search(r"`(g\+\+ [^`]*-o test_bench) && \./test_bench data`", files["README.md"])
    assert command
    words = [gxx if word_ == "g++" else "-O0" if word_ == "-O2" else word_ for word_ in command[1].split()]
    words += ["-Wall", "-Wno-unknown-pragmas", "-Werror"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def bench(design: Path, data: Path, *more: str) -> tuple[int, str]:
    done = subprocess.run([str(design / "test_bench"), str(data), *more], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def spoilt(design: Path, folder: Path, name: str, at: int) -> Path:
    """Copy the data, and flip one bit of one file."""
    shutil.copytree(design / "data", folder, dirs_exist_ok=True)
    data = bytearray((folder / name).read_bytes())
    data[at] ^= 1
    (folder / name).write_bytes(bytes(data))
    return folder


@pytest.mark.parametrize("how", [[], ["apart"]])
def test_bench_passes_on_the_golden_output(how: list[str], design: Path) -> None:
    rc, out = bench(design, design / "data", *how)
    assert (rc, out.strip()) == (0, "PASS: 360 words, 2 passes")


def test_bench_names_the_first_differing_word(design: Path, tmp_path: Path) -> None:
    rc, out = bench(design, spoilt(design, tmp_path, "expected.bin", 7 * 8 + 3))
    assert rc == 1
    assert re.search(r"^FAIL .*: word 7, lane 3 is -?\d+ and must be -?\d+$", out, re.M)
    assert "1 of 360 words differ" in out
    assert "PASS" not in out


@cases("name", ["weights_0.bin", "weights_1.bin", "requantisers.bin", "maps.bin"])
@cases("how", [[], ["apart"]])
def test_bench_fails_on_a_wrong_image(name: str, how: list[str], design: Path, tmp_path: Path) -> None:
    shutil.copytree(design / "data", tmp_path, dirs_exist_ok=True)
    words = np.fromfile(tmp_path / name, "<u4")
    if name == "requantisers.bin":
        words[::4] += 5000  # the biases; shifts must stay shifts
    else:
        words[: len(words) // 4] ^= 0x40404040
    words.tofile(tmp_path / name)
    rc, out = bench(design, tmp_path, *how)
    assert rc == 1
    assert "FAIL" in out


@cases(
    "name, size, sentence",
    [
        ("maps.bin", -8, "maps.bin does not have the size that this design needs"),
        ("expected.bin", -3, "expected.bin does not hold whole words"),
        ("program.bin", -4, "program.bin does not hold whole passes"),
        ("weights_1.bin", None, "weights_1.bin cannot be opened"),
        ("requantisers.bin", 0, "requantisers.bin does not hold whole words"),
    ],
)
def test_bench_refuses_files_of_another_size(
    name: str, size: int | None, sentence: str, design: Path, tmp_path: Path
) -> None:
    shutil.copytree(design / "data", tmp_path, dirs_exist_ok=True)
    if size is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:size])
    rc, out = bench(design, tmp_path)
    assert rc == 2
    assert sentence in out


@pytest.mark.engine
def test_bench_passes_with_vendor_flags_and_types(design: Path, tmp_path: Path) -> None:
    """Compile with the vendor's ap_int, the C++ standard of run_hls.tcl, and the hls::burst_maxi of UG1399."""
    flags = re.search(r'set flags "([^"]*)"', (design / "run_hls.tcl").read_text("utf-8"))
    assert flags
    words = flags[1].replace("$here", str(design)).split()
    assert "-std=c++14" in words
    includes = ["-isystem", str(DOCUMENTED), "-isystem", str(vendor_types())]
    units = [str(design / "test_bench.cpp"), str(design / "src/top.cpp")]
    command = ["g++", "-O1", "-w", *words, *includes, *units, "-o", str(tmp_path / "test_bench")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for how in ([], ["apart"]):
        assert bench(tmp_path, design / "data", *how) == (0, "PASS: 360 words, 2 passes\n")
