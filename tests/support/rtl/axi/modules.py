"""The simulated modules: masters and registers, with and without a planted fault, in one top module.

Each variant has its own ports, named with its name as a prefix and with the names that cocotbext-axi expects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from rtl_templates.sources import Argument, fixed_modules, rtl_sources
from tests.support.rtl.bench import values

TOP = "axi_bench"
ADDRESS_BITS = 7
ARGUMENTS = (
    Argument("maps_read_0", "pointer", 0x10),
    Argument("maps_write_0", "pointer", 0x1C),
    Argument("weights_0", "pointer", 0x28),
    Argument("requantisers", "pointer", 0x34),
    Argument("program", "pointer", 0x40),
    Argument("first", "scalar", 0x4C),
    Argument("count", "scalar", 0x54),
    Argument("current", "output", 0x5C),
)
"""The register map, as Vitis HLS lays out an engine of one port of each kind."""

WIDE = tuple(
    "program_address" if argument.name == "program" else argument.name
    for argument in ARGUMENTS
    if argument.kind == "pointer"
)
NARROW = tuple(argument.name for argument in ARGUMENTS if argument.kind == "scalar")
"""The 64-bit and the 32-bit registers that the slave outputs."""


@dataclass(frozen=True)
class Fault:
    """A planted fault.

    Attributes:
        module: The module that has the fault. It is empty without a fault.
        right: The text in the module.
        wrong: The text that replaces it.
    """

    module: str = ""
    right: str = ""
    wrong: str = ""


@dataclass(frozen=True)
class Masters:
    """A variant of axi_read and axi_write.

    Attributes:
        fault: The fault of the variant.
        word: The bytes of a beat.
        length: The most beats of a burst.
        outstanding: The most unanswered bursts.
        depth: The words of the reader's FIFO.
    """

    fault: Fault = field(default_factory=Fault)
    word: int = 4
    length: int = 64
    outstanding: int = 4
    depth: int = 8


_ASKS, _WRITES = "ar_valid = burst_valid && room", "w_valid = length_valid && in_valid"
_COUNTS = "+ OPEN_BITS'(requested) - OPEN_BITS'(acknowledged)"
_BEATS = "beats = remaining < 32'(LENGTH) ? remaining : 32'(LENGTH)"
_ENDS = "if (done) {finished, ready}"
MASTERS = {
    "narrow": Masters(),
    "wide": Masters(word=32, length=16, outstanding=8, depth=32),
    # --- with a fault -----------------------------------------------------------------------------------------------
    "page": Masters(Fault("axi_bursts", "if (page < beats) beats = page;", ""), word=32),
    "left": Masters(Fault("axi_bursts", "remaining <= remaining - beats;", "remaining <= remaining - beats - 1;")),
    "longer": Masters(Fault("axi_bursts", _BEATS, "beats = remaining")),
    "greedy": Masters(Fault("axi_read", _ASKS, "ar_valid = burst_valid")),
    "shy": Masters(Fault("axi_read", _ASKS, f"{_ASKS} && !r_valid")),
    "waits": Masters(Fault("axi_read", _ASKS, f"{_ASKS} && ar_ready")),
    "hurried": Masters(Fault("axi_read", ".burst_ready(requested)", ".burst_ready(1'b1)")),
    "deaf": Masters(Fault("axi_read", "r_ready && r_last", "r_last")),
    "full": Masters(Fault("axi_read", ".in_ready(r_ready)", ".in_ready(r_room)")),
    "drops": Masters(Fault("axi_write", _WRITES, f"{_WRITES} && open_bursts[0]")),
    "late": Masters(Fault("axi_write", "w_data = in_data", "w_data = w_ready ? in_data : '0")),
    "early": Masters(Fault("axi_write", "w_last = beat == length", "w_last = beat + 1'b1 == length")),
    "blind": Masters(Fault("axi_write", "idle = open_bursts == '0 &&", "idle =")),
    "forgets": Masters(Fault("axi_write", _COUNTS, "+ (requested ? 1'b1 : -OPEN_BITS'(acknowledged))")),
    "halves": Masters(Fault("axi_write", "{BYTES / 2{in_halves[1]}}", "{BYTES / 2{1'b1}}")),
}
REGISTERS = {
    "registers": Fault(),
    # --- with a fault -----------------------------------------------------------------------------------------------
    "mumbles": Fault("control_slave", "bvalid <= writes || (bvalid && !bready)", "bvalid <= writes"),
    "blinks": Fault("control_slave", "rvalid <= reads || (rvalid && !rready)", "rvalid <= reads"),
    "overtakes": Fault("control_slave", "arready = !rvalid && !reset", "arready = !reset"),
    "swallows": Fault("control_slave", "writes = awvalid && wvalid && !bvalid", "writes = awvalid && wvalid"),
    "stutters": Fault("control_slave", "start = started && idle", "start = started"),
    "whole": Fault("control_slave", "strobe[i] ? data[8*i+:8] : old[8*i+:8]", "data[8*i+:8]"),
    "misses": Fault("control_slave", _ENDS, _ENDS.replace("done", "done && !reads")),
    "sets": Fault("control_slave", "states[i] ^ wdata[i]", "wdata[i]"),
    "rings": Fault("control_slave", "interrupt = enabled && states != '0", "interrupt = states != '0"),
    "stops": Fault("control_slave", "started <= restarts", "started <= 1'b0"),
}
"""The faults of control_slave by variant. The first variant has none."""

_READ = (
    *(("input", 1, "read_valid"), ("output", 1, "read_ready"), ("input", 32, "read_address")),
    *(("input", 32, "read_words"), ("output", 1, "out_valid"), ("input", 1, "out_ready"), ("output", -8, "out_data")),
)
_WRITE = (
    *(("input", 1, "write_valid"), ("output", 1, "write_ready"), ("input", 32, "write_address")),
    *(("input", 32, "write_words"), ("input", 1, "in_valid"), ("output", 1, "in_ready"), ("input", -8, "in_data")),
    *(("input", 2, "in_halves"), ("output", 1, "idle")),
)
_AXI = (
    *(("output", 1, "m_axi_arid"), ("output", 64, "m_axi_araddr"), ("output", 8, "m_axi_arlen")),
    *(("output", 3, "m_axi_arsize"), ("output", 2, "m_axi_arburst"), ("output", 1, "m_axi_arvalid")),
    *(("input", 1, "m_axi_arready"), ("input", 1, "m_axi_rid"), ("input", -8, "m_axi_rdata")),
    *(("input", 2, "m_axi_rresp"), ("input", 1, "m_axi_rlast"), ("input", 1, "m_axi_rvalid")),
    *(("output", 1, "m_axi_rready"), ("output", 1, "m_axi_awid"), ("output", 64, "m_axi_awaddr")),
    *(("output", 8, "m_axi_awlen"), ("output", 3, "m_axi_awsize"), ("output", 2, "m_axi_awburst")),
    *(("output", 1, "m_axi_awvalid"), ("input", 1, "m_axi_awready"), ("output", -8, "m_axi_wdata")),
    *(("output", -1, "m_axi_wstrb"), ("output", 1, "m_axi_wlast"), ("output", 1, "m_axi_wvalid")),
    *(("input", 1, "m_axi_wready"), ("input", 1, "m_axi_bid"), ("input", 2, "m_axi_bresp")),
    *(("input", 1, "m_axi_bvalid"), ("output", 1, "m_axi_bready")),
)
_LITE = (
    *(("input", ADDRESS_BITS, "awaddr"), ("input", 1, "awvalid"), ("output", 1, "awready")),
    *(("input", 32, "wdata"), ("input", 4, "wstrb"), ("input", 1, "wvalid"), ("output", 1, "wready")),
    *(("output", 2, "bresp"), ("output", 1, "bvalid"), ("input", 1, "bready")),
    *(("input", ADDRESS_BITS, "araddr"), ("input", 1, "arvalid"), ("output", 1, "arready")),
    *(("output", 32, "rdata"), ("output", 2, "rresp"), ("output", 1, "rvalid"), ("input", 1, "rready")),
)
_ENGINE = (
    *(("output", 1, "interrupt"), ("output", 1, "start"), ("input", 1, "done")),
    *(("input", 32, "current"), ("input", 1, "current_written")),
    *(("output", 64, name) for name in WIDE),
    *(("output", 32, name) for name in NARROW),
)
"""The direction, bits and name of each port. A negative number is bits per byte of a beat."""


def files() -> dict[str, str]:
    """Return the text of all simulated files by file name."""
    slave = rtl_sources(replace(values(), arguments=ARGUMENTS, address_bits=ADDRESS_BITS))["control_slave.sv"]
    texts = {**fixed_modules(), "control_slave.sv": slave}
    used = {name: texts[f"{name}.sv"] for name in ("fifo", "axi_bursts", "axi_read", "axi_write", "control_slave")}
    written = {f"{name}.sv": text for name, text in used.items()}
    faults = {**{name: masters.fault for name, masters in MASTERS.items()}, **REGISTERS}
    for name, fault in faults.items():
        written |= {f"{module}.sv": text for module, text in _with_fault(used, name, fault).items()}
    return {**written, f"{TOP}.sv": _top()}


def _with_fault(used: Mapping[str, str], name: str, fault: Fault) -> dict[str, str]:
    """Return the changed modules of a variant under their own names. Without a fault, there are none."""
    module = fault.module
    if not module:
        return {}
    assert used[module].count(fault.right) == 1, f"{module} has {fault.right} once"
    text = used[module].replace(fault.right, fault.wrong)
    if "r_room" in fault.wrong:  # this fault keeps the reader always ready
        text = text.replace("logic burst_valid,", "logic r_room;\n    assign r_ready = 1'b1;\n    logic burst_valid,")
    own = {module: text}
    if module == "axi_bursts":
        own |= {above: used[above] for above in ("axi_read", "axi_write")}
    return {f"{part}_{name}": _renamed(text, own, name) for part, text in own.items()}


def _renamed(text: str, parts: Mapping[str, str], name: str) -> str:
    for part in parts:
        text = re.sub(rf"\b{part}\b(?= #\()", f"{part}_{name}", text)
    return text


def _top() -> str:
    ports, parts = ["input logic clk", "input logic reset"], []
    for name, masters in MASTERS.items():
        ports += [*_ports(name, (("input", 64, "base"), *_READ, *_WRITE, *_AXI), masters.word)]
        parts.append(_masters(name, masters))
    for name, fault in REGISTERS.items():
        ports += [*_ports(f"{name}_s_axil", _LITE, 4), *_ports(name, _ENGINE, 4)]
        parts.append(_slave(name, fault))
    return "module {} (\n{}\n);\n{}\nendmodule\n".format(TOP, ",\n".join(ports), "\n".join(parts))


def _ports(name: str, ports: tuple[tuple[str, int, str], ...], word: int) -> Iterator[str]:
    for way, bits, port in ports:
        yield f"{way} logic [{(bits if bits > 0 else -bits * word) - 1}:0] {name}_{port}"


def _masters(name: str, masters: Masters) -> str:
    module = masters.fault.module
    of_fault = {module, *(("axi_read", "axi_write") if module == "axi_bursts" else ())}
    reader, writer = (f"{part}_{name}" if part in of_fault else part for part in ("axi_read", "axi_write"))
    common = f".BYTES({masters.word}), .LENGTH({masters.length}), .OUTSTANDING({masters.outstanding})"
    constants = {
        **{f"m_axi_{way}id": "1'b0" for way in ("ar", "aw")},
        **{f"m_axi_{way}size": f"3'd{masters.word.bit_length() - 1}" for way in ("ar", "aw")},
        **{f"m_axi_{way}burst": "2'b01" for way in ("ar", "aw")},
    }
    reads = {f"command_{part}": f"read_{part}" for part in ("valid", "ready", "address", "words")}
    reads |= {port: port for port in ("base", "out_valid", "out_ready", "out_data")}
    writes = {f"command_{part}": f"write_{part}" for part in ("valid", "ready", "address", "words")}
    writes |= {port: port for port in ("base", "in_valid", "in_ready", "in_data", "in_halves", "idle")}
    reads |= _channel("ar", ("address", "length")) | _channel("r", ("data", "last"))
    writes |= _channel("aw", ("address", "length")) | _channel("w", ("data", "strobe", "last")) | _channel("b", ())
    assigned = "\n".join(f"assign {name}_{port} = {value};" for port, value in constants.items())
    return (
        f"{assigned}\n{reader} #({common}, .DEPTH({masters.depth})) {name}_reader ({_pins(name, reads)});\n"
        f"{writer} #({common}) {name}_writer ({_pins(name, writes)});"
    )


def _channel(channel: str, payload: tuple[str, ...]) -> dict[str, str]:
    short = {"address": "addr", "length": "len", "strobe": "strb"}
    return {f"{channel}_{part}": f"m_axi_{channel}{short.get(part, part)}" for part in ("valid", "ready", *payload)}


def _pins(name: str, pins: Mapping[str, str]) -> str:
    return ", ".join([".clk", ".reset", *(f".{pin}({name}_{port})" for pin, port in pins.items())])


def _slave(name: str, fault: Fault) -> str:
    module = f"control_slave_{name}" if fault.module else "control_slave"
    lite = {port: f"s_axil_{port}" for _, _, port in _LITE}
    engine = {port: port for _, _, port in _ENGINE}
    return f"{module} #(.ADDRESS_BITS({ADDRESS_BITS})) {name} ({_pins(name, lite | engine)});"
