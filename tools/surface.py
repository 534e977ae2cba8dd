"""A snapshot of the project's user interface, in ``surface.json``: ``python -m tools.surface --help``.

Structure is separate from wording: a changed sentence of the help breaks no script, but a removed flag does. Sections
of the structure:

    api        signatures of everything in ``systolic.__all__``
    commands   arguments of every command: flags, metavar, choices, default
    files      names of the files of a design
    json       keys of the objects that ``--json`` writes, with the kinds of their values
    manifest   the same for a design's manifest
    statuses   exit statuses of command lines, and the kind of their standard output
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tools.parser import Parser

HERE = Path(__file__).parent
RECORD = HERE / "surface.json"
NETWORKS = HERE / "digests" / "networks"
EXAMPLE = """example:
  python -m tools.surface check --quick     compare the parts that need no compiler: a few seconds
  python -m tools.surface check             compare everything, half a minute
  python -m tools.surface update            record an intended change; read the difference
"""

Section = dict[str, Any]


@dataclass
class Surface:
    """A snapshot, or a part of one: the entries of each section by name."""

    structure: dict[str, Section] = field(default_factory=dict)
    wording: Section = field(default_factory=dict)


# --- command lines -------------------------------------------------------------------------------------------------

_CHAIN = ("{networks}/chain.cfg", "--seed", "1", "--calibrate", "{picture}")
_SMALL = ("--board", "pynq-z2", "--clock", "100")
_ARRAY = ("--array", "4x8x8")
_PIPELINE = ("{networks}/four_bits.json", "--seed", "1", "--calibrate", "{picture}")
_FOLDED = (
    "--style",
    "streaming",
    "--board",
    "ultra96-v2",
    "--folding",
    "{mappings}/streaming-four-bits-ultra96-v2.json",
)

QUICK: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "version": ("--version",),
    "no command": ("nothing",),
    "boards": ("boards", "--json", "-"),
    "board": ("boards", "zcu104", "--json", "-"),
    "no board": ("boards", "nothing"),
    "no option": ("boards", "--nothing"),
    "no value": ("schedule",),
    "not a number": ("schedule", *_CHAIN[:3], "--clock", "fast"),
    "no choice": ("generate", *_CHAIN[:3], "--bits", "5"),
    "no file": ("schedule", "{work}/nothing.cfg"),
    "schedule": ("schedule", *_CHAIN[:3], *_SMALL, *_ARRAY, "--json", "-", "--save", "{work}/schedule.json"),
    "schedule of a file": ("generate", *_CHAIN, *_SMALL, "--schedule", "{work}/schedule.json", "-o", "{work}/array"),
    "a folder that is there": (
        "generate",
        *_CHAIN,
        *_SMALL,
        "--schedule",
        "{work}/schedule.json",
        "-o",
        "{work}/array",
    ),
    "a design in its place": (
        *("generate", *_CHAIN, *_SMALL, "--schedule", "{work}/schedule.json", "-o", "{work}/array", "--force"),
        *("--json", "-"),
    ),
    "schedule that does not fit": ("schedule", *_CHAIN[:3], *_SMALL, "--array", "64x64x64"),
    "compare": ("compare", *_CHAIN[:3], *_SMALL, *_ARRAY, "--bits", "4", "--bits", "8", "--json", "-"),
    "fold": ("fold", *_PIPELINE[:3], "--fps", "20000", "--deadline", "3600", "--json", "-"),
    "fold too fast": ("fold", *_PIPELINE[:3], "--fps", "1e9"),
    "no design": ("simulate", "{work}", "--picture", "{picture}"),
    "no reports": ("vendor", "{work}/array"),
}
"""Command lines that need no compiler, by name. Each may use files that earlier ones have written."""

SLOW: dict[str, tuple[str, ...]] = {
    "pareto": ("pareto", *_CHAIN[:3], *_SMALL, "--json", "-"),
    "pipeline": ("generate", *_PIPELINE, *_FOLDED, "-o", "{work}/pipeline", "--json", "-"),
    "simulate": ("simulate", "{work}/array", "--picture", "{picture}", "--json", "-", "--golden"),
    "cycles": ("simulate", "{work}/array", "--picture", "{picture}", "--cycles", "--fifos", "--json", "-"),
    "cycles of a pipeline": (
        *("simulate", "{work}/pipeline", "--picture", "{picture}", "--cycles", "--fifos", "--json", "-"),
    ),
    "check": ("check", "{work}/array", "--json", "-"),
    "run": ("run", "{work}/array", "{picture}", "--json", "-", "-o", "{work}/seen.png"),
    "package": ("package", "{work}/array", "--without-bitstream", "-o", "{work}", "--json", "-"),
    "export": ("export", *_CHAIN, "-o", "{work}/net.onnx", "--json", "-"),
    "evaluate": ("evaluate", *_CHAIN, "--data", "{work}/data", "--json", "-"),
    "wrong integers": ("simulate", "{work}/wrong", "--picture", "{picture}", "--json", "-"),
}
"""Command lines that compile and execute designs. They run after the quick ones."""

STATES = {"SYSTOLIC_CHECK": "0", "SYSTOLIC_PROGRESS": "0", "COLUMNS": "100"}


def _answers(lines: Mapping[str, tuple[str, ...]], work: Path) -> Surface:
    """Run command lines in this process. Return their statuses, the kinds of their output and the keys of JSON."""
    from PIL import Image

    picture = work / "picture.png"
    if not picture.exists():
        Image.linear_gradient("L").resize((16, 16)).convert("RGB").save(picture)
    places = {"networks": NETWORKS, "mappings": HERE / "digests" / "mappings", "work": work, "picture": picture}
    made = Surface({"statuses": {}, "json": {}})
    for name, words in lines.items():
        _prepare(name, work)
        status, out = _called([word.format(**places) for word in words])
        kind = "json" if out.lstrip().startswith("{") else "text" if out else "nothing"
        made.structure["statuses"][name] = f"{status}, answers {kind}: {' '.join(words)}"
        if kind == "json":
            keys = keys_of(json.loads(out))
            made.structure["json"] |= {f"{name}: {key}": values for key, values in keys.items()}
    return made


def _prepare(name: str, work: Path) -> None:
    """Write files that a command line needs and that no command writes."""
    if name == "evaluate":
        data = work / "data"
        for folder in ("images", "labels"):
            (data / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(work / "picture.png", data / "images" / "one.png")
        (data / "labels" / "one.txt").write_text("0 0.5 0.5 0.5 0.5\n", "utf-8")
    if name == "wrong integers":
        shutil.copytree(work / "array", work / "wrong", ignore=shutil.ignore_patterns("build"))
        header = work / "wrong" / "src" / "requantise.h"
        text = header.read_text("utf-8")
        assert _PRODUCT in text
        header.write_text(text.replace(_PRODUCT, f"{_PRODUCT[:-1]}~("), "utf-8")


_PRODUCT = "rounded = ("
"""Code of the engine at which the complement of the sum is inserted, to make wrong integers."""


def _called(words: Sequence[str]) -> tuple[int, str]:
    from systolic.cli.main import main

    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
        mock.patch.dict(os.environ, STATES),
    ):
        try:
            status = main(list(words))
        except SystemExit as left:
            status = int(left.code or 0)
    return status, out.getvalue()


_KINDS = {bool: "bool", int: "number", float: "number", str: "text", type(None): "null"}


def keys_of(values: Any) -> dict[str, str]:
    """Return every key of an object, such as ``layers[].name``, with the kinds of its values."""
    found: dict[str, set[str]] = {}

    def visit(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(inner, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for inner in value or [None]:
                visit(inner, f"{path}[]")
        else:
            found.setdefault(path, set()).add(_KINDS[type(value)])

    visit(values, "")
    return {path: " or ".join(sorted(kinds)) for path, kinds in sorted(found.items())}


# --- arguments of commands -----------------------------------------------------------------------------------------


class _Captured(Exception):  # noqa: N818 (not an error: it ends the command before it begins)
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser that the command makes for ``words``, by stopping the command when it parses."""
    from systolic.cli.main import main

    def capture(self: argparse.ArgumentParser, *_: object, **__: object) -> None:
        raise _Captured(self)

    with mock.patch.object(argparse.ArgumentParser, "parse_known_args", capture):
        try:
            main(list(words))
        except _Captured as captured:
            return captured.parser
    raise AssertionError("the command reads its arguments without argparse")


