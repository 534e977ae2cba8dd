"""Runs Vitis HLS with a script, if it is on the PATH. The log is kept, and each step is reported."""

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
"""The name of the log, in the folder in which the tool runs."""

TOOLS = ("vitis_hls", "vitis-run")
"""The tool's names: vitis_hls until 2024.1, vitis-run from 2023.2. The first that is on the PATH is run."""

_STEP = re.compile(r"INFO: \[[\w -]+\] ((?:-- |Starting |Running|Implementing |Analyzing |Compiling ).+)")
_LAST_LINES = 6
STOP_SECONDS = 20
"""The time that the tool has to end after SIGTERM, before it is killed."""


def tool_command(folder: Path, script: str) -> list[str]:
    """Return the command that runs ``script`` with the installed vitis_hls or vitis-run.

    Raises:
        MissingToolError: No tool is on the PATH.
    """
    name = next((name for name in TOOLS if shutil.which(name)), None)
    if name is None:
        raise MissingToolError(
            "vitis_hls (Vitis 2022.1 to 2024.1) or vitis-run (2024.2)",
            "synthesise with --csynth",
            remedy="source settings64.sh of the Vitis installation first; or copy the design to a machine that has it, "
            f"run vitis_hls -f {script} in {folder}, and copy hls/ back",
        )
    path = str(shutil.which(name))
    return [path, "-f", script] if name == "vitis_hls" else [path, "--mode", "hls", "--tcl", script]


def synthesise(folder: Path, script: str, progress: Progress) -> Path:
    """Run C synthesis of Vitis HLS with ``script`` in ``folder``, and return the path of the log.

    Raises:
        MissingToolError: The tool is not installed.
        FileAccessError: The tool cannot run in the folder.
        ToolError: The tool failed. The message has the last errors of the log.
    """
    command = tool_command(folder, script)
    log = folder / LOG
    progress(f"running {Path(command[0]).name}")
    try:
        with log.open("w", encoding="utf-8") as file:
            code = _run(command, folder, file, progress)
    except OSError as error:
        reason = f"cannot be the folder in which {command[0]} runs: {error.strerror}"
        raise FileAccessError(str(folder), reason, "folder") from error
    if code != 0:
        name, remedy = Path(command[0]).name, f"see the whole log {log}"
        raise ToolError(name, f"ended with status {code}", _errors(log), remedy=remedy)
    return log


def _run(command: Sequence[str], folder: Path, log: TextIO, progress: Progress) -> int:
    """Run the command and return its exit status. An interruption also stops the tool and its children."""
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
                    progress(f"Vitis HLS: {cut(step[1].strip(' -.'), 50)}")
            return process.wait()
        except BaseException:
            _stop(process)
            raise


def _stop(process: subprocess.Popen[str]) -> None:
    """Stop all processes of the tool's session, because the tool is a script that starts others.

    Processes that do not end in time are killed.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


def _errors(log: Path) -> str:
    """Return the last lines of the tool's log that report an error, else the last two lines."""
    with log.open(encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    last = deque((line for line in lines if "ERROR" in line or "run_hls.tcl:" in line), _LAST_LINES) or lines[-2:]
    return "; ".join(cut(line, 200) for line in last) or "its log is empty"
