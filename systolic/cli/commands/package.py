"""``systolic package``: one wheel for the board."""

from __future__ import annotations

import argparse
from pathlib import Path

from systolic.cli.arguments import Parsers, add_json, command
from systolic.cli.output import give
from systolic.cli.progress import StatusLine
from systolic.execution.build import build
from systolic.package import package


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "package",
        run,
        "one wheel for the board: driver, bitstream, manifest, images and notebooks",
        "systolic package DIR -o dist",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a generated design with its bitstream")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="folder for the wheel")
    parser.add_argument(
        "--without-bitstream",
        action="store_true",
        help="before Vivado has run: with the simulation library, for this machine and those like it",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {wheel}."""
    with StatusLine() as status:
        simulation = build(options.folder, tell=status.tell) if options.without_bitstream else None
        wheel = package(options.folder, options.output, simulation=simulation, tell=status.tell)
    where = "for the simulated board, not a real one" if options.without_bitstream else "on the board"
    give(options, {"wheel": str(wheel)}, f"written to {wheel}; {where}: pip install --no-deps {wheel.name}")
    return 0
