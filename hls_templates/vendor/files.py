"""The files of a generated folder that the vendor's tools and their users read: Tcl, test bench, README.

Every text that reaches Tcl or C++ is either ours, or passes ``word`` (a closed set of characters, in Tcl braces) or
``comment`` (what is left of a name when nothing in it means anything to a tool).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from boards.errors import GenerateError
from hls_templates.render import comment, identifier, render
from hls_templates.vendor.board_facts import BoardFacts, ClockFacts, PortFacts
from hls_templates.vendor.ports import (
    BURST_BEATS,
    BURST_BYTES,
    DMA,
    INTERRUPTS,
    LENGTH_BITS,
    LIBRARY,
    VENDOR,
    VERSION,
    Output,
    Ports,
    StreamingPorts,
    SystolicPorts,
)
from hls_templates.vendor.registers import SLAVE, address_bits, bundles, registers

SEGMENT_BYTES = 0x10000
"""What a control slave takes of the address map: the accelerator first, then what is beside it."""

SOURCES_OF_FIGURES = ("executed", "traced", "computed", "estimate", "target")

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+ -]{0,199}\Z")
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.(?:cpp|h)\Z")

# Masters of the PS: the vendor's board preset enables several, and one without a clock does not validate.
_MASTERS = {
    "zynq_ultra_ps_e": ("PSU__USE__M_AXI_GP0", "PSU__USE__M_AXI_GP1", "PSU__USE__M_AXI_GP2"),
    "processing_system7": ("PCW_USE_M_AXI_GP0", "PCW_USE_M_AXI_GP1"),
}
_WIRE = "PCW_IRQ_F2P_INTR"
_ALWAYS = {
    "zynq_ultra_ps_e": {"PSU__FPGA_PL0_ENABLE": "1", "PSU__USE__FABRIC__RST": "1"},
    "processing_system7": {"PCW_EN_CLK0_PORT": "1", "PCW_EN_RST0_PORT": "1", _WIRE: "1"},
}
_PRESET = {
    "zynq_ultra_ps_e": ("xilinx.com:bd_rule:zynq_ultra_ps_e", (("apply_board_preset", "1"),)),
    "processing_system7": (
        "xilinx.com:bd_rule:processing_system7",
        (
            ("make_external", "FIXED_IO, DDR"),
            ("apply_board_preset", "1"),
            ("Master", "Disable"),
            ("Slave", "Disable"),
        ),
    ),
}


@dataclass(frozen=True)
class Figure:
    """A line of the README's table of figures. source: one of SOURCES_OF_FIGURES."""

    quantity: str
    value: str
    source: str


@dataclass(frozen=True)
class VendorValues:
    """What the files for the vendor's tools are made of.

    title: of the design, any text. ports: of the top function. sources: its C++ files and headers, relative to the
    folder, with '/'. design: stem of the .bit and .hwh. simulation: folder of our own hls_stream.h and
    hls_burst_maxi.h. figures: what is known of the design, for the README.
    """

    title: str
    board: BoardFacts
    clock: ClockFacts
    ports: Ports
    sources: tuple[str, ...]
    design: str = "systolic"
    simulation: str = "simulation"
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Master:
    """What reads or writes DDR: interface ``pin`` of ``cell``."""

    cell: str
    pin: str

    def __str__(self) -> str:
        return f"{self.cell}/{self.pin}"


@dataclass(frozen=True)
class PortUse:
    """A slave port of the PS and the masters that share it."""

    port: PortFacts
    masters: tuple[Master, ...]


_TEMPLATES = {
    "run_hls.tcl": "vendor/run_hls.tcl.j2",
    "build_vivado.tcl": "vendor/build_vivado.tcl.j2",
    "README.md": "vendor/README.md.j2",
}
_TEST_BENCHES = {SystolicPorts: "systolic/test_bench.cpp.j2", StreamingPorts: "streaming/test_bench.cpp.j2"}


def vendor_files(values: VendorValues) -> dict[str, str]:
    """File name → text of run_hls.tcl, build_vivado.tcl, test_bench.cpp and README.md.

    GenerateError where a value holds what must not reach Tcl or C++, or where the board has no port for the maps.
    """
    check_values(values)
    fields = _fields(values)
    templates = {**_TEMPLATES, "test_bench.cpp": _TEST_BENCHES[type(values.ports)]}
    return {name: render(template, fields) for name, template in templates.items()}


