"""Tries one mutant in a fork of the process that has collected the tests."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from boards.progress import Progress, silent
from tools.mutation.forks import RAISED, forked
from tools.mutation.mutants import Mutant, original
from tools.mutation.reach import Reach
from tools.mutation.statements import readers, statement
from tools.mutation.swap import StillbornError, UnreachableError, apply_mutation


class Outcome(IntEnum):
    """The outcome of a mutant, which is also the exit code of its process."""

    SURVIVED = 0
    KILLED = 1
    TIMEOUT = 2
    UNTESTED = 3
    STILLBORN = 4
    UNREACHABLE = 5
    RAISED = RAISED
    """The trial itself failed with the mutant, and not a test."""


@dataclass(frozen=True)
class Trials:
    """Collected tests, and the way to try mutants on them.

    Attributes:
        root: The project's root.
        items: The collected tests.
        reach: Which tests reach which lines.
        budget: Seconds of quick tests per mutant, measured without it. A mutant that takes five times as long hangs.
        report: Gets the reason if a trial raised an exception.
    """

    root: Path
    items: dict[str, pytest.Item]
    reach: Reach
    budget: float
    report: Progress = silent

    def outcome(self, mutant: Mutant) -> Outcome:
        """Run the tests that reach the mutant, until one fails."""
        tests = self._tests(mutant)
        if not tests:
            return Outcome.UNTESTED
        limit = 10 + 5 * sum(self.reach.seconds[test] for test in tests)
        code = forked(lambda: self._try(mutant, tests), limit, self.report)
        return Outcome.TIMEOUT if code is None else Outcome(code)

    def _tests(self, mutant: Mutant) -> list[str]:
        lines = statement(self.root / mutant.path, mutant.line)
        if lines:
            tests = self.reach.reaching([mutant.path], lines)
        else:
            tests = [
                *self.reach.reaching([mutant.path], readers(self.root / mutant.path, mutant.line)),
                *self._naming(mutant.path),
                *self.reach.reaching([mutant.path, *self._importers(mutant.path)], None),
            ]
        tests = [test for test in dict.fromkeys(tests) if test in self.items]
        elapsed = 0.0
        for count, test in enumerate(tests):
            elapsed += self.reach.seconds[test]
            if elapsed > self.budget:
                return tests[: max(1, count)]
        return tests

    def _naming(self, path: str) -> list[str]:
        """Return quick tests that reach no line, but whose files import from this file: they may use its constants."""
        loaded = importlib.import_module(_module(path))
        reaching = set(self.reach.reaching(self.reach.tests, None))
        return [
            test
            for test, item in self.items.items()
            if test in self.reach.seconds and test not in reaching and _imports(item, loaded)
        ]

    def _importers(self, path: str) -> list[str]:
        """Return the files that import from a file, since they use its constants."""
        name = _module(path)
        return [other for other in self.reach.tests if name in (self.root / other).read_text("utf-8")]

    def _try(self, mutant: Mutant, tests: list[str]) -> Outcome:
        module = importlib.import_module(_module(mutant.path))
        try:
            apply_mutation(module, original(self.root, mutant.path), mutant.source(self.root))
        except StillbornError:
            return Outcome.STILLBORN
        except UnreachableError:
            return Outcome.UNREACHABLE
        return Outcome.SURVIVED if _all_pass([self.items[test] for test in tests]) else Outcome.KILLED


def _imports(item: pytest.Item, loaded: ModuleType) -> bool:
    values = vars(getattr(item, "module", loaded)).values()
    return any(value is loaded or getattr(value, "__module__", None) == loaded.__name__ for value in values)


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _all_pass(items: list[pytest.Item]) -> bool:
    try:
        successors: list[Any] = [*items[1:], items[-1].session]
        for item, successor in zip(items, successors, strict=True):
            if not all(report.passed for report in runtestprotocol(item, log=False, nextitem=successor)):
                return False
    except (KeyboardInterrupt, pytest.exit.Exception):
        return False
    return True
