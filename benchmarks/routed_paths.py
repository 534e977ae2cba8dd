"""Compare the model's cell and net delays with routed public paths: python -m benchmarks.routed_paths

The paths are in routed_paths.toml: facts of Vivado's timing reports that were not used for rtl_timing/delays.toml. The
output is the table of docs/reference/rtl_timing.md, and with ``--paths`` a row per path. ``--read FILE ...`` prints the
facts of reports for routed_paths.toml.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from boards.errors import UnsupportedError
from rtl_timing.delays import DelayTable, Pin, delay_table
from rtl_timing.synthesis import Cell
from systolic.report.tables import table
from tools.parser import Parser

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PATHS = Path(__file__).with_suffix(".toml")
DSP_STAGES = {
    ("DSP_A_B_DATA", "CLK"): "input",
    ("DSP_A_B_DATA", "A"): "bypass",
    ("DSP_A_B_DATA", "B"): "bypass",
    ("DSP_PREADD_DATA", ""): "preadder",
    ("DSP_MULTIPLIER", ""): "multiplier",
    ("DSP_M_DATA", ""): "product",
    ("DSP_ALU", ""): "alu",
    ("DSP_OUTPUT", ""): "output",
}
"""The stage of a DSP48E2 in the delay table by the name that a report has for the part, and its input."""
SEQUENTIAL = re.compile(r"FD.*|RAM.*|URAM.*|SRL.*")


@dataclass(frozen=True)
class CellStep:
    """A cell on a routed path.

    Attributes:
        kind: The cell's kind in the report.
        source: The input pin.
        target: The output pin, or "" if the path ends here.
        ns: The reported delay. At the path's end it is the set-up time.
    """

    kind: str
    source: str
    target: str
    ns: float


@dataclass(frozen=True)
class NetStep:
    """A routed net on a path.

    Attributes:
        loads: The reported fan-out.
        ns: The reported delay.
    """

    loads: int
    ns: float


Step = CellStep | NetStep


@dataclass(frozen=True)
class Compared:
    """A cell or net with its routed and its modelled delay.

    Attributes:
        group: The kind of delay, as a row of the table: "LUT", "net to another slice".
        routed_ns: The delay in the report.
        modelled_ns: The delay in the model.
    """

    group: str
    routed_ns: float
    modelled_ns: float


@dataclass(frozen=True)
class RoutedPath:
    """A routed path of a public report.

    Attributes:
        source: The repository or page.
        report: The report in the repository.
        part: The part with its speed grade.
        grade: The speed grade and core voltage of the part.
        steps: Its cells and nets in order.
    """

    source: str
    report: str
    part: str
    grade: str
    steps: tuple[Step, ...]

    def compared(self) -> tuple[Compared, ...]:
        """Return the path's cells and nets, each with both delays. The set-up time at the end is not part of it."""
        delays = delay_table(self.grade)
        return tuple(_compared(self.steps, place, delays) for place in range(len(self.steps)) if self._counts(place))

    def _counts(self, place: int) -> bool:
        step = self.steps[place]
        return step.ns > 0 and (isinstance(step, NetStep) or bool(step.target))

    @property
    def routed_ns(self) -> float:
        """The sum of the routed delays that are compared."""
        return sum(one.routed_ns for one in self.compared())

    @property
    def modelled_ns(self) -> float:
        """The sum of the modelled delays that are compared."""
        return sum(one.modelled_ns for one in self.compared())


def recorded() -> list[RoutedPath]:
    """Return the paths of routed_paths.toml."""
    stored = tomllib.loads(PATHS.read_text("utf-8"))
    return [
        RoutedPath(source["name"], path["report"], source["part"], source["grade"], tuple(map(_step, path["steps"])))
        for source in stored["source"]
        for path in source["path"]
    ]


def _step(stored: Sequence[Any]) -> Step:
    return NetStep(*stored) if isinstance(stored[0], int) else CellStep(*stored)


def _compared(steps: Sequence[Step], place: int, delays: DelayTable) -> Compared:
    step = steps[place]
    if isinstance(step, CellStep):
        return Compared(_group(step), step.ns, cell_ns(step, delays))
    before, after = steps[place - 1], steps[place + 1]
    assert isinstance(before, CellStep)
    assert isinstance(after, CellStep)
    ns = net_ns(before, after, step.loads, delays)
    local = ns != delays.wire_ns("", "", "", step.loads)
    return Compared("net within a slice or column" if local else "net to another slice", step.ns, ns)


