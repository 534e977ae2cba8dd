"""The check of a systolic engine in SystemVerilog: its slowest paths and the array's highest clock, as modelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from boards import board as board_room
from boards.board import Board
from boards.errors import RangeError, UnsupportedError
from boards.progress import Progress, silent
from rtl_templates.sources import TOP
from rtl_timing.covering import covered
from rtl_timing.delays import DelayTable, delay_table
from rtl_timing.elaboration import elaborated, units
from rtl_timing.netlist import PORT, flattened, with_port_registers
from rtl_timing.paths import TimingGraph, TimingPath
from rtl_timing.synthesis import synthesised
from scheduler.hardware.primitives import ULTRASCALE
from scheduler.systolic.model.clock import highest_mhz
from systolic.checking.part_speed import grade_of
from systolic.execution.verilate import modules
from systolic.report.clock import RateClock
from systolic.report.tables import table
from systolic.styles.systolic.simulate import open_design

SLOWEST = 20
"""Paths shown for each pair of clocks."""
MANY_LOADS = 200
"""Nets that drive more pins than this are listed."""
CLOCK = "ap_clk"
"""The clock of the array and of the ports."""
FAST_CLOCK = "ap_clk_2x"
"""The clock of the DSPs with dsp_clock 2. It comes from the same clock generator as the array's clock."""


@dataclass(frozen=True)
class ClockTiming:
    """The slowest paths that start at registers of one clock and end at registers of another, or of the same clock.

    Attributes:
        launch: The clock of the registers at which the paths start.
        capture: The clock of the registers at which they end.
        budget_ns: The time from a launch edge to the next capture edge, at the checked clock.
        overhead_ns: The part of ``budget_ns`` that clock skew and jitter take.
        paths: The slowest paths, one for each place at which they end.
        scale: ``budget_ns`` times the array's clock in MHz; it is the same for every clock.
    """

    launch: str
    capture: str
    budget_ns: float
    overhead_ns: float
    paths: tuple[TimingPath, ...]
    scale: float

    @property
    def holds(self) -> bool:
        """Return whether the slowest path and the clock's skew and jitter fit into the time between the clock edges."""
        return self.paths[0].ns + self.overhead_ns <= self.budget_ns

    def highest_mhz(self, factor: float) -> float:
        """Return the array's highest clock in MHz if each path takes ``factor`` times its modelled delay."""
        return self.scale / (self.paths[0].ns * factor + self.overhead_ns)


@dataclass(frozen=True)
class RtlCheck:
    """The path delays and highest clock of an engine in SystemVerilog, modelled before placement.

    Attributes:
        clock_mhz: The array's clock in MHz.
        speed_grade: The speed grade and core voltage of the board's part, such as ``-2 0.85``.
        limit_mhz: The highest array clock in MHz that the part's data sheet allows.
        limited_by: The primitive that sets the limit.
        p90: The 90th percentile of routed delay divided by modelled delay, from the validation of the model.
        clocks: The slowest paths of each pair of clocks.
        broad_nets: Nets with many loads, with their number: the name, the line that declares it, the loads.
        control_sets: The number of combinations of clock, enable and reset.
        primitives: The number of primitives of the netlist.
        files: The slowest path that ends in each source file, slowest first, over all pairs of clocks.
    """

    clock_mhz: float
    speed_grade: str
    limit_mhz: float
    limited_by: str
    p90: float
    clocks: tuple[ClockTiming, ...]
    broad_nets: tuple[tuple[str, str, int], ...]
    control_sets: int
    primitives: int
    files: tuple[TimingPath, ...]

    @property
    def highest_mhz(self) -> Mapping[str, float]:
        """The array's highest clock in MHz, by key: "p50" and "p90" are percentiles of the model's error."""
        return {
            "p50": min([self.limit_mhz, *(clock.highest_mhz(1.0) for clock in self.clocks)]),
            "p90": min([self.limit_mhz, *(clock.highest_mhz(self.p90) for clock in self.clocks)]),
        }

    @property
    def rate_clock(self) -> RateClock:
        """The clock for frame rates: the target, with the clocks that the model reaches."""
        return RateClock(self.clock_mhz, p50_mhz=self.highest_mhz["p50"], p90_mhz=self.highest_mhz["p90"])

    @property
    def holds(self) -> bool:
        """Return whether every modelled path fits at the checked clock, and the part's data sheet allows this clock."""
        return all(clock.holds for clock in self.clocks) and self.clock_mhz <= self.limit_mhz

    def values(self) -> dict[str, Any]:
        """Return the check as the JSON object of ``systolic check`` for an engine in SystemVerilog."""
        return {
            "clock_mhz": self.clock_mhz,
            "holds": self.holds,
            "origin": "modelled before placement",
            "link": self.rate_clock.link,
            "speed_grade": self.speed_grade,
            "highest_clock_mhz": {name: round(mhz, 1) for name, mhz in self.highest_mhz.items()},
            "limit": {"clock_mhz": self.limit_mhz, "primitive": self.limited_by},
            "clocks": [
                {
                    "launch": clock.launch,
                    "capture": clock.capture,
                    "budget_ns": round(clock.budget_ns, 3),
                    "overhead_ns": round(clock.overhead_ns, 3),
                    "holds": clock.holds,
                    "paths": [_path_values(path) for path in clock.paths],
                }
                for clock in self.clocks
            ],
            "broad_nets": [{"name": name, "source": source, "loads": loads} for name, source, loads in self.broad_nets],
            "control_sets": self.control_sets,
            "primitives": self.primitives,
        }

    def text(self) -> str:
        """Return the tables of paths and nets, the slowest path of each pair of clocks, and the highest clocks."""
        parts: list[str] = []
        for clock in self.clocks:
            between = (
                f"{clock.launch} to {clock.capture}: {clock.budget_ns:.2f} ns, {clock.overhead_ns:.2f} for the clock"
            )
            head = ("ns", "levels", "loads", "from", "to", "ends")
            rows = [
                (
                    f"{path.ns:.2f}", path.levels, max(step.loads for step in path.steps), _place(path, 0),
                    _place(path, -1), path.similar,
                )
                for path in clock.paths
            ]  # fmt: skip
            parts += [between, table(head, rows), "the slowest of them:", _steps(clock.paths[0])]
        if self.files:
            slowest = [
                (path.steps[-1].source, f"{path.ns:.2f}", path.levels, _place(path, 0), path.steps[-1].name)
                for path in self.files
            ]
            parts.append(table(("slowest path of each file", "ns", "levels", "from", "to"), slowest))
        if self.broad_nets:
            parts.append(table(("net", "declared at", f"loads above {MANY_LOADS}"), self.broad_nets))
        parts.append(f"{self.primitives:,} primitives, {self.control_sets:,} control sets.")
        parts.append(f"{self._verdict()}.")
        return "\n\n".join(parts)

    def _verdict(self) -> str:
        highest = self.highest_mhz
        relation = "hold" if self.holds else "do not hold"
        return (
            f"The paths {relation} at {self.clock_mhz:g} MHz (target). Modelled before placement at speed grade "
            f"{self.speed_grade} V: up to {highest['p50']:.0f} MHz by the median of the model's error, up to "
            f"{highest['p90']:.0f} MHz by its 90th percentile; the data sheet allows {self.limit_mhz:g} MHz "
            f"({self.limited_by})"
        )


