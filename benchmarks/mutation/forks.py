"""One mutant, one fork of the process that has collected the tests."""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.reach import Reach
from benchmarks.mutation.statements import statement
from benchmarks.mutation.swap import StillbornError, UnreachableError, put_in

MEMORY = 8 << 30
"""The bytes of address space that a mutant may take."""


class Outcome(IntEnum):
    """What became of a mutant; also how its process ends."""

    SURVIVED = 0
    KILLED = 1
    TIMEOUT = 2
    UNTESTED = 3
    STILLBORN = 4
    UNREACHABLE = 5


@dataclass(frozen=True)
class Trials:
    """Collected tests, and how mutants are tried on them.

    budget: seconds of quick tests a mutant, as measured without it; a mutant that takes five times as long hangs.
    """

    root: Path
    items: dict[str, pytest.Item]
    reach: Reach
    budget: float

    def outcome(self, mutant: Mutant) -> Outcome:
        """Run the tests that reach the mutant, until one fails."""
        tests = self._tests(mutant)
        if not tests:
            return Outcome.UNTESTED
        limit = 10 + 5 * sum(self.reach.seconds[test] for test in tests)
        return _forked(lambda: self._try(mutant, tests), limit)

    def _tests(self, mutant: Mutant) -> list[str]:
        lines = statement(self.root / mutant.path, mutant.line)
        tests = [test for test in self.reach.reaching(mutant.path, lines) if test in self.items]
        elapsed = 0.0
        for count, test in enumerate(tests):
            elapsed += self.reach.seconds[test]
            if elapsed > self.budget:
                return tests[: max(1, count)]
        return tests

    def _try(self, mutant: Mutant, tests: list[str]) -> Outcome:
        module = importlib.import_module(mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        try:
            put_in(self.root / mutant.path, module, mutant.source(self.root))
        except StillbornError:
            return Outcome.STILLBORN
        except UnreachableError:
            return Outcome.UNREACHABLE
        items = [self.items[test] for test in tests]
        for item, successor in zip(items, [*items[1:], None], strict=True):
            if not all(report.passed for report in runtestprotocol(item, log=False, nextitem=successor)):
                return Outcome.KILLED
        return Outcome.SURVIVED


def _forked(trial: Callable[[], Outcome], limit: float) -> Outcome:
    """Try in a child with a bound on memory and CPU time; a child that dies killed its mutant."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
        code = Outcome.KILLED
        try:
            code = trial()
        finally:
            os._exit(code)
    status = _wait(child, 4 * limit)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return Outcome.TIMEOUT
    return Outcome(os.WEXITSTATUS(status)) if os.WIFEXITED(status) else Outcome.KILLED


def _wait(child: int, limit: float) -> int | None:
    """The child's status; None where it took longer and was ended."""
    end = time.monotonic() + limit
    pause = 0.002
    while time.monotonic() < end:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return status
        time.sleep(pause)
        pause = min(0.05, 1.5 * pause)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
