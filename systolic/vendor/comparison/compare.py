"""All claims of a design beside all facts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType

from systolic.vendor.claims import Claims
from systolic.vendor.comparison.loops import Derived, loop_rows
from systolic.vendor.comparison.memories import memory_rows
from systolic.vendor.comparison.resources import resource_rows
from systolic.vendor.comparison.rows import WORSE, ClockRow, LoopRow, MemoryRow, ResourceRow
from systolic.vendor.comparison.timing import clock_rows, co_simulation, conflicts, missing
from systolic.vendor.reading.facts import LoopFact
from systolic.vendor.reading.reports import Reports


@dataclass(frozen=True)
class Comparison:
    """Of one design. co_simulation: what was simulated, with its verdict. conflicts: why reports are not of this
    design. refused: directives that the tool did not take. missing: what no report says yet, and the command that tells
    it. undeclared: pipelined loops of the report of which the sources declare nothing."""

    claims: Claims
    reports: Reports
    loops: tuple[LoopRow, ...]
    memories: tuple[MemoryRow, ...]
    resources: tuple[ResourceRow, ...]
    clocks: tuple[ClockRow, ...]
    co_simulation: tuple[str, str]
    conflicts: tuple[str, ...]
    refused: tuple[str, ...]
    missing: tuple[str, ...]
    undeclared: tuple[LoopFact, ...]

    @property
    def verdicts(self) -> Counter[str]:
        """How many rows have which."""
        rows: tuple[LoopRow | MemoryRow | ResourceRow | ClockRow, ...]
        rows = (*self.loops, *self.memories, *self.resources, *self.clocks)
        return Counter([row.verdict for row in rows] + [self.co_simulation[1]])

    @property
    def holds(self) -> bool:
        """Nothing that a report says is worse than claimed, and all reports are of this design."""
        return not (self.verdicts[WORSE] or self.conflicts or self.refused)

    @property
    def highest_clock_mhz(self) -> float | None:
        """After routing where that is known, else as synthesis estimates it."""
        return self.clocks[-1].highest_mhz if self.clocks else None


def compare(claims: Claims, reports: Reports, derived: Derived = MappingProxyType({})) -> Comparison:
    """Every claim beside what the reports say of it. derived: also of each loop what follows from its sources."""
    synthesis = reports.synthesis
    loops, undeclared = loop_rows(claims, reports, derived)
    return Comparison(
        claims=claims,
        reports=reports,
        loops=loops,
        memories=tuple(memory_rows(claims, synthesis)),
        resources=tuple(resource_rows(claims, reports)),
        clocks=tuple(clock_rows(reports)),
        co_simulation=co_simulation(claims, reports.co_simulation),
        conflicts=tuple(conflicts(claims, reports)),
        refused=tuple(map(str, synthesis.refused)) if synthesis else (),
        missing=tuple(missing(reports)),
        undeclared=tuple(loop for loop in undeclared if loop.ii is not None),
    )
