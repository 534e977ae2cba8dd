"""Reads one picture and prints the most memory that this took, beyond what the process had, and the outcome."""

from __future__ import annotations

import sys
from pathlib import Path

import host.vision.picture as reader
from boards.errors import SystolicError


def status(name: str) -> int:
    """Bytes, of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def main() -> None:
    if len(sys.argv) > 3:
        reader.load_picture(sys.argv[3])  # a small one of the same kind: its decoder is loaded
    reader.LARGEST_MEMORY = int(sys.argv[2])
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = status("VmRSS")
    try:
        outcome = str(reader.load_picture(sys.argv[1]).shape)
    except SystolicError as error:
        outcome = f"{type(error).__name__}: {getattr(error, 'got', '')} of {getattr(error, 'high', '')}"
    print(status("VmHWM") - before, outcome, sep="\n")


if __name__ == "__main__":
    main()
