"""``systolic check``: interval, depth and clock of every pipelined loop, derived from the generated sources."""

from __future__ import annotations

import argparse
from pathlib import Path

from systolic.checking.design import check_design
from systolic.cli.arguments import Parsers, add_json, command
from systolic.cli.output import give
from systolic.cli.progress import StatusLine


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "check",
        run,
        "derive interval, depth and clock of every loop from the generated HLS sources",
        "systolic check build/shapes --clock 300",
    )
    parser.add_argument("design", type=Path, metavar="DIR", help="the folder of a generated design")
    parser.add_argument("--clock", type=float, metavar="MHZ", help="the clock to check at (default: the design's)")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {clock_mhz, holds, highest_clock_mhz, loops: [{process, source, declared_ii, derived_ii, declared_depth,
    derived_depth, path_ns, budget_ns, path, remedy}], memories: [{name, process, source, primitive, unit, estimated,
    derived, holds}], dsps: [{process, estimated, derived, products: [{source, wide_bits, narrow_bits, count, dsps}],
    holds, note}]}; the last of dsps is of all processes.

    1 where a figure that is declared is better than the one that is derived.
    """
    with StatusLine() as status:
        report = check_design(options.design, options.clock, status.tell)
    give(options, report.values(), report.text())
    return 0 if report.holds else 1
