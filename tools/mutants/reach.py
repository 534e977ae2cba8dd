"""A pytest plugin that records which tests reach which lines, and the reader of its files.

``pytest -p tools.mutants.reach`` writes one file per process into the folder that ``MUTANTS_REACH`` names.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("boards", "cnn", "contract", "host", "hls_schedule", "scheduler", "systolic")
FOLDER = "MUTANTS_REACH"
MOST = 60
"""Maximum number of tests kept per line, the fastest first."""

COMPILERS = ("g++", "clang++", "verilator", "yosys")


@dataclass(frozen=True)
class Reach:
    """The tests that reach each line, as measured.

    Attributes:
        seconds: CPU seconds of each test.
        lines: The tests that reach each line, by file.
        compiling: The tests that run a compiler.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    compiling: list[str]

    def tests(self, path: str, lines: range | set[int] | None) -> list[str]:
        """Return the tests that reach one of these lines, or any line for None, the fastest first."""
        reached = self.lines.get(path, {})
        found = {test for line in (reached if lines is None else lines) for test in reached.get(line, ())}
        return sorted(found, key=self.seconds.__getitem__)


def read(folder: Path) -> Reach:
    """Read and merge the files of all processes."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    compiling: list[str] = []
    for path in sorted(folder.glob("*.json")):
        values = json.loads(path.read_text("utf-8"))
        names = list(values["seconds"])
        seconds |= values["seconds"]
        compiling += values["compiling"]
        for file, numbers in values["lines"].items():
            for line, tests in numbers.items():
                lines[file][int(line)] += [names[test] for test in tests]
    return Reach(seconds, lines, compiling)


class Recorder:
    """The plugin's hooks, which measure a run of pytest."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self.folder = folder
        self.coverage = coverage.Coverage(
            data_file=None, source=[str(ROOT / room) for room in ROOMS], config_file=False, messages=False
        )
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.compiling: set[str] = set()
        self.running = ""
        self.coverage.start()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and self.running:
            words = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
            if any(Path(os.fsdecode(word)).name in COMPILERS for word in words[:2]):
                self.compiling.add(self.running)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.running = item.nodeid
        self.coverage.switch_context(item.nodeid)
        begin = sum(os.times()[:4])
        result = yield
        self.seconds[item.nodeid] = round(sum(os.times()[:4]) - begin, 3)
        self.coverage.switch_context("")
        self.running = ""
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        good = {name: number for number, name in enumerate(self.seconds) if name not in self.failed}
        data = self.coverage.get_data()
        lines: dict[str, dict[int, list[int]]] = {}
        for file in data.measured_files():
            lines[str(Path(file).relative_to(ROOT))] = {
                line: sorted(map(good.__getitem__, sorted(good.keys() & tests, key=self.seconds.__getitem__)[:MOST]))
                for line, tests in data.contexts_by_lineno(file).items()
                if good.keys() & tests
            }
        values = {"seconds": self.seconds, "compiling": sorted(self.compiling & good.keys()), "lines": lines}
        name = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}.json").write_text(json.dumps(values), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder in processes that run tests, but not in a process that only distributes them."""
    worker = hasattr(config, "workerinput")
    if worker or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Recorder(Path(os.environ[FOLDER])))
