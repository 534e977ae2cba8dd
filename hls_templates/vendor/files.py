"""Writes the files of a design for the vendor's tools and their users: Tcl, test bench, README.

Text that is pasted into Tcl or C++ comes from this project, or passes one of two functions. ``word`` accepts only
harmless characters and puts the text into Tcl braces. ``comment`` removes all characters with a meaning to a tool.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from boards.errors import DoesNotFitError, InvalidValueError
from boards.templates import comment, identifier
from hls_templates.render import render
from hls_templates.reserved import hardware_name
from hls_templates.vendor.block_design import BLOCK_DESIGN, PRESETS, dma_config, port_plan, ps_config
from hls_templates.vendor.floorplan import Block, blocks, place
from hls_templates.vendor.ports import (
    CLOCKS,
    DMA,
    INTERRUPTS,
    LIBRARY,
    VENDOR,
    VERSION,
    Ports,
    StreamingPorts,
    SystolicPorts,
)
from hls_templates.vendor.registers import SLAVE, address_bits, bundles, registers
from hls_templates.vendor.values import SEGMENT_BYTES, Figure, VendorValues, check_values, megahertz, word

_TEMPLATES = {
    "run_hls.tcl": "vendor/run_hls.tcl.j2",
    "build_vivado.tcl": "vendor/build_vivado.tcl.j2",
    "README.md": "vendor/README.md.j2",
}
_RTL_TEMPLATES = {
    "package_ip.tcl": "vendor/package_ip.tcl.j2",
    "clocks_ooc.xdc": "vendor/clocks_ooc.xdc.j2",
    "timing.xdc": "vendor/timing.xdc.j2",
    "build_vivado.tcl": "vendor/build_vivado.tcl.j2",
    "README.md": "vendor/rtl_README.md.j2",
}
_TEST_BENCHES = {SystolicPorts: "systolic/test_bench.cpp.j2", StreamingPorts: "streaming/test_bench.cpp.j2"}

FAMILIES = {
    "processing_system7": ("zynq", "artix7", "kintex7", "virtex7"),
    "zynq_ultra_ps_e": ("zynquplus", "artixuplus", "kintexuplus", "virtexuplus"),
}
"""The families in which the packaged IP can be used, by the PS of the board: those with the same DSPs and memories.

Without them, the packager allows the family of the board's part only.
"""

PLACEMENTS = {
    "performance": ("ExtraTimingOpt", "EarlyBlockPlacement", "ExtraNetDelay_high"),
    "default": ("Default",),
}
"""The directives of place_design that build_vivado.tcl tries, by its strategy.

