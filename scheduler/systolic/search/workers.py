"""Who prices the geometries: this process, or workers of any ``concurrent.futures.Executor``, some of which may die."""

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

AT_ONCE = 64
"""Geometries that workers have at a time, at the most; an executor is not asked how many it has."""

TRIES = 3
"""Times that a geometry is given to workers before it is priced here."""

Key: TypeAlias = "tuple[int, ...]"
_Answer: TypeAlias = "Future[tuple[Candidate | None, int]]"


@dataclass(frozen=True, eq=False)
class Workers:
    """executor: geometries whose worker dies are given to it again; None: this process prices them all. tell: is told
    how far it is."""

    executor: Executor | None = None
    tell: Progress = silent

    def of_part(self, part: str) -> Workers:
        """The same, and what is told is told of a part of the work: each begins with no geometry priced."""
        return replace(self, tell=lambda words: self.tell(f"{part}: {words}"))


ALONE = Workers()
"""This process, silently."""


@dataclass(frozen=True, eq=False)
class Visit:
    """A geometry to price. bound: no candidate of it has a lesser key."""

    bound: Key
    task: Task

    def cannot_beat(self, key: Key | None) -> bool:
        """Neither this geometry nor one after it has a candidate whose key is less than ``key``."""
        return key is not None and self.bound > key[: len(self.bound)]


def visit_all(visits: Sequence[Visit], key_to_beat: Key | None, workers: Workers) -> tuple[Candidate | None, int, int]:
    """The best candidate, how many geometries were priced, and how many arrays."""
    if workers.executor is not None:
        return _Pool(workers.executor, workers.tell).visit_all(visits, key_to_beat)
    best: Candidate | None = None
    priced = arrays = 0
    for visit in visits:
        if visit.cannot_beat(key_to_beat):
            break
        words = _told(priced, priced + _left(visits[priced:], key_to_beat), best)
        workers.tell(words)

        def tell(part: str, words: str = words) -> None:
            workers.tell(f"{words}; {part} of the next")

        candidate, count = solve(replace(visit.task, best=key_to_beat), tell)
        priced, arrays = priced + 1, arrays + count
        if candidate is not None:
            best, key_to_beat = candidate, candidate.key
    return best, priced, arrays


def _left(visits: Iterable[Visit], key: Key | None) -> int:
    """How many geometries are priced at most, beginning with the first: those before the first that cannot beat the
    key. The next key may rule out more of them."""
    return sum(1 for _ in takewhile(lambda visit: not visit.cannot_beat(key), visits))


def _told(priced: int, count: int, best: Candidate | None) -> str:
    array = f", best {best.array}" if best else ""
    return f"searching, {priced} of at most {count} geometries priced{array}"  # keys rule most of them out: no share


@dataclass(frozen=True, eq=False)
class _Assignment:
    """What a worker has. index: of the visit; tries: how many workers have had it."""

    index: int
    task: Task
    tries: int = 1


@dataclass(frozen=True)
class _Best:
    """The key to beat, and the visit that it is of. Of equal keys the first visit's counts, whoever is ready first."""

    key: Key | None
    candidate: Candidate | None = None
    index: int = 0

    def updated(self, candidate: Candidate | None, index: int) -> _Best:
        """With the answer of a visit."""
        if candidate is None:
            return self
        if self.candidate is not None and (candidate.key, index) > (self.candidate.key, self.index):
            return self
        return _Best(candidate.key, candidate, index)


class _Pool:
    """Geometries on their way to the workers of an executor, and their answers."""

    def __init__(self, executor: Executor, tell: Progress) -> None:
        self.executor, self.tell = executor, tell
        self.running: dict[_Answer, _Assignment] = {}

    def visit_all(self, visits: Sequence[Visit], key_to_beat: Key | None) -> tuple[Candidate | None, int, int]:
        """One geometry, and one more at a time for each that has not bettered the key: what is on its way does not know
        of keys found meanwhile, and the first ones rule most of the others out."""
        waiting = deque(enumerate(visits))
        best = _Best(key_to_beat)
        priced = arrays = in_vain = 0
        while True:
            self._fill(waiting, best, min(1 + in_vain, AT_ONCE))
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
                self.tell(_told(priced, priced + len(self.running) + left, best.candidate))

    def _fill(self, waiting: deque[tuple[int, Visit]], best: _Best, count: int) -> None:
        """Up to ``count`` geometries are on their way, none that cannot beat the best."""
        while waiting and len(self.running) < count and not waiting[0][1].cannot_beat(best.key):
            index, visit = waiting.popleft()
            self._submit(_Assignment(index, replace(visit.task, best=best.key)))

    def _submit(self, assignment: _Assignment) -> None:
        """A pool that is broken takes nothing more: then the work is done here."""
        try:
            future = self.executor.submit(solve, assignment.task)
        except RuntimeError:
            future = Future()
            future.set_result(solve(assignment.task))
        self.running[future] = assignment

    def _answer(self, future: _Answer, assignment: _Assignment) -> tuple[Candidate | None, int] | None:
        """None where the worker died and its task was given again."""
        try:
            return future.result()
        except SystolicError:
            raise
        except Exception:
            if assignment.tries >= TRIES:
                return solve(assignment.task)
            self._submit(replace(assignment, tries=assignment.tries + 1))
            return None
