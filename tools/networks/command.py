"""The commands list, write and check."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from host.whole_file import write_whole
from tools.networks.table import WRITERS, Entry, content, differences, entries
from tools.parser import Parser

EPILOG = """example:
  python -m tools.networks list                   print the table
  python -m tools.networks write -o /tmp/nets     write every ONNX file, 1.3 GB in all
  python -m tools.networks write -o . resnet50    write one
  python -m tools.networks check                  compare files and counts with the table; a minute
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return 1 if a network differs from the table."""
    parser = Parser(
        prog="python -m tools.networks",
        description="Write the networks with which engines are compared, and check their sizes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="print MACs, parameters and sources of all networks")
    write = commands.add_parser("write", help="write ONNX files of the networks that are not built in")
    write.add_argument("-o", "--output", required=True, metavar="DIR", type=Path, help="write to this folder")
    write.add_argument("names", nargs="*", metavar="NETWORK", choices=[[], *WRITERS], help=", ".join(WRITERS))
    check = commands.add_parser("check", help="compare files and counts with the table and with published figures")
    table = entries()
    names = [entry.name for entry in table]
    check.add_argument("names", nargs="*", metavar="NETWORK", choices=[[], *names], help=", ".join(names))
    options = parser.parse_args(arguments)
    if options.command == "list":
        print(*map(_row, table), sep="\n")
        return 0
    chosen = [entry for entry in table if not options.names or entry.name in options.names]
    if options.command == "write":
        options.output.mkdir(parents=True, exist_ok=True)
        for entry in chosen:
            if not entry.built_in:
                write_whole(options.output / f"{entry.name}.onnx", content(entry))
        return 0
    wrong = [sentence for entry in chosen for sentence in differences(entry)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return int(bool(wrong))


def _row(entry: Entry) -> str:
    size = f"{entry.counts.macs / 1e6:>10,.2f} MMAC {entry.counts.parameters:>12,} parameters"
    kind = "built in" if entry.built_in else "written"
    return f"{entry.name:<16} {size}  {kind:<9} {entry.published.source}"
