"""Compare modelled with routed delays of public modules: python -m benchmarks.rtl_timing DIR

DIR is the folder ``vivado-synth-opt-place-route`` in ``runs`` of a checkout of gussmith23/lakeroad-evaluation. For each
module it holds the SystemVerilog (``NAME.futil-vanilla.v``) and Vivado's report after routing on a xczu3eg-1
(``NAME.futil-vanilla-timing-route.v``). The delays of the table come from other designs of that folder, named
``NAME.futil-ultrascale``. docs/reference/rtl_timing.md shows what this prints.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtl_timing.covering import covered
from rtl_timing.delays import delay_table
from rtl_timing.netlist import flattened
from rtl_timing.paths import TimingGraph, TimingPath
from rtl_timing.synthesis import module_of
from rtl_timing.yosys import read, run
from systolic.cli.progress import StatusLine
from systolic.report.tables import table
from tools.parser import Parser

GRADE = "-1 0.85"
SUFFIX = ".futil-vanilla"
SIMULATION = re.compile(r"\$(readmemh|writememh|value\$plusargs|error|finish|display)")
"""Statements for simulation only, which Yosys does not read."""


@dataclass(frozen=True)
class Case:
    """A module with its routed and its modelled slowest path.

    Attributes:
        name: The module's name.
        routed_ns: The routed delay without the set-up time.
        routed_levels: The number of primitives between the registers, where the parts of a DSP count one by one.
        modelled: The modelled path.
    """

    name: str
    routed_ns: float
    routed_levels: int
    modelled: TimingPath

    @property
    def modelled_ns(self) -> float:
        """The modelled delay without the set-up time."""
        return self.modelled.ns - self.modelled.steps[-1].cell_ns


def cases(folder: Path, status: StatusLine) -> Iterable[Case]:
    """Yield the modules whose report has a path between registers."""
    for report in sorted(folder.glob(f"*{SUFFIX}-timing-route.v")):
        text = report.read_text("utf-8", errors="replace")
        delay, levels = (
            re.search(pattern, text) for pattern in (r"Data Path Delay:\s+([\d.]+)ns", r"Logic Levels:\s+(\d+)")
        )
        if "Slack (" not in text or delay is None or levels is None:
            continue
        name = report.name.removesuffix(f"{SUFFIX}-timing-route.v")
        status.report(f"synthesising {name}")
        yield Case(name, float(delay[1]), int(levels[1]), slowest(folder / f"{name}{SUFFIX}.v", "main"))


def slowest(source: Path, top: str) -> TimingPath:
    """Return the slowest modelled path of a module, synthesised as a whole."""
    with tempfile.TemporaryDirectory() as work:
        lines = source.read_text("utf-8").splitlines()
        copy = Path(work, source.name)
        copy.write_text("\n".join(line for line in lines if not SIMULATION.search(line)), "utf-8")
        run(
            [
                read([copy], top, Path(work), "--ignore-initial"),
                f"synth_xilinx -family xcup -flatten -top {top} -noiopad -noclkbuf",
                f"write_json {work}/mapped.json",
            ]
        )
        stored = json.loads(Path(work, "mapped.json").read_text("utf-8"))["modules"][top]
    delays = delay_table(GRADE)
    module = covered(module_of(top, stored), delays)
    return TimingGraph(flattened({top: module}, top), delays).slowest(1)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per module, and the distribution of the error."""
    parser = Parser(prog="python -m benchmarks.rtl_timing", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder with the RTL sources and Vivado's reports")
    options = parser.parse_args(arguments)
    with StatusLine() as status:
        found = list(cases(options.folder, status))
    rows = [
        (
            case.name,
            f"{case.routed_ns:.2f}",
            f"{case.modelled_ns:.2f}",
            f"{case.modelled_ns / case.routed_ns - 1:+.0%}",
            f"{case.routed_levels} / {case.modelled.levels}",
        )
        for case in found
    ]
    print(table(("module", "routed ns", "modelled", "error", "levels routed / modelled"), rows))
    distinct = {(case.routed_ns, case.routed_levels): case.routed_ns / case.modelled_ns for case in found}
    for least in (0.0, 1.0):
        ratios = sorted(ratio for (ns, _), ratio in distinct.items() if ns >= least)
        within = sum(0.8 <= 1 / ratio <= 1.2 for ratio in ratios)
        tenth = statistics.quantiles(ratios, n=10, method="inclusive")[-1]
        print(
            f"\n{len(ratios)} different routed paths of at least {least:g} ns: routed / modelled median "
            f"{statistics.median(ratios):.2f}, 90th percentile {tenth:.2f}; {within} within 20 %"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
