"""Loops: comparison of the declared II and depth with the schedule of Vitis HLS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from systolic.vendor.claims import Claims
from systolic.vendor.comparison.rows import BETTER, HOLDS, OPEN, WORSE, LoopRow
from systolic.vendor.pairing import function_of, pair_loops
from systolic.vendor.reading.facts import LoopFact, Step, Synthesis
from systolic.vendor.reading.reports import TOLERANCE_NS, Reports
from systolic.vendor.sources import DeclaredLoop


@dataclass(frozen=True)
class DerivedLoop:
    """The II and depth that ``systolic check`` derived for a loop from the C++.

    Attributes:
        declared_depth: The depth that the sources declare. In a template only its instances have a number for it.
    """

    ii: int
    depth: int
    declared_depth: int


Derived = Mapping[tuple[str, str], DerivedLoop]
"""(process, FILE:LINE of the SYSTOLIC_PIPELINE directive) → the loop."""


def loop_rows(claims: Claims, reports: Reports, derived: Derived) -> tuple[tuple[LoopRow, ...], list[LoopFact]]:
    """Return a row per declared loop and instance, and the reported loops without a SYSTOLIC_PIPELINE in the C++.

    A declared loop that the report lacks gets one row without a fact.
    """
    synthesis = reports.synthesis
    pairs, undeclared = pair_loops(claims, synthesis.loops if synthesis else ())
    rows: list[LoopRow] = []
    for loop, facts in pairs.items():
        for fact in facts:
            assert synthesis is not None  # only a synthesis report has facts about loops
            known = derived_of(derived, function_of(claims.sources, fact.module), loop)
            rows.append(_with_derived(_row(_declared(loop, known), fact, reports, synthesis), known))
        if not facts:
            known = derived_of(derived, loop.function, loop)
            rows.append(_with_derived(_unread(_declared(loop, known), synthesis), known))
    return tuple(rows), undeclared


def derived_of(derived: Derived, process: str, loop: DeclaredLoop) -> DerivedLoop | None:
    """Return the derived II and depth of ``loop`` in ``process``, else in the slowest process that contains it.

    None if nothing was derived for the loop.
    """
    instances = [known for (_, source), known in derived.items() if source == loop.source]
    worst = max(instances, key=lambda known: (known.ii, known.depth), default=None)
    return derived.get((process, loop.source), worst)


def _declared(loop: DeclaredLoop, known: DerivedLoop | None) -> DeclaredLoop:
    return replace(loop, depth=known.declared_depth) if loop.depth is None and known is not None else loop


def _with_derived(row: LoopRow, known: DerivedLoop | None) -> LoopRow:
    return replace(row, derived=(known.ii, known.depth) if known is not None else None)


def _unread(loop: DeclaredLoop, synthesis: Synthesis | None) -> LoopRow:
    advice = (
        "the report has no loop at this line: its function was not synthesised, or the tool unrolled or removed the "
        "loop"
    )
    return LoopRow(loop, None, None, synthesis.budget_ns if synthesis else None, (), OPEN, advice if synthesis else "")


def _row(loop: DeclaredLoop, fact: LoopFact, reports: Reports, synthesis: Synthesis) -> LoopRow:
    period = next((module.estimated_ns for module in synthesis.modules if module.name == fact.module), None)
    path = next((path.steps for path in reports.paths_of_modules if path.module == fact.module), ())
    late = list(_late(period, synthesis.budget_ns, path))
    verdict = WORSE if late or _is_worse(loop, fact) else BETTER if (fact.depth or 0) < (loop.depth or 0) else HOLDS
    cause = next((v.cause for v in reports.violations if (v.module, v.loop) == (fact.module, fact.name)), "")
    advice = "; ".join([*_advice(loop, fact, cause), *late])
    return LoopRow(loop, fact, period, synthesis.budget_ns, path, verdict, advice)


def _late(period: float | None, budget: float | None, path: Sequence[Step]) -> Iterator[str]:
    if period is not None and budget is not None and period > budget + TOLERANCE_NS:
        yield f"the longest path takes {period:.2f} ns, but only {budget:.2f} ns are available{_longest(path, period)}"


def _is_worse(loop: DeclaredLoop, fact: LoopFact) -> bool:
    if fact.ii is None or (loop.ii is not None and fact.ii > loop.ii):
        return True
    return loop.depth is not None and fact.depth is not None and fact.depth > loop.depth


def _advice(loop: DeclaredLoop, fact: LoopFact, cause: str) -> Iterator[str]:
    if fact.ii is None:
        yield (
            "not pipelined, because the loop contains a call that is not inlined or a loop that is not unrolled; the "
            "log names it together with this loop"
        )
    elif loop.ii is not None and fact.ii > loop.ii:
        reason = cause or fact.issue or "the log reports for this loop whether accesses share a port of a memory"
        yield (
            f"the achieved II is {fact.ii} cycles: {reason.rstrip('.')}. Until this is fixed, {_declare(loop, fact)}"
        )
    elif loop.depth is not None and fact.depth is not None and fact.depth != loop.depth:
        difference = fact.depth - loop.depth
        words = f"{difference} cycles more" if difference > 0 else f"{-difference} cycles less"
        yield f"each start of the loop takes {words}: {_declare(loop, fact)}"


def _declare(loop: DeclaredLoop, fact: LoopFact) -> str:
    return f"declare SYSTOLIC_PIPELINE({fact.ii}, {fact.depth}) at {loop.source} and trace again"


BINDING_NS = 0.05
"""A smaller difference between the sum of a schedule's steps and the module's longest path is rounding."""


def _longest(path: Sequence[Step], period: float) -> str:
    """Return a clause for the advice: which operation of the path takes longest, and where.

    The schedule does not contain the multiplexers in front of shared operators and memories, because binding adds them
    later. They are the difference between the period and the sum of the steps.
    """
    step = max(path, key=lambda step: step.ns, default=None)
    if step is None:
        return "; hls/solution/.autopilot/db/MODULE.verbose.sched.rpt lists its operations"
    multiplexers = period - sum(step.ns for step in path)
    bound = (
        f"; multiplexers of shared operators and memories take {multiplexers:.2f} ns"
        if multiplexers > BINDING_NS
        else ""
    )
    return f"; its longest step is {step.operation} at {step.source or 'no line'}, {step.ns:.2f} ns{bound}"
