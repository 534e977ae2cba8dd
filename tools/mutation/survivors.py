"""Survivors with a listed reason, and the report of a run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

from tools.mutation.mutants import Mutant
from tools.mutation.reasons import reasons
from tools.mutation.trials import Outcome

ALIVE = (Outcome.SURVIVED, Outcome.UNTESTED, Outcome.RAISED)
"""Outcomes that need a reason. A mutant whose trial raised an exception counts neither as killed nor as tried."""


def _reason(listed: Mapping[tuple[str, str], list[tuple[list[str], str]]], mutant: Mutant, root: Path) -> str | None:
    original, mutated = mutant.lines(root)
    entries = listed.get((mutant.path, original), ())
    return next((reason for lines, reason in entries if not lines or mutated in lines), None)


def report(root: Path, outcomes: dict[Mutant, Outcome], places: int) -> tuple[str, int]:
    """Return the report, and the number of survivors without a reason.

    The report has the share of killed mutants with its 95 % interval, and the survivors by reason.
    """
    counts = Counter(outcomes.values())
    killed = counts[Outcome.KILLED] + counts[Outcome.TIMEOUT]
    tried = killed + counts[Outcome.SURVIVED] + counts[Outcome.UNTESTED]
    low, high = _interval(killed, tried, places)
    listed = reasons()
    groups: Counter[str] = Counter()
    new = []
    for mutant in (mutant for mutant, outcome in outcomes.items() if outcome in ALIVE):
        reason = _reason(listed, mutant, root)
        if reason:
            groups[reason] += 1
        else:
            new.append(mutant.difference(root))
    lines = [
        f"{killed} of {tried} mutants killed, {100 * killed / max(1, tried):.1f} % (95 %: {low:.1f} to {high:.1f} %)",
        f"{places} places; {counts[Outcome.TIMEOUT]} killed by timeout, {counts[Outcome.STILLBORN]} do not load, "
        f"{counts[Outcome.UNREACHABLE]} in tables built at loading are not tried, "
        f"{counts[Outcome.RAISED]} raised in trial",
        *(f"{count} survive: {reason}" for reason, count in groups.most_common()),
        f"{len(new)} survive without a reason",
    ]
    return "\n".join([*new, *lines]), len(new)


def read_outcomes(path: Path) -> dict[Mutant, Outcome]:
    """Read the file that `write_outcomes` wrote, or return nothing if there is no file."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return {Mutant(*fields): Outcome(outcome) for *fields, outcome in rows}


def write_outcomes(path: Path, outcomes: dict[Mutant, Outcome]) -> None:
    """Write the outcomes as JSON, merged with the outcomes of other mutants in the file."""
    together = {**read_outcomes(path), **outcomes}
    path.write_text(json.dumps([[*astuple(mutant), int(outcome)] for mutant, outcome in sorted(together.items())]))


def _interval(killed: int, tried: int, places: int) -> tuple[float, float]:
    """Return the Wilson interval of 95 %, in percent, for a sample drawn without replacement from ``places`` places."""
    if not tried or tried >= places:
        return (100 * killed / max(1, tried),) * 2
    z = 1.96 * math.sqrt((places - tried) / (places - 1))
    share = killed / tried
    centre = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried) * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return 100 * (centre - half), 100 * (centre + half)
