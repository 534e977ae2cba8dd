"""The rows of a comparison: a claim, the reported value, a verdict ("as claimed", "worse", …) and advice."""

from __future__ import annotations

from dataclasses import dataclass

from systolic.vendor.reading.facts import LoopFact, Step
from systolic.vendor.sources import DeclaredLoop

HOLDS, BETTER, WORSE, OPEN = "as claimed", "better", "worse", "open"
"""Verdicts. OPEN: no report has the fact, or nothing is claimed."""


@dataclass(frozen=True)
class LoopRow:
    """A declared loop and one of its instances in the report, with both IIs and depths, a verdict and advice.

    Attributes:
        fact: The instance in the synthesis report; None if the report has none.
        period_ns: The longest path of the instance's module.
        budget_ns: The time available for a path: the clock period without the uncertainty.
        path: The operations of the longest path; empty unless it is longer than the budget.
        advice: A sentence about the difference; "" if there is none.
        derived: II and depth that ``systolic check`` derives from the sources; None if it did not run.
    """

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
    """A claimed memory and the blocks that the tool used for it; or all FIFOs, or all AXI adapters, without a claim.

    Attributes:
        source: FILE:LINE of the first directive; "" if nothing is claimed.
        claimed: Blocks, count, depth and width in words.
        achieved: Blocks and memories in words, such as "12 BRAM36 in 12".
        bram36: Bound blocks; a BRAM18 counts 0.5.
    """

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
    """One resource, such as DSP: the estimate, the counts of Vitis HLS and Vivado, a verdict and advice.

    Attributes:
        kind: dsp, bram36, uram, lut, lutram or ff.
        claimed: The estimate in the manifest.
        synthesised: The estimate of Vitis HLS.
        placed: Vivado's count: the accelerator alone if a hierarchical report exists, else the whole block design.
        available: The device's count.
    """

    kind: str
    claimed: int | None
    synthesised: float | None
    placed: float | None
    available: float | None
    verdict: str
    advice: str


@dataclass(frozen=True)
class ClockRow:
    """The longest path that Vitis HLS or Vivado reports, and the highest clock that it allows.

    Attributes:
        stage: The tool and its step.
        path_ns: The longest path.
        budget_ns: The time available for a path.
        highest_mhz: The highest clock that the path allows.
    """

    stage: str
    path_ns: float
    budget_ns: float
    highest_mhz: float
    verdict: str
    advice: str
