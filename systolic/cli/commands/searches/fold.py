"""``systolic fold``: a network as a streaming pipeline, and how several searches fold it."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards import board as board_room
from boards.errors import GenerateError
from cnn.quantized import QuantizedNetwork
from scheduler.streaming.refusals import check_layers
from systolic.cli.arguments import (
    Parsers,
    add_arguments,
    add_bits,
    add_board,
    add_calibration,
    add_json,
    add_shapes,
    calibration_from,
    check_network,
    command,
    model_of,
    named,
    seed_of,
)
from systolic.cli.output import give, write_text
from systolic.cli.progress import StatusLine
from systolic.evaluation.mixed import Pipeline
from systolic.explorations import integers_for, shapes_of
from systolic.model import with_softmax
from systolic.styles.options import DDR_ARGUMENTS, SHARE_ARGUMENTS
from systolic.styles.streaming.exploration import alone, compare, explore
from systolic.styles.streaming.options import ARGUMENTS, SEARCHES, options_from


def add(parsers: Parsers) -> None:
    """The command's arguments: its own, and the streaming style's."""
    parser = command(
        parsers,
        "fold",
        run,
        "fold a network as a streaming pipeline, and compare how it is done",
        "systolic fold ultranet --board ultra96-v2 --fps 2000 --compare",
    )
    add_shapes(parser)
    add_board(parser, "ultra96-v2")
    parser.add_argument(
        "--clock", type=float, metavar="MHZ", help="a clock that the board makes (default: its highest)"
    )
    add_bits(parser)
    add_calibration(parser)
    parser.set_defaults(reconstruct=False, zero_points=False)
    parser.add_argument("--compare", action="store_true", help="all searches side by side")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the folding as JSON, to be edited by hand")
    parser.add_argument("--report", type=Path, metavar="FILE", help="one self-contained HTML file with pictures")
    group = parser.add_argument_group("folding")
    add_arguments(group, ARGUMENTS)
    add_arguments(parser, (*DDR_ARGUMENTS, *SHARE_ARGUMENTS))
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {network, board, clock_mhz, foldings: [{search, cycles, frames_per_second, lut, dsp, bram18, uram,
    converters, fifo_bits, energy, area, fits, reached, state, gap, seconds, reason}]}."""
    check_network(options.network)
    board = board_room.load(options.board)
    wishes = options_from(options)
    with StatusLine() as status:
        network = _network(options, Pipeline(board, options.clock, wishes), status)
        if options.compare:
            comparison = compare(network, board, options.clock, wishes, SEARCHES, status.tell)
        else:
            status.tell("folding")
            comparison = alone(explore(network, board, options.clock, wishes, status.tell), wishes)
        if options.save is not None:
            write_text(options.save, comparison.mapping_of(wishes.label).to_json())
        if options.report is not None:
            status.tell("drawing")
            write_text(options.report, comparison.page())
    give(options, comparison.values(), comparison.text())
    return 0


def _network(options: argparse.Namespace, pipeline: Pipeline, status: StatusLine) -> QuantizedNetwork:
    """With bits by layer numbers count too, and pictures; else shapes alone do."""
    if options.mixed is None:
        flags = [f"--{name}" for name in ("calibrate", "fit") if getattr(options, name)]
        if flags:
            raise GenerateError(f"{named(flags)} for --mixed SHARE, as shapes alone decide without it; leave it out")
        status.tell("reading the network")
        model = model_of(options, seed_of(options))
        return shapes_of(with_softmax(model, options.softmax), options.bits, check_layers)
    calibration = calibration_from(options)
    status.tell("reading the network")
    model = model_of(options, options.seed)
    return integers_for(with_softmax(model, options.softmax), calibration, pipeline, status.tell)
