"""``systolic compare``: schedules of several boards, array sizes, bits, batches, clocks and memories side by side."""

from __future__ import annotations

import argparse

from boards import board as board_room
from scheduler.systolic.formats import least_bits
from scheduler.systolic.network.refusals import check_mappable
from systolic.cli.commands.schedule import read_model
from systolic.cli.inputs import check_search
from systolic.cli.output import write_result, write_text
from systolic.cli.progress import StatusLine
from systolic.explorations import shapes_of
from systolic.styles.options import budget_from
from systolic.styles.systolic.exploration import compare
from systolic.styles.systolic.options import Alternatives, SystolicOptions, engine_for
from systolic.styles.systolic.workers import workers


def run(options: argparse.Namespace) -> int:
    """Compare schedules for all combinations of the given values. JSON: ``SystolicComparison.values``."""
    check_search(options)
    for dsp_clock in options.dsp_clock or ():
        engine_for(options.engine, dsp_clock)
    alternatives = _alternatives(options)
    with StatusLine() as status, workers(options.workers, options.dask) as executor:
        model = read_model(options, status)
        read = [(bits, shapes_of(model, bits, check_mappable)) for bits in options.bits or (None,)]
        networks = {bits or least_bits(network): network for bits, network in read}
        style_options = SystolicOptions(
            objective=options.objective,
            fps=options.fps,
            ddr_efficiency=options.ddr_efficiency,
            ddr_profile=options.ddr_profile,
            budget=budget_from(options),
        )
        comparison = compare(networks, alternatives, style_options, executor, status.report)
        if options.report is not None:
            status.report("drawing")
            write_text(options.report, comparison.page())
    write_result(options, comparison.values(), comparison.text())
    return 0


def _alternatives(options: argparse.Namespace) -> Alternatives:
    """Return the values of each option that ``compare`` combines; an option that was not given has one, its default."""
    chosen = (options.clock, options.ddr_gbps, options.dsp_clock, options.dsp_products)
    clocks_mhz, ddr_gbps, dsp_clocks, dsp_products = (tuple(numbers or (None,)) for numbers in chosen)
    boards = tuple(board_room.load(name) for name in options.board or ["zcu104"])
    arrays, batches = tuple(options.array or ()), tuple(options.batch or (1,))
    return Alternatives(boards, arrays, batches, clocks_mhz, ddr_gbps, dsp_clocks, dsp_products, options.engine)
