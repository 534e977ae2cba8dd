"""Draw mutants, try them on the tests that may notice them, and print the record."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.mutants import record
from tools.mutants.reach import FOLDER
from tools.mutants.reach import read as read_reach
from tools.mutants.trial import BUDGETS, ROOT, Copy, Patch, StalePatchError, judges, read_patch
from tools.parser import Parser

HERE = Path(__file__).parent
MEASURED = ROOT / ".mutation" / "reach"
MAX_SECONDS = 300.0
"""CPU seconds assumed for tests that are named on the command line."""
NO_TESTS = ("", "import", "hang", "crash")
"""Values of the record that are not the name of a test."""

EXAMPLE = """example:
  python -m tools.mutants reach                   record which tests reach which lines; twice the time of the suite
  python -m tools.mutants run -j 2                try the patches that are not in kills.json
  python -m tools.mutants run --again             also try the patches that survived
  python -m tools.mutants run chain --again       try only the faults in the chain of a design
  python -m tools.mutants run --suite engine 076-hls-templates --tests tests/hls_templates/streaming
                                                  try one patch on named tests, without measuring first
  python -m tools.mutants verify -j 2             check that every recorded test still notices its patch
  python -m tools.mutants report
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command.

    Return 1 if a patch does not apply or a fault in the chain survives, 2 if an argument is wrong.
    """
    options = _parser().parse_args(arguments)
    if options.command == "draw":
        return _draw(options.seed)
    if options.command == "reach":
        return _reach(options.suite, options.tests)
    if options.command == "run":
        return _run(options)
    if options.command == "verify":
        return _verify(_patches(options.patches), options.jobs)
    return _report(record.read())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m tools.mutants",
        description="Try small faults, kept as patches, on the tests that may notice them.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    draw = commands.add_parser("draw", help="replace the patches in patches/ by newly drawn mutants")
    draw.add_argument("--seed", type=int, default=1, help="random seed (default: %(default)s)")
    reach = commands.add_parser("reach", help="measure which tests execute which lines")
    run = commands.add_parser("run", help="apply each patch, run the tests that may notice it, and record which fail")
    verify = commands.add_parser("verify", help="run each patch's recorded test on it; exit status 1 if a test passes")
    for command in (reach, run):
        command.add_argument(
            "--suite",
            choices=record.SUITES,
            default="default",
            help="run the tests of this suite (default: %(default)s)",
        )
    reach.add_argument("tests", nargs="*", metavar="TEST", help="files and folders of tests (default: all)")
    for command in (run, verify):
        command.add_argument("patches", nargs="*", metavar="PATCH", help="folders and names of patches (default: all)")
        command.add_argument(
            "-j", "--jobs", type=int, default=1, metavar="N", help="number of processes (default: %(default)s)"
        )
    run.add_argument("--again", action="store_true", help="also try patches that survived this suite before")
    run.add_argument(
        "--tests",
        nargs="+",
        metavar="TEST",
        help="tests to run: files, folders, names (default: tests that execute the line)",
    )
    commands.add_parser("report", help="print how many recorded mutants were noticed")
    return parser


def _draw(seed: int) -> int:
    from tools.mutants.draw import drawn  # needs Cosmic Ray

    folder = HERE / "patches"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.patch"):
        old.unlink()
    for number, (room, mutant) in enumerate(drawn(ROOT, seed), 1):
        (folder / f"{number:03}-{room.replace('_', '-')}.patch").write_text(mutant.patch(), "utf-8")
    kept = {name: row for name, row in record.read().items() if not name.startswith("patches/")}
    record.write(kept)
    print(f"{number} mutants in {folder}")
    return 0


def _reach(suite: str, tests: Sequence[str]) -> int:
    folder = MEASURED / suite
    for old in folder.glob("*.json") if folder.is_dir() else ():
        old.unlink()
    marker = [] if suite == "default" else ["-m", suite]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.mutants.reach", *marker, *tests]
    code = subprocess.call(command, cwd=ROOT, env={**os.environ, FOLDER: str(folder), "CI": "1"})
    return 0 if any(folder.glob("*.json")) else code


def _run(options: argparse.Namespace) -> int:
    folder = MEASURED / options.suite
    if not options.tests and not folder.is_dir():
        print(f"measure first: python -m tools.mutants reach --suite {options.suite}", file=sys.stderr)
        return 2
    kills = record.read()
    patches = [patch for patch in _patches(options.patches) if _is_open(kills.get(patch.name, {}), options)]
    if options.tests:
        trials = [_Trial(patch, options.suite, options.tests, MAX_SECONDS) for patch in patches]
    else:
        reach = read_reach(folder)
        found = [judges(patch, ROOT, reach, BUDGETS[options.suite]) for patch in patches]
        trials = [
            _Trial(patch, options.suite, tests, sum(map(reach.seconds.__getitem__, tests)))
            for patch, tests in zip(patches, found, strict=True)
        ]
    stale = 0
    for trial, killer in _tried(trials, options.jobs):
        if isinstance(killer, StalePatchError):
            stale += 1
        else:
            kills.setdefault(trial.patch.name, {})[options.suite] = killer
            record.write(kills)
    return max(min(stale, 1), _report(kills))


def _verify(patches: Sequence[Patch], jobs: int) -> int:
    kills = record.read()
    rows = [(patch, suite, killer) for patch in patches for suite, killer in kills.get(patch.name, {}).items()]
    trials = [_Trial(patch, suite, [killer], MAX_SECONDS) for patch, suite, killer in rows if killer not in NO_TESTS]
    passed = [trial for trial, killer in _tried(trials, jobs) if killer not in trial.tests]
    for trial in passed:
        print(f"{trial.patch.name}: {trial.tests[0]} of {trial.suite} does not notice it")
    return 1 if passed else 0


def _tried(trials: Sequence[_Trial], jobs: int) -> Iterator[tuple[_Trial, str | StalePatchError]]:
    """Yield each trial with the test that fails, "" if none does, or the error of a patch that does not apply."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(jobs):
            copies.put(Copy.of_project(Path(place) / str(number)))
        killers = pool.map(lambda trial: trial.killer(copies), trials)
        for number, (trial, killer) in enumerate(zip(trials, killers, strict=True), 1):
            print(f"{number} of {len(trials)}: {trial.patch.name}: {killer or 'survived'}", flush=True)
            yield trial, killer


