"""The compiled kernels of tests/hls_templates/kernels for the tests of the cycle solver."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hls_templates.headers import COMMON, SIMULATION
from systolic.trace.solver import Trace

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests/hls_templates/kernels/kernels.cpp"
RECORDER = [SIMULATION / name for name in ("trace.cpp", "solve.cpp", "memory.cpp", "cycles.cpp")]


def compile_library(sources: list[Path], library: Path, *options: str, objects: Sequence[str] = ()) -> Path:
    """Return a shared library of the sources and objects. A compiler error fails the test with its output."""
    command = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *options]
    command += [f"-I{COMMON}", "-o", str(library), *map(str, sources), *objects]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


def our_stream() -> str:
    return f"-I{SIMULATION}"


def run(library: ctypes.CDLL, name: str, *arguments: object) -> str | None:
    """Return the kernel's error text, or None."""
    function = getattr(library, name)
    function.restype = ctypes.c_char_p
    sentence = function(*arguments)
    return None if sentence is None else sentence.decode()


def traced(library: ctypes.CDLL, name: str, *arguments: object) -> Trace:
    trace = Trace(library)
    trace.begin()
    assert run(library, name, *arguments) is None
    trace.end()
    return trace
