"""Sheets for a blind reading of the code: does a reader who has never seen it understand it better than before?

``python -m tools.reading --help``. Functions, classes and modules are drawn that changed between two commits, and
sentences of the later one. Which ones are drawn depends only on the hash of the later commit, so nobody chooses them.

A reader sees the signature and the docstrings of each unit, and not its code, in one of its two forms, without knowing
in which. The sheets of two successive readers have opposite forms. A person who knows the code writes the answers
before the sheets are read. Files:

    sheet-1.md …    the units for reader 1 …, with the questions
    sentences.md    docstrings and lines of help: which of them need a fact that the reader does not have?
    order.json      the unit and the form of each number of each sheet
"""

from __future__ import annotations

import argparse
import ast
import functools
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tools.parser import Parser

ROOMS = (
    "boards",
    "cnn",
    "contract",
    "hls_schedule",
    "hls_templates",
    "host",
    "rtl_templates",
    "rtl_timing",
    "scheduler",
    "systolic",
)
SHARES = {"function": 6, "class": 4, "module": 2}
"""Units of each kind on a sheet."""

MIN_LINES, MAX_LINES = {"function": 8, "class": 10, "module": 20}, {"function": 60, "class": 80, "module": 130}
DOCSTRINGS, HELP_LINES = 40, 20
QUESTIONS = """1. What does it return, or what is it for?
2. What must hold before it is called or made, and which errors or limits are there?
3. Where would you make this change: {change}
"""
CHANGES = {
    "function": "the result must also depend on one more property of its first argument.",
    "class": "it gets one more field, with a unit.",
    "module": "one more case of what it decides.",
}
EXAMPLE = """example:
  python -m tools.reading cfdf7d05~1 HEAD --readers 3 -o /tmp/reading
"""


@dataclass(frozen=True)
class Unit:
    """A function, a class or a module of one commit.

    Attributes:
        kind: A key of SHARES.
        name: Path and qualified name, ``cnn/maps.py:Shape.values``.
        text: Its source text.
        docstring: Its docstring, or "".
    """

    kind: str
    name: str
    text: str
    docstring: str


def main(arguments: Sequence[str]) -> int:
    """Write the sheets of the command line's commits; 1 if too few units changed."""
    parser = Parser(
        prog="python -m tools.reading",
        description="Draw units of the code before and after a change, for readers who have never seen it.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", help="Commit before the change")
    parser.add_argument("after", help="Commit after the change; its hash decides which units are drawn")
    parser.add_argument("--readers", type=int, default=3, help="Number of sheets, one per reader (default: 3)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="Folder of the sheets; made if it is missing")
    options = parser.parse_args(arguments)
    earlier, commit = (_git("rev-parse", name).strip() for name in (options.before, options.after))
    before, after = _units(earlier), _units(commit)
    drawn = _drawn_units(before, after, commit)
    if len(drawn) < sum(SHARES.values()):
        print(f"only {len(drawn)} units changed between {options.before} and {options.after}", file=sys.stderr)
        return 1
    options.output.mkdir(parents=True, exist_ok=True)
    order = {}
    for reader in range(1, options.readers + 1):
        sheet = _ordered(drawn, f"{commit} reader {reader}")
        forms = {name: "before" if (drawn.index(name) + reader) % 2 else "after" for name in sheet}
        units = [(before if forms[name] == "before" else after)[name] for name in sheet]
        (options.output / f"sheet-{reader}.md").write_text(_sheet(units), "utf-8")
        order[f"sheet-{reader}"] = [{"unit": name, "form": forms[name]} for name in sheet]
    (options.output / "order.json").write_text(json.dumps(order, indent=2) + "\n", "utf-8")
    (options.output / "sentences.md").write_text(_sentences(list(after.values()), commit), "utf-8")
    print(f"{len(drawn)} units of {commit[:8]} for {options.readers} readers in {options.output}")
    return 0


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


@functools.cache
def _trees(commit: str) -> Mapping[str, tuple[str, ast.Module]]:
    """Return the text and the syntax tree of each Python file of the rooms, by path."""
    paths = _git("ls-tree", "-r", "--name-only", commit, "--", *ROOMS).split()
    texts = {path: _git("show", f"{commit}:{path}") for path in paths if path.endswith(".py")}
    return {path: (text, ast.parse(text)) for path, text in texts.items()}


def _units(commit: str) -> dict[str, Unit]:
    """Return the units of a commit by their names."""
    units: dict[str, Unit] = {}
    for path, (text, tree) in _trees(commit).items():
        units[path] = Unit("module", path, text, ast.get_docstring(tree) or "")
        for name, node in _definitions(tree, ""):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            source = "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])
            units[f"{path}:{name}"] = Unit(kind, f"{path}:{name}", source, ast.get_docstring(node) or "")
    return units


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(tree: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, Definition]]:
    """Yield functions, classes and their methods, with qualified names."""
    for node in tree.body:
        if isinstance(node, Definition):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node, f"{prefix}{node.name}.")


