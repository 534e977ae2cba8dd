"""``systolic pareto``: the Pareto front of frame rate and DSP count."""

from __future__ import annotations

import argparse

from boards import board as board_room
from scheduler.systolic.network.refusals import check_mappable
from systolic.cli.commands.schedule import read_model
from systolic.cli.inputs import check_network
from systolic.cli.output import write_result, write_text
from systolic.cli.progress import StatusLine
from systolic.explorations import shapes_of
from systolic.styles.options import budget_from
from systolic.styles.systolic.exploration import front
from systolic.styles.systolic.options import SystolicOptions, engine_for
from systolic.trace.timeline import check_picture
from systolic.trace.timeline import save as save_picture


def run(options: argparse.Namespace) -> int:
    """Search the Pareto front of frame rate and DSP count. JSON: ``ParetoFront.values``."""
    check_network(options.network)
    board = board_room.load(options.board)
    style_options = SystolicOptions(
        batch=options.batch,
        array=options.array,
        pins={"dsp_clock": options.dsp_clock, "dsp_products": options.dsp_products},
        engine=engine_for(options.engine, options.dsp_clock),
        ddr_gbps=options.ddr_gbps,
        ddr_efficiency=options.ddr_efficiency,
        ddr_profile=options.ddr_profile,
        budget=budget_from(options),
    )
    if options.picture is not None:
        check_picture(options.picture)
    with StatusLine() as status:
        network = shapes_of(read_model(options, status), options.bits, check_mappable)
        points = front(network, board, options.clock, style_options, status.report)
        if options.picture is not None:
            save_picture(points.figure(), options.picture)
        if options.report is not None:
            write_text(options.report, points.page())
    write_result(options, points.values(), points.text())
    return 0
