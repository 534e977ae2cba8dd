"""`python -m tests.fuzz kills`: interrupt commands while they write. The result must be the old one or the new one."""

from __future__ import annotations

import errno
import json
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

from tests.fuzz.campaign import Campaign
from tests.fuzz.kills.judge import Clean, complaints, second_run_complaints
from tests.fuzz.kills.scenarios import Scenario, scenarios
from tests.fuzz.kills.tree import is_hidden, put
from tests.fuzz.kills.workshop import Fault, Outcome, Workshop

STRIKES = {  # SIGSTOP stops the command while a second one runs, see kills.server
    "SIGINT": Fault(signal=signal.SIGINT),
    "SIGTERM": Fault(signal=signal.SIGTERM),
    "SIGKILL": Fault(signal=signal.SIGKILL),
    "another run": Fault(signal=signal.SIGSTOP),
    "disk full": Fault(error=errno.ENOSPC, stays=True),
    "disk error": Fault(error=errno.EIO),
}

_SECONDS = re.compile(rb"seconds|\d\.\d s\b|>s</th")
"""Matches a JSON file or a report that states the time of its own search, which differs between runs."""


@dataclass(frozen=True)
class Case:
    """A command and the fault that interrupts it.

    Attributes:
        command: The name of the scenario.
        strike: The name of the fault, a key of STRIKES.
        fault: The fault, with the number of its call.
    """

    command: str
    strike: str
    fault: Fault


class Kills:
    """The data that all cases share: the workshop, the scenarios, and the result of each uninterrupted command.

    Args:
        quick: Whether only commands that take less than a second are used.
    """

    def __init__(self, workshop: Workshop, quick: bool) -> None:
        self.workshop = workshop
        every = scenarios(workshop.folder / "inputs")
        self.scenarios = {name: scenario for name, scenario in every.items() if scenario.quick or not quick}
        self._clean: dict[str, Clean] = {}

    def clean(self, command: str) -> Clean:
        """Return the result of the uninterrupted command."""
        if command not in self._clean:
            self._clean[command] = self._undisturbed(self.scenarios[command])
        return self._clean[command]

    def _undisturbed(self, scenario: Scenario) -> Clean:
        first, second = (self._run(scenario, Fault()) for _ in range(2))
        assert first.codes == second.codes == (0,), (scenario.arguments, first.errors)
        # Two runs may report equal seconds by chance, so files with times are found by their content too.
        timed = {
            name for name, data in first.tree.items() if name.endswith((".json", ".html")) and _SECONDS.search(data)
        }
        volatile = timed | {name for name, data in first.tree.items() if data != second.tree.get(name)}
        return Clean(scenario, first.tree, frozenset(volatile), first.calls)

    def _run(self, scenario: Scenario, fault: Fault) -> Outcome:
        folder = self.workshop.folder / "work"
        for old in (folder, folder.with_name("temporary")):
            shutil.rmtree(old, ignore_errors=True)
        put(scenario.before, folder)
        return self.workshop.run(folder, scenario.arguments, fault)

    def draw(self, seed: int, number: int) -> Case:
        """Return the case ``number`` of a campaign."""
        random = Random(f"{seed}/{number}")
        weights = [4 if scenario.quick else 1 for scenario in self.scenarios.values()]
        (command,) = random.choices(list(self.scenarios), weights)
        strike = random.choice(list(STRIKES))
        fault = replace(
            STRIKES[strike],
            at=random.randint(1, self.clean(command).calls),
            late=bool(STRIKES[strike].signal) and random.random() < 0.5,
            old_kernel=random.random() < 0.25,
        )
        return Case(command, strike, fault)

    def tried(self, case: Case) -> list[str]:
        """Run a case and return its complaints. If files may remain, check a second run too."""
        clean = self.clean(case.command)
        outcome = self._run(clean.scenario, case.fault)
        wrong = complaints(clean, case.fault, outcome)
        if case.strike == "SIGKILL" or any(map(is_hidden, outcome.tree)):
            again = self.workshop.run(self.workshop.folder / "work", clean.scenario.arguments)
            wrong += second_run_complaints(clean, outcome, again)
        return wrong


def run(campaign: Campaign) -> int:
    """Print a table of the interrupted commands, and every defect; return the number of defects."""
    struck: Counter[tuple[str, str]] = Counter()
    defects = 0
    with tempfile.TemporaryDirectory() as folder, Workshop(Path(folder)) as workshop:
        kills = Kills(workshop, quick=False)
        for number in campaign.numbers():
            print(f"\r{number}", end="", file=sys.stderr, flush=True)
            case = kills.draw(campaign.seed, number)
            wrong = kills.tried(case)
            struck[case.command, case.strike] += 1
            if wrong:
                defects += 1
                report = {"seed": campaign.seed, "number": number, **asdict(case), "wrong": wrong}
                print(json.dumps(report, indent=1), flush=True)
                campaign.failures.mkdir(parents=True, exist_ok=True)
                path = campaign.failures / f"kills-{campaign.seed}-{number}.json"
                path.write_text(json.dumps(report, indent=1) + "\n")
        print(_table(struck, kills))
    print(f"{sum(struck.values())} commands were interrupted while they wrote, {defects} defects")
    return defects


def _table(struck: Counter[tuple[str, str]], kills: Kills) -> str:
    heads = ("command", *STRIKES, "calls that write")
    rows = [
        (name, *(str(struck[name, strike]) for strike in STRIKES), str(kills.clean(name).calls))
        for name in kills.scenarios
    ]
    totals = ("all", *(str(sum(struck[name, strike] for name in kills.scenarios)) for strike in STRIKES), "")
    return "\n".join(
        "".join(f"{cell:<20}" if column == 0 else f"{cell:>12}" for column, cell in enumerate(row))
        for row in (heads, *rows, totals)
    )
