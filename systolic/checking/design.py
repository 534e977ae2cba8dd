"""The check of a C++ design: declared II and depth, estimated memories and DSPs, each against its derived value."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from boards import board as board_room
from boards.errors import RangeError, SystolicError, UnsupportedError
from boards.progress import Progress, silent
from hls_schedule.check import CheckedLoop, read_sources
from host.simulated.pace import pace
from systolic.checking.dsp_table import ALL, DspRow, dsp_rows
from systolic.checking.memory_table import MemoryRow, memory_rows
from systolic.checking.part_speed import PartSpeed, part_speed
from systolic.checking.record import store_clock
from systolic.report.clock import RateClock
from systolic.report.tables import table
from systolic.styles.registry import open_design, style_of

VARIABLE = "SYSTOLIC_CHECK"
"""The environment variable that is 0 to skip the check in ``systolic generate``, which takes some seconds."""

RTL_CLOCK = "the clock is a target: systolic check models in minutes whether the paths of the SystemVerilog reach it"
"""The sentence about the clock of an engine in SystemVerilog that was just generated."""


@dataclass(frozen=True)
class DesignCheck:
    """The check of a C++ design at one clock: declared and derived loops, memories and DSPs, and the frame rate.

    Attributes:
        clock_mhz: The clock in MHz at which the loops are checked.
        highest_clock_mhz: The highest clock in MHz at which each loop reaches its declared initiation interval. None
            if the ports of a memory prevent a loop from it at every clock.
        loops: Every pipelined loop, with its declared and its derived II and depth.
        memories: The memories.
        dsps: The DSPs of each process, and of all processes.
        part: The speed of the board's part.
        cycles_per_frame: The cycles per frame of the design.
        cycles_source: "traced" if the design was traced, else "modelled".
    """

    clock_mhz: float
    highest_clock_mhz: float | None
    loops: tuple[CheckedLoop, ...]
    memories: tuple[MemoryRow, ...]
    dsps: tuple[DspRow, ...]
    part: PartSpeed
    cycles_per_frame: float
    cycles_source: str

    @property
    def rate_clock(self) -> RateClock:
        """The clock of reported frame rates: the checked one, or a lower one at which all loops reach their II."""
        highest = self.highest_clock_mhz
        held = None if highest is None else self.part.clock_mhz(highest) or highest
        return RateClock(self.clock_mhz, all(loop.holds for loop in self.loops), held)

    @property
    def frames_per_second(self) -> float | None:
        """The frames per second at ``rate_clock``. None if some loop misses its II at every clock."""
        return self.rate_clock.rate(self.clock_mhz * 1e6 / self.cycles_per_frame)

    @property
    def holds(self) -> bool:
        """Return whether each loop reaches its declared II and depth, and no memory or DSP exceeds its estimate."""
        loops = all(loop.holds and not loop.deeper for loop in self.loops)
        return loops and all(memory.holds for memory in self.memories) and all(row.holds for row in self.dsps)

    def values(self) -> dict[str, Any]:
        """Return the check as the JSON object of ``systolic check``."""
        loops = [
            {**asdict(loop), "holds": loop.holds, "remedy": _remedy(loop), "broad": loop.broad} for loop in self.loops
        ]
        return {
            "clock_mhz": self.clock_mhz,
            "holds": self.holds,
            "highest_clock_mhz": self.highest_clock_mhz,
            "part": self.part.values(self.highest_clock_mhz),
            "rate": {
                "clock_mhz": None if self.frames_per_second is None else self.rate_clock.mhz,
                "link": self.rate_clock.link,
                "frames_per_second": self.frames_per_second and round(self.frames_per_second, 2),
                "cycles_per_frame": round(self.cycles_per_frame),
                "cycles": self.cycles_source,
            },
            "loops": loops,
            "memories": [{**asdict(memory), "holds": memory.holds} for memory in self.memories],
            "dsps": [{**asdict(row), "holds": row.holds, "note": row.note} for row in self.dsps],
        }

    def text(self) -> str:
        """Return the tables of loops, memories and DSPs, with the critical path and a remedy for each failing loop."""
        head = ("process", "loop", "II", "derived", "depth", "derived", "path ns", "of ns", "")
        rows = [
            (
                loop.process, loop.source, loop.declared_ii, loop.derived_ii, loop.declared_depth, loop.derived_depth,
                f"{loop.path_ns:.2f}", f"{loop.budget_ns:.2f}",
                "" if loop.holds and not loop.deeper else "does not hold" if not loop.holds else "deeper",
            )
            for loop in self.loops
        ]  # fmt: skip
        broken = [loop for loop in self.loops if not loop.holds]
        return "\n\n".join(
            [
                table(head, rows),
                *map(_broken, broken),
                *(_broad(loop) for loop in self.loops if loop.broad),
                self._memory_table(),
                self._dsp_table(),
                f"{self._verdict()}; {self.clock_sentence()}.",
                self.rate_sentence(),
            ]
        )

    def _memory_table(self) -> str:
        head = ("memory", "process", "bound at", "of", "estimated", "derived", "")
        rows = [
            (m.name, m.process, m.source, m.unit, _count(m.estimated), _count(m.derived), "" if m.holds else "larger")
            for m in self.memories
        ]
        return table(head, rows)

    def _dsp_table(self) -> str:
        head = ("process", "DSPs estimated", "derived", "", "multiplies")
        return table(head, [(row.process, row.estimated, row.derived, row.note, row.text) for row in self.dsps])

    def _verdict(self) -> str:
        if self.holds:
            return f"Every loop holds at {self.clock_mhz:g} MHz"
        broken = sum(not loop.holds or loop.deeper for loop in self.loops)
        loops = f"{broken} of {len(self.loops)} loops do not reach what they declare at {self.clock_mhz:g} MHz"
        larger = [f"memory {memory.name}" for memory in self.memories if not memory.holds]
        larger += [f"DSPs of {row.process}" for row in self.dsps if not row.holds and row.process != ALL]
        return loops + (f"; more is built than estimated: {', '.join(larger)}" if larger else "")

    def rate_sentence(self) -> str:
        """Return a sentence with the cycles per frame and the frame rate at ``rate_clock``."""
        rate = self.rate_clock.text(self.clock_mhz * 1e6 / self.cycles_per_frame)
        return f"{self.cycles_per_frame:,.0f} cycles per frame {self.cycles_source}, {rate}"

    def clock_sentence(self) -> str:
        """Return the highest clock at which every loop reaches its declared II, as the end of a sentence."""
        if self.highest_clock_mhz is None:
            bounded = ", ".join(loop.source for loop in self.loops if loop.reason.startswith("ports"))
            return f"not all of them hold at any clock, because of memory ports in {bounded}"
        slower = self.part.text(self.highest_clock_mhz)
        return f"the intervals of all loops hold up to {self.highest_clock_mhz:g} MHz{slower}"


@dataclass(frozen=True)
class GeneratedClock:
    """The check of a design that has just been generated, with a sentence about its highest clock.

    Attributes:
        check: The check. None if the design was not checked.
        sentence: The highest clock at which every loop reaches its II, the reason why it could not be derived, or "".
    """

    check: DesignCheck | None
    sentence: str

    @property
    def rate_clock(self) -> RateClock | None:
        """The clock at which reports give the design's frame rate. None if the design was not checked."""
        return None if self.check is None else self.check.rate_clock


