"""The files of a generated folder that the vendor's tools and their users read: Tcl, test bench, README.

Every text that reaches Tcl or C++ is either ours, or passes ``word`` (a closed set of characters, in Tcl braces) or
``comment`` (what is left of a name when nothing in it means anything to a tool).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from boards.errors import GenerateError
from hls_templates.engine import TOP
from hls_templates.registers import SLAVE, address_bits, arguments, bundles, registers
from hls_templates.render import comment, identifier, render

VENDOR, LIBRARY, VERSION = "systolic", "cnn", "1.0"
VLNV = f"{VENDOR}:{LIBRARY}:{TOP}:{VERSION}"
"""Vendor, library, name and version of the exported IP; the host binds its driver to it."""

ACCELERATOR, INTERRUPTS = f"{TOP}_0", "axi_intc_0"
"""Cells of the block design, and instances in the hardware description."""

SEGMENT_BYTES = 0x10000
"""What a control slave takes of the address map: the accelerator first, then the interrupt controller."""

LIGHT = ("program", "layers")
"""Bundles that carry a few kilobytes a layer."""

SOURCES_OF_FIGURES = ("executed", "traced", "computed", "estimate", "target")

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+ -]{0,199}\Z")
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.(?:cpp|h)\Z")

# Masters of the PS: the vendor's board preset enables several, and one without a clock does not validate.
_MASTERS = {
    "zynq_ultra_ps_e": ("PSU__USE__M_AXI_GP0", "PSU__USE__M_AXI_GP1", "PSU__USE__M_AXI_GP2"),
    "processing_system7": ("PCW_USE_M_AXI_GP0", "PCW_USE_M_AXI_GP1"),
}
_ALWAYS = {
    "zynq_ultra_ps_e": {"PSU__FPGA_PL0_ENABLE": "1", "PSU__USE__FABRIC__RST": "1"},
    "processing_system7": {"PCW_EN_CLK0_PORT": "1", "PCW_EN_RST0_PORT": "1", "PCW_IRQ_F2P_INTR": "1"},
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


class PortFacts(Protocol):
    """A slave port of the PS; ``boards.board.Port`` is one."""

    @property
    def name(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def enable(self) -> str: ...
    @property
    def width(self) -> str: ...
    @property
    def bits(self) -> int: ...
    @property
    def coherent(self) -> bool: ...
    @property
    def controller_port(self) -> int: ...


class ControlFacts(Protocol):
    """The master through which registers are reached; ``boards.board.Control`` is one."""

    @property
    def name(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def enable(self) -> str: ...
    @property
    def base(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class PsFacts(Protocol):
    """Names on the PS's Vivado IP; ``boards.board.Ps`` is one."""

    @property
    def ip(self) -> str: ...
    @property
    def vlnv(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def clock_mhz_key(self) -> str: ...
    @property
    def clock_source_key(self) -> str: ...
    @property
    def reset(self) -> str: ...
    @property
    def interrupt(self) -> str: ...
    @property
    def interrupt_key(self) -> str: ...


class ClockFacts(Protocol):
    """A PL clock that the PS produces; ``boards.board.Clock`` is one."""

    @property
    def mhz(self) -> float: ...
    @property
    def pll(self) -> str: ...
    @property
    def divisor0(self) -> int: ...
    @property
    def divisor1(self) -> int: ...


class BoardFacts(Protocol):
    """What of a board the vendor's tools are told; ``boards.board.Board`` is one."""

    @property
    def title(self) -> str: ...
    @property
    def part(self) -> str: ...
    @property
    def board_part(self) -> str: ...
    @property
    def ports(self) -> Sequence[PortFacts]: ...
    @property
    def control(self) -> ControlFacts: ...
    @property
    def ps(self) -> PsFacts: ...


@dataclass(frozen=True)
class Output:
    """A region of the map arena that data/expected.bin holds, in words of LANES bytes."""

    name: str
    base: int
    words: int


@dataclass(frozen=True)
class Figure:
    """A line of the README's table of figures. source: one of SOURCES_OF_FIGURES."""

    quantity: str
    value: str
    source: str


@dataclass(frozen=True)
class VendorValues:
    """What the files for the vendor's tools are made of.

    title: of the design, any text. sources: C++ files and headers of the engine, relative to the folder, with '/'.
    maps_words: words in the map arena. outputs: its regions that are compared, in the order of data/expected.bin.
    design: stem of the .bit and .hwh. simulation: folder of our own hls_stream.h and hls_burst_maxi.h.
    figures: what is known of the design, for the README.
    """

    title: str
    board: BoardFacts
    clock: ClockFacts
    map_ports: int
    weight_ports: int
    maps_words: int
    outputs: tuple[Output, ...]
    sources: tuple[str, ...]
    design: str = "systolic"
    simulation: str = "simulation"
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class PortUse:
    """A slave port of the PS and the m_axi bundles that share it."""

    port: PortFacts
    bundles: tuple[str, ...]


def vendor_files(values: VendorValues) -> dict[str, str]:
    """File name → text of run_hls.tcl, build_vivado.tcl, test_bench.cpp and README.md.

    GenerateError where a value holds what must not reach Tcl or C++, or where the board has no port for the maps.
    """
    check_values(values)
    fields = _fields(values)
    return {
        name: render(f"{name}.j2", fields)
        for name in ("run_hls.tcl", "build_vivado.tcl", "test_bench.cpp", "README.md")
    }


def port_plan(values: VendorValues) -> tuple[PortUse, ...]:
    """Which bundle goes through which port of the PS; ports that are not used are left out.

    Maps and weights share the non-coherent ports evenly, in their order. Where there are fewer bundles than ports,
    those are taken that lie on different ports of the DDR controller. Program and layers are few bytes: they take a
    coherent port where the board has one, and go on round the others where it has none.
    """
    wide = [port for port in values.board.ports if not port.coherent]
    if not wide:
        raise GenerateError(f"{values.board.title} has no high-performance port through which maps could be read")
    names = bundles(values.map_ports, values.weight_ports)
    heavy = [name for name in names if name not in LIGHT]
    taken = _apart(wide, len(heavy))
    shared: dict[str, list[str]] = {port.name: heavy[at :: len(taken)] for at, port in enumerate(taken)}
    light = [port for port in values.board.ports if port.coherent][:1] or wide
    for name in LIGHT:
        emptiest = min(light, key=lambda port: len(shared.get(port.name, ())))
        shared.setdefault(emptiest.name, []).append(name)
    return tuple(PortUse(port, tuple(shared[port.name])) for port in values.board.ports if port.name in shared)


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
    board, ps = values.board, values.board.ps
    plan = port_plan(values)
    return {
        "title": comment(values.title),
        "board": comment(board.title),
        "part": word(board.part, "part"),
        "board_part": word(board.board_part, "board_part"),
        "clock_mhz": megahertz(values.clock.mhz),
        "clock_ns": f"{1000 / values.clock.mhz:.6f}",
        "ip": {"vendor": VENDOR, "library": LIBRARY, "name": TOP, "version": VERSION, "vlnv": VLNV},
        "top": TOP,
        "cells": {"accelerator": ACCELERATOR, "interrupts": INTERRUPTS, "ps": identifier(f"{ps.ip}_0")},
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
        "interrupts_base": f"0x{board.control.base + SEGMENT_BYTES:08X}",
        "segment": f"0x{SEGMENT_BYTES:X}",
        "plan": [(identifier(use.port.name), identifier(use.port.clock), use.port.bits, use.bundles) for use in plan],
        "arguments": arguments(values.map_ports, values.weight_ports),
        "registers": registers(values.map_ports, values.weight_ports),
        "address_bits": address_bits(registers(values.map_ports, values.weight_ports)),
        "map_ports": values.map_ports,
        "weight_ports": values.weight_ports,
        "maps_words": values.maps_words,
        "outputs": [Output(comment(out.name), out.base, out.words) for out in values.outputs],
        "units": [path for path in values.sources if path.endswith(".cpp")],
        "includes": sorted({path.rpartition("/")[0] or "." for path in values.sources}),
        "simulation": identifier(values.simulation),
        "design": identifier(values.design),
        "figures": [Figure(_plain(f.quantity), _plain(f.value), f.source) for f in values.figures],
    }


def _config(values: VendorValues, plan: Sequence[PortUse]) -> dict[str, str]:
    """CONFIG keys of the PS: one master, the ports in use at their width, the clock and the interrupt."""
    ps, control = values.board.ps, values.board.control
    used = {use.port.name for use in plan}
    config = dict(_ALWAYS[ps.ip])
    config |= dict.fromkeys(_MASTERS[ps.ip], "0")
    config[control.enable] = "1"
    for port in values.board.ports:
        config[port.enable] = str(int(port.name in used))
        if port.name in used:
            config[port.width] = str(port.bits)
    config[ps.clock_source_key] = values.clock.pll
    config[ps.clock_mhz_key] = megahertz(values.clock.mhz)
    config[ps.interrupt_key] = "1"
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
    _check_outputs(values)
    _check_figures(values.figures)


def _check_sources(sources: Sequence[str]) -> None:
    for path in sources:
        if not _PATH.match(path):
            raise GenerateError(
                "a source is a .cpp or .h file below the folder, named with letters, digits and '_.-', "
                f"not {path!r}"
            )
    if not any(path.endswith(".cpp") for path in sources):
        raise GenerateError("the sources must hold at least one .cpp file for synthesis, there is none")


def _check_outputs(values: VendorValues) -> None:
    if not values.outputs:
        raise GenerateError("the test bench must compare at least one output, none is given")
    for out in values.outputs:
        if out.base < 0 or out.words < 1 or out.base + out.words > values.maps_words:
            raise GenerateError(
                f"output {comment(out.name)!r} must lie within the {values.maps_words} words of the map arena, "
                f"it has {out.words} words from {out.base}"
            )


def _check_figures(figures: Sequence[Figure]) -> None:
    for figure in figures:
        if figure.source not in SOURCES_OF_FIGURES:
            raise GenerateError(
                f"the source of {comment(figure.quantity)!r} must be one of {', '.join(SOURCES_OF_FIGURES)}, "
                f"not {figure.source!r}"
            )

