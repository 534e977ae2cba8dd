"""Measures once which quick tests reach which lines, and keeps the result."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tools.mutation.forks import forked

SECONDS = 2.0
"""Maximum CPU time of a quick test, including its fixtures and the measurement."""


@dataclass(frozen=True)
class Reach:
    """Seconds of every quick test, and the tests that reach each line of each file."""

    seconds: dict[str, float]
    tests: dict[str, dict[int, list[str]]]

    def reaching(self, paths: Iterable[str], lines: Iterable[int] | None) -> list[str]:
        """Return the tests that reach one of these lines, or any line, of one of these files, the fastest first."""
        tests: set[str] = set()
        for reached in (self.tests.get(path, {}) for path in paths):
            tests.update(test for line in (reached if lines is None else lines) for test in reached.get(line, ()))
        return sorted(tests, key=self.seconds.__getitem__)

    def write(self, path: Path) -> None:
        """Write the measurement as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seconds": self.seconds, "tests": self.tests}))


def read(path: Path) -> Reach:
    """Read the file that `Reach.write` wrote."""
    content = json.loads(path.read_text())
    tests = {name: {int(line): names for line, names in lines.items()} for name, lines in content["tests"].items()}
    return Reach(content["seconds"], tests)


def measure(items: list[pytest.Item], root: Path, folder: str) -> Reach:
    """Run every test in a process of its own. Tests that fail, skip, or take longer than `SECONDS` are left out."""
    seconds: dict[str, float] = {}
    tests: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as place:
        result = Path(place) / "result.json"
        for item in items:
            if forked(lambda item=item: _measure(item, root / folder, result), SECONDS) != 0:  # type: ignore[misc]
                continue
            seconds[item.nodeid], files = json.loads(result.read_text())
            for file, lines in files.items():
                for line in lines:
                    tests[str(Path(file).relative_to(root))][line].append(item.nodeid)
    return Reach(seconds, {name: dict(lines) for name, lines in tests.items()})


def _measure(item: pytest.Item, folder: Path, result: Path) -> int:
    recorder = coverage.Coverage(data_file=None, source=[str(folder)], config_file=False, messages=False)
    recorder.set_option("run:disable_warnings", ["no-data-collected"])
    recorder.start()
    begin = time.process_time()
    reports = runtestprotocol(item, log=False, nextitem=item.session)  # type: ignore[arg-type]
    elapsed = time.process_time() - begin
    recorder.stop()
    data = recorder.get_data()
    result.write_text(json.dumps([elapsed, {file: data.lines(file) for file in data.measured_files()}]))
    return 0 if all(report.passed for report in reports) else 1