def generated_clock(folder: Path, progress: Progress = silent) -> GeneratedClock:
    """Check a design, and store the clock at which later reports give its frame rate in the design's folder.

    The design is not checked without the extra ``check``, if SYSTOLIC_CHECK is 0, or if its engine is in SystemVerilog.
    """
    if os.environ.get(VARIABLE) == "0":
        return GeneratedClock(None, "")
    try:
        design = open_design(folder)
        if not style_of(design).is_traced(design):
            return GeneratedClock(None, RTL_CLOCK)
        if find_spec("ziglang") is None:
            return GeneratedClock(None, "")
        check = check_design(folder, None, progress)
    except SystolicError as error:  # the design is right without this sentence
        return GeneratedClock(None, f"no clock is derived from the sources: {error}")
    store_clock(folder, check.rate_clock)
    return GeneratedClock(check, f"derived from the sources: {check.clock_sentence()}")


def check_design(folder: Path, clock_mhz: float | None, progress: Progress = silent) -> DesignCheck:
    """Derive loops, memories and DSPs from a design's C++ at a clock, and compare them with declared values.

    Args:
        folder: The design's folder.
        clock_mhz: The clock in MHz. None means the design's clock.
        progress: Receives the progress.

    Raises:
        RangeError: The clock is not above 0.
        UnsupportedError: The engine is in SystemVerilog.
        SystolicError: One of the errors of ``read_sources``, if the sources do not compile, or without the extra
            ``check``.
    """
    design = open_design(folder)
    clock = float(design.manifest.clock_mhz) if clock_mhz is None else clock_mhz
    if clock <= 0:
        raise RangeError("--clock in MHz", clock, 0, exclusive=True)
    if not style_of(design).is_traced(design):
        raise UnsupportedError(
            f"deriving the loops of {folder}",
            "its engine is in SystemVerilog, and intervals and depths are derived from C++ only",
            remedy="model its paths with check_rtl_design, and count its cycles with systolic simulate --cycles",
        )
    progress("compiling the sources")
    sources = read_sources(folder / "src" / "top.cpp")
    loops = sources.check(clock, report=progress)
    board, estimates = board_room.of_design(design.path, design.manifest.board), style_of(design).estimates(design)
    memories = memory_rows(sources.memories(), folder / "src", board.family, estimates)
    total = design.manifest.estimate.dsp
    dsps = dsp_rows(sources.multipliers(), estimates.dsps, total, board.dsp.kind, estimates.cascaded)
    own = pace(folder, design.manifest, 1)
    assert own is not None  # pace returns None only without a time scale
    cycles = sum(own.pass_cycles) / design.manifest.batch
    return DesignCheck(
        clock, _highest_clock(loops, clock), loops, memories, dsps, part_speed(board), cycles, own.source
    )