def _is_open(row: dict[str, str], options: argparse.Namespace) -> bool:
    earlier = record.SUITES[: record.SUITES.index(options.suite)]
    if any(row.get(suite) for suite in earlier):
        return False
    return options.suite not in row or (options.again and not row[options.suite])


def _patches(names: Sequence[str]) -> list[Patch]:
    every = [read_patch(path) for folder in ("chain", "patches") for path in sorted((HERE / folder).glob("*.patch"))]
    if not names:
        return every
    return [
        patch for patch in every if any(name in (patch.name, patch.path.parent.name, patch.path.stem) for name in names)
    ]


@dataclass(frozen=True)
class _Trial:
    """A patch, and the tests of a suite that are tried on it.

    Attributes:
        patch: The patch.
        suite: The suite.
        tests: The tests.
        seconds: CPU seconds that the tests take without the patch.
    """

    patch: Patch
    suite: str
    tests: Sequence[str]
    seconds: float

    def killer(self, copies: SimpleQueue[Copy]) -> str | StalePatchError:
        """Return the first test that fails with the patch and passes without it, or "" if there is none."""
        if not self.tests:
            return ""
        copy = copies.get()
        try:
            copy.apply(self.patch)
            try:
                killer = copy.failing(self.tests, self.suite, self.seconds)
            finally:
                copy.apply(self.patch, reverse=True)
            # A test that also fails without the fault proves nothing. "import" may mean that a test does not exist.
            again = [killer] if "::" in killer else self.tests if killer in ("import", "crash") else []
            if again and copy.failing(again, self.suite, self.seconds):
                print(f"{killer} fails without {self.patch.name} too", file=sys.stderr)
                return ""
            return killer
        except StalePatchError as error:
            return error
        finally:
            copies.put(copy)


def _report(kills: record.Kills) -> int:
    equivalent = record.read_equivalent()
    for name, row in sorted(kills.items()):
        if not row.get("default"):
            told = [f"{suite}: {killer or 'survived'}" for suite, killer in row.items()]
            print(f"{name}: {'equivalent, ' + equivalent[name] if name in equivalent else ', '.join(told)}")
    chain = {name: row for name, row in kills.items() if name.startswith("chain/")}
    caught = sum(bool(row.get("default")) for row in chain.values())
    print(f"{len(chain)} faults in the chain of a design: {caught} caught by the default suite")
    score = record.score(kills, equivalent)
    shortfalls = list(score.shortfalls())
    print("\n".join([str(score), *shortfalls]))
    return 0 if caught == len(chain) and not shortfalls else 1
