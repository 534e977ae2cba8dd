"""The command ``python -m tools.bounds``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from boards.board import load
from boards.errors import SystolicError
from scheduler.systolic.array import BITS
from tools.bounds.limits import Format
from tools.bounds.report import Question, answered, table
from tools.networks.table import entries
from tools.parser import Parser

EPILOG = """example:
  python -m tools.bounds                              every network on a ZCU104, in int8; a minute
  python -m tools.bounds resnet50 --batch 4 -o b.json write the limits of one network as JSON
  python -m tools.bounds resnet8 --engine             and run the schedule search to compare
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return 1 if an option is refused."""
    table_of_networks = entries()
    names = [entry.name for entry in table_of_networks]
    parser = Parser(
        prog="python -m tools.bounds",
        description="Print the limits of the frame rate that any engine can have on a board.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NETWORK", choices=[[], *names], help=", ".join(names))
    parser.add_argument("--board", default="zcu104", help="a board or a .toml file (default: zcu104)")
    parser.add_argument("--bits", type=int, default=8, choices=BITS, help="bits of weights and maps (default: 8)")
    parser.add_argument("--batch", type=_frames, default=1, metavar="FRAMES", help="frames per load of the weights")
    parser.add_argument("--clock", type=float, metavar="MHZ", help="the design's clock (default: the board's target)")
    parser.add_argument("--engine", action="store_true", help="search schedules of the present engine, a minute each")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the limits to this file as JSON")
    options = parser.parse_args(arguments)
    chosen = [entry for entry in table_of_networks if not options.names or entry.name in options.names]
    try:
        form = Format(options.bits, options.batch)
        answer = answered(Question(load(options.board), form, options.clock, options.engine), chosen)
    except SystolicError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(answer))
    if options.output:
        options.output.write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def _frames(text: str) -> int:
    frames = int(text)
    if frames < 1:
        raise argparse.ArgumentTypeError("1 frame or more")
    return frames
