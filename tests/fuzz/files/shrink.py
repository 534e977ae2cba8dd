"""A failing file made small: what can be left out and still shows the same defect is left out."""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from tests.fuzz.files.judge import MOST_SECONDS, Defect, Watch, judge, limit_memory
from tests.fuzz.files.target import Target

MOST_TRIES = 200
SMALL = 1 << 16
"""A larger file is left as it is: a crash of it is seen as well."""


def shrunk(target: Target, data: bytes, defect: Defect) -> bytes:
    """Parts of ever smaller size are left out, each try in a process of its own."""
    if defect.kind == "hangs" or len(data) > SMALL:
        return data
    tries, size = 0, max(1, len(data) // 2)
    while size and tries < MOST_TRIES:
        start = 0
        while start < len(data) and tries < MOST_TRIES:
            smaller = data[:start] + data[start + size :]
            tries += 1
            if kind_of(target, smaller) == defect.kind:
                data = smaller
            else:
                start += size
        size //= 2
    return data


def kind_of(target: Target, data: bytes) -> str:
    """What is wrong with reading ``data``, in a process of its own; empty where nothing is."""
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
    status = _ended(child)
    try:
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            return "hangs"
        if code < 0:
            return f"dies of {signal.Signals(-code).name}"
        return answer.read_text("utf-8") if answer.is_file() else "exits"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ended(child: int) -> int:
    """The status; a child that takes too long is killed."""
    until = time.monotonic() + 3 * MOST_SECONDS
    while time.monotonic() < until:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return status
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]
