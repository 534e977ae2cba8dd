"""``systolic check``: derive II, depths and clock from a design's C++, or the slowest paths of its SystemVerilog."""

from __future__ import annotations

import argparse

from systolic.checking.design import check_design
from systolic.checking.record import store_clock
from systolic.checking.rtl_design import check_rtl_design
from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.styles.registry import open_design, style_of


def run(options: argparse.Namespace) -> int:
    """Compare the declared II, depths, memories and DSPs of C++ with derived ones, or model the paths of SystemVerilog.

    JSON: {clock_mhz, holds, highest_clock_mhz, rate: {clock_mhz, link, frames_per_second,
    cycles_per_frame, cycles},
    loops: [{process, source, declared_ii, derived_ii, declared_depth, derived_depth, path_ns, budget_ns, path,
    remedy}], memories: [{name, process, source, primitive, unit, estimated, derived, holds}], dsps: [{process,
    estimated, derived, products: [{source, wide_bits, narrow_bits, count, dsps}], holds, note}]}. The last entry of
    dsps is the sum of all processes. cycles is "traced" or "modelled".

    JSON of an engine in SystemVerilog: {clock_mhz, holds, origin, link, speed_grade, highest_clock_mhz: {p50, p90},
    limit: {clock_mhz, primitive}, clocks: [{launch, capture, budget_ns, overhead_ns, holds, paths: [{ns, levels, ends,
    steps: [{kind, name, source, wire_ns, cell_ns, loads}]}]}], broad_nets: [{name, source, loads}], control_sets,
    primitives}. link is the clock's: "modelled" if the 90th percentile of the model reaches it, else "target".

    Returns:
        1 if a declared figure is better than the derived one, or a path longer than its time, else 0.
    """
    design = open_design(options.design)
    if not style_of(design).is_traced(design):
        with StatusLine() as status:
            timing = check_rtl_design(options.design, options.clock, status.report)
        if options.clock is None:
            store_clock(options.design, timing.rate_clock)
        write_result(options, timing.values(), timing.text())
        return 0 if timing.holds else 1
    with StatusLine() as status:
        report = check_design(options.design, options.clock, status.report)
    if options.clock is None:
        store_clock(options.design, report.rate_clock)
    write_result(options, report.values(), report.text())
    return 0 if report.holds else 1
