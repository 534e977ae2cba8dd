"""The content of the hardware description, and the values that pynq's own parser reads from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from boards.board import load
from boards.errors import InvalidValueError
from hls_templates.streaming.sources import Packet, WeightPort
from hls_templates.vendor.hwh import hardware_description
from hls_templates.vendor.ports import Output, StreamingPorts, SystolicPorts
from hls_templates.vendor.registers import registers
from hls_templates.vendor.values import VendorValues
from tests.support.cases import cases
from tests.support.errors import raises

DESIGNS = {"zcu104": 300, "kv260": 250, "pynq-z2": 100}
PS = {"zcu104": "zynq_ultra_ps_e", "kv260": "zynq_ultra_ps_e", "pynq-z2": "processing_system7"}
IRQ = {"zcu104": 121, "kv260": 121, "pynq-z2": 61}  # of the first wire, UG1085 and UG585


def values(name: str, map_ports: int = 2, weight_ports: int = 2) -> VendorValues:
    board = load(name)
    clock = board.nearest_clock(DESIGNS[name])
    ports = SystolicPorts(map_ports, weight_ports, 64, (Output("conv1", 0, 64),))
    return VendorValues("net", board, clock, ports, ("src/top.cpp", "src/top.h"))


STREAMS = StreamingPorts(Packet(900, 8), Packet(40, 4), (WeightPort("weights_conv1", "char", 64),))


def streaming(name: str) -> VendorValues:
    return replace(values(name), ports=STREAMS)


def parsed(of: VendorValues, folder: Path) -> Any:
    """Parse the description with the parser that pynq uses on a real board."""
    frontends = pytest.importorskip("pynqmetadata.frontends", reason="pynq is not installed: pip install .[board]")
    try:
        from pynqmetadata.views.runtime import RuntimeMetadataParser  # pynq 4
    except ImportError:
        from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser  # pynq 3
    file = folder / "design.hwh"
    file.write_text(hardware_description(of), "utf-8")
    return RuntimeMetadataParser(frontends.Metadata(input=file))


@pytest.mark.parametrize("name", DESIGNS)
def test_pynq_finds_the_accelerator_its_registers_and_its_interrupt(name: str, tmp_path: Path) -> None:
    found = parsed(values(name), tmp_path)
    accelerator = found.ip_dict["systolic_top_0"]
    assert accelerator["type"] == "systolic:cnn:systolic_top:1.0"
    assert accelerator["phys_addr"] == load(name).control.base
    assert accelerator["addr_range"] == 0x10000
    offsets = {key: entry["address_offset"] for key, entry in accelerator["registers"].items()}
    assert offsets == {register.name: register.offset for register in registers(values(name).ports.arguments)}
    assert found.interrupt_pins["systolic_top_0/interrupt"]["controller"] == "axi_intc_0"
    assert found.interrupt_controllers["axi_intc_0"]["raw_irq"] == IRQ[name]
    assert found.ip_dict["axi_intc_0"]["phys_addr"] == load(name).control.base + 0x10000


@pytest.mark.parametrize("name", DESIGNS)
def test_pynq_finds_one_clock_and_its_dividers(name: str, tmp_path: Path) -> None:
    clocks = parsed(values(name), tmp_path).clock_dict
    wanted = load(name).nearest_clock(DESIGNS[name])
    assert [clocks[i]["enable"] for i in range(4)] == [1, 0, 0, 0]
    assert (clocks[0]["divisor0"], clocks[0]["divisor1"]) == (wanted.divisor0, wanted.divisor1)


def test_pynq_reads_the_bits_of_the_control_register(tmp_path: Path) -> None:
    fields = parsed(values("zcu104"), tmp_path).ip_dict["systolic_top_0"]["registers"]["CTRL"]["fields"]
    assert fields["AP_START"]["bit_offset"] == 0
    assert fields["AP_IDLE"]["bit_offset"] == 2
    assert fields["AP_DONE"]["access"] == "read-only"


@cases("name", DESIGNS)
@cases("map_ports, weight_ports", [(1, 1), (2, 2), (4, 4)])
def test_hardware_description_has_every_register_and_master(name: str, map_ports: int, weight_ports: int) -> None:
    of = values(name, map_ports, weight_ports)
    root = Xml.fromstring(hardware_description(of))
    modules = {module.get("INSTANCE"): module for module in root.iter("MODULE")}
    assert set(modules) == {"systolic_top_0", "axi_intc_0", f"{PS[name]}_0"}
    accelerator = modules["systolic_top_0"]
    assert [r.get("NAME") for r in accelerator.iter("REGISTER")] == [r.name for r in registers(of.ports.arguments)]
    masters = [b.get("NAME") for b in accelerator.iter("BUSINTERFACE") if b.get("TYPE") == "MASTER"]
    assert len(masters) == len(set(masters)) == map_ports + weight_ports + 2


def test_connections_are_named_at_both_ends() -> None:
    root = Xml.fromstring(hardware_description(values("zcu104")))
    ends = {
        (module.get("INSTANCE"), port.get("NAME")): (wire.get("INSTANCE"), wire.get("PORT"))
        for module in root.iter("MODULE")
        for port in module.iter("PORT")
        for wire in port.iter("CONNECTION")
    }
    assert len(ends) == 4
    assert all(ends[other] == one for one, other in ends.items())


@pytest.mark.parametrize("of", [values("zcu104"), streaming("zcu104")])
def test_segments_of_the_address_map_do_not_overlap(of: VendorValues) -> None:
    ranges = [
        (int(r.get("BASEVALUE", ""), 16), int(r.get("HIGHVALUE", ""), 16))
        for r in Xml.fromstring(hardware_description(of)).iter("MEMRANGE")
    ]
    assert ranges == [(0xA000_0000, 0xA000_FFFF), (0xA001_0000, 0xA001_FFFF)]


def test_hardware_description_is_deterministic() -> None:
    assert hardware_description(values("zcu104")) == hardware_description(values("zcu104"))


def test_hardware_description_of_an_invalid_part_is_refused() -> None:
    board = replace(load("zcu104"), part='x"/><evil')
    with raises(InvalidValueError, what="part", got='x"/><evil'):
        hardware_description(replace(values("zcu104"), board=board))


# --- the streaming style


@pytest.mark.parametrize("name", DESIGNS)
def test_pynq_finds_the_dma_with_the_parameters_of_its_driver(name: str, tmp_path: Path) -> None:
    found = parsed(streaming(name), tmp_path)
    accelerator, dma = found.ip_dict["streaming_top_0"], found.ip_dict["axi_dma_0"]
    assert accelerator["type"] == "systolic:cnn:streaming_top:1.0"
    offsets = {key: entry["address_offset"] for key, entry in accelerator["registers"].items()}
    assert offsets == {register.name: register.offset for register in registers(STREAMS.arguments)}
    assert (accelerator["phys_addr"], dma["phys_addr"]) == tuple(load(name).control.base + at for at in (0, 0x10000))
    assert dma["type"] == "xilinx.com:ip:axi_dma:7.1"
    wanted = {"c_include_sg": "0", "c_sg_length_width": "26", "c_m_axi_mm2s_data_width": "64", "c_include_s2mm": "1"}
    assert {key: dma["parameters"][key] for key in wanted} == wanted
    assert dma["parameters"]["c_m_axi_s2mm_data_width"] == "32"
    assert found.interrupt_controllers == found.interrupt_pins == {}
    assert found.clock_dict[0]["enable"] == 1


def test_hardware_description_of_a_pipeline_has_dma_and_weights_without_interrupt() -> None:
    root = Xml.fromstring(hardware_description(streaming("zcu104")))
    modules = {module.get("INSTANCE"): module for module in root.iter("MODULE")}
    assert set(modules) == {"streaming_top_0", "axi_dma_0", "zynq_ultra_ps_e_0"}
    masters = [b.get("NAME") for m in modules.values() for b in m.iter("BUSINTERFACE") if b.get("TYPE") == "MASTER"]
    assert masters == ["m_axi_weights_conv1", "M_AXI_MM2S", "M_AXI_S2MM", "M_AXI_HPM0_FPD"]
    assert not list(root.iter("CONNECTION"))
