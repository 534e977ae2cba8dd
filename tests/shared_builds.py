"""Simulation libraries that are compiled once for all tests, the workers of a parallel run, and the runs of one gate.

A library's name has the keys of its sources and of its command in it (systolic.execution.build), so that equal names
are equal libraries. A test that sets CXX is about the compiler, and compiles.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, Protocol


class Compile(Protocol):
    """systolic.execution.build.compile_to."""

    def __call__(self, command: list[str], library: Path, folder: Path | None = None, *tell: Any) -> None: ...


def shared(compile_to: Compile, cache: Path) -> Compile:
    """``compile_to`` that takes a library from the folder ``cache`` where it is there, and else leaves it there."""

    def compile_once(command: list[str], library: Path, folder: Path | None = None, *tell: Any) -> None:
        if "CXX" in os.environ:
            compile_to(command, library, folder, *tell)
            return
        cached = cache / library.name
        with locked(cache / f"{library.name}.lock"):
            if not cached.is_file():
                compile_to(command, library, folder, *tell)
                copy(library, cached)
                return
        copy(cached, library)

    return compile_once


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time, so that two workers do not make the same thing twice."""
    with path.open("w") as file:
        flock(file, LOCK_EX)
        yield


def copy(source: Path, target: Path) -> None:
    """A file of its own, since a process that loads one file under two names loads it once; whole or not there."""
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, partial)
    partial.chmod(0o755)
    partial.rename(target)
