"""Compare the CPU time of help, version and completion with importing argparse: python -m benchmarks.startup

Each command runs nine times, with byte code already written; the median counts. The exit status is 1 if a command takes
more than twice as long as ``python -c 'import argparse'``.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from systolic.report.tables import table

RUNS = 9
MOST = 2.0
"""Maximum CPU time of a start, in multiples of ``import argparse``."""

ARGUMENTS = (("--version",), ("--help",), ("generate", "--help"), ("schedule", "--help"), ("boards", "--help"))
LINES = (
    "systolic ge",
    "systolic generate ",
    "systolic generate shapes --board z",
    "systolic generate shapes --sty",
    "systolic schedule shapes --objective ",
)


def main() -> int:
    """Print the medians, and return 1 if one is too long."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": folder, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        answer = Path(folder) / "completions"
        calls = {"import argparse": ([sys.executable, "-c", "import argparse"], environment)}
        command = [sys.executable, "-m", "systolic"]
        calls |= {f"systolic {' '.join(words)}": ([*command, *words], environment) for words in ARGUMENTS}
        calls |= {f"{line}<TAB>": (command, environment | completion(line, answer)) for line in LINES}
        seconds = medians(calls)
    unit = seconds["import argparse"]
    rows = [(name, f"{1000 * value:.1f}", f"{value / unit:.2f}") for name, value in seconds.items()]
    print(table(("start", "CPU ms", "of import argparse"), rows))
    return int(max(seconds.values()) > MOST * unit)


def completion(line: str, answer: Path) -> dict[str, str]:
    """Return the environment variables by which a shell asks for completions of a line."""
    return {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }


def medians(calls: Mapping[str, tuple[Sequence[str], Mapping[str, str]]]) -> dict[str, float]:
    """Return the median CPU seconds of each call. The calls alternate, so that each sees the same machine."""
    for command, environment in calls.values():
        cpu_seconds(command, environment)
    runs = [{name: cpu_seconds(*call) for name, call in calls.items()} for _ in range(RUNS)]
    return {name: statistics.median(run[name] for run in runs) for name in calls}


def cpu_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the CPU seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
