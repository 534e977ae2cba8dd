"""The C++ compiler of this machine, and the compilation of a library whose file is either complete or absent."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from boards.errors import MissingToolError, ToolError, shown
from boards.progress import Progress, silent
from host.whole_file import staging_folder

TIMEOUT_SECONDS = 900


def compiler() -> str:
    """Return the path of g++, or of the compiler that the environment variable CXX names.

    Raises:
        MissingToolError: The compiler is not installed.
    """
    name = os.environ.get("CXX", "g++")
    path = shutil.which(name)
    if path is None:
        raise MissingToolError(
            f"the C++17 compiler {shown(name)}",
            "execute the generated code",
            remedy="install it (Debian and Ubuntu: apt install g++), or name another one in CXX",
        )
    return str(Path(path).absolute())


def compile_to(command: list[str], library: Path, folder: Path | None = None, progress: Progress = silent) -> None:
    """Compile a library in a temporary folder, then rename it, so that the file is complete or absent.

    Args:
        command: The command that compiles all units in one call; it may contain object files. Each unit is compiled by
            its own call instead, so that the progress can count them.
        library: The file to write.
        folder: The folder in which the compiler runs. None means the current folder.

    Raises:
        ToolError: The compiler failed or did not finish.
    """
    units = [argument for argument in command if argument.endswith(".cpp")]
    objects = [argument for argument in command if argument.endswith(".o")]
    options = [argument for argument in command if not argument.endswith((".cpp", ".o"))]
    with staging_folder(library.absolute()) as work:
        for number, unit in enumerate(units):
            # The progress has no fraction, because some units take much longer than others.
            count = f", {number + 1} of {len(units)}" if len(units) > 1 else ""
            progress(f"compiling {Path(unit).name}{count}")
            objects.append(str(work / f"{number}.o"))
            _compile([*options, "-c", unit, "-o", objects[-1]], folder, work)
        output = work / library.name
        _compile([*options, *objects, "-o", str(output)], folder, work)
        output.rename(library)


def _compile(command: list[str], folder: Path | None, work: Path) -> None:
    """Run a compiler command in ``folder``, with ``work`` for its temporary files. Raises ToolError if it fails."""
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
