"""Vitis HLS, where it is on the PATH: run with a script, its log kept, its steps told as it takes them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from boards.errors import FileAccessError, MissingToolError, ToolError, cut
from boards.progress import Progress

LOG = "hls.log"
"""In the folder that the tool runs in."""

TOOLS = ("vitis_hls", "vitis-run")
"""The first that is on the PATH is taken: vitis_hls until 2024.1, vitis-run from 2023.2 on."""

_STEP = re.compile(r"INFO: \[[\w -]+\] ((?:-- |Starting |Running|Implementing |Analyzing |Compiling ).+)")
_LAST_LINES = 6
STOP_SECONDS = 20
"""What the tool has to end in, once it is told to."""


def tool_command(folder: Path, script: str) -> list[str]:
    """Return the command of the installed tool that runs ``script`` in ``folder``; MissingToolError if there is
    none."""
    name = next((name for name in TOOLS if shutil.which(name)), None)
    if name is None:
        raise MissingToolError(
            "vitis_hls (Vitis 2022.1 to 2024.1) or vitis-run (2024.2)",
            "synthesise with --csynth",
            remedy="source settings64.sh of the Vitis installation first; or copy the design to a machine that has it, "
            f"run vitis_hls -f {script} in {folder}, and bring hls/ back",
        )
    path = str(shutil.which(name))
    return [path, "-f", script] if name == "vitis_hls" else [path, "--mode", "hls", "--tcl", script]


def synthesise(folder: Path, script: str, tell: Progress) -> Path:
    """C synthesis alone, by ``script`` in ``folder``; the path of its log.

    Raises:
        MissingToolError: The tool is not installed.
        FileAccessError: It cannot be run in the folder.
        ToolError: It failed; the error has the last errors of the log.
    """
    command = tool_command(folder, script)
    log = folder / LOG
    tell(f"running {Path(command[0]).name}")
    try:
        with log.open("w", encoding="utf-8") as file:
            code = _run(command, folder, file, tell)
    except OSError as error:
        reason = f"cannot be the folder in which {command[0]} runs: {error.strerror}"
        raise FileAccessError(str(folder), reason, "folder") from error
    if code != 0:
        name, remedy = Path(command[0]).name, f"see the whole log {log}"
        raise ToolError(name, f"ended with status {code}", _errors(log), remedy=remedy)
    return log


def _run(command: Sequence[str], folder: Path, log: TextIO, tell: Progress) -> int:
    """The exit code. A run that is stopped takes the tool and all that it started with it."""
    environment = {**os.environ, "SYSTOLIC_STEPS": "synth"}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            for line in process.stdout or ():
                log.write(line)
                step = _STEP.match(line)
                if step:
                    tell(f"Vitis HLS: {cut(step[1].strip(' -.'), 50)}")
            return process.wait()
        except BaseException:
            _stop(process)
            raise


def _stop(process: subprocess.Popen[str]) -> None:
    """The tool is a script that starts others: its whole session ends, and what does not end by itself is killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


def _errors(log: Path) -> str:
    """The last lines that say ERROR, else the last lines."""
    with log.open(encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    last = deque((line for line in lines if "ERROR" in line or "run_hls.tcl:" in line), _LAST_LINES) or lines[-2:]
    return "; ".join(cut(line, 200) for line in last) or "it said nothing"
