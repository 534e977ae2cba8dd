"""``systolic vendor``: the design's claims beside what Vitis HLS and Vivado say."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards.errors import VendorError
from systolic.cli.arguments import Parsers, add_json, command
from systolic.cli.output import give, write_text
from systolic.cli.progress import StatusLine
from systolic.vendor.claims import read_claims
from systolic.vendor.comparison.compare import compare
from systolic.vendor.kernel import SCRIPT, kernel_folder, write_kernel
from systolic.vendor.reading.reports import read_reports
from systolic.vendor.report import html, text, values
from systolic.vendor.tool import synthesise


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
    parser.add_argument("--report", type=Path, metavar="FILE", help="one self-contained HTML file")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: ``systolic.vendor.report.values``. 1 where a fact is worse than its claim."""
    if options.csynth and options.reports is not None:
        raise VendorError("--csynth leaves its reports in the design's folder: leave --reports out")
    claims = read_claims(options.folder)
    place = options.reports or options.folder
    with StatusLine() as status:
        if options.only is not None:
            claims = claims.part_of(options.only)
            place = options.reports or kernel_folder(options.folder, options.only)
        if options.csynth:
            if options.only is not None:
                write_kernel(options.folder, options.only, claims)
            synthesise(place, SCRIPT, status.tell)
        status.tell("reading reports")
        comparison = compare(claims, read_reports(place, claims.cell))
    if options.report is not None:
        write_text(options.report, html(comparison))
    give(options, values(comparison), text(comparison))
    return 0 if comparison.holds else 1
