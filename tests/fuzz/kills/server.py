"""Runs commands in processes forked from one that has loaded everything: `python -m tests.fuzz.kills.server`, preloaded
with faults.cpp. A line of JSON asks, a line answers."""

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg  # noqa: F401, loaded once and not by every command
from PIL import Image

from systolic.cli.main import main

SECONDS = 600
"""A command that takes longer hangs: one may compile on a machine that has much else to do."""


def serve() -> int:
    """Answers until nobody asks; in a forked process: runs the command and gives its exit status."""
    Image.init()
    library = ctypes.CDLL(None)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            return command(request, library, request["fault"], "first")
        status, answer = ended(process), {}
        if os.WIFSTOPPED(status):
            rival = os.fork()
            if rival == 0:
                return command(request, library, [0, 0, 0, 0, 0, 0], "second")
            answer["second"] = os.waitstatus_to_exitcode(ended(rival))
            os.kill(process, signal.SIGCONT)
            status = ended(process)
        answer["first"] = os.waitstatus_to_exitcode(status)
        answer["calls"] = library.fault_calls()
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def command(request: dict[str, Any], library: ctypes.CDLL, fault: list[int], output: str) -> int:
    """In the forked process. request: {folder, temporary, output, arguments, fault}."""
    os.chdir(request["folder"])
    os.environ["TMPDIR"] = request["temporary"]
    tempfile.tempdir = None
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and hands that on
    for descriptor, name in ((1, "out"), (2, "error")):
        path = Path(request["output"]) / f"{output}.{name}"
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
    library.fault_arm(*(ctypes.c_long(value) for value in fault))
    return main(request["arguments"])


def ended(process: int) -> int:
    """The status of ``process``, which is killed where it hangs."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found, status = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
        if found:
            return status
        time.sleep(0.005)
    os.kill(process, signal.SIGALRM)
    return os.waitpid(process, 0)[1]


if __name__ == "__main__":
    sys.exit(serve())
