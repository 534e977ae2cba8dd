"""``systolic pareto``: what frames/s cost in DSPs."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards import board as board_room
from systolic.cli.arguments import (
    Parsers,
    add_arguments,
    add_bits,
    add_board,
    add_json,
    add_shapes,
    check_network,
    command,
)
from systolic.cli.commands.searches.schedule import read_shapes
from systolic.cli.output import give, write_text
from systolic.cli.progress import StatusLine
from systolic.styles.options import DDR_ARGUMENTS, SHARE_ARGUMENTS, budget_from
from systolic.styles.systolic.exploration import front
from systolic.styles.systolic.options import DSP_ARGUMENTS, SEARCHED_ENGINE, SystolicOptions, engine_for
from systolic.trace.timeline import save as save_picture

EXAMPLE = "systolic pareto tiny-yolov2-voc --board zcu104 --clock 300 --picture front.png"


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    text = "schedules that no other beats in both frames/s and DSPs, of a coarse search"
    parser = command(parsers, "pareto", run, text, EXAMPLE)
    add_shapes(parser)
    add_board(parser, "zcu104")
    parser.add_argument(
        "--clock", type=float, metavar="MHZ", help="a clock that the board makes (default: its highest)"
    )
    parser.add_argument("--array", metavar="MxNxL", help="pin rows × columns × lanes")
    parser.add_argument("--batch", type=int, metavar="B", help="frames computed with one passage of the weights")
    add_bits(parser)
    add_arguments(parser, (SEARCHED_ENGINE, *DSP_ARGUMENTS, *DDR_ARGUMENTS, *SHARE_ARGUMENTS))
    parser.add_argument("--picture", type=Path, metavar="FILE", help="the front as .png, .svg or .pdf")
    parser.add_argument("--report", type=Path, metavar="FILE", help="one self-contained HTML file with pictures")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: ``ParetoFront.values``."""
    check_network(options.network)
    board = board_room.load(options.board)
    wishes = SystolicOptions(
        batch=options.batch,
        array=options.array,
        pins={"dsp_clock": options.dsp_clock, "dsp_products": options.dsp_products},
        engine=engine_for(options.engine, options.dsp_clock),
        ddr_gbps=options.ddr_gbps,
        ddr_efficiency=options.ddr_efficiency,
        budget=budget_from(options),
    )
    with StatusLine() as status:
        network = read_shapes(options, options.bits, status)
        points = front(network, board, options.clock, wishes, status.tell)
        if options.picture is not None:
            save_picture(points.figure(), options.picture)
        if options.report is not None:
            write_text(options.report, points.page())
    give(options, points.values(), points.text())
    return 0
