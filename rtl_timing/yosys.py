"""Runs Yosys (Python package ``pyosys``) in a separate process, because an error in a pass ends the process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from boards.errors import MissingToolError, ToolError

TIMEOUT_SECONDS = 1800

_PROGRAM = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for line in sys.stdin.read().splitlines():
    libyosys.run_pass(line, design)
"""


def run(passes: Sequence[str]) -> str:
    """Run Yosys commands (passes) one after the other on a new design, and return what Yosys prints.

    Raises:
        MissingToolError: Yosys is not installed.
        ToolError: A pass failed.
    """
    if importlib.util.find_spec("pyosys") is None:
        raise MissingToolError("Yosys", "synthesise SystemVerilog", remedy="pip install 'systolic-cnn[check]'")
    try:
        process = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            input="\n".join(passes),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError("Yosys", f"did not finish in {TIMEOUT_SECONDS} s; is the machine overloaded?") from error
    if process.returncode != 0:
        complaints = [line for line in (process.stdout + process.stderr).splitlines() if "error" in line.lower()]
        output = "\n".join(complaints) or (process.stdout + process.stderr)[-2000:]
        raise ToolError("Yosys", f"ended with status {process.returncode}", output)
    return process.stdout


def read(files: Iterable[Path], top: str, work: Path, options: str = "") -> str:
    """Return the Yosys command that reads SystemVerilog files. ``work`` is an empty folder for a list of the files.

    The list allows file names with blanks.
    """
    listed = work / "files.f"
    listed.write_text("".join(f'"{path.absolute()}"\n' for path in files), "utf-8")
    return f"read_slang --top {top} {options} -f {listed}"
