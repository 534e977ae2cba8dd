"""The C++ compiler of this machine, and libraries made by it: whole or not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from boards.errors import MissingToolError, ToolError, shown
from boards.progress import Progress, silent
from host.whole_file import beside

TIMEOUT_SECONDS = 900


def compiler() -> str:
    """Return the path of g++, or of the compiler that CXX names; MissingToolError if it is not installed."""
    name = os.environ.get("CXX", "g++")
    path = shutil.which(name)
    if path is None:
        raise MissingToolError(
            f"the C++17 compiler {shown(name)}",
            "execute the generated code",
            remedy="install it (Debian and Ubuntu: apt install g++), or name another one in CXX",
        )
    return str(Path(path).absolute())


def compile_to(command: list[str], library: Path, folder: Path | None = None, tell: Progress = silent) -> None:
    """Beside its place with the compiler's own files, then renamed: a library is whole or not there.

    command: as for the compiler, all units in one call, objects among them; each unit is compiled by itself, so that
    ``tell`` can count them.
    """
    units = [argument for argument in command if argument.endswith(".cpp")]
    objects = [argument for argument in command if argument.endswith(".o")]
    options = [argument for argument in command if not argument.endswith((".cpp", ".o"))]
    with beside(library.absolute()) as work:
        for number, unit in enumerate(units):
            count = f", {number + 1} of {len(units)}" if len(units) > 1 else ""  # no share: some units take long
            tell(f"compiling {Path(unit).name}{count}")
            objects.append(str(work / f"{number}.o"))
            _compile([*options, "-c", unit, "-o", objects[-1]], folder, work)
        output = work / library.name
        _compile([*options, *objects, "-o", str(output)], folder, work)
        output.rename(library)


def _compile(command: list[str], folder: Path | None, work: Path) -> None:
    """In ``folder``; the compiler's own files go into ``work``."""
    try:
        compiled = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(work)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError("the compiler", f"did not finish in {TIMEOUT_SECONDS} s; is the machine overloaded?") from error
    if compiled.returncode != 0:
        first = "\n".join(line for line in compiled.stderr.splitlines() if "error" in line)[:2000]
        raise ToolError(command[0], "does not compile the generated code", first or compiled.stderr[:2000])
