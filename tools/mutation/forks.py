"""A part of the work in a process of its own, which may hang, die or take what it likes."""

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
"""The bytes of address space that a process may take."""


IDLE = 60.0
"""Seconds without work after which a process waits for what never comes."""


RAISED = 255
"""The code of a task that raised."""


def forked(task: Callable[[], int], seconds: float, tell: Progress = silent) -> int | None:
    """What the task gives, 0…254, done in a child; 1 where it dies, RAISED where it raises, whose cause is told; None
    where it takes more seconds of CPU time, or twenty times as many of the clock, since the machine may be busy, or
    waits for nothing."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        code = RAISED
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (max(1, round(seconds)), max(1, round(seconds)) + 1))
            code = task()
        except BaseException:  # of a child: nobody else can tell it
            tell(traceback.format_exc())
        finally:
            os._exit(code)
    status = _wait(child, 20 * seconds)
    with contextlib.suppress(ProcessLookupError):  # what it started itself
        os.killpg(child, signal.SIGKILL)
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return None
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1


def _wait(child: int, limit: float) -> int | None:
    """The child's status; None where it took longer, or did nothing for ``IDLE`` seconds, and was ended."""
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
    """Of a child that was not waited for yet, with what it started and waited for."""
    fields = Path(f"/proc/{child}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
