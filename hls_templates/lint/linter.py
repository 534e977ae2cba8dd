"""Find in generated HLS C++ what otherwise only the vendor tool would tell.

Needs g++ (macros are expanded by the real preprocessor) and the packages tree-sitter and tree-sitter-cpp.
The rules and their sources are data: :mod:`hls_templates.lint_rules`; docs/reference/lint.md lists them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from tree_sitter import Node

from boards.errors import GenerateError, SystolicError
from hls_templates.lint import constructs as lint_code
from hls_templates.lint import dataflow as lint_dataflow
from hls_templates.lint import pragmas as lint_pragmas
from hls_templates.lint.access import Accesses
from hls_templates.lint.rules import RULES, Finding
from hls_templates.lint.source import Unit, allowed, expand
from hls_templates.lint.tree import Program, parse, walk

__all__ = ["Finding", "lint", "main"]


def lint(sources: Mapping[str, str], top: str) -> tuple[Finding, ...]:
    """The faults of ``sources`` (path inside the project → C++ text), ordered by file and line.

    ``top`` is the top function, defined in one of the sources or "" for headers alone. A fault is silent
    where ``// lint: allow(rule) why`` stands on its line or on the line above.
    Raises GenerateError where the top is not defined, or where the preprocessor refuses the sources.
    """
    unit = expand(sources)
    program = parse(unit.text, bool(unit.absent))
    if top and top not in program.functions:
        raise GenerateError(f"the top function must be defined in the sources, but {top} is not; name another")
    found = {_finding(unit, *fault) for fault in _faults(program, top)}
    mine = (f for f in found if f.file in sources and not allowed(sources, f.file, f.line, f.rule))
    return tuple(sorted(mine, key=lambda f: (f.file, f.line, f.rule, f.sentence)))


def _faults(program: Program, top: str) -> Iterator[lint_pragmas.Fault]:
    return chain(
        _unparsed(program),
        lint_pragmas.check(program, top),
        lint_dataflow.check(program, Accesses(program)),
        lint_code.check(program),
    )


def _unparsed(program: Program) -> Iterator[lint_pragmas.Fault]:
    """What the grammar could not read would otherwise go unchecked in silence."""
    for node in walk(program.root):
        if node.type == "ERROR":
            text = (node.text or b"").decode().split("\n")[0]
            yield node, "not-parsed", {"came": text[:60]}


def _finding(unit: Unit, node: Node, rule: str, came: Mapping[str, object]) -> Finding:
    file, line = unit.origins[node.start_point.row]
    places = {k: "{}:{}".format(*unit.origins[v.start_point.row]) for k, v in came.items() if isinstance(v, Node)}
    return Finding(file, line, rule, RULES[rule].sentence.format(**{**came, **places}))


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m hls_templates.lint FILE… --top NAME``: 0 clean, 1 findings, 2 not usable."""
    parser = argparse.ArgumentParser(prog="python -m hls_templates.lint", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--top", default="", help="the top function; absent for headers alone")
    asked = parser.parse_args(argv)
    try:
        found = lint(_read(asked.files), asked.top)
    except (OSError, UnicodeDecodeError, SystolicError) as error:
        print(error, file=sys.stderr)
        return 2
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def _read(files: Sequence[Path]) -> dict[str, str]:
    """Sources named as given, or from their common folder where a path is absolute or climbs."""
    plain = all(not f.is_absolute() and ".." not in f.parts for f in files)
    whole = [f.resolve() for f in files]
    shared = Path(*_common([f.parent.parts for f in whole]))
    return {
        (file if plain else real.relative_to(shared)).as_posix(): real.read_text()
        for file, real in zip(files, whole, strict=True)
    }


def _common(folders: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    same = 0
    while all(len(f) > same and f[same] == folders[0][same] for f in folders):
        same += 1
    return folders[0][:same]


if __name__ == "__main__":
    sys.exit(main())
