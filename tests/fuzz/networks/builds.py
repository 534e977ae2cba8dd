"""Compiling many designs in little time: the real compiler and the generated sources, with less optimisation.

A pipeline is executed once, on a small picture: what optimising it costs is never earned back. The engine of a systolic
array is the same for every network, so it is compiled once, and optimised a little. So are the headers of the standard
library, and the recorder and the solver of the trace, which every design has.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import systolic.golden
from systolic.execution import build, compiler
from tests.support.shared_builds import copy, locked, optimised, with_headers, with_objects

_compile_to = compiler.compile_to

_SAYS_NOTHING = re.compile(r"\s*(//[^\"]*|#pragma HLS .*)$")
"""Lines that a compiler of C++ does not see: comments, which name the network, and pragmas, which have its sizes."""


@contextmanager
def quick_builds(cache: Path, share: bool) -> Iterator[None]:
    """While it lasts the project compiles so. share: also whole libraries, where their sources say the same."""

    def compile_quickly(command: list[str], library: Path, folder: Path | None = None, *_: object) -> None:
        if folder is None:
            _compile_to(with_headers(optimised(command, 0), cache), library)
        elif share:
            command = optimised(with_objects(command, folder, cache), 1)
            _shared(with_headers(command, cache), library, folder, cache)
        else:
            command = optimised(with_objects(command, folder, cache), 0)
            _compile_to(with_headers(command, cache), library, folder)

    with (
        patch.object(build, "compile_to", compile_quickly),
        patch.object(systolic.golden, "compile_to", compile_quickly),
    ):
        yield


@contextmanager
def shipped_builds() -> Iterator[None]:
    """While it lasts the project compiles as it does for users, within ``quick_builds`` too."""
    with patch.object(build, "compile_to", _compile_to):
        yield


def _shared(command: list[str], library: Path, folder: Path, cache: Path) -> None:
    """The library of the first design with the same code."""
    key = hashlib.sha256("\0".join(command).encode())
    for path in sorted([*(folder / "src").glob("*"), *(folder / "simulation").glob("*")]):
        lines = (_SAYS_NOTHING.sub("", line) for line in path.read_text("utf-8").splitlines())
        key.update("\n".join([path.name, *filter(None, lines)]).encode())
    cached = cache / f"{key.hexdigest()[:24]}.so"
    with locked(cached.with_suffix(".lock")):
        if not cached.is_file():
            _compile_to(command, library, folder)
            copy(library, cached)
            return
    copy(cached, library)


def fresh(folder: Path) -> Path:
    """``folder``, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
