"""Loops: declared II and depth beside what was scheduled."""

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
    """II and depth that follow from the sources, and the depth that they declare: of templates no text says it."""

    ii: int
    depth: int
    declared_depth: int


Derived = Mapping[tuple[str, str], DerivedLoop]
"""Process, and FILE:LINE of a directive → the loop there."""


def loop_rows(claims: Claims, reports: Reports, derived: Derived) -> tuple[tuple[LoopRow, ...], list[LoopFact]]:
    """A row a declared loop and instance of it; and the loops of the report of which nothing is declared."""
    synthesis = reports.synthesis
    pairs, undeclared = pair_loops(claims, synthesis.loops if synthesis else ())
    rows: list[LoopRow] = []
    for loop, facts in pairs.items():
        for fact in facts:
            assert synthesis is not None  # whose loops they are
            known = derived_of(derived, function_of(claims.sources, fact.module), loop)
            rows.append(_with_derived(_row(_declared(loop, known), fact, reports, synthesis), known))
        if not facts:
            known = derived_of(derived, loop.function, loop)
            rows.append(_with_derived(_unread(_declared(loop, known), synthesis), known))
    return tuple(rows), undeclared


def derived_of(derived: Derived, process: str, loop: DeclaredLoop) -> DerivedLoop | None:
    """Of the process, else the worst of all that have the loop; None where nothing was derived."""
    instances = [known for (_, source), known in derived.items() if source == loop.source]
    worst = max(instances, key=lambda known: (known.ii, known.depth), default=None)
    return derived.get((process, loop.source), worst)


def _declared(loop: DeclaredLoop, known: DerivedLoop | None) -> DeclaredLoop:
    return replace(loop, depth=known.declared_depth) if loop.depth is None and known is not None else loop


def _with_derived(row: LoopRow, known: DerivedLoop | None) -> LoopRow:
    return replace(row, derived=(known.ii, known.depth) if known is not None else None)


def _unread(loop: DeclaredLoop, synthesis: Synthesis | None) -> LoopRow:
    advice = "no loop of the report has this line: its function was not synthesised, or the tool dissolved the loop"
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
        yield f"a path of {period:.2f} ns where {budget:.2f} ns are left{_longest(path, period)}"


def _is_worse(loop: DeclaredLoop, fact: LoopFact) -> bool:
    if fact.ii is None or (loop.ii is not None and fact.ii > loop.ii):
        return True
    return loop.depth is not None and fact.depth is not None and fact.depth > loop.depth


def _advice(loop: DeclaredLoop, fact: LoopFact, cause: str) -> Iterator[str]:
    if fact.ii is None:
        yield (
            "not pipelined: a call that is not inlined, or a loop inside that is not unrolled, prevents it; the log "
            "names it beside this loop"
        )
    elif loop.ii is not None and fact.ii > loop.ii:
        reason = cause or fact.issue or "the log says beside this loop whether accesses share a port of a memory"
        yield f"an iteration takes {fact.ii} cycles: {reason.rstrip('.')}. Until that is mended, {_declare(loop, fact)}"
    elif loop.depth is not None and fact.depth is not None and fact.depth != loop.depth:
        difference = fact.depth - loop.depth
        words = f"{difference} cycles more" if difference > 0 else f"{-difference} cycles less"
        yield f"each entry of the loop takes {words}: {_declare(loop, fact)}"


def _declare(loop: DeclaredLoop, fact: LoopFact) -> str:
    return f"declare SYSTOLIC_PIPELINE({fact.ii}, {fact.depth}) at {loop.source} and trace again"


BINDING_NS = 0.05
"""Less than this between a schedule's path and the period is rounding."""


def _longest(path: Sequence[Step], period: float) -> str:
    """A schedule knows no multiplexers in front of operators and memories that are shared: binding adds them."""
    step = max(path, key=lambda step: step.ns, default=None)
    if step is None:
        return "; hls/solution/.autopilot/db/MODULE.verbose.sched.rpt names its operations"
    multiplexers = period - sum(step.ns for step in path)
    bound = f"; {multiplexers:.2f} ns are multiplexers of what is shared" if multiplexers > BINDING_NS else ""
    return f": its longest step is {step.operation} at {step.source or 'no line'}, {step.ns:.2f} ns{bound}"
