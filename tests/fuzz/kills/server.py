"""A server that runs commands in forked processes: `python -m tests.fuzz.kills.server`, preloaded with faults.cpp.

All modules are loaded before the fork, so that a command starts fast. Requests and answers are lines of JSON.
"""

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
"""The time after which a command counts as hanging. It is long, because a command may compile on a busy machine."""


def serve() -> int:
    """Answer requests until the input ends. In a forked process, run the command and return its exit status."""
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
    """Run a command in the forked process, and return its exit status.

    Args:
        request: {folder, temporary, output, arguments, fault}.
        library: The library faults.cpp, which interrupts a call.
        fault: The arguments of its function ``fault_arm``.
        output: The names of the files for standard output and standard error, without their suffixes.
    """
    os.chdir(request["folder"])
    os.environ["TMPDIR"] = request["temporary"]
    tempfile.tempdir = None
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits SIG_IGN
    for descriptor, name in ((1, "out"), (2, "error")):
        path = Path(request["output"]) / f"{output}.{name}"
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
    library.fault_arm(*(ctypes.c_long(value) for value in fault))
    return main(request["arguments"])


def ended(process: int) -> int:
    """Return the exit status of ``process``, which is killed if it hangs."""
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
