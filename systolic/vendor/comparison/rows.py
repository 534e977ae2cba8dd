"""What a comparison is made of: one value a line, with its verdict."""

from __future__ import annotations

from dataclasses import dataclass

from systolic.vendor.reading.facts import LoopFact, Step
from systolic.vendor.sources import DeclaredLoop

HOLDS, BETTER, WORSE, OPEN = "as claimed", "better", "worse", "open"
"""Verdicts. open: no report says it."""


@dataclass(frozen=True)
class LoopRow:
    """A declared loop and one instance of it, None where no report has one. period_ns: the longest path of its module,
    budget_ns: what a path may take, path: what that longest one is made of where it takes more. derived: II and depth
    that ``systolic check`` derives from the sources, None where it was not asked."""

    declared: DeclaredLoop
    fact: LoopFact | None
    period_ns: float | None
    budget_ns: float | None
    path: tuple[Step, ...]
    verdict: str
    advice: str
    derived: tuple[int, int] | None = None


@dataclass(frozen=True)
class MemoryRow:
    """A claimed memory. claimed, achieved: in words, "12 BRAM36 in 12"; halves of a BRAM36 count."""

    name: str
    source: str
    claimed: str
    achieved: str
    bram36: float | None
    uram: int | None
    verdict: str
    advice: str


@dataclass(frozen=True)
class ResourceRow:
    """synthesised: as Vitis HLS estimates it; placed: as Vivado counts it, of the accelerator alone where it told."""

    kind: str
    claimed: int | None
    synthesised: float | None
    placed: float | None
    available: float | None
    verdict: str
    advice: str


@dataclass(frozen=True)
class ClockRow:
    """stage: who says it. path_ns: the longest path, budget_ns: what it may take; highest_mhz: of this path."""

    stage: str
    path_ns: float
    budget_ns: float
    highest_mhz: float
    verdict: str
    advice: str
