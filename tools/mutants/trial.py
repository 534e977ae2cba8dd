"""A copy of the project in which a patch is tried: the tests that may notice it run until one fails."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.reach import Reach
from tools.mutation.statements import readers, statement

ROOT = Path(__file__).resolve().parents[2]

BUDGETS = {"default": 60.0, "engine": 240.0, "proof": 240.0}
"""For each suite, the CPU seconds of tests to try on a patch, as measured without a patch."""
MIN_SECONDS = 120.0
"""Minimum timeout of a trial. The timeout is six times the tests' seconds, and a trial that exceeds it hangs."""

TEMPLATE_BUDGETS = 3
"""Factor of the budget for a fault in a template, since it is not known which tests execute its line."""
EXECUTING = (
    "tests/systolic/test_executed.py",
    "tests/systolic/test_simulate.py",
    "tests/systolic/streaming/test_generated",
)
"""Test modules that execute networks and compare every integer."""

NOT_JUDGES = ("tests/tools/",)
"""Tests that compare the text of sources. They notice every change, so they say nothing about a fault."""


class StalePatchError(Exception):
    """A patch no longer applies to the files."""


@dataclass(frozen=True)
class Patch:
    """One file of ``patches/`` or ``chain/``.

    Attributes:
        path: The patch.
        target: The file that it changes, relative to the root.
        line: The first line that it changes, from 1.
    """

    path: Path
    target: str
    line: int

    @property
    def name(self) -> str:
        """The patch's folder and name, as in ``kills.json``."""
        return f"{self.path.parent.name}/{self.path.stem}"


def read_patch(path: Path) -> Patch:
    """Read which line of which file a patch changes."""
    text = path.read_text("utf-8")
    target = re.search(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE)
    begin = re.search(r"^@@ -(\d+)", text, re.MULTILINE)
    if target is None or begin is None:
        raise StalePatchError(f"{path} is not a unified diff")
    hunk = text[begin.end() :].splitlines()[1:]
    before = next(number for number, line in enumerate(hunk) if line[:1] in "+-")
    return Patch(path, target[1], int(begin[1]) + before)


def judges(patch: Patch, root: Path, reach: Reach, budget: float) -> list[str]:
    """Return the tests that may notice a patch, the fastest first:

    up to ``budget`` CPU seconds, and at least one test.
    """
    if patch.target.endswith(".py"):
        found = _reaching(patch, root, reach)
    else:
        found, budget = _executing(patch, reach), TEMPLATE_BUDGETS * budget
    chosen: list[str] = []
    total = 0.0
    for test in (test for test in found if not test.startswith(NOT_JUDGES)):
        total += reach.seconds[test]
        if chosen and total > budget:
            break
        chosen.append(test)
    return chosen


def _reaching(patch: Patch, root: Path, reach: Reach) -> list[str]:
    """Return the tests that reach the line of a patch.

    If the line runs at import, these are the tests that reach code which uses its names, then all tests of the file.
    """
    path = root / patch.target
    lines = statement(path, patch.line)
    if lines:
        return reach.tests(patch.target, lines)
    reading = reach.tests(patch.target, readers(path, patch.line))
    return list(dict.fromkeys([*reading, *reach.tests(patch.target, None)]))


def _executing(patch: Patch, reach: Reach) -> list[str]:
    """Return the tests of modules that compile: first the template's own, then modules that execute networks."""
    room = f"tests/{patch.target.split('/')[0]}/"
    modules = {test.partition("::")[0] for test in reach.compiling}
    found = [test for test in reach.seconds if test.partition("::")[0] in modules]
    return sorted(
        found, key=lambda test: (not test.startswith(room), not test.startswith(EXECUTING), reach.seconds[test])
    )


@dataclass(frozen=True)
class Copy:
    """A copy of the files that git tracks or would add."""

    root: Path

    @classmethod
    def of_project(cls, root: Path) -> Copy:
        """Copy the project to a folder that does not exist yet."""
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        return cls(root)

    def apply(self, patch: Patch, *, reverse: bool = False) -> None:
        """Apply a patch, or undo it.

        Raises:
            StalePatchError: The patch does not apply.
        """
        command = ["patch", "-p1", "-s", "-F2", "--no-backup-if-mismatch", "-r", "-", *(["-R"] if reverse else [])]
        done = subprocess.run(
            command, cwd=self.root, stdin=patch.path.open("rb"), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise StalePatchError(f"{patch.name} does not apply to {patch.target}: {done.stdout.strip()}")

    def failing(self, tests: Sequence[str], suite: str, seconds: float) -> str:
        """Return the first test that fails, or "" if all pass.

        The result is "import" if the tests cannot be collected, "hang" if they do not end in time, and "crash" if a
        signal ends them.

        Args:
            tests: Names of tests, or files and folders.
            suite: "default", or the marker of the tests.
            seconds: CPU seconds that the tests take without a fault.
        """
        names = self.root / "tests.txt"
        names.write_text("".join(f"{test}\n" for test in tests), "utf-8")
        marker = [] if suite == "default" else ["-m", suite]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(self.root), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        environment.setdefault("SYSTOLIC_SHARED", str(ROOT.parent / "shared"))
        with subprocess.Popen(
            [*command, *marker, f"@{names}"],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=max(MIN_SECONDS, 6 * seconds))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "hang"
        if process.returncode == 0:
            return ""
        if process.returncode < 0:
            return "crash"
        found = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", output, re.MULTILINE)
        if found is None or "::" not in found[1]:
            return "import"
        return found[1]
