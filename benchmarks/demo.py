"""CPU seconds of each step of ``systolic demo``: python -m benchmarks.demo [STYLE]

The exit status is 1 if all but the search of a mapping takes more than seven seconds, on a machine that imports
``argparse`` in 30 ms.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile

from systolic.cli.main import main as command
from systolic.cli.progress import StatusLine
from systolic.report.tables import table

MOST = 7.0
"""Maximum number of CPU seconds of the demo, without its search."""

SEARCHES = ("scheduling", "searching", "cheapest of the fastest", "folding", "sizing FIFOs")
"""The first words of the steps that belong to the search."""


def main() -> int:
    """Print the CPU seconds of each step, and return 1 if all but the search takes too long."""
    steps = [("starting", 0.0)]
    report = StatusLine.report

    def timed(status: StatusLine, text: str) -> None:
        steps.append((text.split(",")[0], cpu_seconds()))
        report(status, text)

    StatusLine.report = timed  # type: ignore[method-assign,assignment]
    style = sys.argv[1] if len(sys.argv) > 1 else "systolic"
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        status = command(["demo", "--style", style, "-q", "-o", f"{folder}/demo"])
    seconds: dict[str, float] = {}
    for (name, begin), (_, end) in zip(steps, [*steps[1:], ("", cpu_seconds())], strict=True):
        seconds[name] = seconds.get(name, 0.0) + end - begin
    others = sum(took for name, took in seconds.items() if not name.startswith(SEARCHES))
    rows = [(name, f"{took:.2f}") for name, took in seconds.items()]
    print(table(("step", "CPU s"), [*rows, ("all but the search", f"{others:.2f}")]))
    return status or int(others > MOST)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its child processes that have ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    sys.exit(main())
