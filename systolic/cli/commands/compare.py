"""``systolic compare``: boards, arrays, formats and batches side by side."""

from __future__ import annotations

import argparse

from boards import board as board_room
from cnn.quantisation.quantise import FORMATS
from scheduler.systolic.formats import least_bits
from systolic.cli.arguments import BITS_HELP, BOARD_HELP, Parsers, add_arguments, add_search, check_search, command
from systolic.cli.commands.schedule import read_shapes
from systolic.cli.output import give, write_text
from systolic.cli.progress import StatusLine
from systolic.styles.options import DDR_ARGUMENTS, budget_from
from systolic.styles.systolic.exploration import Alternatives, compare
from systolic.styles.systolic.options import SystolicOptions
from systolic.styles.systolic.workers import workers

EXAMPLE = "systolic compare tiny-yolov2-voc --board zcu104 --board zcu102 --array 13x16x16 --report compare.html"
SEVERAL = "may be given several times"


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(parsers, "compare", run, "compare boards and arrays for a network", EXAMPLE)
    add_search(parser)
    add_arguments(parser, DDR_ARGUMENTS)
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


def run(options: argparse.Namespace) -> int:
    """JSON: ``SystolicComparison.values``."""
    check_search(options)
    boards = tuple(board_room.load(name) for name in options.board or ["zcu104"])
    with StatusLine() as status, workers(options.workers, options.dask) as executor:
        read = [(bits, read_shapes(options, bits, status)) for bits in options.bits or (None,)]
        networks = {bits or least_bits(network): network for bits, network in read}
        alternatives = Alternatives(boards, tuple(options.array or ()), tuple(options.batch or (1,)))
        wishes = SystolicOptions(
            objective=options.objective,
            fps=options.fps,
            ddr_gbps=options.ddr_gbps,
            ddr_efficiency=options.ddr_efficiency,
            budget=budget_from(options),
        )
        comparison = compare(networks, alternatives, options.clock, wishes, executor, status.tell)
        if options.report is not None:
            status.tell("drawing")
            write_text(options.report, comparison.page())
    give(options, comparison.values(), comparison.text())
    return 0
