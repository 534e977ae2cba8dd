"""A generated design's claims beside what its sources let a vendor's tool reach: ``check_design``."""

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
from systolic.checking.record import keep
from systolic.report.clock import RateClock
from systolic.report.tables import table
from systolic.styles.registry import open_design, style_of

VARIABLE = "SYSTOLIC_CHECK"
"""0: ``systolic generate`` does not derive the clock that its design holds, which takes some seconds."""


@dataclass(frozen=True)
class DesignCheck:
    """Every pipelined loop at a clock. highest_clock_mhz: at which each reaches the interval that it declares; None
    where ports of a memory keep one from it at every clock. cycles_per_frame: "traced" where the design was, else
    "modelled"."""

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
        """What a frame rate is told at: the clock, or the highest that the loops hold on the board's part."""
        highest = self.highest_clock_mhz
        held = None if highest is None else self.part.clock_mhz(highest) or highest
        return RateClock(self.clock_mhz, all(loop.holds for loop in self.loops), held)

    @property
    def frames_per_second(self) -> float | None:
        """At that clock; None where the sources reach their intervals at none."""
        return self.rate_clock.rate(self.clock_mhz * 1e6 / self.cycles_per_frame)

    @property
    def holds(self) -> bool:
        """Whether no loop is slower or deeper than declared, and no memory larger and no DSP more than estimated."""
        loops = all(loop.holds and not loop.deeper for loop in self.loops)
        return loops and all(memory.holds for memory in self.memories) and all(row.holds for row in self.dsps)

    def values(self) -> dict[str, Any]:
        """As one JSON object."""
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
                "frames_per_second": self.frames_per_second and round(self.frames_per_second, 2),
                "cycles_per_frame": round(self.cycles_per_frame),
                "cycles": self.cycles_source,
            },
            "loops": loops,
            "memories": [{**asdict(memory), "holds": memory.holds} for memory in self.memories],
            "dsps": [{**asdict(row), "holds": row.holds, "note": row.note} for row in self.dsps],
        }

    def text(self) -> str:
        """A table of the loops; of those that do not hold, the path and what would mend it; of memories and of DSPs."""
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
        """The frame rate at the clock that the sources hold, in words."""
        rate = self.rate_clock.text(self.clock_mhz * 1e6 / self.cycles_per_frame)
        return f"{self.cycles_per_frame:,.0f} cycles a frame {self.cycles_source}, {rate}"

    def clock_sentence(self) -> str:
        """The highest clock, in words."""
        if self.highest_clock_mhz is None:
            bounded = ", ".join(loop.source for loop in self.loops if loop.reason.startswith("ports"))
            return f"at no clock do all of them, because of memory ports in {bounded}"
        slower = self.part.text(self.highest_clock_mhz)
        return f"the intervals of all loops hold up to {self.highest_clock_mhz:g} MHz{slower}"


@dataclass(frozen=True)
class GeneratedClock:
    """What a check of a design that has just been generated says. check: None where there was none; sentence: the
    highest clock at which every loop holds, why it could not be derived, or ""."""

    check: DesignCheck | None
    sentence: str

    @property
    def rate_clock(self) -> RateClock | None:
        return None if self.check is None else self.check.rate_clock


def generated_clock(folder: Path, progress: Progress = silent) -> GeneratedClock:
    """Check a design, and keep in its folder what later reports tell its rate at.

    Nothing without the extra ``check``, where SYSTOLIC_CHECK is 0, and for an engine in SystemVerilog.
    """
    if os.environ.get(VARIABLE) == "0" or find_spec("ziglang") is None:
        return GeneratedClock(None, "")
    try:
        design = open_design(folder)
        if not style_of(design).is_traced(design):
            return GeneratedClock(None, "")
        check = check_design(folder, None, progress)
    except SystolicError as error:  # the design is right without this sentence
        return GeneratedClock(None, f"no clock is derived from the sources: {error}")
    keep(folder, check.rate_clock)
    return GeneratedClock(check, f"derived from the sources: {check.clock_sentence()}")


def check_design(folder: Path, clock_mhz: float | None, progress: Progress = silent) -> DesignCheck:
    """Derive the loops of a generated folder.

    Raises:
        RangeError: The clock is not above 0.
        UnsupportedError: The engine is in SystemVerilog.
        SystolicError: One of the errors of ``read_sources``, if the sources do not compile, or without the extra
            ``check``.
    """
    design = open_design(folder)
    clock = clock_mhz or float(design.manifest.clock_mhz)
    if clock <= 0:
        raise RangeError("--clock in MHz", clock, 0, exclusive=True)
    if not style_of(design).is_traced(design):
        raise UnsupportedError(
            f"deriving the loops of {folder}",
            "its engine is in SystemVerilog, whose intervals and depths are registers in the sources, and systolic "
            "check derives those that a compiler finds for C++",
            remedy="count its cycles with systolic simulate --cycles, and take the clock from the synthesis with the "
            "folder's package_ip.tcl",
        )
    progress("compiling the sources")
    sources = read_sources(folder / "src" / "top.cpp")
    loops = sources.check(clock, report=progress)
    board, estimates = board_room.of_design(design.path, design.manifest.board), style_of(design).estimates(design)
    memories = memory_rows(sources.memories(), folder / "src", board.family, estimates)
    total = design.manifest.estimate.dsp
    dsps = dsp_rows(sources.multipliers(), estimates.dsps, total, board.dsp.kind, estimates.cascaded)
    own = pace(folder, design.manifest, 1)
    assert own is not None  # at a scale of 1
    cycles = sum(own.pass_cycles) / design.manifest.batch
    return DesignCheck(
        clock, _highest_clock(loops, clock), loops, memories, dsps, part_speed(board), cycles, own.source
    )


def _highest_clock(loops: tuple[CheckedLoop, ...], clock_mhz: float) -> float | None:
    """At which the longest loop-carried path fits: its budget is a share of the period."""
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
        f"{loop.process}, {loop.source}: {loop.operations:,} operations and {loop.products:,} products stand behind one"
        f" enable, which {loop.streams} FIFOs can stop: make its parts processes of their own"
    )


def _remedy(loop: CheckedLoop) -> str:
    """What would mend a loop; "" where nothing has to."""
    if loop.holds:
        return f"declare a depth of {loop.derived_depth}" if loop.deeper else ""
    if loop.reason.startswith("ports"):
        return f"II {loop.derived_ii} by the {loop.reason}: partition it, or access it less often in an iteration"
    return (
        f"a loop-carried path of {loop.path_ns:.2f} ns does not fit into {loop.budget_ns:.2f} ns: shorten it by "
        "computing ahead, in registers of the iteration before, or by narrower counters"
    )
