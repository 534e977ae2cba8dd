"""``systolic vendor``: the design's claims beside what Vitis HLS and Vivado say."""

from __future__ import annotations

import argparse

from systolic.cli.output import give, write_text
from systolic.cli.progress import StatusLine
from systolic.vendor.settle import Wishes, settle


def run(options: argparse.Namespace) -> int:
    """JSON: ``systolic.vendor.report.values``. 1 where a fact is worse than its claim."""
    wishes = Wishes(options.reports, options.only, options.csynth, options.derived)
    with StatusLine() as status:
        report = settle(options.folder, wishes, status.tell)
    if options.report is not None:
        write_text(options.report, report.page())
    give(options, report.values(), report.text())
    return 0 if report.holds else 1