def port_plan(values: VendorValues) -> tuple[PortUse, ...]:
    """Which master goes through which port of the PS; ports that are not used are left out.

    What carries maps and weights shares the non-coherent ports evenly, in its order. Where there are fewer masters
    than ports, those are taken that lie on different ports of the DDR controller. What carries a few bytes takes a
    coherent port where the board has one, and goes on round the others where it has none.
    """
    wide = [port for port in values.board.ports if not port.coherent]
    if not wide:
        raise GenerateError(f"{values.board.title} has no high-performance port through which maps could be read")
    heavy, small = _masters(values.ports)
    taken = _apart(wide, len(heavy))
    shared: dict[str, list[Master]] = {port.name: heavy[at :: len(taken)] for at, port in enumerate(taken)}
    light = [port for port in values.board.ports if port.coherent][:1] or wide
    for master in small:
        emptiest = min(light, key=lambda port: len(shared.get(port.name, ())))
        shared.setdefault(emptiest.name, []).append(master)
    return tuple(PortUse(port, tuple(shared[port.name])) for port in values.board.ports if port.name in shared)


def _masters(ports: Ports) -> tuple[list[Master], list[Master]]:
    """Those that carry maps and weights, and those that carry a few bytes."""
    heavy = [Master(DMA, pin) for pin in ("M_AXI_MM2S", "M_AXI_S2MM")] if isinstance(ports, StreamingPorts) else []
    small: list[Master] = []
    for bundle in bundles(ports.arguments):
        (small if bundle in ports.light else heavy).append(Master(ports.cell, f"m_axi_{bundle}"))
    return heavy, small


def _apart(ports: Sequence[PortFacts], count: int) -> list[PortFacts]:
    """At most ``count`` ports in their order, of different ports of the DDR controller while there are any."""
    seen: dict[int, int] = {}
    turn: list[tuple[int, int, PortFacts]] = []
    for index, port in enumerate(ports):
        turn.append((seen.get(port.controller_port, 0), index, port))
        seen[port.controller_port] = seen.get(port.controller_port, 0) + 1
    chosen = sorted(turn, key=lambda entry: entry[:2])[:count]
    return [port for _, _, port in sorted(chosen, key=lambda entry: entry[1])]


def word(text: str, what: str) -> str:
    """``text`` as one Tcl word in braces, where every character of it is harmless; GenerateError else."""
    if not _WORD.match(text):
        raise GenerateError(
            f"{what} goes into Tcl and is made of letters, digits, spaces and '_.:/+-' (200 at most), not {text!r}"
        )
    return "{" + text + "}"


def megahertz(mhz: float) -> str:
    """To 1 kHz, as a person would ask for it: 300 where a crystal of 33.333333 MHz gives 299.999997."""
    return f"{mhz:.3f}".rstrip("0").rstrip(".")


# --- what the templates read -------------------------------------------------------------------------------


def _fields(values: VendorValues) -> dict[str, object]:
    board, ps, ports = values.board, values.board.ps, values.ports
    plan = port_plan(values)
    found = registers(ports.arguments)
    return {
        "title": comment(values.title),
        "board": comment(board.title),
        "part": word(board.part, "part"),
        "board_part": word(board.board_part, "board_part"),
        "clock_mhz": megahertz(values.clock.mhz),
        "clock_ns": f"{1000 / values.clock.mhz:.6f}",
        "ip": {"vendor": VENDOR, "library": LIBRARY, "name": ports.top, "version": VERSION, "vlnv": ports.vlnv},
        "top": ports.top,
        "cells": {"accelerator": ports.cell, "interrupts": INTERRUPTS, "ps": identifier(f"{ps.ip}_0")},
        "slave": SLAVE,
        "ps": {
            "kind": ps.ip,
            "vlnv": word(ps.vlnv, "ps.vlnv"),
            "clock": identifier(ps.clock),
            "reset": identifier(ps.reset),
            "interrupt": identifier(ps.interrupt),
        },
        "preset_rule": _PRESET[ps.ip][0],
        "preset": _PRESET[ps.ip][1],
        "config": [(identifier(key), word(value, key)) for key, value in _config(values, plan).items()],
        "control": {"name": identifier(board.control.name), "clock": identifier(board.control.clock)},
        "base": f"0x{board.control.base:08X}",
        "second_base": f"0x{board.control.base + SEGMENT_BYTES:08X}",
        "segment": f"0x{SEGMENT_BYTES:X}",
        "plan": [(identifier(use.port.name), identifier(use.port.clock), use.port.bits, use.masters) for use in plan],
        "arguments": ports.arguments,
        "registers": found,
        "address_bits": address_bits(found),
        **_style_fields(ports),
        "units": [path for path in values.sources if path.endswith(".cpp")],
        "includes": sorted({path.rpartition("/")[0] or "." for path in values.sources}),
        "simulation": identifier(values.simulation),
        "design": identifier(values.design),
        "figures": [Figure(_plain(f.quantity), _plain(f.value), f.source) for f in values.figures],
    }


