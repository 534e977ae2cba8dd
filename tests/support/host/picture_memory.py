"""A program that reads one image and prints the peak of additional memory and the outcome."""

from __future__ import annotations

import sys
from pathlib import Path

import host.vision.picture as reader
from boards.errors import SystolicError


def status(name: str) -> int:
    """Return a value of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def main() -> None:
    if len(sys.argv) > 3:
        reader.load_picture(sys.argv[3])  # a small image of the same format, to load its decoder
    reader.MAX_PICTURE_BYTES = int(sys.argv[2])
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = status("VmRSS")
    try:
        outcome = str(reader.load_picture(sys.argv[1]).shape)
    except SystolicError as error:
        outcome = f"{type(error).__name__}: {getattr(error, 'got', '')} of {getattr(error, 'high', '')}"
    print(status("VmHWM") - before, outcome, sep="\n")


if __name__ == "__main__":
    main()