The first of the performance strategy belongs to Performance_ExtraTimingOpt, which FINN sets for the same boards. The
others place DSPs and memories before the logic, and assume longer wires (UG904, Available Directives).
"""


@dataclass(frozen=True)
class _Packager:
    """The tool that makes the IP, and the folder in which build_vivado.tcl finds the IP.

    Attributes:
        tool: The tool's name.
        verb: The verb of "the tool that … the IP" in build_vivado.tcl.
        script: The Tcl script that makes the IP.
        command: The command that runs the script.
        repository: The folder of the IP, relative to the design's folder.
    """

    tool: str
    verb: str
    script: str
    command: str
    repository: str


_VITIS_HLS = _Packager("Vitis HLS", "exported", "run_hls.tcl", "vitis_hls -f run_hls.tcl", "hls/solution/impl/ip")
_VIVADO = _Packager("Vivado", "packaged", "package_ip.tcl", "vivado -mode batch -source package_ip.tcl", "ip")


def vendor_files(values: VendorValues) -> dict[str, str]:
    """Return the files for a design in HLS C++ by name: run_hls.tcl, build_vivado.tcl, test_bench.cpp and README.md.

    Raises:
        SystolicError: A value must not be pasted into Tcl or C++ (``check_values``, ``word``).
        UnsupportedError: The board has no port for the maps.
    """
    check_values(values)
    fields = _fields(values, _VITIS_HLS)
    templates = {**_TEMPLATES, "test_bench.cpp": _TEST_BENCHES[type(values.ports)]}
    return {name: render(template, fields) for name, template in templates.items()}


def rtl_vendor_files(values: VendorValues) -> dict[str, str]:
    """Return the files for a design in SystemVerilog: package_ip.tcl, clocks_ooc.xdc, build_vivado.tcl and README.md.

    The keys are file names. The sources must have one .v file, the top of the IP that Vivado packages. Raises the same
    errors as ``vendor_files``.
    """
    check_values(values)
    wrappers = [path for path in values.sources if path.endswith(".v")]
    if len(wrappers) != 1:
        raise InvalidValueError("the .v files among the sources", wrappers, "exactly one file, the top of the IP")
    fields = {
        **_fields(values, _VIVADO),
        "wrapper": identifier(wrappers[0].rpartition("/")[2].removesuffix(".v")),
        "sources": values.sources,
        "bundles": bundles(values.ports.arguments),
        "segment_bytes": SEGMENT_BYTES,
        "periods": _periods(values),
        "argument_cells": values.argument_cells,
        "families": FAMILIES[values.board.ps.ip],
    }
    texts = {name: render(template, fields) for name, template in _RTL_TEMPLATES.items()}
    if values.dsp_clock > 1:
        texts["resets.xdc"] = render("vendor/resets.xdc.j2", fields)
    if not fields["floorplan_refusal"]:
        texts["floorplan.xdc"] = render("vendor/floorplan.xdc.j2", fields)
    return texts


def _floorplan_fields(values: VendorValues) -> dict[str, object]:
    """Return the fields of floorplan.xdc, or ``floorplan_refusal``: why build_vivado.tcl cannot take floorplan=on.

    The refusal is a sentence without full stop, or "". ``centre`` says that a chain must not cross a region's centre.
    """
    facts, chains, planned, refusal = values.board.floorplan, values.chains, tuple[Block, ...](), ""
    if not chains:
        refusal = (
            "only an engine in SystemVerilog has DSP chains with known names; Vitis HLS chooses its cascades itself"
        )
    elif facts is None:
        refusal = f"the places of the DSPs of {comment(values.board.part)} are not known"
    else:
        try:
            planned = blocks(place(chains, facts), facts)
        except DoesNotFitError as error:
            refusal = str(error)
    return {
        "floorplan_refusal": refusal,
        "centre": facts is not None and facts.cascade < facts.region,
        "blocks": planned,
        "chain_count": len(chains),
        "chain_length": max((chain.length for chain in chains), default=0),
    }


def _periods(values: VendorValues) -> tuple[str, str]:
    """Return the periods of the fabric's clock and of the DSPs' clock in ns, as texts.

    Vivado counts in ps. The fabric's period is therefore a multiple of ``dsp_clock`` ps, so that both are whole.
    """
    picoseconds = math.floor(1e6 / values.clock.mhz)
    picoseconds -= picoseconds % values.dsp_clock
    return f"{picoseconds / 1000:.3f}", f"{picoseconds / 1000 / values.dsp_clock:.3f}"


def _fields(values: VendorValues, packager: _Packager) -> dict[str, object]:
    board, ps, ports = values.board, values.board.ps, values.ports
    plan = port_plan(values)
    register_map = registers(ports.arguments)
    return {
        "title": comment(values.title),
        "board": comment(board.title),
        "part": word(board.part, "part"),
        "board_name": word(_board_name(board.board_part), "board_part"),
        **_clock_fields(values),
        "ip": {"vendor": VENDOR, "library": LIBRARY, "name": ports.top, "version": VERSION, "vlnv": ports.vlnv},
        "top": ports.top,
        "packager": packager,
        "cells": {"accelerator": ports.cell, "interrupts": INTERRUPTS, "ps": identifier(f"{ps.ip}_0")},
        "slave": SLAVE,
        "ps": {
            "kind": ps.ip,
            "vlnv": word(ps.vlnv, "ps.vlnv"),
            "clock": identifier(ps.clock),
            "reset": identifier(ps.reset),
            "interrupt": identifier(ps.interrupt),
        },
        "preset_rule": PRESETS[ps.ip][0],
        "preset": PRESETS[ps.ip][1],
        "config": [(identifier(key), word(value, key)) for key, value in ps_config(values, plan).items()],
        "control": {"name": identifier(board.control.name), "clock": identifier(board.control.clock)},
        "base": f"0x{board.control.base:08X}",
        "second_base": f"0x{board.control.base + SEGMENT_BYTES:08X}",
        "segment": f"0x{SEGMENT_BYTES:X}",
        "plan": [(identifier(use.port.name), identifier(use.port.clock), use.port.bits, use.masters) for use in plan],
        "arguments": ports.arguments,
        "registers": register_map,
        "address_bits": address_bits(register_map),
        **_floorplan_fields(values),
        **_style_fields(ports),
        "units": [path for path in values.sources if path.endswith(".cpp")],
        "includes": sorted({path.rpartition("/")[0] or "." for path in values.sources}),
        "simulation": identifier(values.simulation),
        "design": identifier(values.design),
        "block_design": hardware_name(BLOCK_DESIGN, "the block design"),
        "figures": [Figure(_plain(f.quantity), _plain(f.value), f.source) for f in values.figures],
    }


def _clock_fields(values: VendorValues) -> dict[str, object]:
    """Return the values of the templates' fields about clocks: frequency, period, and the cell and pin of the fabric's
    clock.

    ``clock_cell`` is the cell that makes two clocks from the PS's clock. ``fabric_clock`` is the pin of the clock of
    all logic but the DSPs.
    """
    return {
        "clock_mhz": megahertz(values.clock.mhz),
        "clock_key": identifier(values.board.ps.clock_mhz_key),
        "clocks": _clocks(values),
        "placements": PLACEMENTS,
        "clock_ns": f"{1000 / values.clock.mhz:.6f}",
        "dsp_clock": values.dsp_clock,
        "clock_cell": CLOCKS,
        "fabric_clock": f"$ps/{identifier(values.board.ps.clock)}" if values.dsp_clock == 1 else f"{CLOCKS}/clk_out1",
        "matched_routing": values.board.ps.ip == "zynq_ultra_ps_e",
    }


def _clocks(values: VendorValues) -> list[str]:
    """Return the target clock in MHz, and the lower clocks of its PLL, which the script names if timing is missed."""
    clock = values.clock
    lower = [one.mhz for one in values.board.clocks(clock.mhz) if one.pll == clock.pll and one.mhz >= clock.mhz / 3]
    return list(dict.fromkeys(megahertz(mhz) for mhz in (clock.mhz, *reversed(lower))))


def _board_name(board_part: str) -> str:
    """Return Vivado's name of a board without the version of the board's files, the last of its four fields."""
    fields = board_part.split(":")
    if len(fields) != 4:
        raise InvalidValueError("board_part", board_part, "vendor:board:part0:version, as Vivado names a board")
    return ":".join(fields[:3])


def _style_fields(ports: Ports) -> dict[str, object]:
    """Return the values of the templates' fields that depend on the style, systolic or streaming. A design without a
    DMA has None as its ``dma``."""
    dma = ports.dma and {"cell": DMA, "slave": ports.second_slave[1], "config": dma_config(ports.dma)}
    return {"dma": dma, **ports.template_fields()}


def _plain(text: str) -> str:
    """Return a text for a cell of a Markdown table, with ``_`` for each character that has a meaning there."""
    return comment(text).replace("|", "_").replace("<", "_").replace(">", "_")
