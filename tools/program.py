"""Keeps the words of a pass in pass.h equal to contract/program.py: ``python -m tools.program --help``.

hls_templates/systolic/pass.h is written for readers. Only its two tables and the number of words are renewed, and in
the tables only lines whose contents differ.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from contract.program import ADDED_GROUP, GROUPS, PASS_WORDS, Group
from tools.parser import Parser

HEADER = Path(__file__).resolve().parents[1] / "hls_templates" / "systolic" / "pass.h"
COMMENT, CONTINUED = 21, 108
"""Columns at which a word's comment and a line's backslash begin, if there is room."""

EXAMPLE = """example:
  python -m tools.program check     compare the header with contract/program.py
  python -m tools.program update    renew the lines of the header that differ
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return 1 if the header differs."""
    parser = Parser(
        prog="python -m tools.program",
        description="Compare the words of a pass in pass.h with contract/program.py, or renew them.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("check", "update"))
    options = parser.parse_args(arguments)
    before = HEADER.read_text("utf-8")
    after = renewed(before)
    if options.command == "update":
        HEADER.write_text(after, "utf-8")
    elif after != before:
        print("the words in pass.h differ from contract/program.py: run python -m tools.program update")
        return 1
    return 0


def renewed(header: str) -> str:
    """Return the text of pass.h with the words of contract/program.py."""
    for macro, groups in (("SYSTOLIC_PASS_FIELDS", GROUPS), ("SYSTOLIC_ADDED_FIELDS", (ADDED_GROUP,))):
        header = _with_table(header, macro, list(_lines(groups)))
    return re.sub(r"(?<=static const int PASS_WORDS = )\d+", str(PASS_WORDS), header)


def _with_table(header: str, macro: str, wanted: list[str]) -> str:
    """Return the header with these lines in a macro's table. A line that differs only in white space is kept."""
    start = header.index("\n", header.index(f"#define {macro}(X)")) + 1
    end = header.index("// clang-format on", start)
    present = {" ".join(line.split()): line for line in header[start:end].splitlines()}
    lines = [present.get(" ".join(line.split()), line) for line in wanted]
    return header[:start] + "\n".join(lines) + "\n" + header[end:]


def _lines(groups: Sequence[Group]) -> Iterator[str]:
    """Yield the lines of a table, headings and words. All lines but the last end with a backslash."""
    lines = [line for group in groups for line in _group_lines(group)]
    for line in lines[:-1]:
        yield f"{line} ".ljust(CONTINUED) + "\\"
    yield lines[-1]


def _group_lines(group: Group) -> Iterator[str]:
    """Yield the heading of a group, then a line per word. Adjacent words with the same description share a line."""
    if group.title:
        yield f"    /* {group.title} */"
    for doc, fields in groupby(group.fields, lambda field: field.doc):
        names = "    " + " ".join(f"X({field.name})" for field in fields)
        yield f"{names} ".ljust(COMMENT) + f"/* {doc} */" if doc else names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
