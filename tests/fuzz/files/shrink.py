"""The shrinking of a file that shows a defect: parts without which it still shows the defect are removed."""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from tests.fuzz.files.judge import HANGS, MAX_SECONDS, Defect, Watch, death, judge, limit_memory
from tests.fuzz.files.target import Target

MAX_TRIES = 200
"""The limit for the number of smaller files that are tried."""
SMALL = 1 << 16
"""Limit for the bytes of a file that is shrunk. A larger file is kept as it is."""


def shrunk(target: Target, data: bytes, defect: Defect) -> bytes:
    """Return a smaller file with the same defect, by removing smaller and smaller parts."""
    if defect.kind == HANGS or len(data) > SMALL:
        return data
    tries, size = 0, max(1, len(data) // 2)
    while size and tries < MAX_TRIES:
        start = 0
        while start < len(data) and tries < MAX_TRIES:
            smaller = data[:start] + data[start + size :]
            tries += 1
            if kind_of(target, smaller) == defect.kind:
                data = smaller
            else:
                start += size
        size //= 2
    return data


def kind_of(target: Target, data: bytes) -> str:
    """Read ``data`` in a process of its own, and return the kind of its defect; empty if there is none."""
    folder = Path(tempfile.mkdtemp(prefix="systolic-fuzz-"))
    answer = folder / "answer"
    child = os.fork()
    if child == 0:
        try:
            inner = folder / "inner"
            inner.mkdir()
            faulthandler.disable()
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            tempfile.tempdir = str(inner)
            limit_memory(target.extra_bytes)
            defect = judge(target, data, inner, Watch(inner, target.runs))
            answer.write_text(defect.kind if defect is not None else "", "utf-8")
        finally:
            os._exit(0)
    status, late = _ended(child)
    try:
        code = os.waitstatus_to_exitcode(status)
        return answer.read_text("utf-8") if code == 0 and answer.is_file() else death(code, late).kind
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ended(child: int) -> tuple[int, bool]:
    """Return the exit status of a child process, and whether it was killed because it took too long."""
    until = time.monotonic() + 3 * MAX_SECONDS
    while time.monotonic() < until:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return status, False
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1], True
