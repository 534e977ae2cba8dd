"""Which quick tests reach which lines, measured once and kept."""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import coverage
import pytest
from _pytest.runner import runtestprotocol

SECONDS = 3.0
"""The most CPU time that a quick test takes."""


@dataclass(frozen=True)
class Reach:
    """Of every quick test its seconds, and of every file and line the tests that reach it."""

    seconds: dict[str, float]
    tests: dict[str, dict[int, list[str]]]

    def reaching(self, path: str, lines: Iterable[int] | None) -> list[str]:
        """The tests that reach one of these lines, or any of the file; the fastest first."""
        reached = self.tests.get(path, {})
        tests = {test for line in (reached if lines is None else lines) for test in reached.get(line, ())}
        return sorted(tests, key=self.seconds.__getitem__)

    def write(self, path: Path) -> None:
        """As JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seconds": self.seconds, "tests": self.tests}))


def read(path: Path) -> Reach:
    """What `Reach.write` wrote."""
    content = json.loads(path.read_text())
    tests = {name: {int(line): names for line, names in lines.items()} for name, lines in content["tests"].items()}
    return Reach(content["seconds"], tests)


class _TooSlow(BaseException):
    pass


@dataclass(frozen=True)
class _Contexts:
    """What runs before a test's own body counts for all tests of its file: they share fixtures."""

    recorder: coverage.Coverage

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.recorder.switch_context(_file(item.nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.recorder.switch_context(item.nodeid)


def measure(items: list[pytest.Item], root: Path, folder: str) -> Reach:
    """Run every test; those that fail, skip or take longer than `SECONDS` are left out."""
    signal.signal(signal.SIGPROF, _stop)
    recorder = coverage.Coverage(data_file=None, source=[str(root / folder)], config_file=False, messages=False)
    items[0].config.pluginmanager.register(_Contexts(recorder))
    seconds: dict[str, float] = {}
    recorder.start()
    for item, successor in zip(items, [*items[1:], None], strict=True):
        seconds.update(_seconds(item, successor))
    recorder.stop()
    return Reach(seconds, _lines(recorder.get_data(), seconds, root))


def _file(test: str) -> str:
    return test.split("::")[0]


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _TooSlow


def _seconds(item: pytest.Item, successor: pytest.Item | None) -> dict[str, float]:
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        reports = runtestprotocol(item, log=False, nextitem=successor)
    except _TooSlow:
        return {}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    passed = all(report.passed for report in reports)
    return {item.nodeid: time.process_time() - begin} if passed else {}


def _lines(data: coverage.CoverageData, seconds: dict[str, float], root: Path) -> dict[str, dict[int, list[str]]]:
    of_file: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        of_file[_file(test)].append(test)
        of_file[test].append(test)
    return {
        str(Path(file).relative_to(root)): {
            line: sorted({test for context in contexts for test in of_file.get(context, ())})
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
