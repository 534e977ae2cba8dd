"""Simulation libraries that are compiled once for all tests and shared by the workers of a parallel run.

They are compiled with little optimisation, because tests execute a design on small images only. The standard library's
headers, and the recorder and the solver of traced designs, are compiled once for all designs. A library's name contains
the keys of its sources and of its command (systolic.execution.build), so that equal names are equal libraries. A test
that sets CXX tests the compiler, and always compiles.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, Protocol

from boards.errors import ToolError
from hls_templates.headers import COMMON, SIMULATION, included
from systolic.execution import build
from systolic.execution.build import Variant

FOLDER = "SYSTOLIC_TEST_BUILDS"
"""The environment variable with the folder of shared builds."""

STANDARD_HEADERS = (
    *("algorithm", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "deque", "exception", "fstream"),
    *("map", "memory", "new", "stdexcept", "string", "type_traits", "unordered_map", "utility", "vector"),
)
"""The headers that designs, their simulation and the golden programs include."""


_RUNTIME = re.compile(r"/include/verilated\w*\.cpp$")


class Compile(Protocol):
    """The type of systolic.execution.build.compile_to."""

    def __call__(self, command: list[str], library: Path, folder: Path | None = None, *progress: Any) -> None: ...


def shared(compile_to: Compile, cache: Path) -> Compile:
    """Return a ``compile_to`` that copies a library from the folder ``cache``, after compiling it if it is missing."""

    def compile_once(command: list[str], library: Path, folder: Path | None = None, *progress: Any) -> None:
        if "CXX" in os.environ:
            compile_to(command, library, folder, *progress)
            return
        cached = cache / library.name
        with locked(cache / f"{library.name}.lock"):
            if not cached.is_file():
                compile_to(quick(command, folder, cache), library, folder, *progress)
                copy(library, cached)
                return
        copy(cached, library)

    return compile_once


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, so that two workers do not build the same file twice."""
    with path.open("w") as file:
        flock(file, LOCK_EX)
        yield


def copy(source: Path, target: Path) -> None:
    """Copy a file atomically.

    Each library needs its own file, because a process that loads one file under two names loads it only once.
    """
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, partial)
    partial.chmod(0o755)
    partial.rename(target)


def quick(command: list[str], folder: Path | None, cache: Path) -> list[str]:
    """Return the command of a design or of a golden program, changed for a test."""
    if folder is None:
        command = with_runtime(optimised(command, 1), cache)
    else:
        command = optimised(with_objects(command, folder, cache), 0)
    return with_headers(command, cache)


def optimised(command: list[str], level: int) -> list[str]:
    """Return the users' command with less optimisation."""
    return [f"-O{level}" if part in ("-O2", "-O3", "-Og") else part for part in command]


def with_headers(command: list[str], cache: Path) -> list[str]:
    """Return the command with precompiled headers of the standard library and, if used, of ``ap_int``.

    Without them, these headers take half of the time to compile a small design.
    """
    without = ("-shared", "-Isrc", "-Isimulation", "-DSYSTOLIC_TRACE")
    flags = [part for part in command[1:] if part.startswith("-") and part not in without]
    key = hashlib.sha256("\0".join(flags).encode()).hexdigest()[:24]
    header = cache / f"headers-{key}.h"
    names = STANDARD_HEADERS + ("ap_int.h",) * ("-DSYSTOLIC_AP_INT" in flags)
    compiled = header.with_name(f"{header.name}.gch")
    with locked(header.with_suffix(".lock")):
        if not compiled.is_file():
            header.write_text("".join(f"#include <{name}>\n" for name in names), "utf-8")
            _compile([command[0], *flags, "-x", "c++-header", str(header)], compiled, None)
    return [*command, "-include", str(header)]


def with_runtime(command: list[str], cache: Path) -> list[str]:
    """Return the command with objects instead of Verilator's own sources."""
    flags = [part for part in command[1:] if part.startswith("-") and not part.startswith(("-shared", "-I"))]
    replaced = {part: _runtime(command[0], flags, part, cache) for part in command if _RUNTIME.search(part)}
    return [replaced.get(part, part) for part in command]


def _runtime(compiler: str, flags: list[str], source: str, cache: Path) -> str:
    include = Path(source).parent
    key = hashlib.sha256("\0".join([source, *flags]).encode()).hexdigest()[:24]
    compiled = cache / f"{Path(source).stem}-{key}.o"
    with locked(compiled.with_suffix(".lock")):
        if not compiled.is_file():
            _compile([compiler, *flags, f"-I{include}", f"-I{include}/vltstd", "-c", source], compiled, None)
    return str(compiled)


def with_objects(command: list[str], folder: Path, cache: Path) -> list[str]:
    """Return the command with objects instead of the fixed sources of the trace.

    The objects are compiled once, with the users' options.
    """
    return [str(_object(command, folder, part, cache)) if _is_fixed(part) else part for part in command]


def _is_fixed(part: str) -> bool:
    return part.startswith("simulation/") and part.endswith(".cpp") and part != "simulation/simulate.cpp"


def traced_objects(folder: Path) -> list[str]:
    """Return the recorder and the solver of the trace as objects of traced designs, for a test's library.

    Args:
        folder: The folder to which the sources are copied.
    """
    shutil.copytree(COMMON, folder / "src", dirs_exist_ok=True)
    shutil.copytree(SIMULATION, folder / "simulation", dirs_exist_ok=True)
    command = with_objects(build._command(folder, Variant(trace=True)), folder, Path(os.environ[FOLDER]))
    return [part for part in command if part.endswith(".o")]


def _object(command: list[str], folder: Path, source: str, cache: Path) -> Path:
    flags = [part for part in command[1:] if part.startswith("-") and part != "-shared"]
    key = hashlib.sha256("\0".join(flags).encode())
    text = (folder / source).read_text("utf-8")
    headers = {
        path.name: path.read_text("utf-8") for name in ("src", "simulation") for path in folder.glob(f"{name}/*.h")
    }
    for name, needed in sorted({source: text, **included([text], headers)}.items()):
        key.update(f"{name}\0{needed}\0".encode())
    compiled = cache / f"{Path(source).stem}-{key.hexdigest()[:24]}.o"
    with locked(compiled.with_suffix(".lock")):
        if not compiled.is_file():
            _compile([command[0], *flags, "-c", source], compiled, folder)
    return compiled


def _compile(command: list[str], output: Path, folder: Path | None) -> None:
    """Compile to ``output`` atomically."""
    partial = output.with_suffix(".partial")
    done = subprocess.run([*command, "-o", str(partial)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(command[0], f"could not compile {command[-1]}", done.stderr[:500])
    partial.rename(output)
