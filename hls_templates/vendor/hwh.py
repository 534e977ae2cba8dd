"""Writes the hardware description (.hwh) of a design that no vendor tool has built yet, for the simulated board.

It has the same cells, addresses, clock and interrupt as build_vivado.tcl, from the same values. ``registers`` predicts
the registers that Vitis HLS makes. pynq's own parser reads the file. It needs only MODULES with PARAMETERS, PORTS with
CONNECTIONS, BUSINTERFACES, and the PS's MEMORYMAP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as Xml

from boards.templates import identifier
from hls_templates.vendor.block_design import dma_config, port_plan
from hls_templates.vendor.ports import DMA, INTERRUPTS, Ports
from hls_templates.vendor.registers import CONTROL, SLAVE, Register, address_bits, bundles, registers
from hls_templates.vendor.values import SEGMENT_BYTES, VendorValues, check_values, megahertz, word

_PS_VERSIONS = {"zynq_ultra_ps_e": "3.5", "processing_system7": "5.5"}
_ARCHITECTURES = {"zynq_ultra_ps_e": "zynquplus", "processing_system7": "zynq"}
_PL_CLOCKS = 4
_INTERRUPT_REGISTERS = ("ISR", "IPR", "IER", "IAR", "SIE", "CIE", "IVR", "MER")
"""The registers of axi_intc, one word each from address 0 (PG099)."""


def hardware_description(values: VendorValues) -> str:
    """Return the design's hardware description (.hwh) as XML text. Equal values give equal bytes. Raises the same
    errors as ``vendor_files``."""
    check_values(values)
    root = Xml.Element("EDKSYSTEM", EDWVERSION="1.2")
    part = word(values.board.part, "part")[1:-1]
    ip = values.board.ps.ip
    Xml.SubElement(root, "SYSTEMINFO", ARCH=_ARCHITECTURES[ip], DEVICE=part, NAME=identifier(values.design))
    Xml.SubElement(root, "EXTERNALPORTS")
    Xml.SubElement(root, "EXTERNALINTERFACES")
    modules = Xml.SubElement(root, "MODULES")
    second = _dma(values.ports) if values.ports.dma else _interrupts(values)
    modules.extend([_accelerator(values), second, _ps(values)])
    Xml.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, "unicode") + "\n"


# --- modules -----------------------------------------------------------------------------------------------


def _accelerator(values: VendorValues) -> Xml.Element:
    ports = values.ports
    register_map = registers(ports.arguments)
    module = _module(ports.cell, ports.vlnv)
    _register_block(module, SLAVE, register_map)
    _parameters(module, {"C_S_AXI_CONTROL_ADDR_WIDTH": address_bits(register_map), "C_S_AXI_CONTROL_DATA_WIDTH": 32})
    _ports(module, [] if ports.dma else [("interrupt", "O", INTERRUPTS, "intr")])
    masters = [f"m_axi_{bundle}" for bundle in bundles(ports.arguments)]
    _interfaces(module, {SLAVE: "SLAVE", **dict.fromkeys(masters, "MASTER")})
    return module


def _interrupts(values: VendorValues) -> Xml.Element:
    ps = values.board.ps
    module = _module(INTERRUPTS, "xilinx.com:ip:axi_intc:4.1")
    words = [Register(name, 4 * i, "read-write", name) for i, name in enumerate(_INTERRUPT_REGISTERS)]
    _register_block(module, "s_axi", words)
    _parameters(module, {"C_NUM_INTR_INPUTS": 1, "C_IRQ_CONNECTION": 1})
    _ports(
        module,
        [("intr", "I", values.ports.cell, "interrupt"), ("irq", "O", f"{ps.ip}_0", identifier(ps.interrupt))],
    )
    _interfaces(module, {"s_axi": "SLAVE"})
    return module


def _dma(ports: Ports) -> Xml.Element:
    module = _module(DMA, "xilinx.com:ip:axi_dma:7.1")
    words = [
        Register(f"{channel}_{name}", base + offset, "read-write", f"{channel} {name}")
        for base, channel, address in ((0x00, "MM2S", "SA"), (0x30, "S2MM", "DA"))
        for name, offset in (
            ("DMACR", 0x00),
            ("DMASR", 0x04),
            (address, 0x18),
            (f"{address}_MSB", 0x1C),
            ("LENGTH", 0x28),
        )
    ]
    slave = ports.second_slave[1]
    _register_block(module, slave, words)
    assert ports.dma is not None  # the caller has checked this
    _parameters(module, dma_config(ports.dma))
    _ports(module, [])
    _interfaces(module, {slave: "SLAVE", "M_AXI_MM2S": "MASTER", "M_AXI_S2MM": "MASTER"})
    return module


def _ps(values: VendorValues) -> Xml.Element:
    board, ps = values.board, values.board.ps
    module = _module(f"{ps.ip}_0", f"xilinx.com:ip:{ps.ip}:{_PS_VERSIONS[ps.ip]}")
    clocks = _ultrascale_clocks(values) if ps.ip == "zynq_ultra_ps_e" else _zynq7_clocks(values)
    widths = {identifier(use.port.width): use.port.bits for use in port_plan(values)}
    _parameters(module, {**clocks, **widths})
    _ports(module, [] if values.ports.dma else [(identifier(ps.interrupt), "I", INTERRUPTS, "irq")])
    slaves = {identifier(use.port.name): "SLAVE" for use in port_plan(values)}
    _interfaces(module, {identifier(board.control.name): "MASTER", **slaves})
    memory = Xml.SubElement(module, "MEMORYMAP")
    for index, (cell, slave) in enumerate(((values.ports.cell, SLAVE), values.ports.second_slave)):
        _range(memory, board.control.name, cell, slave, board.control.base + index * SEGMENT_BYTES)
    return module


def _ultrascale_clocks(values: VendorValues) -> dict[str, object]:
    """Return the PS settings of all four PL clocks of an UltraScale+. Only clock 0 runs, but pynq reads the dividers of
    all."""
    settings: dict[str, object] = {}
    for index in range(_PL_CLOCKS):
        settings[f"PSU__FPGA_PL{index}_ENABLE"] = int(index == 0)
        keys = f"PSU__CRL_APB__PL{index}_REF_CTRL__"
        settings[keys + "DIVISOR0"] = values.clock.divisor0
        settings[keys + "DIVISOR1"] = values.clock.divisor1
        settings[keys + "SRCSEL"] = values.clock.pll
        settings[keys + "ACT_FREQMHZ"] = megahertz(values.clock.mhz)
    return settings


def _zynq7_clocks(values: VendorValues) -> dict[str, object]:
    settings: dict[str, object] = {}
    for index in range(_PL_CLOCKS):
        settings[f"PCW_FPGA_FCLK{index}_ENABLE"] = int(index == 0)
        settings[f"PCW_FCLK{index}_PERIPHERAL_DIVISOR0"] = values.clock.divisor0
        settings[f"PCW_FCLK{index}_PERIPHERAL_DIVISOR1"] = values.clock.divisor1
        settings[f"PCW_FCLK{index}_PERIPHERAL_CLKSRC"] = values.clock.pll
        settings[f"PCW_ACT_FPGA{index}_PERIPHERAL_FREQMHZ"] = megahertz(values.clock.mhz)
    return settings


# --- XML ---------------------------------------------------------------------------------------------------


def _module(instance: str, vlnv: str) -> Xml.Element:
    kind, version = vlnv.split(":")[2:]
    return Xml.Element(
        "MODULE",
        FULLNAME=f"/{instance}",
        HWVERSION=version,
        INSTANCE=instance,
        IPTYPE="PERIPHERAL",
        IS_ENABLE="1",
        MODCLASS="PERIPHERAL",
        MODTYPE=kind,
        VLNV=vlnv,
    )


def _register_block(module: Xml.Element, interface: str, register_map: Iterable[Register]) -> None:
    block = Xml.SubElement(
        Xml.SubElement(module, "ADDRESSBLOCKS"),
        "ADDRESSBLOCK",
        ACCESS="read-write",
        INTERFACE=interface,
        NAME="Reg",
        RANGE=str(SEGMENT_BYTES),
        USAGE="register",
    )
    parent = Xml.SubElement(block, "REGISTERS")
    for register in register_map:
        _register(parent, register)


def _register(parent: Xml.Element, register: Register) -> None:
    element = Xml.SubElement(parent, "REGISTER", NAME=register.name)
    _properties(
        element,
        DESCRIPTION=register.description,
        ADDRESS_OFFSET=f"0x{register.offset:02x}",
        SIZE="32",
        ACCESS=register.access,
        IS_ENABLED="true",
        RESET_VALUE="4" if register is CONTROL[0] else "0",  # AP_IDLE
    )
    fields = Xml.SubElement(element, "FIELDS")
    for field in register.fields:
        _properties(
            Xml.SubElement(fields, "FIELD", NAME=field.name),
            DESCRIPTION=field.description,
            BIT_OFFSET=str(field.bit),
            BIT_WIDTH=str(field.width),
            ACCESS=field.access,
        )


def _properties(element: Xml.Element, **properties: str) -> None:
    for name, value in properties.items():
        Xml.SubElement(element, "PROPERTY", NAME=name, VALUE=value)


def _parameters(module: Xml.Element, parameters: Mapping[str, object]) -> None:
    parent = Xml.SubElement(module, "PARAMETERS")
    for name, value in parameters.items():
        Xml.SubElement(parent, "PARAMETER", NAME=name, VALUE=str(value))


def _ports(module: Xml.Element, ports: Iterable[tuple[str, str, str, str]]) -> None:
    """Add ports to a module's XML. Each port is (name, direction, the cell at the other end, that cell's port)."""
    parent = Xml.SubElement(module, "PORTS")
    for name, direction, cell, cell_port in ports:
        port = Xml.SubElement(parent, "PORT", DIR=direction, NAME=name, SIGIS="INTERRUPT")
        Xml.SubElement(Xml.SubElement(port, "CONNECTIONS"), "CONNECTION", INSTANCE=cell, PORT=cell_port)


def _interfaces(module: Xml.Element, interfaces: Mapping[str, str]) -> None:
    parent = Xml.SubElement(module, "BUSINTERFACES")
    for name, kind in interfaces.items():
        Xml.SubElement(parent, "BUSINTERFACE", NAME=name, TYPE=kind, VLNV="xilinx.com:interface:aximm:1.0")


def _range(parent: Xml.Element, master: str, cell: str, slave: str, base: int) -> None:
    Xml.SubElement(
        parent,
        "MEMRANGE",
        ADDRESSBLOCK="Reg",
        BASEVALUE=f"0x{base:010X}",
        HIGHVALUE=f"0x{base + SEGMENT_BYTES - 1:010X}",
        INSTANCE=cell,
        MASTERBUSINTERFACE=identifier(master),
        MEMTYPE="REGISTER",
        SLAVEBUSINTERFACE=slave,
    )
