"""Run ``python -m tools.mutation PLACE…``. The exit status is 1 if a mutant survives without a listed reason."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tools.mutation.fixtures import make_fixtures
from tools.mutation.mutants import Mutant, sample
from tools.mutation.reach import Reach, measure, read
from tools.mutation.survivors import ALIVE, read_outcomes, report, write_outcomes
from tools.mutation.trials import Outcome, Trials
from tools.parser import Parser

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutation" / "outcomes.json"


@dataclass
class _Campaign:
    """A pytest plugin that replaces the test run: it measures which lines the tests reach, then tries the mutants."""

    options: argparse.Namespace
    outcomes: dict[Mutant, Outcome] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if self.options.fixtures:
            make_fixtures(session)
        reach = self._reach(session.items)
        items = {item.nodeid: item for item in session.items}
        trials = Trials(ROOT, items, reach, self.options.budget, self._tell)
        earlier = read_outcomes(KEPT) if self.options.again else {}
        for mutant in self.options.mutants:
            outcome = earlier.get(mutant, Outcome.SURVIVED)
            if outcome in ALIVE:
                outcome = trials.outcome(mutant)
            self.outcomes[mutant] = outcome
            if outcome in ALIVE:
                self._tell(f"{outcome.name.lower()} {mutant.difference(ROOT)}\n")
        write_outcomes(KEPT, self.outcomes)
        return True

    def _tell(self, text: str) -> None:
        """Print to the original standard output, which pytest does not capture."""
        os.write(self.options.progress, text.encode())

    def _reach(self, items: list[pytest.Item]) -> Reach:
        path = ROOT / ".mutation" / f"reach-{zlib.crc32(' '.join(self.options.tests).encode()):08x}.json"
        if self.options.measure or not _is_fresh(path, self.options.room):
            measure(items, ROOT, self.options.room).write(path)
        return read(path)


def _is_fresh(path: Path, room: str) -> bool:
    """Return whether no source of the package or its tests is newer than the measurement."""
    sources = (source for folder in (ROOT / room, ROOT / "tests" / room) for source in folder.rglob("*.py"))
    return path.exists() and path.stat().st_mtime >= max(source.stat().st_mtime for source in sources)


def main() -> int:
    """Try mutants of the files that the command line names."""
    parser = Parser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument(
        "places",
        nargs="+",
        metavar="PLACE",
        help="files and folders of one top-level package, such as scheduler/systolic",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="number of places in the code to change (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="random seed of --sample (default: 1)")
    parser.add_argument(
        "--budget",
        type=float,
        default=5,
        metavar="SECONDS",
        help="run quick tests for so many seconds per mutant (default: 5)",
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure again which tests reach which lines, even if no file changed"
    )
    parser.add_argument("--again", action="store_true", help="try only mutants that survived an earlier run")
    parser.add_argument(
        "--fixtures",
        action="store_true",
        help="make pytest's session fixtures once, without a mutant, for code that these fixtures do not execute",
    )
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="tests to use (default: all tests of the package)")
    options = parser.parse_args()
    paths = [str(path.relative_to(ROOT)) for place in options.places for path in _files(ROOT / place)]
    options.room = options.places[0].split("/")[0]
    options.tests = options.tests or [f"tests/{options.room}"]
    options.mutants, population = sample(ROOT, paths, options.sample, options.seed)
    options.progress = os.dup(1)
    campaign = _Campaign(options)
    with tempfile.TemporaryDirectory() as folder:
        pytest.main(
            [
                *options.tests,
                "-q",
                "--disable-warnings",
                "-p",
                "no:cacheprovider",
                "-n",
                "0",
                "--hypothesis-profile=mutation",
                f"--basetemp={folder}",
            ],
            [campaign],
        )
    text, new = report(ROOT, campaign.outcomes, population)
    print(text)
    return min(1, new)


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


if __name__ == "__main__":
    # No time is spent on shrinking, and every run draws the same examples.
    settings.register_profile(
        "mutation",
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    sys.exit(main())
