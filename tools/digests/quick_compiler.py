"""A C++ compiler for designs that are executed once: without optimisation, and with shared parts compiled only once.

It is called in place of g++ and keeps objects in the folder ``DIGESTS_OBJECTS``. Verilator's library and the recorder
of a trace are the same for every design. Equal sources are recognised by the output of the preprocessor.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

COMPILER = "g++"
OWN = ("top.cpp", "simulate.cpp", "unit")
"""Beginnings of the names of sources that differ from design to design."""


def main(arguments: list[str]) -> int:
    """Compile as g++ does with these arguments, but without optimisation."""
    command = [COMPILER, *("-O0" if part.startswith("-O") else part for part in arguments)]
    source = next((part for part in arguments if part.endswith(".cpp")), None)
    if "-c" not in arguments or source is None or Path(source).name.startswith(OWN):
        return subprocess.call(command)
    output = Path(arguments[arguments.index("-o") + 1])
    kept = Path(os.environ["DIGESTS_OBJECTS"]) / f"{_key(command, output)}.o"
    if not kept.is_file():
        if code := subprocess.call(command):
            return code
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_bytes(output.read_bytes())
        partial.rename(kept)
    else:
        output.write_bytes(kept.read_bytes())
    return 0


def _key(command: list[str], output: Path) -> str:
    preprocess = ["-E" if part == "-c" else part for part in command if part not in ("-o", str(output))]
    text = subprocess.run([*preprocess, "-P"], capture_output=True, check=False).stdout
    flags = [part for part in command[1:] if part.startswith("-") and not part.startswith("-I")]
    return hashlib.sha256(text + "\0".join(flags).encode()).hexdigest()[:32]


def stub(folder: Path) -> Path:
    """Write a program into ``folder`` that calls ``main``, and return its path, for the variable ``CXX``."""
    path = folder / "quick-g++"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{Path(__file__).absolute()}" "$@"\n', "utf-8")
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
