"""Comparison of all claims of a design with everything that the vendor's reports say."""

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
    """The result of comparing a design's claims with the vendor's reports: rows with verdicts, and conflicts.

    Attributes:
        co_simulation: A sentence about the result of the co-simulation, and its verdict.
        conflicts: Reasons why a report cannot belong to this design, one sentence each.
        refused: Directives that the tool did not accept.
        missing: Facts that no report contains, each with the command that produces it.
        undeclared: Pipelined loops of the report for which the sources have no SYSTOLIC_PIPELINE.
    """

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
        """{verdict: number of rows}, with the co-simulation as a row; the verdicts are in ``rows``."""
        rows: tuple[LoopRow | MemoryRow | ResourceRow | ClockRow, ...]
        rows = (*self.loops, *self.memories, *self.resources, *self.clocks)
        return Counter([row.verdict for row in rows] + [self.co_simulation[1]])

    @property
    def holds(self) -> bool:
        """Return whether no value is worse than claimed, no directive refused, and no report of another design."""
        return not (self.verdicts[WORSE] or self.conflicts or self.refused)

    @property
    def highest_clock_mhz(self) -> float | None:
        """The highest clock that the longest reported path allows: routed, else estimated by synthesis."""
        return self.clocks[-1].highest_mhz if self.clocks else None


def compare(claims: Claims, reports: Reports, derived: Derived = MappingProxyType({})) -> Comparison:
    """Compare every claim of a design with the vendor's reports, and return rows with verdicts and advice.

    Args:
        derived: II and depth that ``systolic check`` derived from the sources; they are added to the rows of the loops.
    """
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
