"""``systolic check``: interval, depth and clock of every pipelined loop, derived from the generated sources."""

from __future__ import annotations

import argparse

from systolic.checking.design import check_design
from systolic.checking.record import keep
from systolic.cli.output import give
from systolic.cli.progress import StatusLine


def run(options: argparse.Namespace) -> int:
    """Check a design's declared figures against figures derived from its sources.

    JSON: {clock_mhz, holds, highest_clock_mhz, rate: {clock_mhz, frames_per_second, cycles_per_frame, cycles},
    loops: [{process, source, declared_ii, derived_ii, declared_depth, derived_depth, path_ns, budget_ns, path,
    remedy}], memories: [{name, process, source, primitive, unit, estimated, derived, holds}], dsps: [{process,
    estimated, derived, products: [{source, wide_bits, narrow_bits, count, dsps}], holds, note}]}. The last entry of
    dsps is the sum of all processes. cycles is "traced" or "modelled".

    Returns:
        1 if a declared figure is better than the derived one, else 0.
    """
    with StatusLine() as status:
        report = check_design(options.design, options.clock, status.tell)
    if options.clock is None:
        keep(options.design, report.rate_clock)
    give(options, report.values(), report.text())
    return 0 if report.holds else 1
