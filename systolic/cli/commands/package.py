"""``systolic package``: a Python wheel for the board, with the accelerator and its host code."""

from __future__ import annotations

import argparse

from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.execution.build import build
from systolic.package import package


def run(options: argparse.Namespace) -> int:
    """Write a wheel with the design, its host code, and its bitstream or simulation library. JSON: {wheel}."""
    with StatusLine() as status:
        simulation = build(options.folder, progress=status.report) if options.without_bitstream else None
        wheel = package(options.folder, options.output, simulation=simulation, progress=status.report)
    where = "for the simulated board" if options.without_bitstream else "on the board"
    write_result(
        options, {"wheel": str(wheel)}, f"written to {wheel}; install it {where}: pip install --no-deps {wheel.name}"
    )
    return 0