def _commands() -> Surface:
    made = Surface({"commands": {}})
    top = _parser([])
    names = _choices(top)
    parsers = {"": top, **{name: _choices(_parser([name, "--help"]))[name] for name in names}}
    for name, parser in parsers.items():
        title = f"systolic {name}".strip()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                made.wording |= {f"{title}: {choice.dest}": choice.help for choice in action._choices_actions}
                continue
            flags = ", ".join(sorted(action.option_strings)) or str(action.metavar or action.dest)
            made.structure["commands"][f"{title} {flags}"] = _argument(action)
            made.wording[f"{title} {flags}"] = None if action.help == argparse.SUPPRESS else _help(action, parser)
        made.wording |= {f"{title}: description": parser.description, f"{title}: end": parser.epilog}
    return made


def _choices(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    raise AssertionError("the command has no commands")


def _argument(action: argparse.Action) -> Section:
    facts = {
        "action": type(action).__name__.strip("_"),
        "choices": None if action.choices is None else [str(choice) for choice in action.choices],
        "default": None if action.default in (None, argparse.SUPPRESS) else _text(action.default),
        "metavar": action.metavar,
        "nargs": action.nargs,
        "required": action.required or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


# --- Python --------------------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    """Return a value as text, without addresses and without the path of this checkout."""
    text = re.sub(r" at 0x[0-9a-f]+", "", str(value) if isinstance(value, (str, Path)) else repr(value))
    return text.replace(str(HERE.parent), "").replace(str(Path.cwd()), "")


def _api() -> Section:
    import systolic

    made: Section = {}
    for name in sorted(systolic.__all__):
        value = getattr(systolic, name)
        if inspect.isclass(value):
            bases = [base.__name__ for base in value.__mro__[1:-1]]
            made[name] = f"class ({', '.join(bases)})" if bases else "class"
            made |= {f"{name}.{member}": text for member, text in _members(value)}
        elif callable(value):
            made[name] = _signature(value)
        else:
            made[name] = type(value).__name__
    return made


def _members(kind: type) -> Iterator[tuple[str, str]]:
    if signature := _signature(kind):
        yield "()", signature
    for name in sorted(dir(kind)):
        member = inspect.getattr_static(kind, name)
        owner = next((base for base in kind.__mro__ if name in vars(base)), kind)
        if name.startswith("_") or owner.__module__.split(".")[0] in sys.stdlib_module_names:
            continue
        if isinstance(member, (staticmethod, classmethod)) or inspect.isfunction(member):
            yield name, _signature(getattr(kind, name))
        else:
            yield name, "property" if hasattr(member, "__get__") else "value"


def _signature(value: Any) -> str:
    try:
        return _text(str(inspect.signature(value)))
    except ValueError:
        return ""


# --- designs -------------------------------------------------------------------------------------------------------

_DESIGNS = (
    "hls-seven-bits-chip-zcu104",
    "rtl-seven-bits-double-batch2-ddr-kr260",
    "streaming-four-bits-pynq-z2",
)
"""Designs of the snapshot, one per engine."""


def _designs() -> Surface:
    from tools.digests.design import generate
    from tools.digests.table import DESIGNS

    made = Surface({"files": {}, "manifest": {}})
    for row in DESIGNS:
        if row.name in _DESIGNS:
            files = generate(row).files.files
            for path in files:
                made.structure["files"].setdefault(path, []).append(row.name)
            keys = keys_of(json.loads(files["manifest.json"]))
            made.structure["manifest"] |= {f"{row.name}: {key}": values for key, values in keys.items()}
    return made


# --- the record ----------------------------------------------------------------------------------------------------


def surface(quick: bool = False) -> Surface:
    """Return the snapshot of the current code. ``quick`` leaves out everything that needs a compiler."""
    from tools.digests.execution import quick_builds

    with tempfile.TemporaryDirectory(prefix="surface-") as folder, quick_builds():
        work = Path(folder)
        parts = [_commands(), _designs(), Surface({"api": _api()}), _answers(QUICK, work)]
        if not quick:
            parts.append(_answers(SLOW, work))
    made = Surface()
    for part in parts:
        made.wording |= part.wording
        for name, section in part.structure.items():
            made.structure.setdefault(name, {}).update(section)
    return made


def read(path: Path = RECORD) -> Surface:
    """Return the recorded snapshot."""
    values = json.loads(path.read_text("utf-8"))
    return Surface(values["structure"], values["wording"])


def write(made: Surface, path: Path = RECORD) -> None:
    """Write a snapshot, sorted, with one entry per line."""
    sections = {f' "{name}": ': made.structure[name] for name in sorted(made.structure)}
    text = ",\n".join(f"{title}{_lines(section)}" for title, section in sections.items())
    path.write_text(f'{{"structure": {{\n{text}\n}},\n"wording": {_lines(made.wording)}\n}}\n', "utf-8")


def _lines(section: Section) -> str:
    def plain(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    return "{\n" + ",\n".join(f"  {plain(name)}: {plain(section[name])}" for name in sorted(section)) + "\n }"


def differences(before: Section, after: Section, path: str = "") -> list[str]:
    """Return a line for every difference between two sections."""
    lines = []
    for name in sorted({*before, *after}):
        place = f"{path}: {name}" if path else name
        was, now = before.get(name), after.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            lines += differences(was, now, place)
        elif name not in after:
            lines.append(f"{place}: is gone")
        elif name not in before:
            lines.append(f"{place}: is new")
        elif was != now:
            lines.append(f"{place}: was {_short(was, now)}, is {_short(now, was)}")
    return lines


def _short(value: Any, other: Any) -> str:
    """Return a value as text. For a list, only the elements that the other list lacks."""
    if isinstance(value, list) and isinstance(other, list):
        return str([item for item in value if item not in other])
    return repr(value)


def without_slow(recorded: Surface) -> Surface:
    """Return the part of a snapshot that needs no compiler."""
    structure = {
        name: {
            key: value
            for key, value in section.items()
            if name not in ("statuses", "json") or key.split(":")[0] in QUICK
        }
        for name, section in recorded.structure.items()
    }
    return Surface(structure, recorded.wording)


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return 1 if the structure differs."""
    parser = Parser(
        prog="python -m tools.surface",
        description="Compare commands, options, JSON keys, file names and signatures with the record.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check", help="compare with the recorded surface; exit status 1 if the structure differs"
    )
    check.add_argument("--words", action="store_true", help="also print help texts that differ, which do not count")
    update = commands.add_parser("update", help="write the recorded surface anew")
    for command in (check, update):
        command.add_argument("--quick", action="store_true", help="leave out everything that needs a compiler")
        command.add_argument(
            "--record", type=Path, default=RECORD, metavar="FILE", help="file with the recorded surface"
        )
    options = parser.parse_args(arguments)
    made = surface(options.quick)
    if options.command == "update":
        return _update(made, options)
    recorded = read(options.record)
    structure = differences((without_slow(recorded) if options.quick else recorded).structure, made.structure)
    wording = differences(recorded.wording, made.wording)
    for line in [*structure, *(f"wording: {line}" for line in wording if options.words)]:
        print(line)
    print(f"{len(structure)} differences of the structure, {len(wording)} of the wording")
    return 1 if structure else 0


def _update(made: Surface, options: argparse.Namespace) -> int:
    if options.quick:
        for name in ("statuses", "json"):
            kept = read(options.record).structure.get(name, {}) if options.record.is_file() else {}
            made.structure[name] = {
                **{key: kept[key] for key in kept if key.split(":")[0] in SLOW},
                **made.structure[name],
            }
    write(made, options.record)
    print(f"wrote {options.record}; read the output of git diff")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
