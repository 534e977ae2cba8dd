"""`python -m tests.fuzz networks`: try cases until their limit or the time is reached, and report the outcomes."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from tests.fuzz.campaign import Campaign
from tests.fuzz.networks.case import Case, read_case
from tests.fuzz.networks.draw import draw_case
from tests.fuzz.networks.shrink import shrunk
from tests.fuzz.networks.trial import Outcome, Trial, try_case

SHRINK_SECONDS = 300.0
"""The time for shrinking one failure. Of the failures with one signature, only the first is shrunk."""

TOLD_EVERY = 50
"""The number of cases after which the report is printed."""

IMPORTED_LATER = ("matplotlib.figure", "onnxruntime.quantization", "ortools.sat.python.cp_model", "scipy.optimize")
"""Modules that some cases import, which takes about a second each. The parent process imports them before it forks."""


@dataclass
class Tally:
    """The counts of a campaign.

    Attributes:
        networks: The number of cases.
        executed: The number of executed networks, by style.
        layers: The number of executed layers, by style and kind.
        refusals: The number of refused networks, by style and signature.
        failures: The number of failed networks, by style and signature.
        checks: The number of runs, by stage or check.
        seconds: The processor time, by stage or check.
    """

    networks: int = 0
    executed: Counter[str] = field(default_factory=Counter)
    layers: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    @property
    def executed_layers(self) -> int:
        return sum(self.layers.values())

    def count(self, case: Case, outcome: Outcome) -> None:
        """Add the outcome of one case."""
        self.networks += 1
        for stage, seconds in outcome.seconds.items():
            self.seconds[stage] += seconds  # type: ignore[assignment]
            self.checks[stage] += 1
        if outcome.state == "refused":
            self.refusals[f"{case.style}: {outcome.signature}"] += 1
        elif outcome.state == "failed":
            self.failures[f"{case.style}: {outcome.signature}"] += 1
        else:
            self.executed[case.style] += 1
            for kind, count in outcome.layers.items():
                self.layers[case.style, kind] += count

    def text(self, seconds: float) -> str:
        """Return the report.

        Args:
            seconds: The time since the campaign began.
        """
        refused, layers = sum(self.refusals.values()), self.executed_layers
        lines = [
            f"{self.networks} networks in {seconds:.0f} s: {sum(self.executed.values())} executed, {layers} layers, "
            f"{refused} refused ({100 * refused / max(1, self.networks):.1f} %), "
            f"{sum(self.failures.values())} failed in {len(self.failures)} ways"
        ]
        for style, count in sorted(self.executed.items()):
            kinds = sorted((kind, layers) for (of, kind), layers in self.layers.items() if of == style)
            total = sum(layers for _, layers in kinds)
            listed = ", ".join(f"{layers} {kind}" for kind, layers in kinds)
            lines.append(f"  {style}: {count} networks, {total} layers: {listed}")
        lines += [f"  refused {count:5}  {reason}" for reason, count in self.refusals.most_common()]
        lines += [f"  {stage:10} {count:6} times {self.seconds[stage]:9.1f} s" for stage, count in self.checks.items()]
        lines += [f"  FAILED {count:5}  {signature}" for signature, count in self.failures.most_common()]
        return "\n".join(lines)


def run(campaign: Campaign) -> int:
    """Try the campaign's cases, or replay its files, print a report, and return the number of failures."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="systolic-fuzz-cache-") as beside:
        cache = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", beside))
        cache.mkdir(exist_ok=True)
        if campaign.replay:
            return _replay(campaign, cache)
        for number, case, outcome in outcomes(campaign, cache, lambda: tally.executed_layers >= campaign.layers):
            tally.count(case, outcome)
            if outcome.state == "failed":
                _report_failure(campaign, number, case, outcome, tally, cache)
            if tally.networks % TOLD_EVERY == 0:
                print(tally.text(time.monotonic() - campaign.started), flush=True)
    print(tally.text(time.monotonic() - campaign.started))
    few = tally.executed_layers < campaign.layers
    if few:
        print(f"FAILED: at least {campaign.layers} layers must be executed, and {tally.executed_layers} were")
    return sum(tally.failures.values()) + few


def outcomes(campaign: Campaign, cache: Path, enough: Callable[[], bool]) -> Iterator[tuple[int, Case, Outcome]]:
    """Yield each case with its number and outcome, in the order in which the trials end.

    ``campaign.workers`` trials run at once.

    Args:
        cache: A folder for compiled code.
        enough: Returns whether the campaign may end when its time is over.
    """
    for module in IMPORTED_LATER:
        importlib.import_module(module)
    at_work: dict[int, Trial] = {}
    numbers = campaign.numbers(enough)
    number = next(numbers, None)
    while at_work or number is not None:
        while number is not None and len(at_work) < campaign.workers:
            at_work[number] = Trial(draw_case(campaign.seed, number), cache)
            number = next(numbers, None)
        wait([trial.sentinel for trial in at_work.values()], 5.0)
        for done in [n for n, trial in at_work.items() if trial.ended or trial.late]:
            trial = at_work.pop(done)
            yield done, trial.case, trial.outcome()


def _report_failure(campaign: Campaign, number: int, case: Case, outcome: Outcome, tally: Tally, cache: Path) -> None:
    signature = f"{case.style}: {outcome.signature}"
    print(f"case {number} FAILED {case.style} {outcome.stage}: {outcome.sentence}", flush=True)
    campaign.failures.mkdir(parents=True, exist_ok=True)
    path = campaign.failures / f"seed-{campaign.seed}-case-{number}.json"
    path.write_text(case.text(), "utf-8")
    if tally.failures[signature] == 1:
        smaller = shrunk(case, outcome, cache, SHRINK_SECONDS)
        path.with_suffix(".small.json").write_text(smaller.text(), "utf-8")
        print(f"  shrunk to: {json.dumps(smaller.network)} {json.dumps(smaller.mapping)}", flush=True)
    print(f"  repeat with: python -m tests.fuzz networks --replay {path}", flush=True)


def _replay(campaign: Campaign, cache: Path) -> int:
    failures = 0
    for path in campaign.replay:
        outcome = try_case(read_case(path.read_text("utf-8")), cache)
        failures += outcome.state == "failed"
        print(f"{path}: {outcome.state} {outcome.stage} {outcome.sentence}", flush=True)
    return failures
