"""``systolic vendor``: the II, memories, resources and clock that a design declares, against the vendor's reports."""

from __future__ import annotations

import argparse

from systolic.cli.output import write_result, write_text
from systolic.cli.progress import StatusLine
from systolic.vendor.compare_design import VendorOptions, compare_design


def run(options: argparse.Namespace) -> int:
    """Compare the figures that a design declares with the vendor's reports. JSON: ``systolic.vendor.report.values``.

    Returns:
        1 if a reported fact is worse than its claim, else 0.
    """
    vendor_options = VendorOptions(options.reports, options.only, options.csynth, options.derived)
    with StatusLine() as status:
        report = compare_design(options.folder, vendor_options, status.report)
    if options.report is not None:
        write_text(options.report, report.page())
    write_result(options, report.values(), report.text())
    return 0 if report.holds else 1