def _ordered(names: Sequence[str], seed: str) -> list[str]:
    """Return the names in an order that depends on nothing but the seed."""
    return sorted(names, key=lambda name: sha256(f"{seed} {name}".encode()).digest())


def _drawn_units(before: dict[str, Unit], after: dict[str, Unit], commit: str) -> list[str]:
    """Return the names of the drawn units: in both states, with another text, and neither short nor long."""
    changed = [name for name, unit in after.items() if name in before and unit.text != before[name].text]
    drawn: list[str] = []
    for kind, count in SHARES.items():
        fitting = [name for name in changed if all(_fits(state[name], kind) for state in (before, after))]
        drawn += _ordered(fitting, commit)[:count]
    return drawn


def _fits(unit: Unit, kind: str) -> bool:
    return unit.kind == kind and MIN_LINES[kind] <= len(unit.text.splitlines()) <= MAX_LINES[kind]


def _sheet(units: Sequence[Unit]) -> str:
    parts = ["Answer the three questions of each unit from its outline alone, in one or two sentences each.\n"]
    for number, unit in enumerate(units, 1):
        questions = QUESTIONS.format(change=CHANGES[unit.kind])
        parts.append(f"## Unit {number}: a {unit.kind}\n\n```python\n{_outline(unit.text)}\n```\n\n{questions}")
    return "\n".join(parts)


def _outline(source: str) -> str:
    """Return a unit's text without the code: signatures, docstrings, fields and constants."""
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = node.body[:1] if ast.get_docstring(node) else []
            node.body = [*docstring, ast.Expr(ast.Constant(...))]
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.unparse(ast.fix_missing_locations(tree))


def _sentences(units: Sequence[Unit], commit: str) -> str:
    """Return a numbered list of docstrings, in their first paragraphs, and of help texts."""
    documented = {unit.name: unit for unit in units if unit.docstring and unit.kind != "module"}
    lines = ["Name the sentences that you do not understand without a fact that is not there, and say which fact.\n"]
    for name in _ordered(list(documented), commit)[:DOCSTRINGS]:
        unit = documented[name]
        first = unit.docstring.split("\n\n")[0].replace("\n", " ")
        lines.append(f"{len(lines)}. {unit.kind} `{name}`: {first}")
    for text in _ordered(sorted(_help_texts(commit)), commit)[:HELP_LINES]:
        lines.append(f"{len(lines)}. help: {text}")
    return "\n".join(lines) + "\n"


def _help_texts(commit: str) -> set[str]:
    """Return the help texts of options: constant ``help`` arguments, after the option's last spelling."""
    texts: set[str] = set()
    for _, tree in _trees(commit).values():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            words = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            for keyword in call.keywords:
                is_text = isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
                if keyword.arg == "help" and is_text and words:
                    texts.add(f"`{words[-1]}`: {ast.literal_eval(keyword.value)}")
    return texts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
