"""Files for Vivado of an engine in SystemVerilog: the Tcl runs under tclsh with every command recorded."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from boards.board import load
from boards.errors import ChoiceError, InvalidValueError
from hls_templates.vendor.files import rtl_vendor_files
from hls_templates.vendor.hwh import hardware_description
from hls_templates.vendor.ports import Output, SystolicPorts
from hls_templates.vendor.registers import SLAVE, bundles, registers
from hls_templates.vendor.values import DSP_CLOCKS, VendorValues
from rtl_templates.ip import Master, wrapper_pins
from rtl_templates.render import render
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.tcl import Ran, dictionary, interfaces, option, packager, rtl_vivado, run_tcl
from tests.support.vendor_values import CLOCKS, HOSTILE, SMUGGLED, WRAPPER, edited, rtl_values

PORTS = [SystolicPorts(*n, 100, (Output("conv2", 0, 40),)) for n in ((1, 1), (2, 2), (4, 4))]


def wrapper(of: VendorValues) -> str:
    masters = [Master(bundle, 64, bundle.startswith("maps")) for bundle in bundles(of.ports.arguments)]
    pins = wrapper_pins(8, masters, (64, 8), of.dsp_clock)
    return render("ip.v.j2", {"title": "t", "wrapper": "systolic_top_ip", "top": "systolic_top", "pins": pins})


def packaged(folder: Path, of: VendorValues, text: str | None = None, **settings: str) -> Ran:
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / WRAPPER).write_text(wrapper(of) if text is None else text)
    return packager(folder, of, **settings)


# --- the IP ------------------------------------------------------------------------------------------------


def test_package_ip_has_the_sources_and_the_name_that_the_host_expects(tmp_path: Path) -> None:
    ran = packaged(tmp_path, rtl_values())
    assert ran.rc == 0, ran.out
    project = ran.one("ipx::package_project")
    assert [option(project, f"-{key}") for key in ("root_dir", "vendor", "library")] == [
        f"{tmp_path}/ip",
        *rtl_values().ports.vlnv.split(":")[:2],
    ]
    assert "-import_files" in project
    named = {call[0]: call[1] for call in ran.named("set_property") if call[-1] == "core"}
    assert (named["name"], named["version"]) == ("systolic_top", "1.0")
    assert [call[-1] for call in ran.named("add_files")] == [
        f"{tmp_path}/{path}" for path in (*rtl_values().sources, "clocks_ooc.xdc", "timing.xdc")
    ]
    assert ["USED_IN", "synthesis implementation", "timing.xdc"] in ran.named("set_property")
    assert named["supported_families"].split()[::2] == ["zynquplus", "artixuplus", "kintexuplus", "virtexuplus"]
    assert ["top", "systolic_top_ip", "sources_1"] in ran.named("set_property")
    assert ["USED_IN", "out_of_context", "clocks_ooc.xdc"] in ran.named("set_property")
    assert option(ran.one("create_project"), "-part") == "xczu7ev-ffvc1156-2-e"
    assert [call[0] for call in ran.calls[-3:]] == ["ipx::check_integrity", "ipx::save_core", "close_project"]


@pytest.mark.parametrize("ports", PORTS)
def test_package_ip_interfaces_run_at_ap_clk_and_masters_have_addresses(ports: SystolicPorts, tmp_path: Path) -> None:
    masters = [f"m_axi_{bundle}" for bundle in bundles(ports.arguments)]
    for settings in ({}, {"STUB_NO_SPACES": "1"}):
        ran = packaged(tmp_path, rtl_values(ports=ports), **settings)
        assert ran.rc == 0, ran.out
        clocked = [call for call in ran.named("ipx::associate_bus_interfaces") if "-busif" in call]
        assert Counter(option(call, "-busif") for call in clocked) == Counter([SLAVE, *masters])
        assert {option(call, "-clock") for call in clocked} == {"ap_clk"}
        assert ["-clock", "ap_clk", "-reset", "ap_rst_n", "core"] in ran.named("ipx::associate_bus_interfaces")
        wide = {call[-1] for call in ran.named("set_property") if call[:2] == ["width", "64"]}
        seen = {call[1]: call[2] for call in ran.named("set_property") if call[0] == "master_address_space_ref"}
        assert wide == set(masters)
        assert seen == {name: name for name in masters}


@pytest.mark.parametrize("ports", PORTS)
def test_package_ip_has_the_registers_of_the_hardware_description(ports: SystolicPorts, tmp_path: Path) -> None:
    of = rtl_values(ports=ports)
    ran = packaged(tmp_path, of)
    assert ran.one("ipx::remove_memory_map") == ["guessed"]
    assert ["slave_memory_map_ref", SLAVE, SLAVE] in ran.named("set_property")
    assert ran.one("ipx::add_address_block") == ["Reg", SLAVE]
    properties: dict[str, dict[str, str]] = {}
    for name, value, thing in (call for call in ran.named("set_property") if len(call) == 3):
        properties.setdefault(thing, {})[name] = value
    assert properties[f"{SLAVE}/Reg"]["range"] == "65536"
    found = {
        name: (int(properties[f"{block}/{name}"]["address_offset"], 16), properties[f"{block}/{name}"]["access"])
        for name, block in ran.named("ipx::add_register")
    }
    assert found == {register.name: (register.offset, register.access) for register in registers(ports.arguments)}
    described = re.findall(
        r'<REGISTER NAME="(\w+)">\s*(?:<PROPERTY.*\s*)*?<PROPERTY NAME="ADDRESS_OFFSET" VALUE="(\w+)"',
        hardware_description(of).split("axi_intc")[0],
    )
    assert {name: int(offset, 16) for name, offset in described} == {
        name: offset for name, (offset, _) in found.items()
    }
    fields = {(parent.rsplit("/")[-1], name) for name, parent in ran.named("ipx::add_field")}
    assert fields == {(r.name, field.name) for r in registers(ports.arguments) for field in r.fields}
    start = properties[f"{SLAVE}/Reg/CTRL/AP_DONE"]
    assert (start["bit_offset"], start["bit_width"], start["access"]) == ("1", "1", "read-only")


@pytest.mark.parametrize(
    ("spoil", "settings", "sentence"),
    [
        ("m_axi_maps_1", {}, "has not found the interface 'm_axi_maps_1' on systolic_top_ip.v: is it this folder's?"),
        ("interrupt", {}, "has not found the interface 'interrupt'"),
        ("", {"STUB_FAIL": "ipx::check_integrity"}, "package_ip.tcl: ipx::check_integrity failed"),
    ],
)
def test_package_ip_incomplete_core_is_not_saved(
    spoil: str, settings: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    text = wrapper(rtl_values()).replace(f":1.0 {spoil} ", ":1.0 another ") if spoil else None
    (tmp_path / "ip").mkdir(parents=True)
    (tmp_path / "ip/component.xml").write_text("of an earlier run")
    ran = packaged(tmp_path, rtl_values(), text, **settings)
    assert ran.rc == 1
    assert sentence in ran.out
    assert not ran.named("ipx::save_core")
    assert not (tmp_path / "ip/component.xml").exists()


def test_package_ip_missing_source_is_named(tmp_path: Path) -> None:
    ran = run_tcl(tmp_path, "package_ip.tcl", rtl_vendor_files(rtl_values())["package_ip.tcl"])
    assert ran.rc == 1
    assert "src/systolic_geometry.sv is not there: copy the whole generated folder" in ran.out


# --- the block design --------------------------------------------------------------------------------------


def test_vivado_needs_the_packaged_ip(tmp_path: Path) -> None:
    ran = run_tcl(tmp_path, "build_vivado.tcl", rtl_vendor_files(rtl_values())["build_vivado.tcl"])
    assert (ran.rc, ran.calls) == (1, ())
    assert "run vivado -mode batch -source package_ip.tcl first" in ran.out


@cases("board", CLOCKS)
@cases("segment", ["Reg", "reg0"])
def test_vivado_finds_the_packaged_ip_and_its_segments(board: str, segment: str, tmp_path: Path) -> None:
    of = rtl_values(board)
    ran = rtl_vivado(tmp_path, of, STUB_SEGMENT=segment)
    assert ran.rc == 0, ran.out
    assert ["ip_repo_paths", f"{tmp_path}/ip", "project"] in ran.named("set_property")
    (accelerator,) = [call for call in ran.named("create_bd_cell") if call[-1] == "systolic_top_0"]
    assert option(accelerator, "-vlnv") == of.ports.vlnv
    fixed = [call[-2] for call in ran.named("assign_bd_address") if "-offset" in call]
    assert fixed == [f"systolic_top_0/s_axi_control/{segment}", "axi_intc_0/S_AXI/Reg"]
    assert interfaces(ran)["control/M00_AXI"] == "systolic_top_0/s_axi_control"
    assert (tmp_path / "systolic.bit").is_file()


@cases("board", CLOCKS)
def test_vivado_clock_and_its_double_are_outputs_of_one_mmcm(board: str, tmp_path: Path) -> None:
    facts = load(board)
    once, twice = (rtl_vivado(tmp_path, rtl_values(board, dsp_clock=rate), "design") for rate in (1, 2))
    assert twice.rc == 0, twice.out
    ps = f"{facts.ps.ip}_0/{facts.ps.clock}"
    clocked = {
        rate: [to for source, to in ran.named("connect_bd_net") if source == clock]
        for rate, ran, clock in ((1, once, ps), (2, twice, "clocks_0/clk_out1"))
    }
    assert clocked[1] == clocked[2]  # every pin that had the PS's clock has the MMCM's
    nets = twice.named("connect_bd_net")
    assert [to for source, to in nets if source == "clocks_0/clk_out2"] == ["systolic_top_0/ap_clk_2x"]
    assert [to for source, to in nets if source == ps] == ["clocks_0/clk_in1"]
    assert ["clocks_0/locked", "reset_0/dcm_locked"] in nets
    (config,) = [dictionary(call[1]) for call in twice.named("set_property") if call[-1] == "clocks_0"]
    slow, fast = (float(config[f"CONFIG.CLKOUT{n}_REQUESTED_OUT_FREQ"]) for n in (1, 2))
    assert slow == pytest.approx(CLOCKS[board], rel=1e-3)
    assert fast == 2 * slow
    assert ("CONFIG.CLKOUT1_MATCHED_ROUTING" in config) == (facts.ps.ip == "zynq_ultra_ps_e")
    assert not [call for call in once.calls if "clocks_0" in " ".join(call)]


def test_vivado_locked_of_an_mmcm_is_a_false_path(tmp_path: Path) -> None:
    once, twice = (rtl_vivado(tmp_path, rtl_values(dsp_clock=rate)) for rate in (1, 2))
    assert not [call for call in once.named("add_files") if "resets.xdc" in call[-1]]
    assert f"{tmp_path}/resets.xdc" in [call[-1] for call in twice.named("add_files")]
    assert ["USED_IN", "implementation", "resets.xdc"] in twice.named("set_property")
    assert "resets.xdc" not in rtl_vendor_files(rtl_values())
    (line,) = re.findall("^set_.*", rtl_vendor_files(rtl_values(dsp_clock=2))["resets.xdc"], re.MULTILINE)
    assert line.startswith("set_false_path -through [get_pins ")
    assert "LOCKED" in line


def test_timing_exceptions_limit_reads_of_the_arguments_to_one_cycle() -> None:
    lines = re.findall(
        r"^set_multicycle_path (\d) -(\w+) (.*)$", rtl_vendor_files(rtl_values())["timing.xdc"], re.MULTILINE
    )
    within = "-from $arguments -to [get_cells {top/control/*_reg*}]"
    # Setup and hold of a path differ by one.
    assert [(int(cycles), check, path) for cycles, check, path in lines] == [
        (2, "setup", "-from $arguments"),
        (1, "hold", "-from $arguments"),
        (1, "setup", within),
        (0, "hold", within),
    ]


def test_vivado_mmcm_of_another_ratio_is_refused(tmp_path: Path) -> None:
    ran = rtl_vivado(tmp_path, rtl_values(dsp_clock=2), STUB_HZ="300000000", STUB_FAST_HZ="595000000")
    assert ran.rc == 1
    assert "the MMCM makes 300000000 and 595000000 Hz, which are not one and two" in ran.out
    assert not list(tmp_path.glob("*.bit"))


def test_package_ip_with_a_doubled_clock_keeps_interfaces_at_ap_clk(tmp_path: Path) -> None:
    ran = packaged(tmp_path, rtl_values(dsp_clock=2))
    assert ran.rc == 0, ran.out
    clocks = {option(call, "-clock") for call in ran.named("ipx::associate_bus_interfaces")}
    assert clocks == {"ap_clk"}
    without = wrapper(rtl_values(dsp_clock=1))
    assert "the interface 'ap_clk_2x'" in packaged(tmp_path, rtl_values(dsp_clock=2), without).out


@cases("board", CLOCKS)
def test_ip_clock_constraint_is_at_most_the_clock_period(board: str) -> None:
    of = rtl_values(board)
    (alone,) = periods(of)
    assert alone == pytest.approx(1000 / of.clock.mhz, abs=1e-3)
    assert alone <= 1000 / of.clock.mhz
    slow, fast = periods(rtl_values(board, dsp_clock=2))
    assert round(1000 * slow) == 2 * round(1000 * fast)
    assert alone - 0.0011 < slow <= alone


def periods(of: VendorValues) -> list[float]:
    text = rtl_vendor_files(of)["clocks_ooc.xdc"]
    lines = re.findall(r"^create_clock -name (\w+) -period (\S+) \[get_ports (\w+)\]$", text, re.MULTILINE)
    assert [name for name, _, port in lines if name == port] == ["ap_clk", "ap_clk_2x"][: of.dsp_clock]
    return [float(period) for _, period, _ in lines]


# --- what must not reach a tool ----------------------------------------------------------------------------


def test_rtl_vendor_files_with_a_hostile_title_execute_nothing(tmp_path: Path) -> None:
    of = replace(rtl_values(), title=HOSTILE, ports=SystolicPorts(2, 2, 100, (Output(HOSTILE, 0, 4),)))
    assert packaged(tmp_path, of).rc == 0
    assert rtl_vivado(tmp_path, of).rc == 0
    assert not list(tmp_path.rglob("OWNED*"))
    for name, text in rtl_vendor_files(of).items():
        assert not re.search(r"\[exec|\$\{evil\}|\n#error", text), name


@cases("key", ["part", "board_part", "ps.clock", "ps.reset", "port.name"])
@cases("text", SMUGGLED)
def test_rtl_vendor_files_with_tcl_in_a_board_fact_are_refused(key: str, text: str) -> None:
    with raises(InvalidValueError, got=text):
        rtl_vendor_files(replace(rtl_values(), board=edited(load("zcu104"), key, text)))


@cases("path", ["../a.v", "/a.v", "src/$x.v", "a b.v", "-o.v", "src/a;exec.v", "src/[exec x].v"])
def test_rtl_vendor_files_with_a_source_outside_the_folder_are_refused(path: str) -> None:
    with raises(InvalidValueError, what="a source", got=path):
        rtl_vendor_files(replace(rtl_values(), sources=("src/systolic_top.sv", path)))


def test_rtl_vendor_files_with_impossible_values_are_refused() -> None:
    for sources in ([], ["a.v", "b.v"]):
        with raises(InvalidValueError, what="the .v files among the sources", got=sources):
            rtl_vendor_files(replace(rtl_values(), sources=("src/t.sv", *sources)))
    with raises(InvalidValueError, what="an identifier", got="top.ip"):
        rtl_vendor_files(replace(rtl_values(), sources=("src/t.sv", "src/top.ip.v")))
    with raises(ChoiceError, got=3, choices=DSP_CLOCKS):
        rtl_vendor_files(rtl_values(dsp_clock=3))


# --- README ------------------------------------------------------------------------------------------------


def test_rtl_readme_names_the_commands_of_its_engine() -> None:
    text = rtl_vendor_files(rtl_values())["README.md"]
    assert "`vivado -mode batch -source package_ip.tcl`" in text
    assert "`vivado -mode batch -source build_vivado.tcl`" in text
    assert "| 0x70 | `first` |" in text
    assert rtl_values().ports.vlnv in text
    assert "hls" not in text.lower().replace("m_axi", "")
