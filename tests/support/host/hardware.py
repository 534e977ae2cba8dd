"""The smallest .hwh files, as Vivado writes them, from which pynq makes an overlay with the accelerator."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from boards.errors import SystolicError
from hls_templates.vendor.ports import SystolicPorts
from hls_templates.vendor.registers import SLAVE, Register, registers
from host.pipeline import FrameError
from tests.support.host.manifests import manifest_fields

Open = Callable[..., Any]
"""The type of the fixture that opens a folder with options. The fixture also closes the accelerator."""

SELDOM = 0.9995
"""A confidence threshold that few boxes of a random network exceed, for tests in which boxes do not matter."""

BASE, INTERRUPTS = 0xA0000000, 0xA0010000


def through(yolo: Any, frames: Any, **options: Any) -> tuple[list[Any], Any]:
    """Return the results of a stream, and the error that ended it or None."""
    results: list[Any] = []
    try:
        results.extend(yolo.stream(frames, **options))
    except FrameError as error:
        return results, error
    return results, None


def check_cause(error: object, kind: type[SystolicError], fields: Mapping[str, str]) -> None:
    """Check that a stream ended with an error of this class. Each field matches a regular expression."""
    assert isinstance(error, FrameError)
    assert type(error.cause) is kind, error
    for name, pattern in fields.items():
        assert re.match(pattern, getattr(error.cause, name)), (name, error)


def faulty(kind: str, **options: Any) -> Any:
    from host.simulated.faults import InjectedFault

    return InjectedFault(kind, **options)


def described(folder: Path) -> Path:
    """Write a .hwh into the folder if it has none, and return the folder."""
    if not [*folder.glob("*.hwh"), *folder.glob("*/*.hwh")]:
        array = manifest_fields(folder)["array"]
        (folder / "design.hwh").write_text(description(array["map_ports"], array["weight_ports"]))
    return folder


def description(map_ports: int, weight_ports: int, *, interrupt: bool = True) -> str:
    accelerator = _module(
        "systolic_top_0",
        "systolic:cnn:systolic_top:1.0",
        _bus(SLAVE, "SLAVE"),
        _port("interrupt", "O", "axi_intc_0", "intr") if interrupt else "",
        registers(SystolicPorts(map_ports, weight_ports, 1, ()).arguments),
    )
    controller = _module(
        "axi_intc_0",
        "xilinx.com:ip:axi_intc:4.1",
        _bus("s_axi", "SLAVE"),
        _port("intr", "I", "systolic_top_0", "interrupt") + _port("irq", "O", "zynq_ultra_ps_e_0", "pl_ps_irq0"),
    )
    modules = accelerator + (controller if interrupt else "") + _processor(interrupt)
    return (
        '<?xml version="1.0"?><EDKSYSTEM><SYSTEMINFO ARCH="zynquplus" DEVICE="xczu7ev" NAME="design"/>'
        f"<EXTERNALPORTS/><EXTERNALINTERFACES/><MODULES>{modules}</MODULES></EDKSYSTEM>"
    )


def streaming_description() -> str:
    """Return the .hwh of an AXI DMA without an accelerator, with a length register of 26 bits."""
    parameters = {f"c_include_{way}": 1 for way in ("mm2s", "s2mm")} | {"c_include_sg": 0, "c_sg_length_width": 26}
    parameters |= {f"c_include_{way}_dre": 0 for way in ("mm2s", "s2mm")} | {"c_micro_dma": 0}
    parameters |= {f"c_m_axi_{way}_data_width": 64 for way in ("mm2s", "s2mm")}
    bus = _bus("S_AXI_LITE", "SLAVE") + _bus("M_AXI_MM2S", "MASTER") + _bus("M_AXI_S2MM", "MASTER")
    dma = _module("axi_dma_0", "xilinx.com:ip:axi_dma:7.1", bus, "", parameters=parameters)
    modules = dma + _processor(False, _range("axi_dma_0", "S_AXI_LITE", BASE))
    return (
        '<?xml version="1.0"?><EDKSYSTEM><SYSTEMINFO ARCH="zynquplus" DEVICE="xczu7ev" NAME="design"/>'
        f"<EXTERNALPORTS/><EXTERNALINTERFACES/><MODULES>{modules}</MODULES></EDKSYSTEM>"
    )


def _processor(interrupt: bool, ranges: str = "") -> str:
    ranges = ranges or _range("systolic_top_0", SLAVE, BASE)
    ranges += _range("axi_intc_0", "s_axi", INTERRUPTS) if interrupt else ""
    clocks = ""
    for i in range(4):
        stem = f"PSU__CRL_APB__PL{i}_REF_CTRL__"
        values = {f"{stem}DIVISOR0": 8, f"{stem}DIVISOR1": 1, f"{stem}SRCSEL": "IOPLL", f"{stem}ACT_FREQMHZ": 187.5}
        values[f"PSU__FPGA_PL{i}_ENABLE"] = int(i == 0)
        clocks += "".join(f'<PARAMETER NAME="{name}" VALUE="{value}"/>' for name, value in values.items())
    ports = _port("pl_ps_irq0", "I", "axi_intc_0", "irq") if interrupt else ""
    return (
        '<MODULE FULLNAME="/zynq_ultra_ps_e_0" INSTANCE="zynq_ultra_ps_e_0" MODTYPE="zynq_ultra_ps_e" '
        f'VLNV="xilinx.com:ip:zynq_ultra_ps_e:3.5"><PARAMETERS>{clocks}</PARAMETERS><PORTS>{ports}</PORTS>'
        f"<BUSINTERFACES>{_bus('M_AXI_HPM0_FPD', 'MASTER')}</BUSINTERFACES><MEMORYMAP>{ranges}</MEMORYMAP></MODULE>"
    )


def _module(
    name: str,
    vlnv: str,
    bus: str,
    ports: str,
    found: Sequence[Register] = (),
    parameters: Mapping[str, object] | None = None,
) -> str:
    inner = "".join(map(_register, found))
    block = f'<ADDRESSBLOCK INTERFACE="{SLAVE}" USAGE="register"><REGISTERS>{inner}</REGISTERS></ADDRESSBLOCK>'
    blocks = f"<ADDRESSBLOCKS>{block}</ADDRESSBLOCKS>" if found else ""
    values = "".join(f'<PARAMETER NAME="{key}" VALUE="{value}"/>' for key, value in (parameters or {}).items())
    return (
        f'<MODULE FULLNAME="/{name}" INSTANCE="{name}" MODTYPE="{vlnv.split(":")[2]}" VLNV="{vlnv}">{blocks}'
        f"<PARAMETERS>{values}</PARAMETERS><PORTS>{ports}</PORTS><BUSINTERFACES>{bus}</BUSINTERFACES></MODULE>"
    )


def _register(one: Register) -> str:
    fields = "".join(
        f"<FIELD NAME={quoteattr(f.name)}>{_property('BIT_OFFSET', f.bit)}{_property('BIT_WIDTH', f.width)}"
        f"{_property('ACCESS', f.access)}</FIELD>"
        for f in one.fields
    )
    facts = _property("ADDRESS_OFFSET", hex(one.offset)) + _property("SIZE", 32) + _property("ACCESS", one.access)
    return f"<REGISTER NAME={quoteattr(one.name)}>{facts}<FIELDS>{fields}</FIELDS></REGISTER>"


def _property(name: str, value: object) -> str:
    return f'<PROPERTY NAME="{name}" VALUE="{value}"/>'


def _bus(name: str, kind: str) -> str:
    return f'<BUSINTERFACE NAME="{name}" TYPE="{kind}" VLNV="xilinx.com:interface:aximm:1.0"/>'


def _port(name: str, way: str, other: str, at: str) -> str:
    to = f'<CONNECTIONS><CONNECTION INSTANCE="{other}" PORT="{at}"/></CONNECTIONS>'
    return f'<PORT DIR="{way}" NAME="{name}" SIGIS="undef">{to}</PORT>'


def _range(name: str, bus: str, base: int) -> str:
    return (
        f'<MEMRANGE ADDRESSBLOCK="Reg" BASEVALUE="{base:#x}" HIGHVALUE="{base + 0xFFFF:#x}" INSTANCE="{name}" '
        f'MASTERBUSINTERFACE="M_AXI_HPM0_FPD" MEMTYPE="REGISTER" SLAVEBUSINTERFACE="{bus}"/>'
    )
