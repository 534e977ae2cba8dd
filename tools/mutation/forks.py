"""Runs a task in a child process, which may hang, crash or use much memory without harm."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from boards.progress import Progress, silent

MEMORY = 8 << 30
"""Maximum number of bytes of a process's address space."""


IDLE = 60.0
"""Seconds without CPU use after which a process is assumed to wait for ever."""


RAISED = 255
"""Exit code of a task that raised an exception."""


def forked(task: Callable[[], int], seconds: float, report: Progress = silent) -> int | None:
    """Run a task in a child process and return its result, 0 … 254.

    Args:
        task: The task.
        seconds: Limit of CPU time. The limit of wall-clock time is twenty times as long, since the machine may be busy.
        report: Gets the traceback of an exception.

    Returns:
        The result; 1 if the child crashed; RAISED if the task raised an exception; None if it took too long or idled.
    """
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        code = RAISED
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (max(1, round(seconds)), max(1, round(seconds)) + 1))
            code = task()
        except BaseException:  # the parent cannot see the child's exceptions
            report(traceback.format_exc())
        finally:
            os._exit(code)
    status = _wait(child, 20 * seconds)
    with contextlib.suppress(ProcessLookupError):  # end processes that the child started
        os.killpg(child, signal.SIGKILL)
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return None
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1


def _wait(child: int, limit: float) -> int | None:
    """Return the child's status, or None if it was ended because it took too long or was idle for ``IDLE`` seconds."""
    end = time.monotonic() + limit
    pause, worked, awake = 0.002, -1.0, time.monotonic()
    while time.monotonic() < end and time.monotonic() < awake + IDLE:
        if _cpu_seconds(child) > worked + 0.05:
            worked, awake = _cpu_seconds(child), time.monotonic()
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return status
        time.sleep(pause)
        pause = min(0.05, 1.5 * pause)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _cpu_seconds(child: int) -> float:
    """Return the CPU seconds of a running child, including its own children that have ended."""
    fields = Path(f"/proc/{child}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
