"""The pricing of geometries in this process, or on the workers of any ``concurrent.futures.Executor``.

A worker may die. Its geometry is then given to another worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeAlias

from boards.errors import SystolicError
from boards.progress import Progress, silent
from scheduler.systolic.search.solve import Candidate, solve
from scheduler.systolic.search.task import Task

MAX_SUBMITTED = 64
"""The most geometries that are submitted at a time, because an executor does not report its number of workers."""

MAX_TRIES = 3
"""Times that a geometry is submitted to workers before this process prices it."""

Key: TypeAlias = "tuple[int, ...]"
_Answer: TypeAlias = "Future[tuple[Candidate | None, int]]"


@dataclass(frozen=True, eq=False)
class Workers:
    """The processes that price the geometries of a schedule search, and the callback for its progress.

    Attributes:
        executor: The executor to which geometries are submitted, or None if this process prices all of them.
        progress: Called with the progress of the search.
    """

    executor: Executor | None = None
    progress: Progress = silent

    def for_part(self, part: str) -> Workers:
        """Return the same workers with ``part`` prefixed to their progress messages."""
        return replace(self, progress=lambda words: self.progress(f"{part}: {words}"))


ALONE = Workers()
"""This process, without reports of progress."""


@dataclass(frozen=True, eq=False)
class Visit:
    """A geometry that a schedule search may price, with a lower bound of its result.

    Attributes:
        bound: The first numbers of a key. No candidate of the geometry has a smaller key.
        task: The geometry, with all that its pricing needs.
    """

    bound: Key
    task: Task

    def cannot_beat(self, key: Key | None) -> bool:
        """Return whether the geometry's lower bound proves that none of its candidates is better than ``key``.

        Visits are sorted by their bounds, so the same is then true for all later visits.
        """
        return key is not None and self.bound > key[: len(self.bound)]


def visit_all(visits: Sequence[Visit], key_to_beat: Key | None, workers: Workers) -> tuple[Candidate | None, int, int]:
    """Price geometries until no other can win. Return the best candidate, and how many geometries and arrays were
    priced.

    Args:
        visits: The geometries, in ascending order of their bounds.
        key_to_beat: The key that a candidate must beat, or None.
        workers: The processes that price them.
    """
    if workers.executor is not None:
        return _Pool(workers.executor, workers.progress).visit_all(visits, key_to_beat)
    best: Candidate | None = None
    priced = arrays = 0
    for visit in visits:
        if visit.cannot_beat(key_to_beat):
            break
        words = _progress_text(priced, priced + _left(visits[priced:], key_to_beat), best)
        workers.progress(words)

        def progress(part: str, words: str = words) -> None:
            workers.progress(f"{words}; {part} of the next")

        candidate, count = solve(replace(visit.task, best=key_to_beat), progress)
        priced, arrays = priced + 1, arrays + count
        if candidate is not None:
            best, key_to_beat = candidate, candidate.key
    return best, priced, arrays


def _left(visits: Iterable[Visit], key: Key | None) -> int:
    """Return how many of the remaining geometries still have to be priced because their bound can beat the key.

    The next key may rule out more of them.
    """
    return sum(1 for _ in takewhile(lambda visit: not visit.cannot_beat(key), visits))


def _progress_text(priced: int, count: int, best: Candidate | None) -> str:
    """Return the progress message of a search after ``priced`` of at most ``count`` geometries.

    It has no percentage, because later keys rule out most of the geometries.
    """
    array = f", best {best.array}" if best else ""
    return f"searching, {priced} of at most {count} geometries priced{array}"


@dataclass(frozen=True, eq=False)
class _Assignment:
    """A geometry that was submitted to a worker process, with its number of tries.

    Attributes:
        index: The index of its ``Visit``.
        task: The geometry, with all that its pricing needs.
        tries: Times that it was submitted.
    """

    index: int
    task: Task
    tries: int = 1


@dataclass(frozen=True)
class _Best:
    """The best candidate of the search so far, with its key and the index of its geometry.

    Among equal keys, the key of the first visit is taken, so that the result does not depend on the workers' speed.
    """

    key: Key | None
    candidate: Candidate | None = None
    index: int = 0

    def updated(self, candidate: Candidate | None, index: int) -> _Best:
        """Return the better of this and of ``candidate``, the result of geometry number ``index``."""
        if candidate is None:
            return self
        if self.candidate is not None and (candidate.key, index) > (self.candidate.key, self.index):
            return self
        return _Best(candidate.key, candidate, index)


class _Pool:
    """The geometries that are being priced by the workers of an executor."""

    def __init__(self, executor: Executor, progress: Progress) -> None:
        self.executor, self.progress = executor, progress
        self.running: dict[_Answer, _Assignment] = {}

    def visit_all(self, visits: Sequence[Visit], key_to_beat: Key | None) -> tuple[Candidate | None, int, int]:
        """Price geometries on the workers until no other can win. Return the best candidate, and how many geometries
        and arrays were priced.

        A geometry that is running does not know keys that are found meanwhile, and the first keys rule out most other
        geometries. At first, therefore, only one geometry runs. The limit grows by one with each result that does
        not improve the best key, and returns to one after a result that does.
        """
        waiting = deque(enumerate(visits))
        best = _Best(key_to_beat)
        priced = arrays = in_vain = 0
        while True:
            self._fill(waiting, best, min(1 + in_vain, MAX_SUBMITTED))
            if not self.running:
                return best.candidate, priced, arrays
            for future in wait(list(self.running), return_when=FIRST_COMPLETED).done:
                assignment = self.running.pop(future)
                answer = self._answer(future, assignment)
                if answer is None:
                    continue
                priced, arrays = priced + 1, arrays + answer[1]
                beaten, best = best.key, best.updated(answer[0], assignment.index)
                in_vain = in_vain + 1 if best.key == beaten else 0
                left = _left((visit for _, visit in waiting), best.key)
                self.progress(_progress_text(priced, priced + len(self.running) + left, best.candidate))

    def _fill(self, waiting: deque[tuple[int, Visit]], best: _Best, count: int) -> None:
        """Submit geometries to the workers until ``count`` are running, or until the next one cannot beat the best
        key."""
        while waiting and len(self.running) < count and not waiting[0][1].cannot_beat(best.key):
            index, visit = waiting.popleft()
            self._submit(_Assignment(index, replace(visit.task, best=best.key)))

    def _submit(self, assignment: _Assignment) -> None:
        """Submit a geometry to a worker, or price it in this process if the pool is broken and accepts no more work."""
        try:
            future = self.executor.submit(solve, assignment.task)
        except RuntimeError:
            future = Future()
            future.set_result(solve(assignment.task))
        self.running[future] = assignment

    def _answer(self, future: _Answer, assignment: _Assignment) -> tuple[Candidate | None, int] | None:
        """Return a worker's result for a geometry, or None if the worker died and the geometry was submitted again."""
        try:
            return future.result()
        except SystolicError:
            raise
        except Exception:
            if assignment.tries >= MAX_TRIES:
                return solve(assignment.task)
            self._submit(replace(assignment, tries=assignment.tries + 1))
            return None