def check_rtl_design(folder: Path, clock_mhz: float | None, progress: Progress = silent) -> RtlCheck:
    """Synthesise the engine of a design with Yosys, and model the timing of its paths.

    Args:
        folder: The design's folder.
        clock_mhz: The array's clock in MHz. None means the design's clock.
        progress: Receives the progress. Synthesis takes minutes.

    Raises:
        RangeError: The clock is not above 0.
        UnsupportedError: The board's part has no delay table.
        MissingToolError: Yosys is not installed.
        ToolError: Yosys failed.
    """
    design = open_design(folder)
    clock = float(design.manifest.clock_mhz) if clock_mhz is None else clock_mhz
    if clock <= 0:
        raise RangeError("--clock in MHz", clock, 0, exclusive=True)
    board = board_room.of_design(design.path, design.manifest.board)
    grade = grade_of(board)
    if board.family != ULTRASCALE or grade is None:
        raise UnsupportedError(
            f"the timing of {folder}",
            f"delays are known of UltraScale+ parts only, and {board.part} is another",
            remedy="generate the design for a board with an UltraScale+ part",
        )
    delays = delay_table(grade)
    progress("reading the SystemVerilog")
    all_units = units(elaborated((design.path / path for path in modules(design.path)), TOP), TOP)
    mapped = synthesised(all_units, "xcup", progress)
    progress("modelling the paths")
    best = {name: covered(module, delays) for name, module in mapped.items()}
    netlist = with_port_registers(flattened(best, all_units[-1].name), CLOCK, (FAST_CLOCK,))
    graph = TimingGraph(netlist, delays)
    return _timed(graph, delays, clock, board, design.manifest.array.dsp_clock)


def _timed(graph: TimingGraph, delays: DelayTable, clock_mhz: float, board: Board, dsp_clock: int) -> RtlCheck:
    pairs: dict[tuple[str, str], list[TimingPath]] = {}
    for path in graph.slowest(SLOWEST):
        pairs.setdefault((path.launch_clock, path.capture_clock), []).append(path)
    timings = []
    for (launch, capture), paths in sorted(pairs.items()):
        # An edge of the fast clock is the next edge on both sides of a crossing.
        scale = 1000.0 / (dsp_clock if FAST_CLOCK in (launch, capture) else 1)
        timings.append(ClockTiming(launch, capture, scale / clock_mhz, delays.clock_overhead_ns, tuple(paths), scale))
    limit = highest_mhz(board, dsp_clock)
    broad = tuple(
        (*graph.netlist.names.get(net, (f"net of {graph.driver_of(net)}", "")), loads)
        for net, loads in graph.loads.most_common()
        if loads > MANY_LOADS
    )
    return RtlCheck(
        clock_mhz,
        delays.grade,
        limit,
        board.fmax.slowest if limit == board.fmax.lowest else "the clock of the DSPs",
        delays.p90,
        tuple(timings),
        broad,
        graph.control_sets,
        sum(primitive.cell.kind != PORT for primitive in graph.netlist.primitives),
        tuple(graph.slowest_of_files()),
    )


def _place(path: TimingPath, end: int) -> str:
    step = path.steps[end]
    return f"{step.source} {step.name}".strip()


def _steps(path: TimingPath) -> str:
    """Return one line per primitive of a path: time at its output, wire and primitive delay in ns, source line."""
    lines, ns = [], 0.0
    for step in path.steps:
        ns += step.wire_ns + step.cell_ns
        lines.append(
            f"  {ns:6.2f} ns  wire {step.wire_ns:5.2f}  {step.kind:<9} {step.cell_ns:5.2f}  {step.source}  "
            f"{step.name}".rstrip()
        )
    return "\n".join(lines)


def _path_values(path: TimingPath) -> dict[str, Any]:
    steps = [
        {**asdict(step), "wire_ns": round(step.wire_ns, 3), "cell_ns": round(step.cell_ns, 3)} for step in path.steps
    ]
    return {"ns": round(path.ns, 3), "levels": path.levels, "ends": path.similar, "steps": steps}
