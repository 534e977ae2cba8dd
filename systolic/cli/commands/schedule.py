"""``systolic schedule``: the best size and tiling of a systolic array for a network."""

from __future__ import annotations

import argparse

from boards import board as board_room
from scheduler.systolic.network.refusals import check_mappable
from systolic.cli.inputs import check_search, model_of, seed_of
from systolic.cli.output import write_result, write_text
from systolic.cli.progress import StatusLine
from systolic.explorations import shapes_of
from systolic.model import Model
from systolic.styles.options import budget_from
from systolic.styles.systolic.arguments import PINS
from systolic.styles.systolic.exploration import explore
from systolic.styles.systolic.options import SystolicOptions, engine_for
from systolic.styles.systolic.workers import workers


def run(options: argparse.Namespace) -> int:
    """Search the best schedule, or evaluate a saved one, and print it. JSON: ``SystolicMapping.values``."""
    check_search(options)
    board = board_room.load(options.board)
    with StatusLine() as status, workers(options.workers, options.dask) as executor:
        network = shapes_of(read_model(options, status), options.bits, check_mappable)
        mapping = explore(network, board, options.clock, _style_options(options), executor, status.report)
        status.report("pricing")
        text = mapping.text()
        if options.save is not None:
            write_text(options.save, mapping.to_json())
        if options.report is not None:
            write_text(options.report, mapping.page())
    write_result(options, mapping.values(), text)
    return 0


def _style_options(options: argparse.Namespace) -> SystolicOptions:
    return SystolicOptions(
        schedule=options.schedule,
        batch=options.batch,
        objective=options.objective,
        fps=options.fps,
        array=options.array,
        order=options.order,
        pins={name: getattr(options, name) for name in PINS},
        engine=engine_for(options.engine, options.dsp_clock),
        ddr_gbps=options.ddr_gbps,
        ddr_efficiency=options.ddr_efficiency,
        ddr_profile=options.ddr_profile,
        budget=budget_from(options),
    )


def read_model(options: argparse.Namespace, status: StatusLine) -> Model:
    """Read the network for a search, which needs only layer shapes: it gets random weights if it has none."""
    status.report("reading the network")
    return model_of(options, seed_of(options), check=check_mappable)
