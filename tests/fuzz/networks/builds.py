"""Compiling many designs in little time: the real compiler and the generated sources, with less optimisation.

A pipeline is executed once, on a small picture: what optimising it costs is never earned back. The engine of a systolic
array is the same for every network, so it is compiled once, and optimised a little. So are the recorder and the solver
of the trace, which every design has.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import systolic.golden
from boards.errors import SimulationError
from systolic.execution import build
from tests.shared_builds import copy, locked

_compile_to = build.compile_to

_SAYS_NOTHING = re.compile(r"\s*(//[^\"]*|#pragma HLS .*)$")
"""Lines that a compiler of C++ does not see: comments, which name the network, and pragmas, which have its sizes."""


@contextmanager
def quick_builds(cache: Path, share: bool) -> Iterator[None]:
    """While it lasts the project compiles so. share: also whole libraries, where their sources say the same."""

    def compile_quickly(command: list[str], library: Path, folder: Path | None = None, *_: object) -> None:
        if folder is None:
            _compile_to(_optimised(command, 0), library)
        elif share:
            _shared(_optimised(_with_objects(command, folder, cache), 1), library, folder, cache)
        else:
            _compile_to(_optimised(_with_objects(command, folder, cache), 0), library, folder)

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


def _optimised(command: list[str], level: int) -> list[str]:
    return [f"-O{level}" if part == "-O3" else part for part in command]


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


def _with_objects(command: list[str], folder: Path, cache: Path) -> list[str]:
    """The fixed sources of the trace as objects, compiled once as they are for users."""
    return [str(_object(command, folder, part, cache)) if _is_fixed(part) else part for part in command]


def _is_fixed(part: str) -> bool:
    return part.startswith("simulation/") and part.endswith(".cpp") and part != "simulation/simulate.cpp"


def _object(command: list[str], folder: Path, source: str, cache: Path) -> Path:
    flags = [part for part in command[1:] if part.startswith("-") and part != "-shared"]
    flags = _optimised(flags, 2)
    key = hashlib.sha256("\0".join(flags).encode())
    for path in sorted((folder / "simulation").glob("*")):
        if path.name != "simulate.cpp":
            key.update(path.name.encode() + path.read_bytes())
    compiled = cache / f"{Path(source).stem}-{key.hexdigest()[:24]}.o"
    with locked(compiled.with_suffix(".lock")):
        if not compiled.is_file():
            partial = compiled.with_suffix(".partial")
            line = [command[0], *flags, "-c", source, "-o", str(partial)]
            done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SimulationError(f"{source} does not compile: {done.stderr[:500]}")
            partial.rename(compiled)
    return compiled


def fresh(folder: Path) -> Path:
    """``folder``, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
