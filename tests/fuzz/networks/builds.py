"""Fast builds of many designs: the real compiler and the generated sources, with less optimisation.

A pipeline is executed once, on a small image, so the time that the compiler spends on optimisation is not recovered.
The engine of a systolic array is the same for every network, so it is compiled once, with some optimisation. The
headers of the standard library, and the recorder and the solver of the trace, are shared by all designs.
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
"""Comments and pragmas, which do not change a build but hold the name and the sizes of the network."""


@contextmanager
def quick_builds(cache: Path, share: bool) -> Iterator[None]:
    """Compile designs quickly within this context.

    Args:
        cache: The folder of compiled code.
        share: Whether designs with the same code also share one library.
    """

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
    """Compile with the flags that users get within this context, also inside ``quick_builds``."""
    with patch.object(build, "compile_to", _compile_to):
        yield


def _shared(command: list[str], library: Path, folder: Path, cache: Path) -> None:
    """Build the library, or copy the library of an earlier design with the same command and code."""
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
    """Empty ``folder``, or create it, and return it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