def _group(step: CellStep) -> str:
    for pattern, name in (("LUT", "LUT"), ("MUXF", "MUXF"), ("CARRY8", "CARRY8"), ("DSP", "DSP stage"), ("FD", "FF")):
        if step.kind.startswith(pattern):
            return name
    return step.kind


def cell_ns(step: CellStep, delays: DelayTable) -> float:
    """Return the modelled delay of a cell from its input pin to its output pin.

    Raises:
        UnsupportedError: The delay table has no such delay.
    """
    if step.kind.startswith("DSP_"):
        found = DSP_STAGES.get((step.kind, "")) or DSP_STAGES[step.kind, _pin(step.source)[0]]
        return delays.dsp_stage_ns(found)
    if step.kind == "CARRY8":
        return _carry_ns(_pin(step.source), _pin(step.target), delays)
    return _arc_ns(_primitive(step), _pin(step.source), _pin(step.target), delays)


def net_ns(before: CellStep, after: CellStep, loads: int, delays: DelayTable) -> float:
    """Return the modelled delay of the net between two cells of a path."""
    driver, load = (_table_kind(step.kind) for step in (before, after))
    pin = _pin(after.source)[0]
    hops = 2 if (driver, load, pin) == ("CARRY4", "CARRY4", "CI") else 1  # two CARRY4 make one CARRY8
    return hops * delays.wire_ns(driver, load, pin, loads)


def _table_kind(kind: str) -> str:
    """Return the name of the delay table for a cell of a report."""
    return "CARRY4" if kind == "CARRY8" else "DSP48E2" if kind.startswith("DSP_") else kind


def _pin(text: str) -> Pin:
    """Return a pin such as ``CO[7]`` as its name and bit."""
    name, _, bit = text.partition("[")
    return name, int(bit.rstrip("]") or 0)


def _carry_ns(source: Pin, target: Pin, delays: DelayTable) -> float:
    """Return the delay through a CARRY8, which the delay table has as two CARRY4."""
    name, bit = source
    output, position = target
    start = 0 if name in ("CI", "CIN") else bit // 4
    hops = position // 4 - start
    ns, at = 0.0, ("CI", 0) if name in ("CI", "CIN") else (name, bit % 4)
    for _ in range(hops):
        ns += _arc_ns(_carry4(), at, ("CO", 3), delays) + delays.wire_ns("CARRY4", "CARRY4", "CI", 1)
        at = ("CI", 0)
    return ns + _arc_ns(_carry4(), at, (output, position % 4), delays)


@cache
def _carry4() -> Cell:
    pins = {"S": (1, 2, 3, 4), "DI": (5, 6, 7, 8), "CI": (9,), "O": (10, 11, 12, 13), "CO": (14, 15, 16, 17)}
    return Cell("", "CARRY4", "", {}, pins, frozenset({"O", "CO"}))


def _primitive(step: CellStep) -> Cell:
    """Return a primitive with the two pins of a step."""
    (source, bit), (target, position) = _pin(step.source), _pin(step.target)
    pins: Mapping[str, tuple[int, ...]] = {
        source: tuple(range(1, bit + 2)),
        target: tuple(range(100, 101 + position)),
    }
    return Cell("", step.kind, "", {}, pins, frozenset({target}))


def _arc_ns(cell: Cell, source: Pin, target: Pin, delays: DelayTable) -> float:
    arcs = delays.arcs(cell)
    for before, after, ns in arcs.through:
        if (before, after) == (source, target):
            return ns
    for after, ns in arcs.launches:
        if after == target and source[0] in arcs.clocks:
            return ns
    raise UnsupportedError(f"the delay of {cell.kind} from {source} to {target}", "the delay table does not have it")


def read_report(text: str) -> list[tuple[Step, ...]]:
    """Return the setup paths of a timing report of Vivado, from their first cell to their end.

    Nets that are not routed, and paths without a cell, are left out.
    """
    paths = []
    for part in re.split(r"^Slack.*$", text, flags=re.M)[1:]:
        if "Min at" in part:
            continue
        lines = re.split(r"^ *-{30,}.*$", part, flags=re.M)
        constrained = "clock pessimism" in part
        steps = list(_read_steps(lines[2] if constrained else lines[1], lines[3] if constrained else ""))
        while steps and isinstance(steps[0], NetStep):
            steps = steps[1:]
        if any(isinstance(step, CellStep) for step in steps):
            paths.append(tuple(steps))
    return paths


_CELL = r"(?P<kind>\w+) \((?P<arc>(?:Prop|Setup|Recov)_\S+)\)\s+(?P<cell_ns>-?[\d.]+)"
_NET = r"net \(fo=(?P<loads>\d+), (?P<state>\w+)\)\s+(?P<net_ns>[\d.]+)"
_END = r"^ *\S+ +(?P<end>[A-Z]\w+) {10,}[rf]? +\S+/(?P<pin>[\w\[\]]+)$"
_ITEM = re.compile(f"{_CELL}|{_NET}|{_END}", re.M)


