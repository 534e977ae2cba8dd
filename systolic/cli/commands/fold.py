"""``systolic fold``: the folding of a network as a streaming pipeline, by one search or by several."""

from __future__ import annotations

import argparse

from boards import board as board_room
from boards.errors import MissingValueError
from cnn.quantized import QuantizedNetwork
from scheduler.streaming.refusals import check_mappable
from systolic.cli.inputs import calibration_from, check_network, model_of, seed_of
from systolic.cli.output import write_result, write_text
from systolic.cli.progress import StatusLine
from systolic.evaluation.mixed import Pipeline
from systolic.explorations import integers_for, shapes_of
from systolic.model import with_softmax
from systolic.styles.streaming.arguments import SEARCHES
from systolic.styles.streaming.exploration import compare, explore, single_row
from systolic.styles.streaming.options import options_from


def run(options: argparse.Namespace) -> int:
    """Search a folding, or with --compare one per search method, and print the result.

    JSON: {network, board, clock_mhz, foldings: [{search, cycles, frames_per_second, lut, dsp, bram18, uram,
    converters, fifo_bits, energy, area, fits, reached, state, gap, seconds, reason}]}.
    """
    check_network(options.network)
    board = board_room.load(options.board)
    style_options = options_from(options)
    with StatusLine() as status:
        network = _network(options, Pipeline(board, options.clock, style_options), status)
        if options.compare:
            comparison = compare(network, board, options.clock, style_options, SEARCHES, status.report)
        else:
            status.report("folding")
            comparison = single_row(explore(network, board, options.clock, style_options, status.report), style_options)
        if options.save is not None:
            write_text(options.save, comparison.mapping_of(style_options.label).to_json())
        if options.report is not None:
            status.report("drawing")
            write_text(options.report, comparison.page())
    write_result(options, comparison.values(), comparison.text())
    return 0


def _network(options: argparse.Namespace, pipeline: Pipeline, status: StatusLine) -> QuantizedNetwork:
    """Return the quantised network to fold.

    With --mixed it is calibrated, because weights and pictures decide the bits of each layer. Without --mixed only the
    shapes of its layers matter.
    """
    if options.mixed is None:
        flags = [f"--{name}" for name in ("calibrate", "fit") if getattr(options, name)]
        if flags:
            raise MissingValueError(
                "--mixed SHARE", f"without it only the shapes of layers matter, and {' and '.join(flags)} has no effect"
            )
        status.report("reading the network")
        model = model_of(options, seed_of(options), check=check_mappable)
        return shapes_of(with_softmax(model, options.softmax), options.bits, check_mappable)
    calibration = calibration_from(options)
    status.report("reading the network")
    model = model_of(options, options.seed, check=check_mappable)
    return integers_for(with_softmax(model, options.softmax), calibration, pipeline, status.report)