def _highest_clock(loops: tuple[CheckedLoop, ...], clock_mhz: float) -> float | None:
    """Return the highest clock in MHz that the longest loop-carried path allows. None if memory ports limit an II."""
    if any(loop.reason.startswith("ports") for loop in loops):
        return None
    slowest = max((loop.path_ns / loop.budget_ns for loop in loops), default=0.0)
    return float(int(clock_mhz / slowest)) if slowest else clock_mhz


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _broken(loop: CheckedLoop) -> str:
    lines = [f"{loop.process}, {loop.source}: {_remedy(loop)}"]
    if not loop.reason.startswith("ports"):
        lines += [f"  {step.ns:5.2f} ns  {step.source}  {' '.join(step.operators)}" for step in loop.path]
    return "\n".join(lines)


def _broad(loop: CheckedLoop) -> str:
    return (
        f"{loop.process}, {loop.source}: one enable signal drives {loop.operations:,} operations and "
        f"{loop.products:,} products, and {loop.streams} FIFOs can stall it: split the process"
    )


def _remedy(loop: CheckedLoop) -> str:
    """Return how to make a loop reach its II, or which depth to declare; "" if the declared II and depth hold."""
    if loop.holds:
        return f"declare a depth of {loop.derived_depth}" if loop.deeper else ""
    if loop.reason.startswith("ports"):
        return f"II {loop.derived_ii} by the {loop.reason}: partition it, or access it less often in an iteration"
    return (
        f"a loop-carried path of {loop.path_ns:.2f} ns does not fit into {loop.budget_ns:.2f} ns: shorten it by "
        "computing ahead, in registers of the iteration before, or by narrower counters"
    )