def _read_steps(data: str, capture: str) -> Iterator[Step]:
    """Yield the steps of a path's data part. The set-up time is in ``capture``, the part of the destination's clock."""
    setup = re.search(r"\((?:Setup|Recov)_\S+\)\s+(-?[\d.]+)", capture)
    for found in _ITEM.finditer(data):
        if found["kind"]:
            source, target = _ends_of(found["arc"])
            yield CellStep(found["kind"], source, target, float(found["cell_ns"]))
        elif found["loads"]:
            if found["state"] == "estimated":
                return
            if found["state"] == "routed":
                yield NetStep(int(found["loads"]), float(found["net_ns"]))
        else:
            yield CellStep(found["end"], found["pin"], "", -float(setup[1]) if setup else 0.0)


def _ends_of(arc: str) -> tuple[str, str]:
    """Return the two pins in a report's name of an arc, such as Prop_H6LUT_SLICEM_I2_O."""
    _, inside_dsp, pins = arc.rpartition("DSP48E2_")
    found = re.fullmatch(r"(CLK|\w+?\[\d+\])_(.+)" if inside_dsp else r".*_([^_]+)_([^_]+)", pins)
    assert found
    return found[1], found[2]


def rows(paths: Sequence[RoutedPath]) -> list[tuple[str, ...]]:
    """Return a row for each kind of cell and net, and one for whole paths: number, medians, and errors."""
    groups: dict[str, list[Compared]] = {}
    for path in paths:
        for one in path.compared():
            groups.setdefault(one.group, []).append(one)
    groups = dict(sorted(groups.items()))
    groups["whole path"] = [Compared("whole path", path.routed_ns, path.modelled_ns) for path in paths]
    return [(group, *_figures(found)) for group, found in groups.items()]


HEAD = ("delay", "number", "routed ns, median", "error, median", "error, 90 % within", "mean error, ns")


def _figures(found: Sequence[Compared]) -> tuple[str, ...]:
    errors = [one.modelled_ns - one.routed_ns for one in found]
    size = sorted(map(abs, errors))
    return (
        str(len(found)),
        f"{statistics.median(one.routed_ns for one in found):.3f}",
        f"{statistics.median(size):.3f}",
        f"{size[max(0, -(-9 * len(size) // 10) - 1)]:.3f}",
        f"{statistics.mean(errors):+.3f}",
    )


PARTS_HEAD = ("part", "paths", "of at least 1 ns", "within 20 %", "routed / modelled")


def part_rows(paths: Sequence[RoutedPath]) -> list[tuple[str, ...]]:
    """Return a row for each part: its number of paths, and routed over modelled delay of each path of at least 1 ns."""
    found: list[tuple[str, ...]] = []
    for part in sorted({path.part for path in paths}):
        of_part = [path for path in paths if path.part == part]
        ratios = sorted(path.routed_ns / path.modelled_ns for path in of_part if path.routed_ns >= 1)
        within = sum(0.8 <= 1 / ratio <= 1.2 for ratio in ratios)
        listed = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        found.append((part, str(len(of_part)), str(len(ratios)), str(within), listed))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of errors, a row per path, or the facts of reports."""
    parser = Parser(prog="python -m benchmarks.routed_paths", description=__doc__.splitlines()[0])
    parser.add_argument("--paths", action="store_true", help="print a row per path as well")
    parser.add_argument("--read", nargs="+", type=Path, metavar="FILE", help="print the facts of reports instead")
    options = parser.parse_args(arguments)
    for file in options.read or ():
        for steps in read_report(file.read_text("utf-8")):
            print(f"{file.name}: {', '.join(map(_stored, steps))}")
    if options.read:
        return 0
    paths = recorded()
    print(table(HEAD, rows(paths)), table(PARTS_HEAD, part_rows(paths)), sep="\n\n")
    if options.paths:
        each = [(path.report, f"{path.routed_ns:.2f}", f"{path.modelled_ns:.2f}") for path in paths]
        print(table(("path", "routed ns", "modelled"), each))
    return 0


def _stored(step: Step) -> str:
    """Return a step as routed_paths.toml has it."""
    if isinstance(step, NetStep):
        return f"[{step.loads}, {step.ns}]"
    return f'["{step.kind}", "{step.source}", "{step.target}", {step.ns}]'


if __name__ == "__main__":
    raise SystemExit(main())