def _style_fields(ports: Ports) -> dict[str, object]:
    """What only one style has. dma: its cell and CONFIG keys; None where there is an interrupt controller."""
    if isinstance(ports, StreamingPorts):
        return {
            "dma": {"cell": DMA, "slave": ports.beside[1], "config": dma_config(ports)},
            "packet_in": ports.packet_in,
            "packet_out": ports.packet_out,
            "external": ports.external,
        }
    return {
        "dma": None,
        "map_ports": ports.map_ports,
        "weight_ports": ports.weight_ports,
        "maps_words": ports.maps_words,
        "outputs": [Output(comment(out.name), out.base, out.words) for out in ports.outputs],
    }


def dma_config(ports: StreamingPorts) -> dict[str, int]:
    """CONFIG keys of AXI DMA: direct register mode, a beat as wide as the accelerator's, addresses above 4 GB.

    Without realignment: buffers start at pages, and a packet may end within a beat nevertheless (PG021).
    """
    beats = {"mm2s": ports.packet_in.beat, "s2mm": ports.packet_out.beat}
    config = {"c_include_sg": 0, "c_sg_include_stscntrl_strm": 0, "c_micro_dma": 0}
    config |= {"c_sg_length_width": LENGTH_BITS, "c_addr_width": 64}
    for way, beat in beats.items():
        config[f"c_include_{way}"] = 1
        config[f"c_include_{way}_dre"] = 0
        config[f"c_m_axi_{way}_data_width"] = max(32, 8 * beat)
        config[f"c_{way}_burst_size"] = min(BURST_BEATS, BURST_BYTES // beat)
    # The width of the other stream follows from what it is connected to.
    return {**config, "c_m_axis_mm2s_tdata_width": 8 * beats["mm2s"]}


def _config(values: VendorValues, plan: Sequence[PortUse]) -> dict[str, str]:
    """CONFIG keys of the PS: one master, the ports in use at their width, the clock and the interrupt."""
    ps, control = values.board.ps, values.board.control
    used = {use.port.name for use in plan}
    interrupt = not isinstance(values.ports, StreamingPorts)
    config = {key: value for key, value in _ALWAYS[ps.ip].items() if interrupt or key != _WIRE}
    config |= dict.fromkeys(_MASTERS[ps.ip], "0")
    config[control.enable] = "1"
    for port in values.board.ports:
        config[port.enable] = str(int(port.name in used))
        if port.name in used:
            config[port.width] = str(port.bits)
    config[ps.clock_source_key] = values.clock.pll
    config[ps.clock_mhz_key] = megahertz(values.clock.mhz)
    config[ps.interrupt_key] = str(int(interrupt))
    return config


def _plain(text: str) -> str:
    """For a cell of a Markdown table."""
    return comment(text).replace("|", "_").replace("<", "_").replace(">", "_")


# --- what is refused ---------------------------------------------------------------------------------------


def check_values(values: VendorValues) -> None:
    """GenerateError where a value cannot be what its name says."""
    if values.board.ps.ip not in _MASTERS:
        raise GenerateError(f"the PS must be {' or '.join(sorted(_MASTERS))}, not {values.board.ps.ip!r}")
    if not (math.isfinite(values.clock.mhz) and 1 <= values.clock.mhz <= 1000):
        raise GenerateError(f"the clock must be 1 to 1000 MHz, not {values.clock.mhz}")
    if values.board.control.bytes < 2 * SEGMENT_BYTES:
        raise GenerateError(
            f"the control window must hold two segments of {SEGMENT_BYTES} bytes, "
            f"but {values.board.control.name} has {values.board.control.bytes}"
        )
    _check_sources(values.sources)
    values.ports.check()
    _check_figures(values.figures)


def _check_sources(sources: Sequence[str]) -> None:
    for path in sources:
        if not _PATH.match(path):
            raise GenerateError(
                f"a source is a .cpp or .h file below the folder, named with letters, digits and '_.-', not {path!r}"
            )
    if not any(path.endswith(".cpp") for path in sources):
        raise GenerateError("the sources must hold at least one .cpp file for synthesis, there is none")


def _check_figures(figures: Sequence[Figure]) -> None:
    for figure in figures:
        if figure.source not in SOURCES_OF_FIGURES:
            raise GenerateError(
                f"the source of {comment(figure.quantity)!r} must be one of {', '.join(SOURCES_OF_FIGURES)}, "
                f"not {figure.source!r}"
            )
