"""``systolic compare``: boards, arrays, formats, batches, clocks and memories side by side."""

from __future__ import annotations

import argparse
from dataclasses import replace

from boards import board as board_room
from cnn.quantisation.quantise import FORMATS
from scheduler.systolic.formats import least_bits
from systolic.cli.arguments import (
    BITS_HELP,
    BOARD_HELP,
    CLOCK_HELP,
    SEVERAL,
    Parsers,
    add_arguments,
    add_search,
    check_search,
    command,
)
from systolic.cli.commands.searches.schedule import read_shapes
from systolic.cli.output import give, write_text
from systolic.cli.progress import StatusLine
from systolic.styles.options import DDR_ARGUMENTS, Argument, budget_from
from systolic.styles.systolic.exploration import compare
from systolic.styles.systolic.options import DSP_ARGUMENTS, SEARCHED_ENGINE, Alternatives, SystolicOptions, engine_for
from systolic.styles.systolic.workers import workers

EXAMPLE = "systolic compare tiny-yolov2-voc --board zcu104 --board zcu102 --array 13x16x16 --report compare.html"


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers, "compare", run, "compare boards, arrays, formats, batches, clocks and memories for a network", EXAMPLE
    )
    add_search(parser)
    gbps, efficiency = DDR_ARGUMENTS
    add_arguments(parser, (SEARCHED_ENGINE, *map(several, DSP_ARGUMENTS), several(gbps), efficiency))
    parser.add_argument("--clock", type=float, action="append", metavar="MHZ", help=f"{CLOCK_HELP}; {SEVERAL}")
    parser.add_argument("--board", action="append", help=f"{BOARD_HELP}; {SEVERAL} (default: zcu104)")
    parser.add_argument("--array", action="append", metavar="MxNxL", help=f"an array; {SEVERAL}")
    parser.add_argument(
        "--bits", type=int, action="append", choices=FORMATS, help=f"{BITS_HELP}; {SEVERAL} (default: 8)"
    )
    parser.add_argument(
        "--batch",
        type=int,
        action="append",
        metavar="B",
        help=f"frames computed with one passage of the weights; {SEVERAL} (default: 1)",
    )


def several(argument: Argument) -> Argument:
    """The same, to be given several times."""
    help_text = f"{argument.help}; {SEVERAL}"
    return replace(argument, help=help_text, settings={**argument.settings, "action": "append"})


def run(options: argparse.Namespace) -> int:
    """JSON: ``SystolicComparison.values``."""
    check_search(options)
    for dsp_clock in options.dsp_clock or ():
        engine_for(options.engine, dsp_clock)
    alternatives = _alternatives(options)
    with StatusLine() as status, workers(options.workers, options.dask) as executor:
        read = [(bits, read_shapes(options, bits, status)) for bits in options.bits or (None,)]
        networks = {bits or least_bits(network): network for bits, network in read}
        wishes = SystolicOptions(
            objective=options.objective,
            fps=options.fps,
            ddr_efficiency=options.ddr_efficiency,
            budget=budget_from(options),
        )
        comparison = compare(networks, alternatives, wishes, executor, status.tell)
        if options.report is not None:
            status.tell("drawing")
            write_text(options.report, comparison.page())
    give(options, comparison.values(), comparison.text())
    return 0


def _alternatives(options: argparse.Namespace) -> Alternatives:
    """What was given, and where nothing was, what it stands for."""
    chosen = (options.clock, options.ddr_gbps, options.dsp_clock, options.dsp_products)
    clocks_mhz, ddr_gbps, dsp_clocks, dsp_products = (tuple(numbers or (None,)) for numbers in chosen)
    boards = tuple(board_room.load(name) for name in options.board or ["zcu104"])
    arrays, batches = tuple(options.array or ()), tuple(options.batch or (1,))
    return Alternatives(boards, arrays, batches, clocks_mhz, ddr_gbps, dsp_clocks, dsp_products, options.engine)
