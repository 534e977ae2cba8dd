"""The command line of ``python -m tools.digests``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tools.digests import record as records
from tools.digests import renames
from tools.digests.design import generate, mapping_file, searched
from tools.digests.execution import Facts, executed, quick_builds
from tools.digests.record import RECORD, Digests, Record, source_digests
from tools.digests.table import DESIGNS, Row
from tools.parser import Parser

EXAMPLE = """example:
  python -m tools.digests check --sources           compare the generated files; needs no compiler, a few seconds
  python -m tools.digests check -j 2                also execute every design, a few minutes
  python -m tools.digests check hls-chain-int4-batch2-ddr-pynq-z2
  python -m tools.digests update                    record an intended change; read the difference
  python -m tools.digests renames                   prove that a commit changed names only
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return 1 if digests differ, and 2 if an argument is wrong."""
    options = _parser().parse_args(arguments)
    if options.command == "renames":
        return renames.check()
    rows = _rows(options.designs)
    if options.command == "list":
        for row in rows:
            print(f"{row.name:44} {row.style}, {row.engine}, {row.bits or 'own'} bits, {row.board}, {row.network}")
        return 0
    if options.command == "update":
        for row in rows:
            _pin(row)
    made = _made(rows, options.sources, options.jobs)
    if options.command == "update":
        before = records.read(options.record) if options.record.is_file() else Record()
        records.write(before.with_new(made), options.record)
        print(f"{options.record} contains the digests of {len(rows)} design(s); read the output of git diff")
        return 0
    return _compare(records.read(options.record), made, options.code)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m tools.digests",
        description="Compare generated sources, executed integers and cycles of small designs with the record.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="compare with the recorded digests; exit status 1 if something differs")
    update = commands.add_parser("update", help="write the recorded digests anew")
    show = commands.add_parser("list", help="list the designs")
    commands.add_parser("renames", help="compare the designs before and after the renames of renames.tsv")
    check.add_argument("--code", action="store_true", help="accept files that differ only in comments and white space")
    for command in (check, update):
        command.add_argument("--sources", action="store_true", help="generate the files without executing them")
        command.add_argument(
            "-j", "--jobs", type=int, default=1, metavar="N", help="number of processes (default: %(default)s)"
        )
        command.add_argument(
            "--record", type=Path, default=RECORD, metavar="FILE", help="file with the recorded digests"
        )
    for command in (check, update, show):
        command.add_argument(
            "designs", nargs="*", metavar="DESIGN", help="names of designs, as list prints them (default: all)"
        )
    return parser


def _rows(names: Sequence[str]) -> list[Row]:
    known = {row.name: row for row in DESIGNS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"unknown design {unknown[0]!r}; python -m tools.digests list prints the names", file=sys.stderr)
        raise SystemExit(2)
    return [known[name] for name in names] if names else list(DESIGNS)


def _pin(row: Row) -> None:
    """Write the schedule or folding that a search finds, if the row has no file yet."""
    path = mapping_file(row)
    if not path.is_file():
        path.write_text(searched(row), "utf-8")


def _made(rows: Sequence[Row], sources_only: bool, jobs: int) -> Record:
    """Generate the rows' designs and return their digests. Progress is printed to standard error."""
    start = time.monotonic()
    sources: dict[str, dict[str, Digests]] = {}
    facts: dict[str, Facts] = {}
    with quick_builds(), ProcessPoolExecutor(jobs) as pool:
        results = (
            pool.map(_made_one, rows, [sources_only] * len(rows))
            if jobs > 1
            else map(_made_one, rows, [sources_only] * len(rows))
        )
        for number, (row, (files, run)) in enumerate(zip(rows, results, strict=True), 1):
            sources[row.name] = files
            if run is not None:
                facts[row.name] = run
            elapsed = time.monotonic() - start
            print(f"{number:2} of {len(rows)} after {elapsed:4.0f} s: {row.name}", file=sys.stderr, flush=True)
    return Record(sources, facts)


def _made_one(row: Row, sources_only: bool) -> tuple[dict[str, Digests], Facts | None]:
    design = generate(row)
    return source_digests(design.sources), None if sources_only else executed(design)


def _compare(before: Record, made: Record, code_only: bool) -> int:
    found = records.differences(before, made)
    for difference in found:
        print(difference)
    bad = [difference for difference in found if not (code_only and difference.comments_only)]
    files = sum(map(len, made.sources.values()))
    checked = f"{len(made.sources)} designs, {files} files, {len(made.executed)} executions"
    print(f"{checked}: {'every digest is the same' if not found else f'{len(found)} differences'}")
    return 1 if bad else 0
