"""``systolic vendor``: the design's claims beside what Vitis HLS and Vivado say."""

from __future__ import annotations

import argparse
from pathlib import Path

from systolic.cli.arguments import Parsers, add_json, command
from systolic.cli.output import give, write_text
from systolic.cli.progress import StatusLine
from systolic.vendor.settle import Wishes, settle


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "vendor",
        run,
        "compare the design's claims with the reports that Vitis HLS and Vivado left",
        "systolic vendor DIR --report vendor.html",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a generated design")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="where the reports lie (default: in the design)")
    parser.add_argument("--csynth", action="store_true", help="first run C synthesis, where Vitis HLS is on the PATH")
    parser.add_argument("--only", metavar="FUNCTION", help="one function instead of the whole, as a top of its own")
    parser.add_argument("--derived", action="store_true", help="beside both, what systolic check derives of each loop")
    parser.add_argument("--report", type=Path, metavar="FILE", help="one self-contained HTML file")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: ``systolic.vendor.report.values``. 1 where a fact is worse than its claim."""
    wishes = Wishes(options.reports, options.only, options.csynth, options.derived)
    with StatusLine() as status:
        report = settle(options.folder, wishes, status.tell)
    if options.report is not None:
        write_text(options.report, report.page())
    give(options, report.values(), report.text())
    return 0 if report.holds else 1
