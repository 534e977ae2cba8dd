"""Many pictures on all cores: a process a core, each with BLAS on one thread, which together are faster than BLAS's own
threads on layers as small as these."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from systolic.evaluation.frames import Frame, Subject, compute

ALONE = 8
"""Pictures up to which starting processes takes longer than they save."""

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_subject: Subject | None = None


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute_all(
    subject: Subject, paths: Sequence[Path], workers: int, progress: Callable[[int], None]
) -> tuple[Frame, ...]:
    """Compute all frames, in the order of the pictures. progress: is told how many are done. Raises the error of the
    first file that is not a picture."""
    frames: list[Frame] = []
    for frame in _computed(subject, paths, min(workers, len(paths))):
        frames.append(frame)
        progress(len(frames))
    return tuple(frames)


def _computed(subject: Subject, paths: Sequence[Path], workers: int) -> Iterator[Frame]:
    if workers < 2 or len(paths) <= ALONE:
        yield from (compute(subject, path) for path in paths)
        return
    with _one_thread():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (subject,))
        try:
            yield from pool.map(_compute, paths)
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(subject: Subject) -> None:
    global _subject
    _subject = subject


def _compute(path: Path) -> Frame:
    assert _subject is not None
    return compute(_subject, path)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Of BLAS, in processes that are started meanwhile."""
    values = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
